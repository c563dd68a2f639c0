"""Calls between two processes, in both directions, nested as deeply as calls nest.

Both sides run this code: the trusted process calls the learner's answer through it, and the
answer calls what it was given (a model, an optimizer, a layer to be tested) back through it.
Only data passes. Each side believes of the other that a value is a value, and nothing more.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from . import forms, wire
from .errors import Gone, describe_error, raise_remote
from .exports import Exchange
from .tensors import Handed, fitting, gradients, mapped, replaced, tensors_of

Swap = Callable[[str], str]
"""Sends a message and waits for the next one that comes."""


@dataclass
class _Tape:
    """What is kept of a call, to go back through it: results and what they depend on."""

    outputs: list[Tensor]
    inputs: list[Tensor]


class _Call:
    """A call over there as a node of the graph here (see `forms.Computation`)."""

    def __init__(
        self, peer: Peer, key: str, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._peer = peer
        self._args, self._kwargs = args, kwargs
        self._message = {"key": key, "path": path, "grad": torch.is_grad_enabled()}
        self._tape: str | None = None
        self.inputs = [t for t in tensors_of((args, kwargs)) if t.requires_grad]
        self._shapes: list[Tensor] = []
        self.value: Any = None
        self.wanted: list[bool] = []

    def run(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Do it, and give the tensors that came back."""
        # under torch.func the tensors of a graph come without their flag
        marked = [t if t.requires_grad else t.detach().requires_grad_() for t in inputs]
        given = {id(old): new for old, new in zip(self.inputs, marked, strict=False)}
        args, kwargs = mapped((self._args, self._kwargs), lambda t: given.get(id(t), t))
        self._shapes = list(inputs)
        self.value, self._tape = self._peer.send_call(self._message, args, kwargs)
        tensors = tensors_of(self.value)
        self.wanted = [t.requires_grad for t in tensors]
        return tuple(t.detach() for t in tensors)

    def go_back(self, grads: Sequence[Tensor | None], *, everything: bool) -> list[Tensor | None]:
        """The gradients of the inputs, computed over there."""
        if self._tape is None:
            return [None] * len(self._shapes)
        found = self._peer.send_back(self._tape, grads, everything=everything)
        if len(found) < len(self._shapes):
            raise wire.WireError("gradients that do not fit the inputs")
        return [fitting(g, t) for g, t in zip(found, self._shapes, strict=False)]


class Peer:
    """One end of the line.

    Args:
        swap: sends a text and gives the next one that arrives.
        side: "t" in the trusted process, "k" in the kernel: whose objects are whose.
        answer: finds the learner's answer by its name (in the kernel).
        form: the exercise's `wire`. For "arrays" and "samples" the trusted process takes data only:
            it serves no request of the kernel's, and lets no module in.
    """

    def __init__(
        self,
        swap: Swap,
        side: str,
        answer: Callable[[str], Any] | None = None,
        form: str = "class",
    ) -> None:
        self._swap = swap
        self._side = side
        self._takes_data_only = side == "t" and form in ("arrays", "samples")
        self._answer = answer
        self._tapes: dict[str, _Tape] = {}
        self._exchange = Exchange(self, side, modules=not self._takes_data_only)
        self._operations = {
            "call": self._do_call,
            "back": self._do_back,
            "get": self._do_get,
            "copy": self._do_copy,
        }
        if side == "k":
            self._operations["put"] = self._do_put
        self._trace = torch.zeros((), requires_grad=True)
        self._forget = False
        self.locate: Callable[[BaseException], dict[str, Any]] = lambda _: {}
        self.watch: Callable[[], contextlib.AbstractContextManager[set[str]]] | None = None
        self.used: set[str] = set()

    # -- what callers use ---------------------------------------------------------------------

    def forget(self) -> None:
        """Let go of all that was exchanged; the other side does so with the next message."""
        self._clear()
        self._forget = True

    def call(
        self,
        key: str,
        path: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        weights: Sequence[Tensor] = (),
    ) -> Any:
        """Call an object over there; gradients flow back to tensors among `args` and `weights`."""
        computation = _Call(self, key, path, tuple(args), kwargs)
        if not torch.is_grad_enabled():
            tensors = computation.run(computation.inputs)
        else:
            inputs = [*computation.inputs, *(w for w in weights if w.requires_grad)]
            tensors = forms.Through.apply(computation, self._trace, *inputs)
        return replaced(computation.value, iter(tensors))  # type: ignore[arg-type]

    def send_call(self, message: dict[str, Any], args: Any, kwargs: Any) -> tuple[Any, str | None]:
        """Send a call: its value, and the tape to go back on, if there is a graph over there."""
        sent = tensors_of((args, kwargs))
        graded = [[k, t.grad] for k, t in enumerate(sent) if t.is_leaf and t.grad is not None]
        message |= {
            "op": "call",
            "args": self._exchange.encode(args),
            "kwargs": self._exchange.encode(kwargs),
            "graded": self._exchange.encode(graded),
        }
        if self._forget:
            message["seed"] = 0  # a probe draws the same each time
        answered = self.request(message)
        self._take_changes(answered, sent)
        tape = answered.get("tape")
        return self._exchange.decode(answered.get("value")), tape if isinstance(tape, str) else None

    def send_back(
        self, tape: str, grads: Sequence[Tensor | None], *, everything: bool
    ) -> list[Any]:
        """The gradients of a call's inputs, from those of its results."""
        message = {"op": "back", "tape": tape, "all": everything}
        message["grads"] = self._exchange.encode(tuple(grads))
        found = self._exchange.decode(self.request(message).get("value"))
        if not isinstance(found, tuple):
            raise wire.WireError("gradients that are none")
        return list(found)

    def get(self, key: str, name: str, module: forms.RemoteModule | None = None) -> Any:
        """An attribute of an object over there; a method of `module` is called on that.

        Raises:
            AttributeError: if it has none of that name, or does not give it.
        """
        answered = self.request({"op": "get", "key": key, "name": name})
        if answered.get("method") is True and module is not None:
            return lambda *args, **kwargs: module.call_there(name, args, kwargs)
        return self._exchange.decode(answered.get("value"))

    def put(self, key: str, path: str, part: nn.Module, whole: nn.Module) -> None:
        """Replace a submodule over there."""
        self.request({"op": "put", "key": key, "path": path, "value": self._exchange.encode(part)})
        self._exchange.modules.add(key, whole)

    def copy(self, key: str) -> Any:
        """A copy of a module over there."""
        return self._exchange.decode(self.request({"op": "copy", "key": key}).get("value"))

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and serve the other side until the reply is there.

        Raises:
            Exception: what was raised over there, under its own name.
        """
        with wire.beside_func():
            text = self._swap(self._sealed(message))
            while True:
                answer = self._opened(text)
                if answer.get("op") == "return":
                    return answer
                if answer.get("op") == "raise":
                    raise_remote(answer)
                text = self._swap(self._handled(answer))

    def serve_one(self, text: str) -> str:
        """Do what one message asks for, and give the reply."""
        return self._handled(self._opened(text))

    # -- messages -----------------------------------------------------------------------------

    def _sealed(self, message: dict[str, Any]) -> str:
        if self._forget:
            message["forget"], self._forget = True, False
        changes = self._exchange.modules.changes()
        if changes:
            message["state"] = changes
        return wire.dumps(message)

    def _opened(self, text: str) -> dict[str, Any]:
        message = wire.loads(text)
        if message.get("forget") is True:
            self._clear()
        if "state" in message:
            self._exchange.modules.apply(message["state"])
        return message

    def _clear(self) -> None:
        self._exchange.clear()
        self._tapes.clear()

    def _handled(self, message: dict[str, Any]) -> str:
        # beyond Exception only in the kernel: there, an exit is an answer like any other
        caught = Exception if self._side == "t" else BaseException
        try:
            operation = self._operations.get(str(message.get("op")))
            if operation is None or self._takes_data_only:
                raise Gone("no such operation")
            return self._sealed({"op": "return", **operation(message)})
        except caught as error:
            return self._sealed({**describe_error(error), **self.locate(error)})

    # -- served -------------------------------------------------------------------------------

    def _do_call(self, message: dict[str, Any]) -> dict[str, Any]:
        target, module = self._target(message)
        seed = message.get("seed")
        if self._side == "k" and isinstance(seed, int):
            torch.default_generator.manual_seed(seed)
        handed = Handed()
        with torch.enable_grad():
            args = handed.prepare(self._exchange.decode(message.get("args")))
            kwargs = handed.prepare(self._exchange.decode(message.get("kwargs")))
            handed.grade(self._exchange.decode(message.get("graded")))
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise Gone("arguments that are none")
        with torch.set_grad_enabled(message.get("grad") is not False), self._watching():
            value = target(*args, **kwargs)
            # a value of the learner's own class may be computed only when it is looked at
            reply: dict[str, Any] = {"value": self._exchange.encode(value)}
        outputs = [t for t in tensors_of(value) if t.requires_grad]
        if outputs:
            weights = [w for w in (module or nn.Module()).parameters() if w.requires_grad]
            reply["tape"] = self._keep(_Tape(tensors_of(value), [*handed.leaves, *weights]))
        reply |= handed.changes()
        if self.used:
            reply["used"], self.used = sorted(self.used), set()
        return reply

    @contextlib.contextmanager
    def _watching(self) -> Iterator[None]:
        if self.watch is None:
            yield
            return
        with self.watch() as used:
            yield
        self.used |= used

    def _do_back(self, message: dict[str, Any]) -> dict[str, Any]:
        tape = self._tapes.get(str(message.get("tape")))
        if tape is None:
            raise Gone("that computation is no longer kept")
        grads = self._exchange.decode(message.get("grads"))
        if not isinstance(grads, tuple) or len(grads) != len(tape.outputs):
            raise Gone("gradients that do not fit the results")
        pairs = [
            (o, g)
            for o, g in zip(tape.outputs, grads, strict=True)
            if isinstance(g, Tensor) and o.requires_grad
        ]
        wanted = [t for t in tape.inputs if t.requires_grad]
        found = gradients(pairs, wanted, everything=message.get("all") is True)
        by_id = {id(t): g for t, g in zip(wanted, found, strict=True)}
        return {"value": self._exchange.encode(tuple(by_id.get(id(t)) for t in tape.inputs))}

    def _do_get(self, message: dict[str, Any]) -> dict[str, Any]:
        name, key = str(message.get("name")), str(message.get("key"))
        if not key.startswith(self._side) or key not in self._exchange.objects:
            raise Gone("that object is not there")
        owner = self._exchange.objects[key]
        value = None if name.startswith("_") else getattr(owner, name)
        method = isinstance(value, types.MethodType)
        if name.startswith("_") or (self._side == "t" and not _may_be_shown(owner, name, value)):
            raise AttributeError(f"this object does not show {name!r}")
        if method and isinstance(owner, nn.Module):
            return {"method": True}
        return {"value": self._exchange.encode(value)}

    def _do_copy(self, message: dict[str, Any]) -> dict[str, Any]:
        module, _ = self._target({**message, "path": ""})
        if not isinstance(module, nn.Module):
            raise Gone("only modules are copied")
        return {"value": self._exchange.encode(copy.deepcopy(module))}

    def _do_put(self, message: dict[str, Any]) -> dict[str, Any]:
        key, path = str(message.get("key")), str(message.get("path"))
        whole = self._exchange.objects[key]
        parent, _, name = path.rpartition(".")
        setattr(whole.get_submodule(parent), name, self._exchange.decode(message.get("value")))
        self._exchange.modules.add(key, whole)
        return {}

    def _target(self, message: dict[str, Any]) -> tuple[Callable[..., Any], nn.Module | None]:
        """What is to be called, and the module whose weights take part."""
        key, path = str(message.get("key")), str(message.get("path"))
        if self._answer is not None and key.startswith("answer:"):
            return self._answer(key.removeprefix("answer:")), None
        # objects of this side only: not what stands here for the other side's
        target = self._exchange.objects.get(key) if key.startswith(self._side) else None
        if isinstance(target, nn.Module):
            if path in dict(target.named_modules(remove_duplicate=False)):
                part = target.get_submodule(path)
                return part, part
            method = getattr(target, path, None)
            shown = self._side == "k" or _may_be_shown(target, path, method)
            if shown and not path.startswith("_") and isinstance(method, types.MethodType):
                return method, target
        elif isinstance(target, Optimizer) and path == "step":
            return target.step, None
        elif isinstance(target, Optimizer) and path == "options":
            return functools.partial(forms.set_options, target), None
        elif callable(target) and not path:
            return target, None
        raise Gone("that object is not there")

    # -- gradients and changes ----------------------------------------------------------------

    def _keep(self, tape: _Tape) -> str:
        key = self._exchange.new_key()
        self._tapes[key] = tape
        return key

    def _take_changes(self, answered: dict[str, Any], ours: list[Tensor]) -> None:
        """Let what was altered in place over there be altered here."""
        used = answered.get("used")
        if isinstance(used, list) and self._side == "t":
            self.used |= {name[:100] for name in used[:500] if isinstance(name, str)}
        for field_name in ("altered", "graded"):
            changes = answered.get(field_name)
            for place, data in changes if isinstance(changes, list) else ():
                if type(place) is not int or not 0 <= place < len(ours):
                    raise wire.WireError("a change of nothing that was sent")
                value = wire.read_tensor(data.get("T") if isinstance(data, dict) else None)
                if field_name == "altered":
                    ours[place].data = value.detach()
                else:
                    ours[place].grad = fitting(value.detach(), ours[place])


def _may_be_shown(owner: Any, name: str, value: Any) -> bool:
    """Whether the trusted side gives an attribute of one of its own objects to the kernel.

    Plain values, and methods that the course itself wrote: nothing that hooks in or reaches out.
    """
    if hasattr(nn.Module, name) or hasattr(Optimizer, name):
        return False
    if isinstance(value, types.MethodType):
        return value.__self__ is owner and value.__func__.__module__.startswith("attn_course.")
    return value is None or isinstance(value, bool | int | float | str | Tensor)

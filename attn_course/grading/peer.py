"""Calls between two processes, in both directions, nested as deeply as calls nest.

Both sides run this code: the trusted process calls the learner's answer through it, and the
answer calls what it was given (a model, an optimizer, a layer to be tested) back through it.
Only data passes. Each side believes of the other that a value is a value, and nothing more.
"""

from __future__ import annotations

import builtins
import contextlib
import linecache
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from . import forms, wire
from .shared import SharedModules, named_tensors

TEXT_LIMIT = 2000
"""Characters of an error's text that are sent."""

Swap = Callable[[str], str]
"""Sends a message and waits for the next one that comes."""


class Opaque:
    """Stands for a value that is not sent; the class that it gets has the value's name."""


class Gone(Exception):
    """The other side asks for something that it does not have, or may not have."""


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
        args, kwargs = _mapped((self._args, self._kwargs), lambda t: given.get(id(t), t))
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
        return [_fitting(g, t) for g, t in zip(found, self._shapes, strict=False)]


class Peer:
    """One end of the line.

    Args:
        swap: sends a text and gives the next one that arrives.
        side: "t" in the trusted process, "k" in the kernel: whose objects are whose.
        answer: finds the learner's answer by its name (in the kernel).
    """

    def __init__(self, swap: Swap, side: str, answer: Callable[[str], Any] | None = None) -> None:
        self._swap = swap
        self._side = side
        self._answer = answer
        self._objects: dict[str, Any] = {}
        self._keys: dict[int, str] = {}
        self._tapes: dict[str, _Tape] = {}
        self._modules = SharedModules(side)
        self._operations = {"call": self._do_call, "back": self._do_back, "get": self._do_get}
        if side == "k":
            self._operations["put"] = self._do_put
        self._count = 0
        self._trace = torch.zeros((), requires_grad=True)
        self._forget = False
        self.locate: Callable[[BaseException], dict[str, Any]] = lambda _: {}
        self.watch: Callable[[], contextlib.AbstractContextManager[list[str]]] | None = None
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
        return _replaced(computation.value, iter(tensors))  # type: ignore[arg-type]

    def send_call(self, message: dict[str, Any], args: Any, kwargs: Any) -> tuple[Any, str | None]:
        """Send a call: its value, and the tape to go back on, if there is a graph over there."""
        sent = tensors_of((args, kwargs))
        graded = [[k, t.grad] for k, t in enumerate(sent) if t.is_leaf and t.grad is not None]
        message |= {
            "op": "call",
            "args": self._encode(args),
            "kwargs": self._encode(kwargs),
            "graded": self._encode(graded),
        }
        if self._forget:
            message["seed"] = 0  # a probe draws the same each time
        answered = self.request(message)
        self._take_changes(answered, sent)
        tape = answered.get("tape")
        return self._decode(answered.get("value"), []), tape if isinstance(tape, str) else None

    def send_back(
        self, tape: str, grads: Sequence[Tensor | None], *, everything: bool
    ) -> list[Any]:
        """The gradients of a call's inputs, from those of its results."""
        message = {"op": "back", "tape": tape, "all": everything}
        message["grads"] = self._encode(tuple(grads))
        found = self._decode(self.request(message).get("value"), [])
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
        return self._decode(answered.get("value"), [])

    def put(self, key: str, path: str, part: nn.Module, whole: nn.Module) -> None:
        """Replace a submodule over there."""
        self.request({"op": "put", "key": key, "path": path, "value": self._encode(part)})
        self._modules.add(key, whole)

    def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and serve the other side until the reply is there.

        Raises:
            Exception: what was raised over there, under its own name.
        """
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
        changes = self._modules.changes()
        if changes:
            message["state"] = changes
        return wire.dumps(message)

    def _opened(self, text: str) -> dict[str, Any]:
        message = wire.loads(text)
        if message.get("forget") is True:
            self._clear()
        if "state" in message:
            self._modules.apply(message["state"])
        return message

    def _clear(self) -> None:
        self._objects.clear()
        self._keys.clear()
        self._tapes.clear()
        self._modules.clear()

    def _handled(self, message: dict[str, Any]) -> str:
        # beyond Exception only in the kernel: there, an exit is an answer like any other
        caught = Exception if self._side == "t" else BaseException
        try:
            operation = self._operations.get(str(message.get("op")))
            if operation is None:
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
        handed = _Handed()
        with torch.enable_grad():
            args = handed.prepare(self._decode(message.get("args"), []))
            kwargs = handed.prepare(self._decode(message.get("kwargs"), []))
            handed.grade(self._decode(message.get("graded"), []))
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise Gone("arguments that are none")
        with torch.set_grad_enabled(message.get("grad") is not False), self._watching():
            value = target(*args, **kwargs)
        reply: dict[str, Any] = {"value": self._encode(value)}
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
        self.used |= set(used)

    def _do_back(self, message: dict[str, Any]) -> dict[str, Any]:
        tape = self._tapes.get(str(message.get("tape")))
        if tape is None:
            raise Gone("that computation is no longer kept")
        grads = self._decode(message.get("grads"), [])
        if not isinstance(grads, tuple) or len(grads) != len(tape.outputs):
            raise Gone("gradients that do not fit the results")
        pairs = [
            (o, g)
            for o, g in zip(tape.outputs, grads, strict=True)
            if isinstance(g, Tensor) and o.requires_grad
        ]
        wanted = [t for t in tape.inputs if t.requires_grad]
        found = _gradients(pairs, wanted, everything=message.get("all") is True)
        by_id = {id(t): g for t, g in zip(wanted, found, strict=True)}
        gradients = tuple(by_id.get(id(t)) for t in tape.inputs)
        return {"value": self._encode(gradients)}

    def _do_get(self, message: dict[str, Any]) -> dict[str, Any]:
        name = str(message.get("name"))
        owner = self._objects[str(message.get("key"))]
        value = None if name.startswith("_") else getattr(owner, name)
        method = isinstance(value, types.MethodType)
        if name.startswith("_") or (self._side == "t" and not _may_be_shown(owner, name, value)):
            raise AttributeError(f"this object does not show {name!r}")
        if method and isinstance(owner, nn.Module):
            return {"method": True}
        return {"value": self._encode(value)}

    def _do_put(self, message: dict[str, Any]) -> dict[str, Any]:
        key, path = str(message.get("key")), str(message.get("path"))
        whole = self._objects[key]
        parent, _, name = path.rpartition(".")
        setattr(whole.get_submodule(parent), name, self._decode(message.get("value"), []))
        self._modules.add(key, whole)
        return {}

    def _target(self, message: dict[str, Any]) -> tuple[Callable[..., Any], nn.Module | None]:
        """What is to be called, and the module whose weights take part."""
        key, path = str(message.get("key")), str(message.get("path"))
        if self._answer is not None and key.startswith("answer:"):
            return self._answer(key.removeprefix("answer:")), None
        target = self._objects.get(key)
        if isinstance(target, nn.Module):
            if path in dict(target.named_modules(remove_duplicate=False)):
                part = target.get_submodule(path)
                return part, part
            method = getattr(target, path, None)
            shown = not path.startswith("_") and isinstance(method, types.MethodType)
            if shown and (self._side == "k" or _may_be_shown(target, path, method)):
                return method, target
        elif isinstance(target, Optimizer) and path == "step":
            return target.step, None
        elif callable(target) and not path and key.startswith(self._side):
            return target, None
        raise Gone("that object is not there")

    # -- values -------------------------------------------------------------------------------

    def _encode(self, value: Any) -> Any:
        return wire.encode(value, self._export)

    def _decode(self, data: Any, tensors: list[Tensor]) -> Any:
        """The value; its tensors are gathered in `tensors`, in the order of `tensors_of`."""
        value = wire.decode(data, self._import)
        tensors += tensors_of(value)
        return value

    def _export(self, value: Any) -> dict[str, Any]:
        own = self._own_key(value)
        if own is not None:
            return {"R": own}
        if id(value) in self._keys:
            return {"R": self._keys[id(value)]}
        self._count += 1
        key = f"{self._side}{self._count}"
        self._objects[key], self._keys[id(value)] = value, key
        if isinstance(value, nn.Module):
            return {"R": key, "module": self._describe(key, value)}
        if isinstance(value, Optimizer):
            return {"R": key, "optimizer": self._describe_optimizer(value)}
        return {"R": key, "kind": type(value).__name__, "calls": callable(value)}

    def _own_key(self, value: Any) -> str | None:
        """The key of something of the other side's that is sent back to it."""
        if isinstance(value, forms.RemoteObject | forms.RemoteModule | forms.RemoteOptimizer):
            return value.__dict__.get("_key")
        return None

    def _describe(self, key: str, module: nn.Module) -> dict[str, Any]:
        self._modules.add(key, module)
        tensors = [(t, t.grad) for t in named_tensors(module).values()]
        return {**forms.describe_module(module), "tensors": self._encode(tensors)}

    def _describe_optimizer(self, optimizer: Optimizer) -> list[Any]:
        loose = [p for g in optimizer.param_groups for p in g["params"]]
        loose = [p for p in loose if self._modules.place_of(p) is None]
        holder = nn.ParameterList(loose) if loose else None
        held = self._export(holder) if holder is not None else None
        groups = [
            {
                "params": [self._modules.place_of(p) for p in group["params"]],
                "options": self._encode({k: v for k, v in group.items() if k != "params"}),
            }
            for group in optimizer.param_groups
        ]
        return [held, groups]

    def _import(self, data: dict[str, Any]) -> Any:
        if isinstance(data.get("o"), str):
            return type(data["o"][:60] or "object", (Opaque,), {})()
        key = data.get("R")
        if not isinstance(key, str):
            raise wire.WireError("a value of no known kind")
        if key in self._objects:
            return self._objects[key]
        if key.startswith(self._side):
            raise wire.WireError("an object that is not there")
        try:
            value = self._stand_in(key, data)
        except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise wire.WireError(f"an object that does not hang together: {error}") from None
        self._objects[key], self._keys[id(value)] = value, key
        return value

    def _stand_in(self, key: str, data: dict[str, Any]) -> Any:
        if "module" in data:
            described = data["module"]
            module = forms.build_module(
                self, key, described, self._decode(described["tensors"], [])
            )
            self._modules.add(key, module)
            return module
        if "optimizer" in data:
            held, groups = data["optimizer"]
            if held is not None:
                self._import(held)
            found = [
                {
                    **self._decode(group["options"], []),
                    "params": [self._modules.at(*place) for place in group["params"]],
                }
                for group in groups
            ]
            return forms.RemoteOptimizer(self, key, found)
        form = forms.RemoteFunction if data.get("calls") is True else forms.RemoteObject
        return type(str(data.get("kind"))[:60] or "object", (form,), {})(self, key)

    # -- gradients and changes ----------------------------------------------------------------

    def _keep(self, tape: _Tape) -> str:
        self._count += 1
        self._tapes[f"{self._side}{self._count}"] = tape
        return f"{self._side}{self._count}"

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
                    ours[place].grad = _fitting(value.detach(), ours[place])


def _may_be_shown(owner: Any, name: str, value: Any) -> bool:
    """Whether the trusted side gives an attribute of one of its own objects to the kernel.

    Plain values, and methods that the course itself wrote: nothing that hooks in or reaches out.
    """
    if hasattr(nn.Module, name) or hasattr(Optimizer, name):
        return False
    if isinstance(value, types.MethodType):
        return value.__self__ is owner and value.__func__.__module__.startswith("attn_course.")
    return value is None or isinstance(value, bool | int | float | str | Tensor)


class _Handed:
    """The tensors that a call hands over: as they came, as they are used, what became of them."""

    def __init__(self) -> None:
        self.used: list[Tensor] = []
        self.before: list[Tensor] = []
        self.leaves: list[Tensor] = []
        self.graded: dict[int, Tensor] = {}

    def prepare(self, value: Any) -> Any:
        """The same arguments, each tensor a leaf or inside a graph as it was over there."""
        if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
            used = value.clone() if getattr(value, "inside_graph", False) else value
            self.before.append(value.detach().clone())
            self.used.append(used)
            if value.requires_grad:
                self.leaves.append(value)
            return used
        if isinstance(value, tuple | list):
            return type(value)(self.prepare(item) for item in value)
        if isinstance(value, dict):
            return {key: self.prepare(item) for key, item in value.items()}
        return value

    def grade(self, grads: Any) -> None:
        """Give those their gradients that had one."""
        for place, grad in grads or ():
            tensor = self.used[place]
            tensor.grad = _fitting(grad, tensor)
            self.graded[place] = grad.clone()

    def changes(self) -> dict[str, Any]:
        """Which of them were altered in place, or were given a gradient."""
        found: dict[str, Any] = {}
        for place, (now, before) in enumerate(zip(self.used, self.before, strict=True)):
            if _differs(now, before):
                found.setdefault("altered", []).append([place, wire.write_tensor(now, wire.PLAIN)])
            former = self.graded.get(place)
            if (
                now.is_leaf
                and now.grad is not None
                and (former is None or _differs(now.grad, former))
            ):
                grad = wire.write_tensor(now.grad, wire.PLAIN)
                found.setdefault("graded", []).append([place, grad])
        return found


def tensors_of(value: Any) -> list[Tensor]:
    """All tensors in nested containers, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def describe_error(error: BaseException) -> dict[str, Any]:
    """An error as data: its name, its known bases, its text, and the learner's line."""
    try:
        text = str(error)[:TEXT_LIMIT]
    except Exception:
        text = ""
    bases = [base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"]
    return {"op": "raise", "kind": type(error).__name__[:100], "bases": bases, "text": text}


_PLAIN_ERRORS = tuple(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    and not issubclass(kind, UnicodeError | BaseExceptionGroup | Warning)
)


def raise_remote(answer: dict[str, Any]) -> None:
    """Raise here what was raised over there: an error of the same name, base and text."""
    kind, text, bases = (answer.get(name) for name in ("kind", "text", "bases"))
    known = [b for b in bases if b in _PLAIN_ERRORS] if isinstance(bases, list) else []
    base = getattr(builtins, known[0]) if known else Exception
    message = text[:TEXT_LIMIT] if isinstance(text, str) else ""
    title = kind[:100] if isinstance(kind, str) and kind.isidentifier() else "Exception"
    error = type(title, (base,), {"__str__": lambda _: message})(message)
    line = answer.get("line")
    if isinstance(line, str) and line:
        _raise_at(error, line[:200], own=answer.get("own") is True)
    raise error


def _raise_at(error: BaseException, line: str, *, own: bool) -> None:
    """Raise with the learner's line in the traceback, as it would stand there had it run here."""
    name = f"<answer: {line}>"
    linecache.cache[name] = (len(line), None, [line], name)
    code = "raise error" if own else "throw(error)"
    exec(compile(code, name, "exec"), {"error": error, "throw": _throw})


def _throw(error: BaseException) -> None:
    raise error


def _gradients(
    pairs: Sequence[tuple[Tensor, Tensor]], wanted: Sequence[Tensor], *, everything: bool
) -> Sequence[Tensor | None]:
    if not pairs:
        return [None] * len(wanted)
    outputs, grads = zip(*pairs, strict=True)
    if not everything:
        return (
            torch.autograd.grad(outputs, wanted, grads, allow_unused=True, retain_graph=True)
            if wanted
            else []
        )
    # what lies over there and belongs to nobody here gets its gradient too, as it would have
    former = [t.grad for t in wanted]
    for t in wanted:
        t.grad = None
    torch.autograd.backward(outputs, grads, retain_graph=True)
    found = [t.grad for t in wanted]
    for t, grad in zip(wanted, former, strict=True):
        t.grad = grad
    return found


def _fitting(gradient: Any, tensor: Tensor) -> Tensor | None:
    if gradient is None:
        return None
    if not isinstance(gradient, Tensor) or gradient.shape != tensor.shape:
        raise wire.WireError("a gradient that does not fit its tensor")
    return gradient.detach().to(tensor.dtype)


def _differs(now: Tensor, before: Tensor) -> bool:
    if now.shape != before.shape or now.dtype != before.dtype:
        return True
    return not torch.equal(now.detach().nan_to_num(), before.nan_to_num())


def _replaced(value: Any, tensors: Iterator[Tensor]) -> Any:
    """The same value with its tensors taken from `tensors`, in order."""
    return _mapped(value, lambda _: next(tensors))


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same containers with other tensors in them."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value

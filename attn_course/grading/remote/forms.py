"""What stands for an object that lives in the other process: functions, modules, optimizers.

Gradients pass through all of them: what is computed over there is a node of the graph here, and
its backward pass is asked for when this graph gets there. A module's parameters exist on both
sides under the same names and are kept alike with every message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import torch
from torch import Tensor, nn

PLAIN_LAYERS: dict[str, tuple[type[nn.Module], tuple[str, ...]]] = {
    layer.__name__: (layer, attributes)
    for layer, attributes in (
        (nn.Linear, ("in_features", "out_features")),
        (nn.Embedding, ("num_embeddings", "embedding_dim")),
        (nn.Dropout, ("p", "inplace")),
        (nn.LayerNorm, ("normalized_shape", "eps", "elementwise_affine")),
        (nn.ModuleList, ()),
        (nn.ModuleDict, ()),
        (nn.Sequential, ()),
        (nn.Identity, ()),
        (nn.ReLU, ("inplace",)),
        (nn.Tanh, ()),
        (nn.GELU, ("approximate",)),
    )
}
"""Layers that are the same on both sides, with the attributes that they run on.

A learner's own `self.W_q` is such a layer here too, and can be looked at and given weights.
"""

_UNSENT = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}


class OtherSide(Protocol):
    """What stand-ins ask of the side where their objects live; a `Peer` does it."""

    def call(
        self,
        key: str,
        path: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        weights: Sequence[Tensor] = (),
    ) -> Any:
        """Call an object; gradients flow back to tensors among `args` and `weights`."""
        ...

    def get(self, key: str, name: str, module: RemoteModule | None = None) -> Any:
        """An attribute of an object; a method of `module` is called on that."""
        ...

    def put(self, key: str, path: str, part: nn.Module, whole: nn.Module) -> None:
        """Replace a submodule."""
        ...

    def copy(self, key: str) -> Any:
        """A copy of a module."""
        ...


class RemoteObject:
    """An object in the other process; plain attributes and methods can be asked for."""

    def __init__(self, peer: OtherSide, key: str) -> None:
        self.__dict__.update(_peer=peer, _key=key)

    def __getattr__(self, name: str) -> Any:
        """Ask for it over there."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._peer.get(self._key, name)


class RemoteFunction(RemoteObject):
    """A function in the other process."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the function over there gives."""
        return self._peer.call(self._key, "", args, kwargs)

    def __repr__(self) -> str:
        """Return a name that gives nothing away."""
        return "function()"


class RemoteModule(nn.Module):
    """A module in the other process, with parameters and submodules of the same names here.

    A submodule that is replaced here is replaced over there, by something that calls back.
    """

    def __init__(self, peer: OtherSide, key: str, path: str = "", title: str = "Layer") -> None:
        super().__init__()
        self.__dict__.update(_peer=peer, _key=key, _path=path, _title=title, _whole=None)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module over there gives; errors are raised here as they were there."""
        return self.call_there(self._path, args, kwargs)

    def call_there(self, path: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call the module, or one of its methods, over there."""
        self._put_parts()
        return self._peer.call(self._key, path, args, kwargs, list(self.parameters()))

    def seal(self) -> None:
        """It is built: from now on changes of its parts are told, and attributes asked for."""
        self.__dict__["_whole"] = dict(self.named_children_deep())

    def named_children_deep(self) -> Iterator[tuple[str, nn.Module]]:
        """All modules below this one that are no part of one that was put here."""
        for name, child in self.named_modules(remove_duplicate=False):
            if name:
                yield name, child

    def _put_parts(self) -> None:
        former = self.__dict__.get("_whole")
        if former is None:
            return
        put: list[str] = []
        for name, child in self.named_children_deep():
            below = any(name.startswith(f"{path}.") for path in put)
            if former.get(name) is not child and not below:
                self._peer.put(self._key, name, child, self)
                put.append(name)
        if put:
            self.seal()

    def __getattr__(self, name: str) -> Any:
        """Find it among the parts here, else ask for it over there."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("_") or self.__dict__.get("_whole") is None:
                raise
        return self._peer.get(self._key, name, self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Have the copy made over there."""
        if self.__dict__["_path"]:
            raise TypeError("a part of the course's layer cannot be copied alone")
        return self._peer.copy(self._key)

    def __repr__(self) -> str:
        """Return the name of its class alone."""
        return f"{self._title}()"


class RemoteOptimizer(torch.optim.Optimizer):
    """An optimizer in the other process: its step is taken there, on the same parameters."""

    def __init__(self, peer: OtherSide, key: str, groups: list[dict[str, Any]]) -> None:
        # Optimizer.__init__ and its zero_grad import torch's compiler, which takes a second
        self._peer, self._key = peer, key
        self.param_groups = groups
        self._told = _options(self)
        self.defaults, self.state = {}, defaultdict(dict)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, here; they are told with the next message."""
        for parameter in (p for group in self.param_groups for p in group["params"]):
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = torch.zeros_like(parameter)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """One step over there, after `closure` has been run here, with the settings of here."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        now = _options(self)
        if now != self._told:
            self._peer.call(self._key, "options", (now,), {})
            self._told = now
        self._peer.call(self._key, "step", (), {})
        return loss


def _options(optimizer: torch.optim.Optimizer) -> list[dict[str, float]]:
    """The numbers among an optimizer's settings, such as its rates, group by group."""
    return [
        {key: value for key, value in group.items() if type(value) in (int, float)}
        for group in optimizer.param_groups
    ]


def set_options(optimizer: torch.optim.Optimizer, options: Sequence[dict[str, float]]) -> None:
    """Give an optimizer's settings other numbers; what is no number now stays as it is."""
    former = _options(optimizer)
    for group, known, new in zip(optimizer.param_groups, former, options, strict=True):
        group |= {k: v for k, v in new.items() if k in known and type(v) in (int, float)}


# -- describing a module, and building its stand-in -------------------------------------------


def describe_module(module: nn.Module) -> dict[str, Any]:
    """A module's class, submodules, and the names of its tensors; tied tensors share a place.

    Each submodule comes with the first of its names: one that has several is one there, too.
    """
    places: dict[int, int] = {}
    names = [
        [
            "p" if isinstance(tensor, nn.Parameter) else "b",
            name,
            places.setdefault(id(tensor), len(places)),
        ]
        for name, tensor in _named(module)
    ]
    first: dict[int, str] = {}
    layers = [
        [path, type(layer).__name__, _attributes(layer), first.setdefault(id(layer), path)]
        for path, layer in module.named_modules(remove_duplicate=False)
        if path
    ]
    modes = [layer.training for layer in module.modules()]
    return {"class": type(module).__name__, "layers": layers, "names": names, "modes": modes}


def _attributes(layer: nn.Module) -> dict[str, Any] | None:
    """What a plain layer runs on; None for one that must be called where it is."""
    known, names = PLAIN_LAYERS.get(type(layer).__name__, (None, ()))
    if known is not type(layer):
        return None
    values = {name: getattr(layer, name) for name in names}
    return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _named(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def build_module(
    peer: OtherSide,
    key: str,
    description: dict[str, Any],
    tensors: Sequence[tuple[Tensor, Tensor | None]],
) -> RemoteModule:
    """The stand-in for a module that is described like this and has these tensors and gradients.

    Raises:
        ValueError, TypeError, KeyError: if the description does not hang together.
    """
    root = RemoteModule(peer, key, title=_word(description["class"]))
    layers = description["layers"]
    for path, kind, attributes, first in layers:
        parent, _, name = _word(path).rpartition(".")
        owner = root.get_submodule(parent)
        if first != path:
            owner.add_module(name, root.get_submodule(_word(first)))
        else:
            owner.add_module(name, _layer(peer, key, path, _word(kind), attributes))
    # parts of parts that are the same could be without number
    names = islice(root.named_modules(remove_duplicate=False), len(layers) + 2)
    if sum(1 for _ in names) != len(layers) + 1:
        raise ValueError("parts that do not hang together")
    shared = [_owned(*pair) for pair in tensors]
    for kind, path, place in description["names"]:
        parent, _, name = _word(path).rpartition(".")
        owner = root.get_submodule(parent)
        if kind == "p":
            owner.register_parameter(name, shared[place])
        else:
            owner.register_buffer(name, shared[place].data)
    for layer, mode in zip(root.modules(), description["modes"], strict=False):
        layer.training = mode is True
        if isinstance(layer, nn.Linear | nn.LayerNorm) and "bias" not in layer._parameters:
            layer.register_parameter("bias", None)
    root.seal()
    return root


def _owned(tensor: Tensor, grad: Tensor | None) -> nn.Parameter:
    parameter = nn.Parameter(tensor.detach(), requires_grad=tensor.requires_grad)
    parameter.grad = grad
    return parameter


def _layer(peer: OtherSide, key: str, path: str, kind: str, attributes: Any) -> nn.Module:
    known, names = PLAIN_LAYERS.get(kind, (None, ()))
    if known is None or not isinstance(attributes, dict):
        return RemoteModule(peer, key, path, kind)
    layer = known.__new__(known)
    nn.Module.__init__(layer)
    if known in (nn.ModuleList, nn.ModuleDict, nn.Sequential):
        return known()
    for name in names:
        value = attributes[name]
        layer.__dict__[name] = tuple(value) if isinstance(value, list) else value
    if known is nn.Embedding:
        layer.__dict__.update(_UNSENT, sparse=False)
    return layer


def _word(text: Any) -> str:
    if not isinstance(text, str) or len(text) > 200:
        raise ValueError("a name that is no short text")
    return text


# -- gradients --------------------------------------------------------------------------------


class Computation(Protocol):
    """A call over there, once it is known with which tensors."""

    wanted: list[bool]
    """Which of the tensors that came back have a graph over there."""

    def run(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Do it, and give the tensors that came back."""
        ...

    def go_back(self, grads: Sequence[Tensor | None], *, everything: bool) -> list[Tensor | None]:
        """The gradients of the inputs, computed over there."""
        ...


class Through(torch.autograd.Function):
    """A computation in the other process as one node of this graph."""

    @staticmethod
    def forward(computation: Computation, trace: Tensor, *inputs: Tensor) -> Any:
        """Run it over there."""
        return computation.run(inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep what the way back needs."""
        ctx.computation, ctx.trace, *_ = inputs
        ctx.set_materialize_grads(False)
        wanted = ctx.computation.wanted
        ctx.mark_non_differentiable(*(t for t, w in zip(output, wanted, strict=True) if not w))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        """The gradients of the inputs, computed over there."""
        return None, None, *ctx.computation.go_back(grads, everything=_reaches(ctx.trace))


def _reaches(leaf: Tensor) -> bool:
    """Whether the backward pass that is running gets as far as this leaf.

    Only `.backward()` does: it fills in the gradients of all leaves, those over there too.
    """
    if not leaf.requires_grad:
        return False
    node = torch.autograd.graph.get_gradient_edge(leaf).node
    return torch._C._will_engine_execute_node(node)  # type: ignore[attr-defined]

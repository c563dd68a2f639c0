"""What checks of modules share: parts with drawn weights, what a class has made, who is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from attn_course.checks.exercise import (
    Answer,
    Diagnosis,
    Mistake,
    Output,
    Seen,
    Stage,
    Version,
)
from attn_course.sentences import Spoken, say

PartOf = Callable[[Any, str], Any]
"""(module, role) -> the part of the module that plays the role; None if there is none."""

_SEED = 8_404


def drawn(module: nn.Module, seed: int, like: Tensor) -> Any:
    """The module with normal weights, biases and gains, in the dtype of `like`."""
    generator = torch.Generator().manual_seed(_SEED + seed)
    with torch.no_grad():
        for parameter in module.parameters():
            fan_in = parameter.shape[-1] if parameter.ndim > 1 else 4
            noise = torch.randn(parameter.shape, generator=generator) / fan_in**0.5
            parameter.copy_(noise + (1 if parameter.ndim == 1 else 0))
    return module.to(like.dtype)


def copied(module: nn.Module) -> Any:
    """A copy with weights of its own, as copy.deepcopy makes it, in a quarter of the time."""
    twin = object.__new__(type(module))
    twin.__dict__.update(vars(module))
    twin.__dict__["_parameters"] = {
        name: None if weight is None else nn.Parameter(weight.detach().clone())
        for name, weight in module._parameters.items()
    }
    twin.__dict__["_modules"] = {
        name: None if child is None else copied(child) for name, child in module._modules.items()
    }
    return twin


def place(module: Any, role: str, elsewhere: Mapping[str, str]) -> str:
    """The path of the part that plays a role: the role's own name, as the learner is asked for.

    elsewhere: where the course's own class has the parts that it names otherwise. It is told by
        these names, not by its class: a grader sees a class that lives in another process, and
        knows nothing of it but its parts' names.
    """
    if not isinstance(module, nn.Module):
        return role
    names = {name for name, _ in module.named_modules(remove_duplicate=False)}
    return elsewhere.get(role, role) if names.issuperset(elsewhere.values()) else role


def part_at(module: Any, path: str) -> Any:
    """What a module has at a path; None if there is nothing."""
    found = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def put_at(module: Any, path: str, replacement: nn.Module) -> None:
    """Replace the part of a module at a path."""
    above, _, name = path.rpartition(".")
    setattr(part_at(module, above) if above else module, name, replacement)


def require_module(made: Any) -> None:
    """Raise TypeError unless a class made an nn.Module."""
    if not isinstance(made, nn.Module):
        words = "{kind} is no nn.Module: write a class that inherits it"
        raise TypeError(say(words, kind=type(made).__name__))


def require_roles(module: Any, roles: Iterable[str], part: PartOf) -> None:
    """Raise TypeError unless a module plays each of the roles."""
    for role in roles:
        if not isinstance(part(module, role), nn.Module):
            found = type(part(module, role)).__name__
            words = "self.{role} should be an nn.Module, it is {found}"
            raise TypeError(say(words, role=role, found=found))


def named_shapes(answer: Answer, *sizes: int) -> str:
    """The names and shapes of the parameters of a new layer of a learner's class."""
    layer = answer(*sizes)
    if not isinstance(layer, nn.Module):
        return f"no nn.Module but {type(layer).__name__}"
    found = sorted((name, tuple(p.shape)) for name, p in layer.named_parameters())
    return ", ".join(f"{name} {shape}" for name, shape in found)


def sizes_by_role(module: Any, roles: Iterable[str], part: PartOf) -> str:
    """How many numbers are trained in each part, and in all, a shared one counted once."""
    counts = [(role, sum(p.numel() for p in part(module, role).parameters())) for role in roles]
    total = sum(p.numel() for p in module.parameters())
    return ", ".join(f"{role} {count}" for role, count in counts) + f", in all {total}"


def repeats(layer: Any, *inputs: Any) -> Any:
    """Whether two calls agree, in training and in evaluation.

    Where something else than a tensor comes back, that is for another stage to tell: they agree.
    Raises TypeError for a tuple or list, ValueError if the calls have changed the weights: but a
    part that is made anew, and then has other weights, is told by calls that do not agree.
    """
    before = [weight.detach().clone() for weight in layer.parameters()]
    outputs = layer(*inputs), layer(*inputs), layer.eval()(*inputs), layer(*inputs)
    if isinstance(outputs[0], tuple | list):
        words = "one tensor should come back, not {n} values"
        raise TypeError(say(words, n=len(outputs[0])))
    agree = True, True
    if all(isinstance(output, Tensor) for output in outputs):
        agree = torch.equal(*outputs[:2]), torch.equal(*outputs[2:])
    pairs = zip(before, layer.parameters(), strict=False)
    changed = [pair for pair in pairs if not torch.equal(*pair)]
    if changed and (all(agree) or not any(_unlike(*pair) for pair in changed)):
        raise ValueError(say("a call changes the layer's own weights"))
    return agree


def _unlike(before: Tensor, after: Tensor) -> bool:
    """Whether weights have nothing to do with what they were, as when they are drawn again."""
    if before.shape != after.shape:
        return True
    return bool(torch.cosine_similarity(before.flatten(), after.flatten(), dim=0).abs() < 0.5)


def unreached(module: nn.Module, loss: Tensor) -> str:
    """The names of the parameters that the gradient of a loss does not reach; "" if none."""
    if not loss.requires_grad:
        return "all of them"
    named = dict(module.named_parameters())
    gradients = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    return ", ".join(name for name, g in zip(named, gradients, strict=True) if g is None)


def normalised(x: Tensor) -> bool:
    """Whether each token has mean 0 and variance 1, as a new norm leaves it."""
    x = x.detach().double()
    spread = x.var(dim=-1, unbiased=False)
    return bool((x.mean(dim=-1).abs() < 1e-3).all() and ((spread - 1).abs() < 1e-2).all())


def passing(width: int, *, bias: bool = True) -> nn.Linear:
    """A projection that gives back what it gets, to see what a head reads."""
    made = nn.Linear(width, width, bias=bias)
    with torch.no_grad():
        made.weight.copy_(torch.eye(width))
        if bias:
            made.bias.zero_()
    return made


# -- two calls that should agree --------------------------------------------------------------


def of_repeated_calls(
    dropping: Iterable[Version], made_anew: Iterable[Version]
) -> tuple[Mistake, Mistake]:
    """The mistakes that a stage of repeated calls names, with examples of each."""
    drops = Mistake(
        "drops",
        "Two calls with the same input differ in training mode: something is dropped. Here nothing "
        "is.",
        examples=tuple(dropping),
    )
    made_in_forward = Mistake(
        "made-in-forward",
        "Two calls with the same input differ, in eval mode too: a part is made, and so drawn "
        "anew, in each call. What is not made in __init__ is never trained. (F.dropout without "
        "`training=self.training` differs as well.)",
        examples=tuple(made_anew),
    )
    return drops, made_in_forward


def repeated_calls(
    mistakes: Sequence[Mistake],
    draw: Callable[[Generator], Iterator[tuple[Any, ...]]],
    call: Callable[..., Any],
    inputs: tuple[Spoken, ...],
) -> Stage:
    """A stage in which two calls must agree; `call` returns what `repeats` does."""
    by_id = {mistake.id: mistake for mistake in mistakes}

    def diagnose(seen: Sequence[Seen]) -> Diagnosis:
        in_evaluation = all(one.actual[1] for one in seen)
        known = by_id["drops" if in_evaluation else "made-in-forward"]
        return Diagnosis(known.message, known.id)

    return Stage(
        "repeated calls",
        draw,
        "Two calls with the same input should agree: nothing is dropped here, and nothing drawn "
        "in forward.",
        call=call,
        outputs=(
            Output(say("two calls agree in training")),
            Output(say("two calls agree in evaluation")),
        ),
        inputs=inputs,
        diagnose=diagnose,
    )

"""What an exercise is made of: a reference, stages of probes, and its known mistakes."""

from __future__ import annotations

import inspect
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor

from attn_course.checks.edits import Answer, Edits, composed, edited
from attn_course.checks.runner import Outcome, copy_of, detached
from attn_course.sentences import Spoken

Wire = Literal["arrays", "class", "callable", "samples"]
"""What passes between an answer and its judge, where the two are different processes.

arrays: numbers and tensors. class: the answer makes a module, whose weights and parts are known
by name and can be set from outside. callable: it is given models, layers or functions, and calls
them back. samples: it is given a generator, and what it draws is counted.
"""


Version = Edits | Answer
"""A wrong version: what was edited in a right answer, or a function of its own."""


@dataclass(frozen=True)
class Output:
    """One value that an answer returns: its name and its axes, such as `"i j"`."""

    name: Spoken
    axes: str = ""


@dataclass(frozen=True)
class Seen:
    """One probe for a diagnosis: the arguments, what the answer gave, what the reference gives."""

    args: tuple[Any, ...]
    actual: Any
    expected: Any


@dataclass(frozen=True)
class Diagnosis:
    """What a stage reads off wrong values: words, and the mistake's id if it knows one."""

    message: Spoken
    mistake: str | None = None


@dataclass(frozen=True)
class Stage:
    """Probes that look at one property of an answer.

    Attributes:
        name: one word, such as "mask"; partial credit is counted by stages.
        draw: gives the probes' argument tuples, from a generator seeded for this stage. Put a
            case small enough to be read (at most a dozen one-digit numbers) first.
        message: what is wrong when this stage fails and no known mistake explains it.
        call: how an answer is called on one argument tuple; what it returns is what is judged.
            It runs beside the answer, and may call it twice, build a module from weights, or
            ask for gradients.
        outputs: the returned values, where `call` returns others than the exercise.
        inputs: names of the arguments, where they are not the answer's own parameters: code as
            bare text, or words as a sentence.
        diagnose: reads a cause off the values of this stage's failing probes.
        remark: failing costs nothing and is told as a remark.
    """

    name: str
    draw: Callable[[torch.Generator], Iterable[tuple[Any, ...]]]
    message: Spoken
    call: Callable[..., Any] | None = None
    outputs: tuple[Output, ...] | None = None
    inputs: tuple[Spoken, ...] | None = None
    diagnose: Callable[[Sequence[Seen]], Diagnosis | None] | None = None
    remark: bool = False


@dataclass(frozen=True)
class Mistake:
    """A small known-wrong version of the reference, and what its author should be told.

    A version is what was edited in a right answer, or, where that is no small edit, a function.

    Attributes:
        id: short and stable, such as "no-scale".
        message: the cause and what to look at, never the corrected line.
        answer: the wrong version, with the reference's positional parameters. None for a
            family of versions (a constant that may have any value): a stage's `diagnose`
            names those.
        examples: some members of such a family, for the catalogue's own tests.
        also: other ways to make the same mistake, whose values or errors differ from `answer`'s.
        error: words of an error that nothing but this mistake leads to. They name it where the
            answer's parts stand in another process and `answer` does not fail as it does.
    """

    id: str
    message: Spoken
    answer: Version | None = None
    examples: tuple[Version, ...] = ()
    also: tuple[Version, ...] = ()
    error: str = ""

    @property
    def versions(self) -> tuple[Version, ...]:
        """The wrong versions that an answer is held against."""
        return () if self.answer is None else (self.answer, *self.also)


SEEDS_KEPT = 5
"""Of how many seeds an exercise keeps its probes."""


@dataclass(frozen=True, eq=False)
class Case:
    """One probe: the stage it belongs to, its arguments, and what the reference gives for them."""

    stage: Stage
    args: tuple[Any, ...]
    reference: Answer

    @cached_property
    def expected(self) -> Any:
        """The reference's value in float64."""
        exact = as_float64(copy_of(self.args))
        return detached(call_stage(self.stage, self.reference, exact))

    @cached_property
    def outcomes(self) -> dict[Answer, Outcome]:
        """What known wrong versions did here, as far as they were asked."""
        return {}

    @cached_property
    def own(self) -> Any:
        """The reference's value in the inputs' own dtype."""
        return detached(call_stage(self.stage, self.reference, copy_of(self.args)))

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first floating tensor among the arguments; float32 without one."""
        floats = (t.dtype for t in tensors_in(self.args) if t.is_floating_point())
        return next(floats, torch.float32)

    @property
    def size(self) -> int:
        """How many numbers the arguments hold: the smallest failing case is the one to show."""
        return sum(tensor.numel() for tensor in tensors_in(self.args))


@dataclass(frozen=True)
class Exercise:
    """An exercise as the course knows it; the task's prose stands in the chapter.

    Attributes:
        number: "3.2": chapter and place in it.
        reference: the package's function, which is also the solution.
        outputs: the values that an answer returns.
        stages: in the order in which a learner should hear of them.
        mistakes: in order of precedence.
        hints: from a nudge to nearly the answer.
        difficulty: 1 to 3.
        minutes: an honest time.
        may_use: what the answer may call, in words.
        rules_out: names of what is ready made and may not be called (see `ready_made`).
        points: what it is worth.
        optional: whether the course goes on without it.
        alias: the name of what the learner writes, where it is not the reference's.
        right: the answer whose source the mistakes edit, where it is not the reference's.
        wire: what may pass between the answer and a judge in another process; nothing else does.
    """

    number: str
    reference: Answer
    outputs: tuple[Output, ...]
    stages: tuple[Stage, ...]
    mistakes: tuple[Mistake, ...]
    hints: tuple[Spoken, ...]
    difficulty: int
    minutes: int
    may_use: Spoken
    points: int = 1
    optional: bool = False
    alias: str = ""
    right: Answer | None = None
    rules_out: frozenset[str] = frozenset()
    wire: Wire = "arrays"

    @property
    def name(self) -> str:
        """The name of what the learner writes: the reference's, unless there is an alias."""
        return self.alias or self.reference.__name__

    @property
    def chapter(self) -> str:
        """The chapter's two digits."""
        return f"{int(self.number.split('.')[0]):02d}"

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of the reference's positional parameters."""
        return positional_names(self.reference)

    def mistake(self, mistake_id: str) -> Mistake:
        """The catalogue entry with this id."""
        return next(entry for entry in self.mistakes if entry.id == mistake_id)

    def versions(self, mistake: Mistake) -> tuple[Answer, ...]:
        """The wrong versions of a mistake that an answer is held against."""
        return tuple(map(self.version, mistake.versions))

    def examples(self, mistake: Mistake) -> tuple[Answer, ...]:
        """Some members of a family of wrong versions."""
        return tuple(map(self.version, mistake.examples))

    def version(self, made: Version) -> Answer:
        """A wrong version as a function or class; one that is an edit is compiled once."""
        if not isinstance(made, Mapping):
            return made
        key = tuple(made.items())
        if key not in self._edited:
            self._edited[key] = edited(self.right or self.reference, made)
        return self._edited[key]

    def with_both(self, one: Mistake, other: Mistake) -> Iterator[Answer]:
        """Answers that make both mistakes, as far as both are edits that can be made together."""
        right = self.right or self.reference
        for edits, others in product(one.versions, other.versions):
            if isinstance(edits, Mapping) and isinstance(others, Mapping):
                both = composed(right, edits, others)
                if both is not None:
                    yield edited(right, both)

    @cached_property
    def _edited(self) -> dict[tuple[tuple[str, str], ...], Answer]:
        return {}

    def cases(self, seed: int = 0) -> list[Case]:
        """All probes, drawn from `seed`; each stage's draws depend on its own name only.

        Those of the last seeds are kept, with what the reference and known wrong versions did: a
        learner tries several answers. Only numbers and tensors are, since answers get copies.
        """
        if seed in self._kept:
            return self._kept[seed]
        cases = []
        for stage in self.stages:
            rng = torch.Generator().manual_seed(seed + zlib.crc32(stage.name.encode()))
            cases += [Case(stage, tuple(args), self.reference) for args in stage.draw(rng)]
        if all(_is_data(case.args) for case in cases):
            self._kept[seed] = cases
            for earlier in list(self._kept)[:-SEEDS_KEPT]:
                del self._kept[earlier]
        return cases

    @cached_property
    def _kept(self) -> dict[int, list[Case]]:
        return {}


def call_stage(stage: Stage, answer: Answer, args: tuple[Any, ...]) -> Any:
    """Call `answer` on one probe the way its stage does."""
    return stage.call(answer, *args) if stage.call else answer(*args)


def positional_names(function: Answer) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return tuple(p.name for p in parameters if p.kind in kinds)


def tensors_in(value: Any) -> list[Tensor]:
    """All tensors in nested tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def _is_data(value: Any) -> bool:
    """Whether a value is numbers, texts and tensors throughout."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return all(map(_is_data, value))
    return value is None or isinstance(value, bool | int | float | str | Tensor | torch.dtype)


def as_float64(value: Any) -> Any:
    """The same arguments with floating tensors in float64, for the reference."""
    if isinstance(value, Tensor):
        return value.to(torch.float64) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {key: as_float64(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(as_float64(item) for item in value)
    return value


def whole(rng: torch.Generator, low: int, high: int) -> int:
    """A whole number from low to high, both included: a size that no table of results foresees."""
    return int(torch.randint(low, high + 1, (), generator=rng))


def tenths(rng: torch.Generator, *shape: int) -> Tensor:
    """Random numbers with one decimal between -2 and 2, none of them zero: easy to read."""
    magnitude = torch.randint(1, 21, shape, generator=rng)
    sign = torch.randint(0, 2, shape, generator=rng) * 2 - 1
    return sign * magnitude / 10


def normal(rng: torch.Generator, *shape: int) -> Tensor:
    """Standard normal float32 numbers."""
    return torch.randn(shape, generator=rng)

"""How a known-wrong version is described: what it replaces, and which test must fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import Any

import pytest

from attn_course.checks import get
from attn_course.checks.edits import Edits, edited

# a comparison that fails, or an error that should have come and did not
REJECTED = (AssertionError, pytest.fail.Exception)


@dataclass(frozen=True)
class Wrong:
    """A mistake that somebody made, made again.

    `replaces` maps names below attn_course to the wrong version of each, or to what is edited in
    the source of the right one; `killed_by` is the test that must fail with them, called with
    `arguments`, and `error` how it fails.
    """

    mistake: str
    replaces: Mapping[str, Edits | Callable[..., Any]]
    killed_by: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    error: type[BaseException] | tuple[type[BaseException], ...] = REJECTED

    def versions(self) -> dict[str, Callable[..., Any]]:
        """The names below attn_course and the wrong version of each."""
        return {
            name: _edited(f"attn_course.{name}", version)
            if isinstance(version, Mapping)
            else version
            for name, version in self.replaces.items()
        }


def _edited(name: str, edits: Edits) -> Callable[..., Any]:
    """A function with pieces of its source replaced; a method, with pieces of its class's."""
    right = resolve_name(name)
    if "." not in right.__qualname__:
        return edited(right, edits)
    return getattr(edited(resolve_name(name.rpartition(".")[0]), edits), right.__name__)


def known(exercise: str, mistake: str, which: int = 0) -> Callable[..., Any]:
    """A wrong version that the catalogue of an exercise has: by its place, examples last."""
    found = get(exercise)
    entry = found.mistake(mistake)
    return (*found.versions(entry), *found.examples(entry))[which]

"""How a known-wrong version is described: what it replaces, and which test must fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from attn_course.checks import get

# a comparison that fails, or an error that should have come and did not
REJECTED = (AssertionError, pytest.fail.Exception)


@dataclass(frozen=True)
class Wrong:
    """A mistake that somebody made, made again.

    `replaces` maps names below attn_course to the wrong version of each; `killed_by` is the
    test that must fail with them, called with `arguments`, and `error` how it fails.
    """

    mistake: str
    replaces: Mapping[str, Callable[..., Any]]
    killed_by: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    error: type[BaseException] | tuple[type[BaseException], ...] = REJECTED


def known(exercise: str, mistake: str, which: int = 0) -> Callable[..., Any]:
    """A wrong version that the catalogue of an exercise has: by its place, examples last."""
    found = get(exercise)
    entry = found.mistake(mistake)
    return (*found.versions(entry), *found.examples(entry))[which]

"""What a build says of the notebooks: what was done with each, and why."""

from collections.abc import Iterable
from pathlib import Path

from attn_course.authoring.notebooks import Book
from attn_course.sentences import Sentence, joined, say

FOLDERS = {
    "notebooks": "{chapter} lesson: {told}",
    "exercises": "{chapter} exercises: {told}",
    "solutions": "{chapter} solutions: {told}",
}
WRITTEN = say("written")
UNCHANGED = say("unchanged")

NEW = say("it was not there")
FORCED = say("as asked")
DRAFTED = say("a draft was not executed")
UNKNOWN = say("nothing says what its outputs were made from")

_SOURCES = {
    "code": "its own code",
    "outputs": "its stored outputs",
    "questions": "its questions",
    "settings": "the settings of the build",
    "view": "the browser's part or the words of {name}",
    "verdict": "the verdict on {name}",
    "file": "{name}",
}
_FEW = 6  # names of changed sources; more of them say no more


def line(book: Book, told: Sentence) -> Sentence:
    """One line on one notebook."""
    return say(FOLDERS[book.folder], chapter=book.chapter, told=told)


def executed(seconds: float, why: Sentence) -> Sentence:
    """That a notebook was executed."""
    return say("executed in {seconds:.0f} s ({why})", seconds=seconds, why=why)


def not_executed(why: Sentence) -> Sentence:
    """That a draft was written whose outputs are missing."""
    return say("written, not executed ({why})", why=why)


def would_execute(why: Sentence) -> Sentence:
    """That a build would execute a notebook."""
    return say("would be executed again ({why})", why=why)


def would_keep(beside: Path) -> Sentence:
    """That a build would move a notebook aside."""
    words = "somebody has written into it, which would be kept in {folder}/{file}"
    return say(words, folder=beside.parent.name, file=beside.name)


def kept(path: Path, beside: Path) -> Sentence:
    """That a notebook was moved aside, and what to do with it."""
    words = (
        "somebody had written into it: that is kept in {folder}/{file}. "
        "Go on there, or copy it into {folder}/{built}, which is as the course has it now"
    )
    return say(words, folder=path.parent.name, file=beside.name, built=path.name)


def changed(names: Iterable[str]) -> Sentence:
    """Which sources of a notebook have changed."""
    sources = [_source(*name.partition(" ")) for name in names]
    if len(sources) > _FEW:
        few = joined(sources[:_FEW], ", ")
        return say("changed: {few} and {n} more", few=few, n=len(sources) - _FEW)
    return say("changed: {names}", names=joined(sources, ", "))


def _source(kind: str, _space: str, name: str) -> Sentence:
    return say(_SOURCES[kind], name=name)

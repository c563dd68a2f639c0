"""The door through which every sentence for people goes: constants, named fields, one reader.

A sentence is made where something is found out, `say("{name} is {got}", name=…, got=…)`, and
carried about as what it is: a constant and its fields. Only at the edge, where a page, a line or
a file is written, does `spoken` turn it into text, in the reader's language. So code passes parts
and never prose, and another language needs a catalogue of the constants and no code.

ATTN_COURSE_LANGUAGE chooses the language: a gettext catalogue under `attn_course/locale/`, or
`en-XA`, the pseudo-language in which every sentence that went through the door stands in brackets
with its letters doubled. What is then still plain English has missed the door.
"""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

VARIABLE = "ATTN_COURSE_LANGUAGE"
PSEUDO = "en-XA"
LOCALE = Path(__file__).with_name("locale")
HIDDEN = "…"


@dataclass(frozen=True)
class Sentence:
    """A sentence for people: its constant words, and the values of its named fields.

    Attributes:
        words: English, with {named} fields; the key under which a translation is found.
        fields: their values: numbers, code as bare text, or sentences again.
        several: the English for a number `n` other than one, where the sentence counts.
    """

    words: str
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)
    several: str = ""

    def __str__(self) -> str:
        """The sentence in the reader's language."""
        return spoken(self)


@dataclass(frozen=True)
class Joined:
    """Sentences one after the other, with the same text between them."""

    parts: tuple[Spoken, ...]
    between: str = " "

    def __str__(self) -> str:
        """The sentences in the reader's language."""
        return spoken(self)


@dataclass(frozen=True)
class Code:
    """Code, names and numbers, which are the same in every language."""

    text: str

    def __str__(self) -> str:
        """The code as it is."""
        return self.text


@dataclass(frozen=True)
class Drawn:
    """A field's value that inputs drawn for grading have led to: feedback does not show it."""

    value: Any

    def __str__(self) -> str:
        """The value, for those who may see it."""
        return str(self.value)


Spoken = str | Sentence | Joined | Code
"""What goes through the door. A bare text is a constant without fields."""


_VERBATIM = (bool, int, float, str)
_FIELDS = (*_VERBATIM, Sentence, Joined, Code, Drawn)


def say(words: str, /, **fields: Any) -> Sentence:
    """Make a sentence of constant words with {named} fields.

    A field is a number, code as bare text, a sentence, or anything else by its `str`.
    """
    return Sentence(words, _plain(fields))


def counted(one: str, several: str, /, n: int, **fields: Any) -> Sentence:
    """Make a sentence that depends on a number `n`, one of its fields."""
    return Sentence(one, _plain({"n": n, **fields}), several)


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: v if isinstance(v, _FIELDS) else str(v) for name, v in fields.items()}


def constant(words: Spoken) -> Spoken:
    """Make a sentence of a bare constant, so that as a field it is not taken for code."""
    return Sentence(words) if isinstance(words, str) else words


def joined(parts: Iterable[Spoken], between: str = " ") -> Joined:
    """Put sentences one after the other; empty ones are left out."""
    return Joined(tuple(part for part in parts if part != ""), between)


def spoken(sentence: Spoken, *, discreet: bool = False) -> str:
    """The text of a sentence in the reader's language.

    Args:
        sentence: what is to be said; a bare text is looked up as the constant that it is.
        discreet: put an ellipsis in the place of every `Drawn` field.
    """
    if isinstance(sentence, Joined):
        return sentence.between.join(spoken(part, discreet=discreet) for part in sentence.parts)
    if isinstance(sentence, Code):
        return sentence.text
    language = _language(os.environ.get(VARIABLE, ""))
    if isinstance(sentence, str):
        return language.gettext(sentence) if sentence else ""
    if not sentence.fields:
        return language.gettext(sentence.words)
    values = {name: _shown(value, discreet) for name, value in sentence.fields.items()}
    if sentence.several:
        words = language.ngettext(sentence.words, sentence.several, sentence.fields["n"])
    else:
        words = language.gettext(sentence.words)
    return words.format_map(values)


def language_spoken() -> str:
    """The language that sentences come out in, as a page says it in `lang`."""
    name = _language(os.environ.get(VARIABLE, "")).info().get("language", "en")
    return name.replace("_", "-")


def as_data(sentence: Spoken) -> Any:
    """The sentence as plain JSON data."""
    if isinstance(sentence, str):
        return sentence
    if isinstance(sentence, Joined):
        return {"joined": [as_data(part) for part in sentence.parts], "between": sentence.between}
    if isinstance(sentence, Code):
        return {"code": sentence.text}
    data: dict[str, Any] = {"words": sentence.words}
    if sentence.fields:
        data["fields"] = {name: _field_data(value) for name, value in sentence.fields.items()}
    if sentence.several:
        data["several"] = sentence.several
    return data


def from_data(data: Any) -> Spoken:
    """The sentence that `as_data` has made data of."""
    if isinstance(data, str):
        return data
    if "joined" in data:
        return Joined(tuple(from_data(part) for part in data["joined"]), data["between"])
    if "code" in data:
        return Code(data["code"])
    fields = {name: _field_from(value) for name, value in data.get("fields", {}).items()}
    return Sentence(data["words"], fields, data.get("several", ""))


def _shown(value: Any, discreet: bool) -> Any:
    """A field's value as it is formatted."""
    if isinstance(value, Drawn):
        return HIDDEN if discreet else _shown(value.value, discreet)
    return value if isinstance(value, _VERBATIM) else spoken(value, discreet=discreet)


def _field_data(value: Any) -> Any:
    if isinstance(value, Drawn):
        return {"drawn": _field_data(value.value)}
    return value if isinstance(value, _VERBATIM) else as_data(value)


def _field_from(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    return Drawn(_field_from(data["drawn"])) if "drawn" in data else from_data(data)


class _Language(Protocol):
    """What is asked of a language: as gettext has it."""

    def gettext(self, message: str, /) -> str: ...
    def ngettext(self, one: str, several: str, n: int, /) -> str: ...
    def info(self) -> Mapping[str, str]: ...


@cache
def _language(name: str) -> _Language:
    if name == PSEUDO:
        return _Pseudo()
    return gettext.translation("attn_course", LOCALE, [name] if name else [], fallback=True)


class _Pseudo:
    """A language in which every sentence can be told to have gone through the door."""

    # what is no word stays as it is: fields, code, tags and entities
    _kept = re.compile(r"(\{[^{}]*\}|`[^`]*`|<[^<>]*>|&\w+;)")

    def gettext(self, message: str) -> str:
        """The message in brackets, its letters doubled."""
        pieces = self._kept.split(message)
        doubled = [re.sub(r"([a-zA-Z])", r"\1\1", piece) for piece in pieces[::2]]
        kept = [*pieces[1::2], ""]
        return f"⟦{''.join(a + b for a, b in zip(doubled, kept, strict=True))}⟧"

    def ngettext(self, one: str, several: str, n: int) -> str:
        """The form for this number, as in English."""
        return self.gettext(one if n == 1 else several)

    def info(self) -> Mapping[str, str]:
        """The head of a catalogue that nobody has written."""
        return {"language": PSEUDO}

"""Real dates as people write them in many languages, to be written as YYYY-MM-DD."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

import numpy as np
from babel import Locale, UnknownLocaleError
from babel.dates import format_date, format_skeleton
from jaxtyping import Int
from torch import Tensor

from attn_course.tasks.base import START, Arrays, Task

LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pl", "tr", "ru", "zh", "ar")

# Babel's own four lengths and three further patterns that its data hold for every locale
_LENGTHS = ("short", "medium", "long", "full")
_SKELETONS = ("yMd", "yMMMd", "yMMMEd")

# A century, so that a year written with two digits means one year only
_FIRST, _LAST = date(1950, 1, 1).toordinal(), date(2049, 12, 31).toordinal()
_ISO_ALPHABET = "-0123456789"


@dataclass(frozen=True)
class DateTask(Task):
    """Dates in many languages, character by character, as `date_task` makes them.

    `languages` in the order of their ids 1…len(languages), then come the
    characters of `alphabet`. Targets have ids of their own, `target_alphabet`
    from 1.
    """

    languages: tuple[str, ...] = ()
    alphabet: str = ""
    target_alphabet: str = _ISO_ALPHABET
    n_source: int = 0

    def encode(self, text: str, language: str) -> list[int]:
        """Return the input ids of a date, padded to n_source.

        Raises:
            ValueError: for a language or a character that the task does not have,
                or a text too long for it.
        """
        if language not in self.languages:
            raise ValueError(f"language {language!r} is none of {', '.join(self.languages)}")
        unknown = [c for c in text if c not in self.alphabet]
        if unknown:
            raise ValueError(f"{text!r} has the character {unknown[0]!r}, not in the alphabet")
        if len(text) + 1 > self.n_source:
            raise ValueError(f"{text!r} has {len(text)} characters, more than {self.n_source - 1}")
        first = len(self.languages) + 1
        ids = [self.languages.index(language) + 1, *(first + self.alphabet.index(c) for c in text)]
        return ids + [START] * (self.n_source - len(ids))

    def decode(self, ids: Int[Tensor, " n"]) -> str:
        """Return the text of input ids without its language and padding."""
        first = len(self.languages) + 1
        return "".join(self.alphabet[int(i) - first] for i in ids if i >= first)

    def decode_target(self, ids: Int[Tensor, " n"]) -> str:
        """Return the text of target ids."""
        return "".join(self.target_alphabet[int(i) - 1] for i in ids if i > START)

    def language_of(self, inputs: Int[Tensor, "b n"]) -> list[str]:
        """Return the language of each row of input ids."""
        return [self.languages[int(i) - 1] for i in inputs[:, 0]]


def date_task(
    languages: Sequence[str] = LANGUAGES, *, seed: int = 0, test_share: float = 0.1
) -> DateTask:
    """Return the task of rewriting a date of 1950…2049 as YYYY-MM-DD.

    How dates are written comes from the locale data of `babel`: seven patterns
    a language, from "3/5/24" to "Tuesday, March 5, 2024". inputs (b, n_source):
    the id of the language, without which 3/5/24 would mean two dates, then the
    characters, padded with START. targets (b, 10). Training and test differ in
    their *dates*: no language shows a test date in training.

    Raises:
        ValueError: if a language is unknown to babel, or there is none.
    """
    languages = tuple(languages)
    if not languages:
        raise ValueError("date_task: give at least one language")
    for language in languages:
        _require_locale(language)
    alphabet, longest = _written_forms(languages)
    first = len(languages) + 1
    ids = {c: first + k for k, c in enumerate(alphabet)}
    digits = {c: 1 + k for k, c in enumerate(_ISO_ALPHABET)}

    def draw(count: int, rng: np.random.Generator) -> Arrays:
        inputs = np.zeros((count, longest + 1), dtype=np.int64)
        targets = np.empty((count, 10), dtype=np.int64)
        days = rng.integers(_FIRST, _LAST + 1, size=count)
        spoken = rng.integers(len(languages), size=count)
        patterns = rng.integers(len(_LENGTHS) + len(_SKELETONS), size=count)
        for row, (day, language, pattern) in enumerate(zip(days, spoken, patterns, strict=True)):
            written = write_date(date.fromordinal(int(day)), languages[language], int(pattern))
            inputs[row, 0] = language + 1
            inputs[row, 1 : len(written) + 1] = [ids[c] for c in written]
            targets[row] = [digits[c] for c in date.fromordinal(int(day)).isoformat()]
        return inputs, targets

    return DateTask(
        name=f"date_task ({', '.join(languages)})",
        vocab_size=first + len(alphabet),
        num_classes=len(_ISO_ALPHABET) + 1,
        num_examples=_LAST - _FIRST + 1,
        draw=draw,
        seed=seed,
        test_share=test_share,
        split_on="targets",
        languages=languages,
        alphabet=alphabet,
        n_source=longest + 1,
    )


def write_date(day: date, language: str, pattern: int) -> str:
    """Return `day` as babel writes it: pattern 0…3 are its lengths, 4…6 further patterns."""
    if pattern < len(_LENGTHS):
        return format_date(day, _LENGTHS[pattern], locale=language)
    return format_skeleton(_SKELETONS[pattern - len(_LENGTHS)], day, locale=language)


@cache
def _written_forms(languages: tuple[str, ...]) -> tuple[str, int]:
    """Return all characters that the languages write dates with, and the longest date's length.

    Seven days of each month show every weekday beside every month, and one
    whole month shows every day number.
    """
    days = [date(2049, 1, day) for day in range(1, 32)]
    days += [date(2049, month, day) for month in range(1, 13) for day in range(22, 29)]
    patterns = range(len(_LENGTHS) + len(_SKELETONS))
    written = [write_date(day, lang, p) for day in days for lang in languages for p in patterns]
    return "".join(sorted(set("".join(written)))), max(map(len, written))


def _require_locale(language: str) -> None:
    try:
        Locale.parse(language)
    except (UnknownLocaleError, ValueError) as error:
        raise ValueError(f"date_task: babel has no dates in {language!r} ({error})") from error

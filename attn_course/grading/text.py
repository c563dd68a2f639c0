"""Texts from strangers, made safe to store, to show and to use as file names."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Any

KEPT = 20_000
"""Characters of one text that are kept: no message or excerpt needs more."""

_NOT_PLAIN = re.compile(r"[^\n\t\x20-\x7e]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def clean(text: str, limit: int = KEPT) -> str:
    """`text` without lone surrogates and control characters, at most `limit` long.

    Tabs and line ends stay. Lone surrogates come from undecodable file names and from code, and
    would stop every writer; control characters hide what a text is from who reads it.
    """
    kept = _NOT_PLAIN.sub(lambda match: _shown(match[0]), text[:limit])
    return kept + ("…" if len(text) > limit else "")


def clean_data(value: Any) -> Any:
    """Plain JSON data with every text in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key), 200): clean_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_data(item) for item in value]
    return value


def one_line(text: str, limit: int = 200) -> str:
    """`text` as one cleaned line, for names and tables."""
    return clean(" ".join(text.split()), limit)


def slug(name: str) -> str:
    """A file name for `name` on every system: no separators, no leading dot, never empty.

    Names that differ have slugs that differ, also where case does not count: whatever had to
    be changed gets a piece of a hash.
    """
    plain = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", name)).strip("._ ")[:60]
    if plain and plain == name == name.lower() and not _RESERVED.fullmatch(plain):
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain or 'student'}-{digest}"


def _shown(char: str) -> str:
    # Cc control, Cf format (which turns the direction of reading), Cs surrogates
    return "\ufffd" if unicodedata.category(char) in ("Cc", "Cf", "Cs") else char

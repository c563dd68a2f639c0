"""Who handed in which file, and when, read off the names that learning platforms give."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from attn_course.course import CHAPTERS
from attn_course.grading.text import one_line


@dataclass(frozen=True)
class Sender:
    """The student that a name speaks of.

    Attributes:
        student: the name in every report; it tells students of one name apart.
        platform: "canvas", "moodle", "blackboard", "brightspace" or "".
        platform_id: the platform's own number for the student, "" where the name has none.
        when: a sortable text, later for a later version; "" where the name does not say.
        rest: what is left of the name.
    """

    student: str
    platform: str = ""
    platform_id: str = ""
    when: str = ""
    rest: str = ""


# Canvas: doejane_LATE_1234_56789_03_scaled_dot_product-2.ipynb
_CANVAS = re.compile(
    r"(?P<student>[^\W_]+(?:-[^\W_]+)*)(?:_LATE)?_(?P<id>\d+)_(?P<sent>\d{3,})_(?P<rest>.+)"
)
# Moodle: Jane Doe_123456_assignsubmission_file_[/]03_scaled_dot_product.ipynb
_MOODLE = re.compile(
    r"(?P<student>[^/]+?)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<rest>.*)"
)
# Blackboard: Homework 3_jdoe_attempt_2026-03-01-12-30-45_03_scaled_dot_product.ipynb
_BLACKBOARD = re.compile(
    r"(?P<task>.+?)_(?P<student>[^_]+)_attempt_(?P<when>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)_?(?P<rest>.*)"
)
# Brightspace: 12345-67890 - Jane Doe - Mar 1, 2026 1230 PM[ - 03_scaled_dot_product.ipynb]
_BRIGHTSPACE = re.compile(
    r"(?P<id>\d+)-\d+ - (?P<student>.+?) - (?P<month>[A-Z][a-z]{2})[a-z]* (?P<day>\d{1,2}), "
    r"(?P<year>\d{4}) (?P<hour>\d{1,2})(?P<minute>\d\d) ?(?P<half>[AP]M)(?: - (?P<rest>.+))?"
)
_FORMS = {
    "moodle": _MOODLE,
    "blackboard": _BLACKBOARD,
    "brightspace": _BRIGHTSPACE,
    "canvas": _CANVAS,
}
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_VERSION = re.compile(r"(?:[-_ ]?\((?P<bracket>\d{1,3})\)|-(?P<dash>\d{1,3}))$")
_ENDING = re.compile(r"(\.(ipynb|json|txt))+$", re.IGNORECASE)


def platform_of(names: Iterable[str]) -> str:
    """The platform whose form most of these names have; "" if none has any.

    A student chooses the end of a name, and can give it another platform's form, with somebody
    else's name in it. What the platform itself puts before that is alike for all.
    """
    found = Counter(
        platform for name in names for platform, form in _FORMS.items() if form.fullmatch(name)
    )
    return max(_FORMS, key=lambda platform: found[platform]) if found else ""


def folder_sender(name: str, platform: str = "") -> Sender:
    """The student whom a folder belongs to, where most folders come from a platform."""
    return _from_platform(name, platform) or Sender(_student(name))


def file_sender(name: str, platform: str = "") -> Sender | None:
    """The student whom a file in a flat folder belongs to; None if it names only a chapter.

    platform: where most files come from.
    """
    found = _from_platform(name, platform)
    if found is not None:
        return found
    stem = _ENDING.sub("", name)
    version = _version(stem)
    stem = _VERSION.sub("", stem)
    for chapter in CHAPTERS:
        # renamed by hand: jane_doe_03_scaled_dot_product.ipynb
        before, found_stem, after = stem.partition(chapter.stem)
        if found_stem:
            rest = f"{before.strip(' _-')} {after.strip(' _-')}".strip()
            return Sender(_student(rest), when=version, rest=name) if rest else None
    return Sender(_student(stem), when=version, rest=name)


def version_of(name: str) -> str:
    """The version that a browser or a platform adds to a repeated name, such as ` (2)` or `-2`."""
    return _version(_ENDING.sub("", name))


def _from_platform(name: str, likely: str) -> Sender | None:
    for platform in sorted(_FORMS, key=lambda platform: platform != likely):
        match = _FORMS[platform].fullmatch(name)
        if match:
            return _sender(platform, match)
    return None


def _sender(platform: str, match: re.Match[str]) -> Sender:
    number = match.groupdict().get("id", "")
    student, rest = _student(match["student"]), match["rest"] or ""
    when = version_of(rest)
    if platform == "blackboard":
        when = match["when"]
    elif platform == "brightspace":
        when = _moment(match)
    elif platform == "canvas":
        # the number of a submission grows with each one, the version with each file in it
        when = f"{int(match['sent']):020d} {when}".strip()
    return Sender(f"{student} {number}".strip(), platform, number, when, rest)


def _student(name: str) -> str:
    """A name that can be shown; names that differ stay different."""
    shown = one_line(name, 120)
    if shown == name:
        return name
    return f"{shown} ~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"


def _version(stem: str) -> str:
    match = _VERSION.search(stem)
    return f"{int(match['bracket'] or match['dash']):03d}" if match else ""


def _moment(match: re.Match[str]) -> str:
    month = _MONTHS.index(match["month"]) + 1 if match["month"] in _MONTHS else 0
    hour = int(match["hour"]) % 12 + (12 if match["half"] == "PM" else 0)
    return f"{match['year']}-{month:02d}-{int(match['day']):02d} {hour:02d}:{match['minute']}"

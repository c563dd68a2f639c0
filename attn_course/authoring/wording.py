"""The words that the builder itself puts into notebooks, as they are written down there."""

from attn_course.checks.exercise import Exercise
from attn_course.sentences import Spoken, counted, joined, say, spoken

FOLDER_NAMES = {
    "notebooks": say("Lesson"),
    "exercises": say("Exercises"),
    "solutions": say("Solutions"),
}
FOLDER_TITLES = {
    "notebooks": "{number} · {title}",
    "exercises": "{number} · {title}: exercises",
    "solutions": "{number} · {title}: solutions",
}
FOLDER_INTRO = {
    "exercises": say(
        "Write the missing code, run its cell, then run the check below it. A check that fails "
        "says what is wrong. If you are stuck, the hints come in steps."
    ),
    "solutions": say(
        "One solution of each exercise, with its check passed. Yours may look different: the "
        "check judges what an answer does."
    ),
}
HINT_HELP = say("Stuck? Remove the # below and run this cell: once, twice, three times.")
INSTALL_TITLE = say("Set-up for Google Colab (does nothing elsewhere)")
QUESTION_TITLE = say("Question")
PREDICTION_TITLE = say("Prediction")
OPEN_IN_COLAB = say("Open in Colab")
IN_COLAB = say("in Colab")
NOT_INSTALLED = (  # a command follows
    say("attn_course is not installed here, and the course has no public address yet."),
    say("Upload the wheel that `python -m build` writes to dist/, then run"),
)


def folder_title(folder: str, number: str, title: str) -> str:
    """The title of one of a chapter's three notebooks: its number and what it is about."""
    return spoken(say(FOLDER_TITLES[folder], number=int(number), title=say(title)))


def reading_time(reading_minutes: int, exercise_minutes: int) -> str:
    """The honest times of a chapter."""
    words = "About {reading} minutes to read and run, about {exercises} minutes for the exercises."
    return spoken(say(words, reading=reading_minutes, exercises=exercise_minutes))


def stars(difficulty: int) -> str:
    """Difficulty 1 to 3 as filled dots."""
    return "●" * difficulty + "○" * (3 - difficulty)


def exercise_title(entry: Exercise) -> str:
    """The heading of an exercise."""
    return spoken(say("Exercise {number}: {name}", number=entry.number, name=entry.name))


def exercise_terms(entry: Exercise) -> str:
    """The line below an exercise's heading: how hard, how long, how much, with what."""
    parts: list[Spoken] = [
        say("about {minutes} minutes", minutes=entry.minutes),
        counted("{n} point", "{n} points", entry.points),
        say("May use: {names}", names=spoken(entry.may_use)),
    ]
    if entry.optional:
        parts.insert(0, say("optional"))
    return f"{stars(entry.difficulty)} · {spoken(joined(parts, ' · '))}"


def exercise_link(entry: Exercise) -> str:
    """What a lesson's link to an exercise says."""
    words = "→ Exercise {number}: {name} ({stars}, {minutes} min)"
    fields = {"number": entry.number, "name": entry.name, "minutes": entry.minutes}
    return spoken(say(words, stars=stars(entry.difficulty), **fields))


def to_write(name: str) -> str:
    """What a stub raises."""
    return spoken(say("{name} is yours to write", name=name))

"""The words that the builder itself puts into notebooks, in one place for a translation."""

from attn_course.checks.exercise import Exercise


def chapter_title(number: str, title: str) -> str:
    """The title of a lesson: its number and what it is about."""
    return f"{int(number)} · {title}"


def folder_title(folder: str, title: str) -> str:
    """The title of one of a chapter's three notebooks."""
    return {
        "notebooks": title,
        "exercises": f"{title}: exercises",
        "solutions": f"{title}: solutions",
    }[folder]


FOLDER_NAMES = {"notebooks": "Lesson", "exercises": "Exercises", "solutions": "Solutions"}

FOLDER_INTRO = {
    "exercises": "Write the missing code, run its cell, then run the check below it. A check "
    "that fails says what is wrong. If you are stuck, the hints come in steps.",
    "solutions": "One solution of each exercise, with its check passed. Yours may look "
    "different: the check judges what an answer does.",
}


def reading_time(reading_minutes: int, exercise_minutes: int) -> str:
    """The honest times of a chapter."""
    return (
        f"About {reading_minutes} minutes to read and run, "
        f"about {exercise_minutes} minutes for the exercises."
    )


def stars(difficulty: int) -> str:
    """Difficulty 1 to 3 as filled dots."""
    return "●" * difficulty + "○" * (3 - difficulty)


def exercise_title(number: str, name: str) -> str:
    """The heading of an exercise and the first line of its answer cell."""
    return f"Exercise {number}: {name}"


def exercise_terms(entry: Exercise) -> str:
    """The line below an exercise's heading: how hard, how long, how much, with what."""
    points = f"{entry.points} point" + ("s" if entry.points != 1 else "")
    parts = [stars(entry.difficulty), f"about {entry.minutes} minutes", points]
    if entry.optional:
        parts.insert(1, "optional")
    return " · ".join([*parts, f"May use: {entry.may_use}"])


def exercise_link(entry: Exercise) -> str:
    """What a lesson's link to an exercise says."""
    title = exercise_title(entry.number, entry.name)
    return f"→ {title} ({stars(entry.difficulty)}, {entry.minutes} min)"


def to_write(name: str) -> str:
    """What a stub raises."""
    return f"{name} is yours to write"


HINT_HELP = "Stuck? Remove the # below and run this cell: once, twice, three times."
INSTALL_TITLE = "Set-up for Google Colab (does nothing elsewhere)"
QUESTION_TITLE = "Question"
PREDICTION_TITLE = "Prediction"
OPEN_IN_COLAB = "Open in Colab"
IN_COLAB = "in Colab"

NOT_INSTALLED = (
    "attn_course is not installed here, and the course has no public address yet. ",
    "Upload the wheel that `python -m build` writes to dist/, then run ",
    "%pip install ./attn_course-*.whl",
)

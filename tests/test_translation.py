"""What translators get: every constant with where it stands, and what their file lacks."""

import io
import re

import pytest
from babel.messages.catalog import Catalog
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po, write_po
from click.testing import CliRunner

from attn_course import checks, sentences
from attn_course.authoring import translation
from attn_course.authoring.constants import constants_in_code
from attn_course.cli import main
from attn_course.explorers.words import WORDS
from attn_course.learner.questions import all_questions
from attn_course.sentences import Code, counted, joined, say, spoken

SAMPLE = '''
import click
from attn_course.sentences import counted, say, spoken

WORDS = {"one": {"title": "A title"}, "two": _MORE | {"hint": "A hint"}}
_MORE = {"more": "And more"}
NAMED = "By name, {n}"
KEPT = {"a": "From a table"}
OTHER: str = "Of two"

def f(x, flag):
    local = "Assigned " "on the way"
    say("Literal {x}", x=x)
    say(NAMED, n=1)
    say(KEPT["a"])
    say(OTHER if flag else "Another")
    spoken(local)
    counted("{n} point", "{n} points", n=2)
    _forward(x, "Handed on")
    say(_cause(x), x=x)
    raise BuildError("A chapter is {wrong}", wrong=x)
    say(f"not {x} constant")
    print("no sentence", x["key"])

def _cause(x):
    return "Returned {x}" if x else None

def _forward(x, words):
    return say(words)

def again(words):
    words = words if words else again(words)
    return spoken(words)

@click.command()
@click.option("--check", help="What the option does.")
def command(check):
    """What the command does."""
'''


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "attn_course"
    folder.mkdir()
    (folder / "sample.py").write_text(SAMPLE, encoding="utf-8")
    return folder


# kills: a form of passing a constant that is not followed, and what is no constant taken for one
def test_constants_are_found_however_they_are_passed(package):
    found = constants_in_code(package)
    assert {constant.words for constant in found} == {
        "A title",
        "A hint",
        "And more",
        "By name, {n}",
        "From a table",
        "Of two",
        "Another",
        "Assigned on the way",
        "Literal {x}",
        "{n} point",
        "Handed on",
        "Returned {x}",
        "A chapter is {wrong}",
        "What the option does.",
        "What the command does.",
    }
    assert len(found) == len(set(found))
    by_words = {constant.words: constant for constant in found}
    assert by_words["{n} point"].several == "{n} points"
    lines = SAMPLE.splitlines()
    assert '"Literal {x}"' in lines[by_words["Literal {x}"].line - 1]
    assert by_words["Handed on"].file.endswith("attn_course/sample.py")


@pytest.fixture(scope="module")
def catalogue():
    return translation.catalogue()


def test_the_catalogue_holds_sentences_of_every_room(catalogue):
    exercise = checks.get("3.2")
    question = next(iter(all_questions().values()))
    for words, place in (
        (exercise.hints[0], "exercise-3.2"),
        (exercise.mistakes[0].message, "exercise-3.2"),
        (exercise.stages[0].message, "exercise-3.2"),
        (question.prompt, f"question-{question.id}"),
        (WORDS["shared"]["csv"], "attn_course/explorers/words.py"),
        ("Open JupyterLab at a chapter.", "attn_course/cli.py"),
    ):
        assert place in [file for file, _ in catalogue[words].locations], words


def test_sentences_in_data_are_taken_apart():
    nested = say("{a} and {b}", a=say("inner"), b="code")
    told = joined([nested, "bare", Code("x"), counted("{n} row", "{n} rows", 2)])
    found = translation._said([told], "owner")
    assert [(one.words, one.several) for one in found] == [
        ("{a} and {b}", ""),
        ("inner", ""),
        ("bare", ""),
        ("{n} row", "{n} rows"),
    ]


def _course() -> Catalog:
    course = Catalog()
    course.add("The loss is {loss}.")
    course.add("A hint")
    course.add(("{n} point", "{n} points"))
    return course


@pytest.mark.parametrize(
    ("loss", "points", "told"),
    [
        ("Der Verlust ist {loss}.", ("ein Punkt", "{n} Punkte"), []),
        ("Der Verlust ist {verlust}.", ("{n} Punkt", "{n} Punkte"), ["other fields in: The loss"]),
        ("Der Verlust.", ("{n} Punkt", "{n} Punkte"), ["other fields in: The loss"]),
        ("", ("{n} Punkt", "{n} Punkte"), ["lacking: The loss"]),
        ("Der Verlust ist {loss}.", ("{n} Punkt", ""), ["lacking: {n} point"]),
    ],
)
def test_what_a_translation_lacks_is_told(loss, points, told):
    german = Catalog(locale="de")
    german.add("The loss is {loss}.", loss)
    german.add("A hint", "Ein Hinweis")
    german.add(("{n} point", "{n} points"), points)
    found = [spoken(problem) for problem in translation.problems(_course(), german)]
    assert len(found) == len(told)
    assert all(one.startswith(start) for one, start in zip(found, told, strict=True))


def test_a_sentence_that_nobody_has_translated_or_looked_at_is_lacking():
    german = Catalog(locale="de")
    german.add("A hint", "Ein Hinweis", flags=["fuzzy"])
    assert len(translation.problems(_course(), german)) == 3


# the section of docs/translating.md, step by step
def test_a_second_language_is_made_as_the_guide_says(tmp_path, monkeypatch, catalogue):
    monkeypatch.setattr(translation, "catalogue", lambda: catalogue)
    monkeypatch.setattr(translation, "LOCALE", tmp_path)
    monkeypatch.setattr(sentences, "LOCALE", tmp_path)
    template = tmp_path / "attn_course.pot"
    result = CliRunner().invoke(main, ["words", str(template)])
    assert re.search(r"\d{4} sentences", result.output)
    _pybabel("init", "-i", str(template), "-l", "de", "-d", str(tmp_path))
    source = tmp_path / "de" / "LC_MESSAGES" / "attn_course.po"
    german = read_po(io.BytesIO(source.read_bytes()))
    german["Open JupyterLab at a chapter."].string = "JupyterLab bei einem Kapitel öffnen."
    with source.open("wb") as file:
        write_po(file, german)
    _pybabel("compile", "-d", str(tmp_path))
    monkeypatch.setenv(sentences.VARIABLE, "de")
    sentences._language.cache_clear()
    assert "JupyterLab bei einem Kapitel öffnen." in CliRunner().invoke(main, ["--help"]).output
    assert sentences.language_spoken() == "de"
    checked = CliRunner().invoke(main, ["words", "--check", "de"])
    assert checked.exit_code == 1
    assert "lacking: Save as CSV" in checked.output
    assert "lacking: Open JupyterLab at a chapter." not in checked.output
    sentences._language.cache_clear()


def _pybabel(command: str, *options: str) -> None:
    assert not CommandLineInterface().run(["pybabel", "-q", command, "-D", "attn_course", *options])


def test_a_language_that_does_not_exist_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(translation, "LOCALE", tmp_path)
    result = CliRunner().invoke(main, ["words", "--check", "de"])
    assert result.exit_code == 1
    assert f"there is no {tmp_path / 'de' / 'LC_MESSAGES' / 'attn_course.po'}" in result.output

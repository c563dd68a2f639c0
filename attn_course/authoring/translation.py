"""`attn-course words`: all constants of the course for translators, what a translation lacks."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from attn_course import checks, explorers, terminal
from attn_course.authoring.constants import PACKAGE, Constant, constants_in_code
from attn_course.course import CHAPTERS
from attn_course.explorers.gallery import summary
from attn_course.learner.questions import all_questions
from attn_course.sentences import LOCALE, Joined, Sentence, Spoken, counted, say, spoken

DOMAIN = "attn_course"
TEMPLATE = LOCALE / f"{DOMAIN}.pot"

_FIELD = re.compile(r"\{(\w+)")


@terminal.command()
@click.argument("template", type=click.Path(path_type=Path, dir_okay=False), default=TEMPLATE)
@terminal.option("--check", metavar="LANGUAGE", help="Say what the translation into it lacks.")
def command(template: Path, check: str | None) -> None:
    """Write every sentence of the course to TEMPLATE, attn_course/locale/attn_course.pot.

    docs/translating.md says how a translation is made of it.
    """
    if check is None:
        _write(template)
        return
    source = LOCALE / check / "LC_MESSAGES" / f"{DOMAIN}.po"
    if not source.is_file():
        raise click.ClickException(spoken(say("there is no {file}", file=source)))
    with source.open("rb") as file:
        found = problems(catalogue(), read_po(file, locale=check))
    for problem in found:
        click.echo(spoken(problem))
    if found:
        raise click.ClickException(
            spoken(counted("{n} sentence to look at", "{n} sentences to look at", len(found)))
        )


def _write(template: Path) -> None:
    words = catalogue()
    template.parent.mkdir(parents=True, exist_ok=True)
    with template.open("wb") as file:
        write_po(file, words, width=100)
    click.echo(spoken(say("{file}: {n} sentences", file=template, n=len(words))))


def catalogue() -> Catalog:
    """Return all constants that go through the door, with where they stand."""
    found = Catalog(project=DOMAIN, charset="utf-8")
    for words, several, file, line in (*constants_in_code(), *constants_in_data()):
        if words:
            path = Path(file)
            place = path.relative_to(PACKAGE.parent).as_posix() if path.is_absolute() else file
            found.add((words, several) if several else words, locations=[(place, line)])
    return found


def constants_in_data() -> Iterator[Constant]:
    """What the chapters, exercises, questions and explorers say of themselves."""
    for chapter in CHAPTERS:
        yield from _said([chapter.title], f"chapter-{chapter.number}")
    for name in checks.exercises():
        entry = checks.get(name)
        told = [entry.may_use, *entry.hints]
        told += [part.message for part in (*entry.stages, *entry.mistakes)]
        yield from _said(told, f"exercise-{entry.number}")
    for question in all_questions().values():
        options = [text for option in question.options for text in (option.text, option.why)]
        yield from _said([question.prompt, *options, question.unit], f"question-{question.id}")
    for name in explorers.__all__:
        yield from _said([summary(getattr(explorers, name))], f"explorer-{name}")


def _said(sentences: Iterable[Spoken], owner: str) -> Iterator[Constant]:
    """The constants of sentences, and of the sentences in them."""
    for sentence in sentences:
        if isinstance(sentence, str):
            yield Constant(sentence, "", owner, 0)
        elif isinstance(sentence, Joined):
            yield from _said(sentence.parts, owner)
        elif isinstance(sentence, Sentence):
            yield Constant(sentence.words, sentence.several, owner, 0)
            fields = sentence.fields.values()
            yield from _said([x for x in fields if isinstance(x, Sentence | Joined)], owner)


def problems(course: Catalog, translation: Catalog) -> list[Sentence]:
    """Say which sentences a translation lacks, and in which the named fields are others."""
    found: list[Sentence] = []
    for message in course:
        words = _forms(message.id)
        if not words[0]:  # the head of the file
            continue
        told = translation.get(words[0])
        if told is None or told.fuzzy or not all(_forms(told.string)):
            found.append(say("lacking: {words}", words=words[0]))
        elif _fields(told.string) != _fields(message.id):
            found.append(say("other fields in: {words}", words=words[0]))
    return found


def _forms(texts: Any) -> list[str]:
    """The forms of a text that counts; of any other the one that it has."""
    return [texts] if isinstance(texts, str) else list(texts)


def _fields(texts: Any) -> set[str]:
    """The names of the fields in all forms together: a form for one may go without its number."""
    return {name for text in _forms(texts) for name in _FIELD.findall(text)}

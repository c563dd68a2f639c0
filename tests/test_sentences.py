"""The door for sentences: fields, languages, data, discretion."""

import gettext
import io
import json

import pytest
from babel.messages import mofile
from babel.messages.catalog import Catalog

from attn_course import sentences
from attn_course.sentences import Drawn, as_data, counted, from_data, joined, say, spoken

NESTED = joined(
    [
        say("{name} is {got}, expected {want}.", name="`x`", got=Drawn("24"), want=Drawn("96")),
        say("Because {why}.", why=say("{n} axes are exchanged", n=2)),
        "",
        "A constant with {braces}.",
        counted("{n} point", "{n} points", n=3),
    ]
)


def test_a_sentence_is_its_constant_with_its_fields():
    assert spoken(NESTED) == (
        "`x` is 24, expected 96. Because 2 axes are exchanged. A constant with {braces}. 3 points"
    )
    assert str(counted("{n} point", "{n} points", n=1)) == "1 point"


def test_what_was_drawn_can_be_left_out():
    assert spoken(NESTED, discreet=True).startswith("`x` is …, expected ….")


def test_a_sentence_survives_as_data():
    again = from_data(json.loads(json.dumps(as_data(NESTED))))
    assert spoken(again) == spoken(NESTED)
    assert spoken(again, discreet=True) == spoken(NESTED, discreet=True)


def test_the_pseudo_language_marks_words_and_keeps_fields_code_and_tags(monkeypatch):
    monkeypatch.setenv(sentences.VARIABLE, sentences.PSEUDO)
    assert spoken(say("See {name}, <b>or</b> `dim=-1`.", name="x")) == (
        "⟦SSeeee x, <b>oorr</b> `dim=-1`.⟧"
    )
    assert spoken(counted("{n} point", "{n} points", n=2)) == "⟦2 ppooiinnttss⟧"


@pytest.fixture
def german(monkeypatch, tmp_path):
    catalog = Catalog(locale="de")
    catalog.add("{n} axes are exchanged", "{n} Achsen sind vertauscht")
    catalog.add(("{n} point", "{n} points"), ("{n} Punkt", "{n} Punkte"))
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    written = io.BytesIO()
    mofile.write_mo(written, catalog)
    (folder / "attn_course.mo").write_bytes(written.getvalue())
    monkeypatch.setattr(sentences, "LOCALE", tmp_path)
    monkeypatch.setenv(sentences.VARIABLE, "de")
    sentences._language.cache_clear()
    gettext._translations.clear()
    yield
    sentences._language.cache_clear()


def test_a_language_is_a_catalogue_and_no_code(german):
    assert spoken(counted("{n} point", "{n} points", n=2)) == "2 Punkte"
    assert spoken(counted("{n} point", "{n} points", n=1)) == "1 Punkt"
    text = spoken(say("Because {why}.", why=say("{n} axes are exchanged", n=2)))
    assert text == "Because 2 Achsen sind vertauscht."  # what is not translated stays English

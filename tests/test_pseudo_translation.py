"""The course in a pseudo-language, in which every sentence stands in brackets, its letters doubled.

What is then still plain English has missed the door; what is done, computed and decided is the
same as without, since no code reads a sentence.
"""

import base64
import gzip
import json
import re

import matplotlib.text
import numpy as np
import pytest
import torch
import traitlets
from click.testing import CliRunner

from attn_course import explorers, plots, sentences
from attn_course.attention import scaled_dot_product_attention
from attn_course.authoring.translation import catalogue
from attn_course.cli import main
from attn_course.experiments import (
    ch00,
    ch01,
    ch02,
    ch03_views,
    ch04_views,
    ch05_views,
    ch06_views,
    ch07_views,
    ch08,
    ch08_views,
    ch09,
    ch09_views,
)
from attn_course.explorers.base import Explorer
from attn_course.explorers.gallery import gallery
from attn_course.memory import attention_memory
from attn_course.plots.picture import new_figure, style
from attn_course.sentences import joined, say, spoken
from attn_course.tasks import date_task, prose

_WORD = re.compile(r"(?<![\w.-])[A-Za-z][a-z]{2,}(?![\w.-])")
_CODE = re.compile(r"`[^`]*`|\$[^$]*\$")  # and mathematics
_TWICE = re.compile(r"⟦⟦[^⟦⟧]*⟧⟧")


@pytest.fixture
def pseudo(monkeypatch):
    """The pseudo-language, until the test ends."""
    monkeypatch.setenv(sentences.VARIABLE, sentences.PSEUDO)


def unmarked(text: str, known: str = "") -> list[str]:
    """The English words of a text that have missed the door: those outside ⟦ and ⟧.

    known: what is no sentence there: tokens, ids, names of parts.
    """
    depth, outside = 0, []
    for character in _CODE.sub(" ", text):
        depth += (character == "⟦") - (character == "⟧")
        outside.append(" " if depth or character == "⟧" else character)
    return [word for word in _WORD.findall("".join(outside)) if word not in known]


def assert_all_marked(text: str, known: str = "") -> None:
    """Fail if a word of `text` has missed the door, or a sentence went through it twice."""
    assert unmarked(text, known) == [], text
    assert not _TWICE.search(text), text


class TestWhatTellsASentenceThatMissedTheDoor:
    def test_a_planted_sentence_is_found(self, pseudo):
        told = f"{spoken(say('The loss is {loss}.', loss=0.5))} Your answer is right: `x @ w`."
        assert unmarked(told) == ["Your", "answer", "right"]
        with pytest.raises(AssertionError):
            assert_all_marked(told)

    def test_fields_code_and_names_are_no_sentences(self, pseudo):
        inner = say("{a}, {b}", a=say("one"), b="attn_course.masks")
        assert_all_marked(spoken(joined([inner, "A constant"], "\n")) + " d_k = 4, n_key `dim=-1`")
        assert unmarked("“animal” 0.5", known="the animal") == []

    def test_a_sentence_that_is_said_twice_is_found(self, pseudo):
        with pytest.raises(AssertionError):
            assert_all_marked(spoken(spoken("Once is enough.")))

    def test_a_text_at_the_edge_of_another_is_not_taken_for_one_said_twice(self, pseudo):
        assert_all_marked(spoken(say("{title}. {rest}", title=say("One"), rest=say("Two"))))


class TestViews:
    @pytest.fixture(params=explorers.__all__)
    def both(self, request, monkeypatch):
        """One view in plain English and in the pseudo-language."""
        plain = getattr(explorers, request.param)()
        monkeypatch.setenv(sentences.VARIABLE, sentences.PSEUDO)
        return plain, getattr(explorers, request.param)()

    def test_the_browser_gets_no_plain_word(self, both):
        plain, view = both
        assert view.words.keys() == plain.words.keys()
        assert view.words["language"] == view.about.get("language", "en-XA")
        for key in view.words.keys() - {"language"}:
            assert_all_marked(view.words[key])
            assert view.words[key] != plain.words[key] or not _WORD.search(plain.words[key])
        assert view.about["title"] == view.words["title"]

    def test_nothing_but_words_is_another(self, both):
        plain, view = both
        asked = {"prompt", "options", "unit"}  # words of a question
        for name in set(view.fields) - asked:
            assert getattr(view, name) == getattr(plain, name)
        numbers = view.numbers()
        assert numbers.keys() == plain.numbers().keys()
        for name, expected in plain.numbers().items():
            np.testing.assert_array_equal(numbers[name], expected)

    def test_the_still_says_no_plain_word(self, both):
        _, view = both
        data = json.dumps({name: getattr(view, name) for name in view.fields if name != "prompt"})
        assert_all_marked(view.alt(), known=data)
        figure = new_figure(*view.size)
        with style():
            view._draw(figure, view.numbers())
        for text in texts_in(figure):
            assert_all_marked(text, known=data)

    def test_stored_and_exported_pages_carry_the_same_words(self, both):
        _, view = both
        html = view.html(png=b"")
        packed = re.search(r'data-state="data:application/gzip;base64,([^"]+)"', html)
        state = json.loads(gzip.decompress(base64.b64decode(packed[1])))
        assert state["words"] == view.words
        shown = re.sub(r"<script>.*?</script>|data:[^\"]*|<[^>]*?>", " ", html, flags=re.DOTALL)
        assert_all_marked(shown)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: explorers.ScalingExplorer(d_k=3),
        lambda: explorers.ScalingExplorer(width=3),
        lambda: explorers.AttentionStepper(query=[[1.0]]),
        lambda: explorers.AttentionStepper([[1.0]], [[1.0, 2.0]], [[1.0]]),
        lambda: explorers.MaskExplorer(mask=[[1, 0]]),
        lambda: explorers.AttentionViewer([]),
        lambda: explorers.AttentionViewer([torch.full((1, 2, 2), 3.0)]),
        lambda: explorers.AttentionViewer([torch.eye(2)[None]], ["a"]),
        lambda: explorers.HeadsExplorer(x=torch.zeros(2, 3, 4)),
        lambda: explorers.PositionExplorer(tokens=[]),
        lambda: explorers.TrainingView(tokens=["a"]),
    ],
)
def test_what_a_view_refuses_is_said_in_the_readers_language(refused, pseudo):
    with pytest.raises(traitlets.TraitError) as error:
        refused()
    assert "⟦" in str(error.value)
    assert_all_marked(str(error.value))


def test_the_page_of_all_views_says_no_plain_word(pseudo, monkeypatch):
    monkeypatch.setattr(Explorer, "html", lambda view: "")  # the views have a test of their own
    page = gallery()
    assert '<html lang="en-XA">' in page
    for tag in ("title", "h1", "h2", "p"):
        for text in re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL):
            assert_all_marked(re.sub(r"<code>.*?</code>", "", text))


def texts_in(figure) -> list[str]:
    """All that is written in a figure."""
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text)]


MAPS = torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.heat_map(MAPS[0], row_labels="abc", column_labels="xyz", title="T"),
        lambda: plots.head_maps(MAPS),
        lambda: plots.line_plot([1, 2], {"A": [1, 2], "B": [2, 3]}, x_label="n", y_label="s"),
        lambda: plots.line_plot([1, 2], {"A": [1, 2]}, x_label="n", y_label="s", log_y=True),
        lambda: plots.calibration_plot([(60, 1, 2), (70, 2, 3)]),
        lambda: plots.entropy_by_head([MAPS]),
        lambda: plots.gradient_flow({"A": {"l1": 1.0, "l2": 2.0}, "B": {"l1": 1.0, "l2": 3.0}}),
        lambda: ch00.spirals_picture(*ch00.spirals(5), model=torch.nn.Linear(2, 3)),
    ],
)
def test_pictures_say_no_plain_word(draw, pseudo):
    picture = draw()
    assert_all_marked(picture.alt)
    for text in texts_in(picture.figure):
        assert_all_marked(text)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: plots.heat_map([1.0]),
        lambda: plots.heat_map([[1.0]], row_labels="ab"),
        lambda: plots.line_plot([1], {}, x_label="n", y_label="s"),
        lambda: plots.line_plot([1], {"A": [1, 2]}, x_label="n", y_label="s"),
        lambda: plots.calibration_plot([]),
        lambda: plots.gradient_norms(torch.nn.Linear(1, 1)),
        lambda: plots.Slider("k", 1, 0, start=1),
        lambda: plots.live_figure(print, alt="", k=plots.Slider("k", 1, 2, start=1)),
    ],
)
def test_what_a_picture_refuses_is_said_in_the_readers_language(refused, pseudo):
    with pytest.raises(ValueError, match="⟦") as error:
        refused()
    assert_all_marked(str(error.value))


def _nothing(*_):
    raise NotImplementedError


def _hiding_view():
    task = date_task(seed=0)
    model = ch08.make_model("Transformer", task).eval()
    return ch08_views.hiding_view(ch08_views.DateReading(model, task, "3 May 2020", "en"))


def _sampling_view():
    text = prose(seed=0)
    return ch09_views.sampling_view(ch09.make_lm("Transformer", text), text, "The ")


LIVE = [
    (ch00.softmax_view, ""),
    (ch00.descent_view, ""),
    (ch01.memory_view, ""),
    (ch02.sentence_view, " ".join(ch02.HAND_SET_KEYS)),
    (lambda: ch03_views.own_attention_view(scaled_dot_product_attention), ""),
    (lambda: ch03_views.own_attention_view(_nothing), ""),
    (lambda: ch03_views.own_attention_view(lambda *_: 1), ""),
    (ch04_views.bank_view, ch04_views.BOTH + ch04_views.LOAN),
    (ch05_views.memory_view, " ".join(ch05_views.PARTS)),
    (lambda: ch05_views.own_memory_view(attention_memory), " ".join(ch05_views.PARTS)),
    (lambda: ch05_views.own_memory_view(lambda *_: 1), " ".join(ch05_views.PARTS)),
    (ch06_views.shift_view, ""),
    (ch07_views.norm_view, ""),
    (_hiding_view, ""),
    (_sampling_view, ""),
]


@pytest.mark.parametrize(("make", "tokens"), LIVE)
def test_views_with_sliders_say_no_plain_word(make, tokens, pseudo):
    view = make()
    assert_all_marked(view.alt)
    assert_all_marked(repr(view), known=tokens)
    for name, slider in view.sliders.items():
        for value in slider.extremes:
            view.set(**{name: value})
            assert "⟦" in view.caption
            assert_all_marked(view.caption, known=tokens)
        widget = slider.widget()
        assert_all_marked(widget.description)
        assert_all_marked(" ".join(map(str, getattr(widget, "_options_labels", ()))), known=tokens)
    for text in texts_in(view.figure):
        assert_all_marked(text, known=tokens)


def test_words_on_the_learners_own_code_are_marked(pseudo):
    own = (
        ch05_views.own_heads_explorer(_nothing),
        ch05_views.own_heads_explorer(lambda d_model, num_heads: torch.nn.Linear(2, 2)),
        ch05_views.compared_with_torch(_nothing),
        ch07_views.compared_with_torch(lambda *_: 1, "post"),
    )
    for told in own:
        assert repr(told).startswith("⟦")
        assert not _TWICE.search(told)


class TestCommandLine:
    COMMANDS = sorted(main.list_commands(None))

    @pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
    def test_help_says_no_plain_word(self, command, pseudo):
        result = CliRunner().invoke(main, [*command, "--help"], terminal_width=200)
        assert result.exit_code == 0, result.output
        # click says these, from a catalogue of its own, and writes values in square brackets
        own = r"Usage:|Options:|Show the version and exit\.|Show this message and exit\.|\[[^]⟦]+\]"
        text = re.sub(own, "", result.output)
        assert "⟦" in text
        assert_all_marked(text, known=" ".join(["main", *self.COMMANDS]))


@pytest.fixture
def said(pseudo, monkeypatch):
    """The constants that go through the door, as they do."""
    found = set()
    marked = sentences._Pseudo.gettext

    def gettext(language, message):
        found.add(message)
        return marked(language, message)

    monkeypatch.setattr(sentences._Pseudo, "gettext", gettext)
    return found


@pytest.fixture(scope="module")
def known():
    """The constants that translators get, of all forms."""
    return {text for message in catalogue() for text in _forms(message.id)}


def _forms(texts) -> tuple[str, ...]:
    return (texts,) if isinstance(texts, str) else tuple(texts)


class TestTranslatorsGetWhatIsSaid:
    def test_by_views(self, said, known):
        for name in explorers.__all__:
            getattr(explorers, name)().alt()
        assert len(said) > 100
        assert said - known == set()

    def test_by_views_with_sliders(self, said, known):
        for make, _ in LIVE:
            repr(make())
        assert len(said) > 50
        assert said - known == set()

    def test_by_commands(self, said, known):
        for name in TestCommandLine.COMMANDS:
            CliRunner().invoke(main, [name, "--help"])
        assert len(said) > 10
        assert said - known == set()

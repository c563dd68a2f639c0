"""The parts that all explorers share, on both sides."""

import base64
import gzip
import html
import json
import math
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import traitlets
from IPython.core.formatters import DisplayFormatter
from ipywidgets import Layout
from ipywidgets.widgets import widget as widgets

import attn_course.attention as attention
from attn_course.explorers import ScalingExplorer, TrainingView
from attn_course.explorers.base import browser_module
from attn_course.explorers.data import as_array, normals, pack, show, to_plain, unpack
from attn_course.explorers.words import WORDS, words_of
from attn_course.notebook import cells

NAN, INF = math.nan, math.inf
VIEW = "application/vnd.jupyter.widget-view+json"

# -- the arithmetic of core.mjs ---------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**31, 2**32 - 1])
def test_both_sides_draw_the_same_normal_numbers(modules, seed):
    drawn = normals(seed, 500)
    np.testing.assert_allclose(modules.core("normals", seed, 500), drawn, rtol=1e-12)
    assert abs(drawn.mean()) < 0.15
    assert 0.9 < drawn.std() < 1.1


def test_another_seed_draws_other_numbers():
    assert not np.isclose(normals(0, 20), normals(1, 20)).any()


@pytest.mark.parametrize(
    "scores",
    [[0.0], [1.0, 2.0, 3.0], [1000.0, 999.0], [-1000.0, -1001.0], [3.0, -INF], [NAN, 1.0]],
)
def test_softmax_of_a_row(modules, scores):
    expected = torch.tensor(scores, dtype=torch.float64).softmax(dim=-1)
    np.testing.assert_allclose(modules.core("softmax", scores), expected, rtol=1e-12)


def test_softmax_over_the_keys_that_are_seen(modules):
    weights = modules.core("softmax", [1.0, 50.0, 2.0], [True, False, True])
    expected = torch.tensor([1.0, -INF, 2.0], dtype=torch.float64).softmax(dim=-1)
    np.testing.assert_allclose(weights, expected, rtol=1e-12)


def test_softmax_of_a_row_that_sees_nothing_is_zero(modules):
    assert modules.core("softmax", [1.0, 2.0], [False, False]) == [0, 0]
    assert modules.core("softmax", [-INF, -INF]) != [0, 0]  # infinite scores are no mask
    assert modules.core("softmax", [NAN, 1.0], [False, True]) == [0, 1]


@pytest.mark.parametrize("weights", [[1.0, 0.0], [0.25] * 4, [0.9, 0.1]])
def test_entropy_in_nats(modules, weights):
    expected = attention.attention_entropy(torch.tensor(weights, dtype=torch.float64)).item()
    assert modules.core("entropy", weights) == pytest.approx(expected, abs=1e-12)


def test_products_of_lists(modules):
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4) - 5
    assert modules.core("matmul", a.tolist(), b.tolist()) == (a @ b).tolist()
    assert modules.core("dot", [1, 2, 3], [4, 5, 6]) == 32
    assert modules.core("dot", [1, 2, 3], [4, 5, 6], 2) == 14


def test_tensors_survive_the_journey_as_text(modules):
    array = np.array([[1.5, NAN, INF], [-INF, -0.0, 3e-40]], dtype=np.float32)
    packed = json.loads(json.dumps(pack(array)))
    arrived = modules.core("unpack", packed)
    np.testing.assert_array_equal(np.array(arrived["values"], np.float32), array.ravel())
    assert arrived["shape"] == [2, 3]
    np.testing.assert_array_equal(unpack(packed), array)


def test_what_json_lacks_survives_as_words(modules):
    plain = json.loads(json.dumps(to_plain([[1.0, NAN], [INF, -INF]]), allow_nan=False))
    arrived = modules.core("toNumbers", plain)
    np.testing.assert_array_equal(arrived, [[1.0, NAN], [INF, -INF]])
    assert modules.core("toPlain", arrived) == plain


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"), (-0.0, "0"), (1.5, "1.5"), (-1.5, "−1.5"), (0.12345, "0.123"), (100, "100"),
        (1234.5, "1235"), (NAN, "NaN"), (INF, "∞"), (-INF, "−∞"), (2.5e-7, "2.50e−7"),
        (3e8, "3.00e+8"), (0.1 + 0.2, "0.3"),
    ],
)  # fmt: skip
def test_numbers_for_people(modules, number, text):
    assert modules.core("show", number) == text
    assert show(number) == text


def test_tables_as_csv(modules):
    rows = [["a,b", 0.1, "=1+1"], ['say "x"', -2, "-k"]]
    text = modules.core("csv", [{"title": "T", "columns": ["x", "y", "z"], "rows": rows}])
    assert text == 'T\r\nx,y,z\r\n"a,b",0.1,\'=1+1\r\n"say ""x""",-2,\'-k\r\n'


# -- data that a learner gives ----------------------------------------------------------


def test_tensors_of_any_kind_are_taken():
    for data in (torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True), [[1, 1], [1, 1]]):
        np.testing.assert_array_equal(as_array(data, "x", 2), np.ones((2, 2)))


@pytest.mark.parametrize("data", [[[1.0], [1.0, 2.0]], "words", [["a"]], None, 3.0, [[]], {}])
def test_what_holds_no_numbers_is_refused_by_name(data):
    with pytest.raises(traitlets.TraitError, match="weights must"):
        as_array(data, "weights", 2)


# -- the base class ---------------------------------------------------------------------


@pytest.mark.parametrize("data", [torch.ones(2, 2) + 0j, np.ones((2, 2), dtype=complex)])
def test_complex_numbers_lose_no_part_unnoticed(data):
    with pytest.raises(traitlets.TraitError, match=r"query must hold real numbers, got .*complex"):
        as_array(data, "query", 2)


def test_the_bundle_has_a_live_view_a_picture_and_a_page():
    widget = ScalingExplorer()
    bundle = widget._repr_mimebundle_()
    assert bundle[VIEW]["model_id"] == widget.model_id
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert bundle["text/plain"] == repr(widget) == widget.alt()
    assert html.escape(widget.alt()) in bundle["text/html"]


@pytest.fixture
def colab(monkeypatch) -> dict[str, Any]:
    """What Colab's own module says must stand in the metadata of a widget that is not its own."""
    url = "https://example.org/widget-manager"
    output = SimpleNamespace(
        enable_custom_widget_manager=lambda: None, _widgets=SimpleNamespace(_installed_url=url)
    )
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    return {VIEW: {"colab": {"custom_widget_manager": {"url": url}}}}


# kills: a bundle alone, with which Colab looks for the widget among its own
def test_colab_is_told_that_the_widget_is_not_its_own(colab):
    data, metadata = DisplayFormatter().format(ScalingExplorer())
    assert metadata == colab
    assert VIEW in data
    assert "image/png" in data


def test_colab_is_told_so_of_the_view_of_a_run_too(colab, monkeypatch):
    told = []
    monkeypatch.setattr("IPython.display.display", lambda *_, **how: told.append(how["metadata"]))
    TrainingView()._ipython_display_()
    assert told == [colab]


def test_the_same_view_has_the_same_bundle_but_for_its_id():
    first, second = (ScalingExplorer()._repr_mimebundle_() for _ in range(2))
    for kind in ("text/plain", "text/html", "image/png"):
        assert first[kind] == second[kind]


def test_the_page_carries_module_and_state():
    page = ScalingExplorer(d_k=8).html()

    def unpacked(name: str) -> str:
        data = re.search(rf'data-{name}="data:application/gzip;base64,([^"]*)"', page)
        assert data is not None
        return gzip.decompress(base64.b64decode(data[1])).decode()

    assert unpacked("module") == browser_module("scaling")
    state = json.loads(unpacked("state"))
    assert state["d_k"] == 8
    assert set(state["fields"]) < set(state)
    assert "http" not in re.sub(r"data:[^\"]*", "", page)


def test_the_joined_module_is_sound_and_imports_nothing(tmp_path):
    text = browser_module("scaling")
    assert "./core.mjs" not in text
    path = tmp_path / "joined.mjs"
    path.write_text(text, encoding="utf-8")
    node = subprocess.run(["node", "--check", path], capture_output=True, text=True, check=False)
    assert node.returncode == 0, node.stderr


def test_an_unknown_name_is_refused_with_those_that_are_known():
    with pytest.raises(traitlets.TraitError, match=r"no 'dk'; it has d_k, key, query, seed"):
        ScalingExplorer(dk=4)


def test_a_refused_value_leaves_the_old_one():
    widget = ScalingExplorer(d_k=8)
    with pytest.raises(traitlets.TraitError, match="got 7"):
        widget.d_k = 7
    assert widget.d_k == 8


def test_state_is_the_tagged_traits_and_nothing_else():
    assert ScalingExplorer().state == {"d_k": 64, "seed": 0, "query": None, "key": None}


# kills: a view that shows d_k = 8 for ever while Python computes at 4
def test_what_the_browser_cannot_have_is_answered_with_what_holds(monkeypatch):
    widget = ScalingExplorer(d_k=4)
    sent = []
    monkeypatch.setattr(widget, "send_state", lambda key: sent.append(widget.get_state(key)))
    with pytest.raises(traitlets.TraitError, match="got 3"):
        widget.set_state({"d_k": 3, "seed": 1})
    assert sent == [{"d_k": 4, "seed": 0}]
    widget.set_state({"d_k": 8})
    assert (widget.d_k, len(sent)) == (8, 1)


def test_running_a_cell_again_closes_what_it_has_shown(monkeypatch):
    for count in range(10):
        monkeypatch.setattr(cells, "current_cell", lambda count=count: ("a", count))
        before = len(widgets._instances)
        ScalingExplorer()._repr_mimebundle_()
        if count > 1:
            assert len(widgets._instances) == before


def test_another_cell_and_a_second_view_of_a_cell_stay_open(monkeypatch):
    monkeypatch.setattr(cells, "current_cell", lambda: ("a", 1))
    first, second = ScalingExplorer(), ScalingExplorer()
    first._repr_mimebundle_()
    second._repr_mimebundle_()
    monkeypatch.setattr(cells, "current_cell", lambda: ("b", 2))
    ScalingExplorer()._repr_mimebundle_()
    assert first.comm is not None
    assert second.comm is not None
    monkeypatch.setattr(cells, "current_cell", lambda: ("a", 3))
    ScalingExplorer()._repr_mimebundle_()
    assert first.comm is None
    assert second.comm is None


def test_a_layout_that_was_given_outlives_the_view():
    layout = Layout()
    ScalingExplorer(layout=layout).close()
    assert layout.comm is not None


# -- the table of words -----------------------------------------------------------------


def test_no_explorer_hides_a_shared_word():
    for name, words in WORDS.items():
        if name != "shared":
            assert not words.keys() & WORDS["shared"].keys(), name
            assert words_of(name)["language"] == "en"


# -- a view in a page -------------------------------------------------------------------


def test_two_views_stand_on_one_page_by_themselves(opened):
    view = opened(ScalingExplorer(d_k=8), ScalingExplorer(d_k=4))
    sliders = view.page.get_by_role("slider")
    sliders.first.focus()
    view.press("ArrowRight")
    texts = [text.split(" the ")[0] for text in view.page.locator(".caption").all_inner_texts()]
    assert texts == ["At d_k = 16", "At d_k = 4"]


def test_the_table_holds_the_numbers_of_the_state(opened):
    widget = ScalingExplorer(d_k=4)
    rows = opened(widget).table()
    weights = [float(row[2]) for row in rows[1:17]]
    np.testing.assert_allclose(weights, widget.numbers()["scaled_weights"], atol=1e-4)


def test_a_view_taken_down_leaves_nothing_behind(opened):
    view = opened(ScalingExplorer())
    left = view.page.evaluate(
        """async () => {
            const place = document.querySelector(".attn-course-still");
            const text = (address) => new Response(new Blob([Uint8Array.from(
                atob(address.split(",")[1]), (letter) => letter.charCodeAt(0))]).stream()
                .pipeThrough(new DecompressionStream("gzip"))).text();
            const code = await text(place.dataset.module);
            const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
            const module = await import(address);
            const state = JSON.parse(await text(place.dataset.state));
            const listeners = {};
            const model = { ...module.stillModel(state),
                on: (event) => (listeners[event] = (listeners[event] ?? 0) + 1),
                off: (event) => (listeners[event] -= 1) };
            const before = attnCourseViews.size;
            const el = document.createElement("div");
            const undo = module.default.render({ model, el });
            const during = [attnCourseViews.size - before, Object.values(listeners).join()];
            undo();
            const after = [attnCourseViews.size - before, Object.values(listeners).join()];
            return { during, after, elements: el.children.length };
        }"""
    )
    assert left == {"during": [1, "1,1,1,1,1"], "after": [0, "0,0,0,0,0"], "elements": 0}

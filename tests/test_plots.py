"""Pictures and their words; views whose artists are kept and whose errors are not lost."""

import re
import subprocess
import sys
import warnings
from io import BytesIO
from threading import Thread

import numpy as np
import pytest
import torch
from matplotlib import font_manager
from PIL import Image
from torch import nn

from attn_course.attention import attention_entropy
from attn_course.notebook import cells
from attn_course.plots import (
    Choices,
    Picture,
    Slider,
    draw_map,
    entropy_by_head,
    fonts,
    gradient_flow,
    gradient_norms,
    head_maps,
    heat_map,
    learning_curves,
    line_plot,
    live_figure,
    live_figures,
    picture,
)
from attn_course.training import History

WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
VIEW = "application/vnd.jupyter.widget-view+json"


def pixels(png):
    return np.asarray(Image.open(BytesIO(png)).convert("RGB")).astype(int)


def tick_labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_heat_map_shows_the_matrix_with_its_labels():
    shown = heat_map(WEIGHTS, row_labels=["the", "cat"], column_labels=["a", "b", "c"], title="W")
    axes = shown.axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), WEIGHTS)
    assert axes.images[0].get_clim() == (0.0, 1.0)
    assert tick_labels(axes.yaxis) == ["the", "cat"]
    assert tick_labels(axes.xaxis) == ["a", "b", "c"]
    assert axes.get_xlabel() == "key position j"
    assert axes.get_ylabel() == "query position i"
    assert [text.get_text() for text in axes.texts] == [
        "0.70",
        "0.20",
        "0.10",
        "0.10",
        "0.80",
        "0.10",
    ]
    assert shown.axes[1].get_ylabel() == "attention weight"


# kills: numbers that vanish on their own colour
def test_numbers_stand_out_from_their_cell():
    axes = heat_map([[0.0, 1.0]]).axes[0]
    assert [text.get_color() for text in axes.texts] == ["white", "black"]


def test_large_maps_go_without_numbers():
    assert heat_map(torch.rand(9, 9)).axes[0].texts[:] == []
    assert len(heat_map(torch.rand(9, 9), numbers=True).axes[0].texts) == 81


def test_signed_values_get_a_map_with_its_middle_at_zero():
    image = heat_map([[-1.0, 3.0]], limits=None).axes[0].images[0]
    assert image.get_clim() == (-3.0, 3.0)
    assert image.get_cmap().name == picture.DIVERGING
    image = heat_map([[1.0, 3.0]], limits=None).axes[0].images[0]
    assert image.get_clim() == (1.0, 3.0)
    assert image.get_cmap().name == picture.SEQUENTIAL


@pytest.mark.parametrize("value", [0.0, 2.0, float("inf"), float("nan")])
def test_constant_and_infinite_matrices_can_be_drawn(value):
    shown = heat_map([[value, value]], limits=None)
    assert len(shown.png()) > 1000


def test_text_alternative_says_structure_and_what_is_to_be_seen():
    shown = heat_map(
        WEIGHTS, row_labels=["the", "cat"], title="Step 3", alt="Each word looks at itself."
    )
    assert shown.alt == (
        "Step 3. Heat map of attention weight: 2 rows (query position i) by 3 columns "
        "(key position j). Rows: the cat. Each word looks at itself."
    )


# kills: a picture without alternative text, unescaped words, bytes in text/plain
def test_a_notebook_gets_an_image_with_alternative_text():
    bundle = heat_map(WEIGHTS, alt='"<b>" & so on')._repr_mimebundle_()
    assert bundle.keys() == {"text/html", "text/plain"}
    assert bundle["text/plain"].endswith('"<b>" & so on')
    assert 'alt="Heat map' in bundle["text/html"]
    assert "&quot;&lt;b&gt;&quot; &amp; so on" in bundle["text/html"]
    assert re.search(r'src="data:image/png;base64,iVBORw0KGgo[\w+/=]+">$', bundle["text/html"])


def test_a_picture_needs_words():
    figure = picture.new_figure(2, 2)
    with pytest.raises(ValueError, match="needs a text alternative"):
        Picture(figure, "  ")


def test_the_same_picture_has_the_same_bytes(tmp_path):
    first, second = (heat_map(WEIGHTS, title="same").png() for _ in range(2))
    assert first == second
    path = tmp_path / "map.png"
    heat_map(WEIGHTS, title="same").save(path)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: heat_map(torch.rand(3)), r"expected 2 axes.*\(3,\)"),
        (lambda: heat_map(torch.rand(0, 3)), r"none of them empty, got shape \(0, 3\)"),
        (lambda: heat_map(WEIGHTS, row_labels=["a"]), "1 row labels for 2 rows"),
        (lambda: heat_map(WEIGHTS, column_labels=list("ab")), "2 column labels for 3 columns"),
        (lambda: head_maps(WEIGHTS), r"expected 3 axes.*\(2, 3\)"),
        (lambda: head_maps(torch.rand(2, 3, 3), titles=["x"]), "1 head labels for 2 heads"),
        (lambda: line_plot([1, 2], {}, x_label="n", y_label="y"), "series is empty"),
        (lambda: line_plot([1, 2], {"a": [1]}, x_label="n", y_label="y"), r"'a' has shape \(1,\)"),
        (lambda: learning_curves({}), "histories is empty"),
        (lambda: learning_curves({"a": History(loss=[1.0])}, metric="f1"), "'a' did not measure"),
        (lambda: learning_curves({"a": History(loss=[1.0])}, smooth=0), "smooth=0"),
        (lambda: learning_curves({"a": History()}), "0 values"),
        (lambda: entropy_by_head([]), "need weights"),
        (lambda: entropy_by_head([torch.rand(2, 3, 3), torch.rand(4, 3, 3)]), "one h"),
        (lambda: gradient_flow({}), "models is empty"),
        (lambda: gradient_flow({"a": {"x": 1.0}, "b": {"y": 1.0}}), "layers of 'b'"),
        (lambda: gradient_norms(nn.Linear(1, 1)), "call loss.backward"),
    ],
)
def test_what_cannot_be_drawn_is_named(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


@pytest.mark.parametrize("heads", [1, 4, 6])
def test_head_maps_draw_each_head_on_one_scale(heads):
    weights = torch.rand(heads, 3, 5)
    shown = head_maps(weights, column_labels=list("abcde"), limits=None)
    maps = [axes for axes in shown.axes if axes.images]
    assert len(maps) == heads
    for number, axes in enumerate(maps):
        np.testing.assert_allclose(axes.images[0].get_array(), weights[number].double())
        assert axes.get_title() == f"head {number}"
    limits = {axes.images[0].get_clim() for axes in maps}
    assert limits == {(weights.double().min().item(), weights.double().max().item())}
    assert shown.alt.startswith(f"{heads} heat map")


# kills: entropy over queries, batch taken for heads, layers and heads exchanged
def test_entropy_by_head():
    one_hot = torch.eye(4).expand(2, 3, 4, 4)
    uniform = torch.full((2, 3, 4, 4), 0.25)
    mixed = torch.stack([one_hot[:, 0], uniform[:, 0], one_hot[:, 0]], dim=1)
    values = entropy_by_head([uniform, mixed]).axes[0].images[0].get_array()
    top = float(np.log(4))
    np.testing.assert_allclose(values, [[top, top, top], [0, top, 0]], atol=1e-9)
    weights = torch.rand(2, 5, 6).softmax(dim=-1)
    values = entropy_by_head([weights]).axes[0].images[0].get_array()
    np.testing.assert_allclose(values[0], attention_entropy(weights.double()).mean(dim=1))


def small_model():
    model = nn.ModuleDict(
        {"embedding": nn.Linear(2, 2), "blocks": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])}
    )
    for number, parameter in enumerate(model.parameters()):
        parameter.grad = torch.full_like(parameter, float(number))
    return model


def test_gradient_flow_groups_parameters_by_layer():
    norms = gradient_norms(small_model())
    assert list(norms) == ["embedding", "blocks.0", "blocks.1"]
    assert norms["blocks.0"] == pytest.approx((4 * 2**2 + 2 * 3**2) ** 0.5)
    shown = gradient_flow({"mine": small_model(), "flat": dict.fromkeys(norms, 1.0)})
    axes = shown.axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), list(norms.values()))
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [1, 1, 1])
    assert tick_labels(axes.xaxis) == list(norms)
    assert "gradient norm has a logarithmic scale" in shown.alt
    assert "mine, flat" in shown.alt


def test_line_plot_draws_the_mean_of_the_runs_and_their_span():
    shown = line_plot(
        [8, 16, 32],
        {"runs": [[1, 2, 3], [3, 4, 8]], "one": torch.tensor([5.0, 6, 7], requires_grad=True)},
        x_label="N",
        y_label="accuracy",
        log_x=True,
        y_limits=(0, 10),
    )
    axes = shown.axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [2, 3, 5.5])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [5, 6, 7])
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1, 8)
    assert axes.get_ylim() == (0, 10)
    assert tick_labels(axes.xaxis) == ["8", "16", "32"]
    # told apart without colour
    assert axes.lines[0].get_marker() != axes.lines[1].get_marker()
    assert shown.alt == "Line plot of accuracy against N: runs, one. N has a logarithmic scale."


def test_learning_curves_take_each_run_at_its_own_steps():
    history = History(loss=[4.0, 2.0, 0.0], eval_steps=[2, 3], metrics={"accuracy": [0.5, 0.75]})
    (line,) = learning_curves({"run": history}).axes[0].lines
    assert line.get_xdata().tolist() == [1, 2, 3]
    assert line.get_ydata().tolist() == [4, 2, 0]
    (line,) = learning_curves({"run": history}, smooth=2).axes[0].lines
    assert line.get_ydata().tolist() == [4, 3, 1]
    shown = learning_curves({"run": history}, metric="accuracy", log_y=True)
    (line,) = shown.axes[0].lines
    assert line.get_xdata().tolist() == [2, 3]
    assert shown.axes[0].get_ylabel() == "accuracy"
    assert shown.axes[0].get_yscale() == "log"


def test_colours_differ_in_lightness_for_every_kind_of_sight():
    import matplotlib

    # what viridis was made for: lightness rises all along the map
    colours = matplotlib.colormaps[picture.SEQUENTIAL](np.linspace(0, 1, 20))[:, :3]
    lightness = colours @ [0.299, 0.587, 0.114]
    assert (np.diff(lightness) > 0).all()


# --- scripts and fonts


def test_right_to_left_labels_are_turned_where_matplotlib_does_not():
    old = {"by_matplotlib": False}
    assert fonts.laid_out("abc 12", **old) == "abc 12"
    assert fonts.laid_out("שלום", **old) == "םולש"
    assert fonts.laid_out("the שלום 12", **old) == "the םולש 12"
    assert fonts.laid_out("שלום לך", **old) == "ךל םולש"
    assert fonts.laid_out("בָ", **old) == "בָ"  # a mark stays behind its letter
    assert fonts.laid_out("מבָ", **old) == "בָמ"
    assert fonts.laid_out("שלום", by_matplotlib=True) == "שלום"


def installed(character):
    return fonts.missing_glyphs([character]) == ""


@pytest.mark.skipif(not installed("你"), reason="no installed font has Chinese glyphs")
def test_chinese_labels_get_a_font_that_has_them():
    families = fonts.family_for(["你好", "abc"])
    assert families[0] == "DejaVu Sans"
    assert len(families) > 1
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        drawn = {
            text: pixels(heat_map([[0.5]], row_labels=[text], limits=None).png())
            for text in ("你", "好")
        }
    assert not said
    # two boxes would be alike
    assert drawn["你"].shape != drawn["好"].shape or (drawn["你"] != drawn["好"]).any()


def test_a_glyph_that_no_font_has_is_said_in_the_figure(capfd, monkeypatch):
    monkeypatch.setattr(fonts, "_family_with", lambda character: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = heat_map([[0.5]], row_labels=["𒀀"], column_labels=["a"])
        shown.png()
        heads = head_maps([[[0.5]]], row_labels=["𒀀"])
    assert capfd.readouterr() == ("", "")
    note = shown.figure.get_supxlabel()
    assert note.startswith("□: no installed font has U+12000. ")
    assert "apt install" in note
    assert heads.figure.get_supxlabel() == f"key position j\n{note}"
    assert heat_map([[0.5]], row_labels=["a"]).figure.get_supxlabel() == ""


def test_a_font_installed_later_is_found(monkeypatch, tmp_path):
    path = tmp_path / "New.ttf"
    path.touch()
    added = []
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(path)])
    monkeypatch.setattr(font_manager.fontManager, "addfont", added.append)
    fonts._installed.cache_clear()
    fonts._installed()
    fonts._installed.cache_clear()
    assert added == [str(path)]


def test_pictures_leave_pyplot_and_torch_alone():
    program = (
        "import sys; from attn_course.plots import heat_map; heat_map([[1.0]]).png();"
        "print([m for m in ('matplotlib.pyplot', 'torch', 'ipywidgets') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


# --- views with sliders


def bars(axes):
    """A view of two sliders: bar heights scale·x^power."""
    artists = axes.bar(range(4), [0] * 4)
    axes.set(ylim=(0, 30), xlabel="x", ylabel="height")

    def update(power, scale):
        if power == 3 and scale > 1:
            raise ArithmeticError("too <high>")
        for x, artist in enumerate(artists):
            artist.set_height(scale * x**power)
        return f"The last bar has height {scale * 3**power:.0f}."

    return update


def make_view(**changed):
    settings = {
        "alt": "Four bars.",
        "power": Choices("power", [1, 2, 3], start=2),
        "scale": Slider("scale", 0.0, 2.0, start=1.0, step=0.5),
    }
    return live_figure(bars, **settings | changed)


def test_a_view_starts_drawn_and_described():
    view = make_view()
    assert view.axes[0].patches[3].get_height() == 9
    assert repr(view) == (
        "Four bars. A view with sliders; move them in a running notebook. This is the view at "
        "power 2, scale 1.0. The last bar has height 9."
    )


# kills: new artists on each move, a picture that does not change, a caption left behind
def test_moving_redraws_the_same_artists():
    view = make_view()
    before, artists = view.png, list(view.axes[0].patches)
    view.set(scale=2.0)
    assert list(view.axes[0].patches) == artists
    assert view.axes[0].patches[3].get_height() == 18
    assert view.values == {"power": 2, "scale": 2.0}
    assert (pixels(view.png) != pixels(before)).any()
    assert view.caption == "The last bar has height 18."
    view.set(scale=1.0)
    assert view.png == before


def test_the_bundle_has_the_live_view_and_a_picture_for_those_without_a_kernel():
    view = make_view()
    bundle = view._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html", VIEW}
    assert bundle["text/plain"] == repr(view)
    assert 'alt="Four bars.' in bundle["text/html"]
    assert bundle[VIEW]["model_id"] == view._view.box.model_id


def test_sliders_are_labelled_and_move_the_picture():
    view = make_view()
    view._repr_mimebundle_()
    sliders = view._view.sliders
    assert {name: s.description for name, s in sliders.items()} == {
        "power": "power",
        "scale": "scale",
    }
    sliders["power"].value = 1
    assert view.values["power"] == 1
    assert view._view.image.value == view.png
    assert "height 3" in view._view.message.value
    assert 'role="status"' in view._view.message.value
    view.set(power=2)  # and from code the sliders follow
    assert sliders["power"].value == 2


# kills: an exception that ends in a log; one that stays on the view for ever
def test_errors_are_shown_in_the_view_and_raised_in_tests():
    view = make_view()
    view._repr_mimebundle_()
    view._view.sliders["scale"].value = 2.0
    view._view.sliders["power"].value = 3
    assert isinstance(view.error, ArithmeticError)
    assert "ArithmeticError: too &lt;high&gt;" in view._view.message.value
    view._view.sliders["power"].value = 1
    assert view.error is None
    assert "ArithmeticError" not in view._view.message.value
    with pytest.raises(ArithmeticError, match="too <high>"):
        view.set(power=3)


def test_extremes_are_visited_and_what_goes_wrong_is_raised():
    view = make_view()
    view.visit_extremes()
    assert view.values == {"power": 2, "scale": 1.0}
    assert make_view(power=Choices("power", [1, 3], start=1)) is not None
    failing = make_view(power=Choices("power", [1, 2, 3], start=3))
    with pytest.raises(ArithmeticError):
        failing.visit_extremes()


# kills: drawing in several threads at once, which leaves matplotlib's figure blank for good
def test_a_view_moved_from_several_threads_shows_its_last_state():
    view, expected = make_view(), make_view()

    def move(power):
        for scale in (1, 2, 1, 2, 1, 2):
            view.set(power=power, scale=scale)

    threads = [Thread(target=move, args=(power,)) for power in (1, 2, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for power in (1, 2):
        view.set(power=power, scale=1)
        expected.set(power=power, scale=1)
        assert view.png == expected.png


def test_live_figures_lists_those_in_use():
    view = make_view()
    assert view in live_figures()


def test_a_view_shown_again_closes_the_old_one(monkeypatch):
    view = make_view()
    view._repr_mimebundle_()
    old = view._view
    view._repr_mimebundle_()
    assert old.box.comm is None
    assert view._view.box.comm is not None


# kills: views of one cell closing each other; old views kept when their cell is run again
def test_a_cell_that_is_run_again_closes_what_it_showed(monkeypatch):
    cell = ("cell-1", 1)
    monkeypatch.setattr(cells, "current_cell", lambda: cell)
    first, second = make_view(), make_view()
    first._repr_mimebundle_()
    second._repr_mimebundle_()
    assert first._view.box.comm is not None
    cell = ("cell-2", 2)
    make_view()._repr_mimebundle_()
    assert first._view.box.comm is not None
    cell = ("cell-1", 3)
    make_view()._repr_mimebundle_()
    assert first._view.box.comm is None
    assert second._view.box.comm is None


def test_panels_stand_side_by_side():
    def draw(left, right):
        image = draw_map(left, np.eye(3))
        (line,) = right.plot([0, 1], [0, 1])

        def update(k):
            image.set_data(np.eye(3) * k)
            line.set_ydata([0, k])

        return update

    view = live_figure(draw, alt="A map and a line.", panels=2, k=Slider("k", 0, 1, start=1))
    view.set(k=0)
    assert len(view.axes) == 2
    assert view.caption == ""
    assert view.axes[0].images[0].get_array().sum() == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: live_figure(bars, alt="x"), "needs a slider"),
        (lambda: make_view(alt=" "), "needs a text alternative"),
        (lambda: make_view(panels=0), "panels=0"),
        (lambda: make_view().set(powr=1), "no slider 'powr'; there are power, scale"),
        (lambda: Slider("k", 1, 5, start=6), "start=6"),
        (lambda: Slider("k", 1, 1, start=1), "low < high"),
        (lambda: Slider("k", 1, 2, start=1, step=0), "step=0"),
        (lambda: Choices("k", [1, 2], start=3), "start=3"),
        (lambda: Choices("k", [1], start=1), "two options or more"),
        (
            lambda: live_figure(lambda axes: None, alt="x", k=Slider("k", 0, 1, start=0)),
            "draw must return the function that redraws.*NoneType",
        ),
    ],
)
def test_views_that_cannot_be_made_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_whole_numbers_get_a_slider_of_whole_numbers():
    import ipywidgets

    assert isinstance(Slider("k", 1, 5, start=2).widget(), ipywidgets.IntSlider)
    fine = Slider("k", 1, 5, start=2, step=0.5).widget()
    assert isinstance(fine, ipywidgets.FloatSlider)
    assert (fine.min, fine.max, fine.value, fine.step) == (1, 5, 2, 0.5)
    chosen = Choices("k", ["a", "b"], start="b").widget()
    assert (chosen.options, chosen.value) == (("a", "b"), "b")

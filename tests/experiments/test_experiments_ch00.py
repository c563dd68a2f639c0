"""The spirals have the form that is promised, and the views of chapter 00 show what they say."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from attn_course.experiments.ch00 import (
    descent,
    descent_view,
    softmax_view,
    spirals,
    spirals_picture,
)


def test_each_arm_is_the_first_one_turned():
    points, targets = spirals(40, classes=4, noise=0.0, seed=3)
    assert targets.bincount().tolist() == [40] * 4
    radius = points.norm(dim=1)
    assert radius.min() >= 0.1 - 1e-6
    assert radius.max() <= 1 + 1e-6
    angle = 4 * (radius - 0.1) / 0.9 + 2 * math.pi * targets / 4
    expected = radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    torch.testing.assert_close(points, expected)


def test_the_noise_is_that_of_the_angle():
    points, targets = spirals(4000, noise=0.15)
    radius = points.norm(dim=1)
    angle = 4 * (radius - 0.1) / 0.9 + 2 * math.pi * targets / 3
    off = torch.atan2(points[:, 1], points[:, 0]) - angle
    off = torch.atan2(off.sin(), off.cos())
    assert off.std().item() == pytest.approx(0.15, rel=0.05)
    assert abs(off.mean().item()) < 0.01


def test_a_seed_gives_the_same_points_in_an_order_that_tells_nothing():
    points, targets = spirals(30, seed=1)
    again, _ = spirals(30, seed=1)
    other, _ = spirals(30, seed=2)
    assert torch.equal(points, again)
    assert not torch.equal(points, other)
    assert (targets.diff() != 0).sum() > 30


def test_drawing_leaves_the_random_numbers_of_the_session_alone():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    spirals(5)
    assert torch.equal(torch.rand(1), expected)


@pytest.mark.parametrize("wrong", [{"classes": 1}, {"n_per_class": 0}, {"noise": -0.1}])
def test_settings_that_make_no_spirals_are_refused(wrong):
    (name, value), *_ = wrong.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        spirals(**({"n_per_class": 5} | wrong))


def test_descent_follows_the_slope():
    np.testing.assert_allclose(descent(0.1, 2), [0, 0.6, 1.08])
    np.testing.assert_allclose(descent(0.5, 3), [0, 3, 3, 3])
    np.testing.assert_allclose(descent(1.0, 3), [0, 6, 0, 6])


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (0.02, "one side"),
        (0.48, "one side"),
        (0.1 + 0.4, "one step"),
        (0.52, "overshoots"),
        (0.98, "overshoots"),
        (50 * 0.02, "bounces"),
        (1.02, "farther"),
    ],
)
def test_the_descent_is_described_as_it_goes(rate, words):
    view = descent_view()
    view.set(rate=rate)
    assert words in view.caption
    path = view.axes[0].lines[1].get_xdata()
    np.testing.assert_allclose(path, descent(rate))


def test_the_bars_are_the_softmax():
    view = softmax_view()
    view.set(logit=2.0, temperature=0.5)
    heights = [bar.get_height() for bar in view.axes[1].patches]
    np.testing.assert_allclose(heights, torch.tensor([0.0, 2.0, 4.0]).softmax(0), rtol=1e-5)
    logits = [bar.get_height() for bar in view.axes[0].patches]
    assert logits == [0.0, 1.0, 2.0]
    assert "Class 2" in view.caption
    view.set(logit=-4.0)
    assert "Class 1" in view.caption


@pytest.mark.parametrize("make", [softmax_view, descent_view])
def test_the_sliders_may_go_to_their_ends(make):
    view = make()
    before = view.png
    view.visit_extremes()
    assert view.error is None
    assert view.png == before
    assert view.alt


def test_the_regions_lie_where_the_model_decides():
    points, targets = spirals(5, classes=2)
    model = nn.Linear(2, 2, bias=False)
    with torch.no_grad():  # class 1 on the right, class 0 on the left
        model.weight.copy_(torch.tensor([[-1.0, 0.0], [1.0, 0.0]]))
    picture = spirals_picture(points, targets, model)
    image = picture.axes[0].images[0]
    shown = np.asarray(image.get_array())
    assert shown[:, :70].max() == 0
    assert shown[:, 90:].min() == 1
    assert image.get_extent() == [-1.3, 1.3, -1.3, 1.3]
    assert "10 points of 2 spirals" in picture.alt
    assert "regions" in picture.alt


def test_every_point_is_drawn_with_its_class():
    points, targets = spirals(7)
    picture = spirals_picture(points, targets)
    drawn = picture.axes[0].collections
    assert [len(dots.get_offsets()) for dots in drawn] == [7, 7, 7]
    assert not picture.axes[0].images
    np.testing.assert_allclose(drawn[1].get_offsets(), points[targets == 1])

"""A right answer that takes ready made what it should write is told so, and is no pass."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attn_course import checks, primer, recurrent
from attn_course.attention import attention_scores
from attn_course.blocks import EncoderBlock
from attn_course.checks import check, exercises, get
from attn_course.checks.edits import edited
from attn_course.checks.ruled_out import taken_ready_made
from attn_course.norms import layer_norm

normalised = nn.LayerNorm


def by_cross_entropy(logits, targets):
    return F.cross_entropy(logits, targets)


def by_embedding(ids, weight):
    return F.embedding(ids, weight)


def by_a_method(scores, dim=-1):
    return scores.softmax(dim)


def by_another_name(x, gain, bias, eps=1e-5):
    norm = normalised(x.shape[-1], eps=eps, dtype=x.dtype)
    return norm(x) * gain + bias


def by_a_fused_kernel(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, scale=1.0), torch.softmax(
        attention_scores(query, key), dim=-1
    )


def from_a_module(a, b):
    return primer.dot_products(a, b)


def from_an_import_inside(inputs, W_x, W_h, b, h=None):
    from attn_course.recurrent import run_rnn

    return run_rnn(inputs, W_x, W_h, b, h)


class BareSubclass(EncoderBlock):
    pass


CASES = [
    ("cross_entropy", by_cross_entropy, "cross_entropy"),
    ("embed", by_embedding, "embedding"),
    ("softmax", by_a_method, "softmax"),
    ("layer_norm", by_another_name, "layer_norm"),
    ("lookup", by_a_fused_kernel, "scaled_dot_product_attention"),
    ("dot_products", primer.dot_products, "attn_course.dot_products"),
    ("dot_products", from_a_module, "attn_course.dot_products"),
    ("rnn_step", recurrent.rnn_step, "attn_course.rnn_step"),
    ("run_rnn", from_an_import_inside, "attn_course.run_rnn"),
    ("EncoderBlock", BareSubclass, "attn_course.EncoderBlock"),
    ("layer_norm", lambda *given: layer_norm(*given), "attn_course.layer_norm"),
]


@pytest.mark.parametrize(("name", "answer", "taken"), CASES)
def test_it_is_told_and_not_counted(name, answer, taken, capsys, monkeypatch):
    told = []
    monkeypatch.setattr(checks, "tell", lambda event, **what: told.append(what))
    report = check(answer, name)
    assert not report.passed
    assert report.mistake is None
    assert taken in report.ready_made
    assert [what["passed"] for what in told] == [False]
    shown = capsys.readouterr().out
    assert "right, but not counted" in shown
    assert f"`{taken}`" in shown


@pytest.mark.parametrize("name", exercises())
def test_what_is_written_by_hand_is_nothing_ready_made(name):
    exercise = get(name)
    by_hand = edited(exercise.right or exercise.reference, {})
    assert taken_ready_made(by_hand, exercise, exercise.cases(0)) == []

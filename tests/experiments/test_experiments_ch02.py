"""Chapter 02's sentence, its view, and the two scores on the copying task."""

import math

import pytest
import torch

from attn_course.attention import additive_attention, lookup
from attn_course.experiments.ch02 import (
    ENDINGS,
    HAND_SET_KEYS,
    SENTENCE,
    CopyingSettings,
    ending_with,
    keys_of,
    sentence_view,
    split_into_tokens,
    states_of,
    train_copying,
    vector,
)
from attn_course.recurrent import RecurrentSeq2Seq
from attn_course.tasks import copy_task, shift_right

TINY = CopyingSettings(n=3, num_symbols=4, d_model=8, batch_size=16, steps=4, test_size=6)


# kills: case kept (two ids for "the"), "didn't" torn apart, the full stop lost
def test_the_sentence_becomes_twelve_tokens():
    tokens = split_into_tokens(SENTENCE)
    assert " ".join(tokens) == "the animal didn't cross the street because it was too tired ."
    assert split_into_tokens("Don’t stop, now!") == ["don’t", "stop", ",", "now", "!"]


# kills: another word replaced than the last; an ending without a key
def test_only_the_last_word_differs_and_every_token_has_a_key():
    tired, wide = (ending_with(word) for word in ENDINGS)
    assert tired == split_into_tokens(SENTENCE)
    assert [a == b for a, b in zip(tired, wide, strict=True)] == [True] * 10 + [False, True]
    assert keys_of(wide).tolist()[1] == pytest.approx(HAND_SET_KEYS["animal"])
    with pytest.raises(ValueError, match=r"no key is set for \['lorry'\]"):
        keys_of(["the", "lorry"])


# kills: radians for degrees, sine and cosine exchanged, length ignored
def test_a_vector_has_its_angle_and_length():
    expected = torch.tensor([1.5, 1.5 * math.sqrt(3)])
    torch.testing.assert_close(vector(60, 3.0), expected)


# kills: a query of length 0 that prefers a token; a query that finds another than what it points at
def test_the_view_follows_the_query():
    view = sentence_view()
    view.set(angle=0, length=8.0)
    assert "“animal”" in view.caption
    view.set(angle=90, last_word="wide")
    assert "“street”" in view.caption
    assert "wide" in [label.get_text() for label in view.axes[1].get_yticklabels()]
    view.set(length=0.0)
    widths = [bar.get_width() for bar in view.axes[1].patches]
    assert widths == pytest.approx([1 / 12] * 12)


# kills: the shared dictionary altered; the learner's own key not used
def test_a_changed_key_moves_the_weight():
    keys = {**HAND_SET_KEYS, "too": (1.2, 0.0)}
    view = sentence_view(keys)
    view.set(angle=0, length=8.0)
    assert "“too”" in view.caption
    assert HAND_SET_KEYS["too"] != keys["too"]


# kills: an extreme that raises, artists that no longer fit the other sentence
def test_every_slider_reaches_its_ends():
    view = sentence_view()
    view.visit_extremes()
    assert view.error is None


# kills: another start or other batches for one of the scores, a global seed
def test_both_scores_start_alike_and_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    settings = CopyingSettings(
        n=3, num_symbols=4, d_model=8, batch_size=16, steps=1, lr=1e-9, test_size=6
    )
    runs = [train_copying(score, seed=3, settings=settings) for score in ("additive", "dot")]
    assert torch.equal(torch.get_rng_state(), before)
    additive, dot = (run.model.state_dict() for run in runs)
    assert set(additive) - set(dot) == {"W_q", "W_k", "w"}
    for name, tensor in dot.items():
        torch.testing.assert_close(tensor, additive[name], rtol=0, atol=1e-6)
    assert torch.equal(runs[0].test.inputs, runs[1].test.inputs)
    other = train_copying("dot", seed=4, settings=settings)
    assert not torch.equal(other.model.W_out.weight, runs[1].model.W_out.weight)


# kills: accuracy measured with the true target fed in, on training data, or only at the end
def test_a_run_is_measured_on_the_way():
    run = train_copying("dot", seed=0, settings=CopyingSettings(**{**vars(TINY), "eval_every": 2}))
    assert run.history.eval_steps == [2, 4]
    written, _ = run.model.generate(run.test.inputs, 3, 0)
    share = (written == run.test.targets).double().mean().item()
    assert run.history.metrics["accuracy"][-1] == pytest.approx(share)


# kills: the target read unshifted, states and queries exchanged
@pytest.mark.parametrize("score", ["additive", "dot"])
def test_the_opened_box_gives_what_the_model_gives(score):
    run = train_copying(score, seed=1, settings=TINY)
    query, states = states_of(run.model, run.test)
    if score == "dot":
        _, weights = lookup(query, states, states)
    else:
        model = run.model
        _, weights = additive_attention(query, states, states, model.W_q, model.W_k, model.w)
    expected = run.model(run.test.inputs, shift_right(run.test.targets))[1]
    torch.testing.assert_close(weights, expected)


# kills: a dot score that keeps weights, a misspelt score taken for additive, no attention
@pytest.mark.usefixtures("without_shape_checks")
def test_the_model_takes_either_score_and_no_other():
    task = copy_task(3, 4)
    sizes = (task.vocab_size, task.num_classes, 8)
    with pytest.raises(ValueError, match="'cosine' is neither"):
        RecurrentSeq2Seq(*sizes, attention=True, score="cosine")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="attention=False"):
        RecurrentSeq2Seq(*sizes, attention=False).look_back(
            torch.ones(1, 2, 8), torch.ones(1, 3, 8)
        )

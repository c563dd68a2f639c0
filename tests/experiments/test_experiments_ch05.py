"""Chapter 05's staircase, its heads and keys, its counts, its textbook module and its views."""

import pytest
import torch
from torch import nn

from attn_course.efficient import chunked_attention
from attn_course.experiments.ch05 import (
    KeySettings,
    StaircaseModel,
    StaircaseSettings,
    ablation_costs,
    accuracy_by_question,
    answers_loss,
    asked_items,
    attention_to_questions,
    key_lookup_accuracy,
    staircase,
    staircase_runs,
    train_key_lookup,
    train_staircase,
)
from attn_course.experiments.ch05_costs import kept_bytes, multiply_adds
from attn_course.experiments.ch05_textbook import TextbookAttention, outcome, same_weights
from attn_course.experiments.ch05_views import (
    compared_with_torch,
    memory_view,
    own_heads_explorer,
    own_memory_view,
)
from attn_course.memory import AttentionMemory, attention_memory
from attn_course.models import count_parameters
from attn_course.multihead import MultiHeadAttention

TINY = StaircaseSettings(
    num_questions=2, num_heads=2, d_model=8, batch_size=8, steps=3, test_size=6
)


# -- the staircase ----------------------------------------------------------------------------


# kills: an item that is off by one, questions of other slots, values taken for keys
def test_the_asked_items_hold_the_answers():
    batch = staircase(StaircaseSettings(num_questions=3), 0).test_set(50)
    items = asked_items(batch.inputs, 3)
    values = batch.inputs[:, :-1, 1].gather(1, items) - 9  # ids of values begin at 9
    assert torch.equal(values, batch.targets)


# kills: another position than the last that is read, questions and values exchanged
def test_the_model_answers_from_its_last_position():
    settings = StaircaseSettings(num_questions=3, num_heads=2, num_layers=2, d_ff=5, d_model=8)
    task = staircase(settings, 0)
    model, inputs = StaircaseModel(task, settings), task.test_set(4).inputs
    assert model(inputs).shape == (4, 3, 8)
    assert model.weights(inputs).shape == (4, 2, 9)
    other = inputs.clone()
    other[:, -1, :3] = inputs[:, -1, :3].roll(1, 0)
    assert not torch.allclose(model(inputs), model(other))
    # the items are a set: no positions come in
    shuffled = torch.cat([inputs[:, :-1].flip(1), inputs[:, -1:]], dim=1)
    torch.testing.assert_close(model(shuffled), model(inputs))


# kills: a mean over the wrong axis, a sum of losses
def test_loss_and_accuracy_are_over_all_questions():
    batch = staircase(TINY, 0).test_set(6)

    def certain(symbols):
        logits = 50.0 * nn.functional.one_hot(batch.targets, 8).float()
        logits[:, 1] = -logits[:, 1]
        return logits

    assert accuracy_by_question(certain, batch).tolist() == [1.0, 0.0]
    assert answers_loss(certain, batch).item() == pytest.approx(
        0.5 * (50 + torch.tensor(7.0).log())
    )


# kills: a start or batches drawn from the global generator, one seed for all runs
def test_a_run_depends_on_its_seed_alone():
    before = torch.get_rng_state()
    first = train_staircase(TINY, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(5)
    again, other = staircase_runs(TINY, seeds=(1, 2))
    assert again.history.loss == first.history.loss
    assert torch.equal(again.accuracy, first.accuracy)
    assert other.history.loss != first.history.loss


# kills: a model that cannot use several heads, heads and questions exchanged, a head that
# stays silent after its ablation
def test_two_heads_answer_two_questions_and_each_has_its_own():
    settings = StaircaseSettings(num_questions=2, num_heads=2, steps=300)
    run = train_staircase(settings, seed=0)
    lone = train_staircase(StaircaseSettings(num_questions=2, steps=300), seed=0)
    assert run.answered > 1.9
    assert lone.answered < 1.4
    test = staircase(settings, 0).test_set(300)
    weights = attention_to_questions(run.model, test)
    costs = ablation_costs(run.model, test)
    assert sorted(weights.argmax(dim=1).tolist()) == [0, 1]
    assert torch.equal(weights.argmax(dim=1), costs.argmax(dim=1))
    assert weights.max(dim=1).values.min() > 0.8
    assert costs.max(dim=1).values.min() > 0.5
    assert costs.min(dim=1).values.max() < 0.1
    torch.testing.assert_close(
        accuracy_by_question(run.model, test).sum(), torch.tensor(2.0).double(), atol=0.1, rtol=0
    )


# kills: a width that does not reach the queries, keys that are no more than before
def test_a_single_feature_cannot_tell_eight_keys_apart():
    narrow = train_key_lookup(KeySettings(8, 1, steps=300), seed=0)
    wide = train_key_lookup(KeySettings(8, 4, steps=300), seed=0)
    assert narrow < 0.7 < 0.9 < wide


def test_accuracies_by_width_have_a_row_for_each_seed():
    found = key_lookup_accuracy(8, (1, 2, 3), seeds=(0, 1), steps=2)
    assert found.shape == (2, 3)


# -- counts -----------------------------------------------------------------------------------


# kills: operations taken for multiply-adds, memory counted twice or not at all
def test_counts_agree_with_the_formulas():
    for num_heads in (1, 4):
        module, x = MultiHeadAttention(32, num_heads), torch.randn(2, 16, 32)
        assert count_parameters(module) == 4 * (32 * 32 + 32)
        assert multiply_adds(module, x, x, x) == 2 * (4 * 16 * 32 * 32 + 2 * 16 * 16 * 32)
        assert (
            kept_bytes(module, x, x, x) == attention_memory(32, num_heads, 16, batch=2).activations
        )


def test_chunks_keep_no_weights():
    q, k, v = (torch.randn(1, 4, 256, 8, requires_grad=True) for _ in range(3))
    assert kept_bytes(lambda *x: chunked_attention(*x)[0], q, k, v) < 4 * 256 * 256 * 4 / 10


# -- the textbook -----------------------------------------------------------------------------


def textbook(d_model=12, num_heads=3):
    torch.manual_seed(0)
    ours, theirs = MultiHeadAttention(d_model, num_heads), TextbookAttention(num_heads, d_model)
    same_weights(theirs, ours)
    return ours, theirs.eval()


# kills: faults that are not there
def test_the_textbook_is_right_where_it_is_used_as_it_was_meant():
    ours, theirs = textbook()
    x, mask = torch.randn(2, 5, 12), torch.ones(2, 5, 5, dtype=torch.bool).tril()
    torch.testing.assert_close(theirs(x, x, x), ours(x, x, x)[0])
    torch.testing.assert_close(theirs(x, x, x, mask), ours(x, x, x, mask)[0])


def test_where_the_textbook_fails():
    ours, theirs = textbook()
    x, causal = torch.randn(2, 3, 12), torch.ones(3, 3, dtype=torch.bool).tril()
    # as many heads as tokens: a mask (i, j) is silently taken for one of heads
    assert "finite" in outcome(theirs, x, x, x, causal)
    assert not torch.allclose(theirs(x, x, x, causal), ours(x, x, x, causal)[0], atol=1e-3)
    x = torch.randn(2, 5, 12)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    assert "RuntimeError" in outcome(theirs, x, x, x, causal)
    nothing = torch.zeros(1, 5, 5, dtype=torch.bool)
    torch.testing.assert_close(
        theirs(x, x, x, nothing)[:, 0], theirs.out(theirs.v_linear(x)).mean(1)
    )
    assert not torch.equal(theirs.train()(x, x, x), theirs(x, x, x))
    uneven = torch.randn(2, 9, 10)
    assert "RuntimeError" in outcome(TextbookAttention(3, 10), uneven, uneven, uneven)


def test_the_textbook_in_half_precision():
    ours, theirs = textbook(128, 1)
    x = 100 * torch.randn(1, 4, 128)
    assert "finite" in outcome(theirs, x, x, x)
    half = x.half()
    assert outcome(theirs.half(), half, half, half) == "NaN, (1, 4, 128)"
    assert outcome(ours.half(), half, half, half) == "finite, (1, 4, 128)"
    mask = torch.ones(1, 4, 4, dtype=torch.bool).tril()
    small = torch.randn(1, 4, 128).half()
    assert "RuntimeError" in outcome(theirs, small, small, small, mask)
    assert "finite" in outcome(ours, small, small, small, mask)


# -- views ------------------------------------------------------------------------------------


# kills: a slider that is not read
def test_the_memory_view_follows_its_sliders():
    view = memory_view()
    heights = [bar.get_height() for bar in view.axes[0].patches]
    assert heights[3] == 4 * 8 * 512 * 512
    view.set(heads=1, n=64)
    assert [bar.get_height() for bar in view.axes[0].patches][3] == 4 * 64 * 64
    view.set(weights="never_built")
    assert view.axes[0].patches[3].get_height() == 0
    assert "0% of them" in view.caption
    view.visit_extremes()


def not_written(*sizes):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("account", "said"),
    [
        (attention_memory, "agrees"),
        (
            lambda d, h, n: AttentionMemory(4 * (d * d + d) * 4, 12 * n * d, 4 * n * d, 4 * n * n),
            "weights",
        ),
        (lambda d, h, n: 3, "four numbers"),
        (not_written, "not written yet"),
        (lambda d, h, n: 1 / 0, "ZeroDivisionError"),
        (lambda d, h, n: nothing(d), "run the cell"),
    ],
)
def test_the_own_view_says_what_is_wrong(account, said):
    view = own_memory_view(account)
    assert said in view.caption
    view.set(n=64)
    view.visit_extremes()


def test_the_learners_module_drives_the_explorer():
    shown = own_heads_explorer(MultiHeadAttention)
    torch.manual_seed(0)
    module = MultiHeadAttention(24, 4)
    x = torch.randn(8, 24, generator=torch.Generator().manual_seed(0))
    weights = torch.as_tensor(shown.numbers()["weights"])
    assert weights.shape == (4, 8, 8)
    expected = module(x[None], x[None], x[None])[1][0].detach()
    torch.testing.assert_close(weights.float(), expected, atol=1e-5, rtol=1e-4)
    assert "not written" in repr(own_heads_explorer(not_written))
    assert "TypeError" in own_heads_explorer(lambda d: None)


# kills: a view of the weights alone, whatever the module does with them
def test_a_module_that_does_otherwise_than_its_weights_is_not_explored():
    class Sharper(MultiHeadAttention):
        def forward(self, query, key, value, mask=None):
            output, weights = super().forward(query, key, value, mask)
            return output, weights.softmax(dim=-1)

    class Alone(MultiHeadAttention):
        def forward(self, query, key, value, mask=None):
            return super().forward(query, key, value, mask)[0]

    class Averaged(MultiHeadAttention):
        def forward(self, query, key, value, mask=None):
            output, weights = super().forward(query, key, value, mask)
            return output, weights.mean(dim=1)

    assert "itself differs from that by up to" in own_heads_explorer(Sharper)
    assert "the pair (output, weights), it returned a Tensor" in own_heads_explorer(Alone)
    assert "weights: shape (1, 8, 8), expected (1, 4, 8, 8)" in own_heads_explorer(Averaged)
    assert "the pair (output, weights), it returned a Tensor" in compared_with_torch(Alone)


# kills: weights in other roles, a mask that is not inverted
def test_the_learners_module_is_held_against_torchs():
    assert "agrees" in compared_with_torch(MultiHeadAttention)

    class Exchanged(nn.Module):
        """A class of the learner's own, in which keys and values are exchanged."""

        def __init__(self, d_model, num_heads):
            super().__init__()
            right = MultiHeadAttention(d_model, num_heads)
            self.W_q, self.W_k, self.W_v, self.W_o = right.W_q, right.W_k, right.W_v, right.W_o
            self.right = right

        def forward(self, query, key, value, mask=None):
            return self.right(query, value, key, mask)

    assert "differs" in compared_with_torch(Exchanged)
    assert "not written" in compared_with_torch(not_written)
    assert "no attribute `W_q`" in compared_with_torch(lambda d, h: nn.Linear(d, h))

"""Chapter 04's hand-set bank, its path lengths, and its next tokens with and without a mask."""

import pytest
import torch

from attn_course.experiments.ch04 import (
    BOTH,
    FLOOR,
    LOAN,
    NUM_SYMBOLS,
    RIVER,
    NextTokenSettings,
    OneLayerLM,
    as_layer,
    hand_set_attention,
    hand_set_tokens,
    legal_share,
    loss_by_position,
    may_follow,
    neighbours_within,
    next_token_loss,
    next_token_runs,
    path_length,
    train_next_token,
    two_way_task,
)
from attn_course.experiments.ch04_views import bank_view
from attn_course.masks import causal_mask
from attn_course.self_attention import SelfAttention, leaks_future

TINY = NextTokenSettings(n=4, batch_size=8, steps=3, d_model=4, test_size=4)


# -- the bank ---------------------------------------------------------------------------------


# kills: features exchanged, a scale taken off twice, queries of tokens that ask for nothing
def test_the_bank_reads_its_meaning_from_its_sentence():
    scores = {LOAN: (0, 2, 1, 0, 3, 0), RIVER: (0, 2, 0, 0, 0, 3, 0)}
    for sentence, row in scores.items():
        _, x = hand_set_tokens(sentence)
        output, weights = hand_set_attention()(x)
        torch.testing.assert_close(weights[1], torch.tensor(row).float().softmax(dim=-1))
        torch.testing.assert_close(output[1], weights[1] @ x[:, :2])
        torch.testing.assert_close(weights[0], torch.full((len(row),), 1 / len(row)))
    torch.testing.assert_close(
        hand_set_attention(2.0)(x)[1][1], (2.0 * torch.tensor(scores[RIVER])).softmax(dim=-1)
    )


# -- paths ------------------------------------------------------------------------------------


# kills: one step too many, source and target exchanged
def test_path_lengths():
    n = 9
    before = neighbours_within(n, 1).tril()
    assert path_length(before, n - 1, 0) == n - 1
    assert path_length(before, 0, n - 1) is None
    assert path_length(neighbours_within(n, 3), n - 1, 0) == 3
    assert path_length(neighbours_within(n, 3), 4, 5) == 1
    assert path_length(torch.ones(n, n, dtype=torch.bool), n - 1, 0) == 1
    assert path_length(before, 4, 4) == 0


# -- the next token ---------------------------------------------------------------------------


# kills: a third symbol that may follow, targets that are not one place on, a lopsided coin
def test_the_source_goes_on_in_two_ways():
    task = two_way_task(12)
    batch = task.train_batch(0, 300)
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    assert legal_share(torch.cat([batch.inputs, batch.targets[:, -1:]], dim=1)) == 1
    assert may_follow().sum(dim=-1).tolist() == [2] * NUM_SYMBOLS
    step = (batch.targets - batch.inputs) % NUM_SYMBOLS
    assert (step == 1).double().mean().item() == pytest.approx(0.5, abs=0.03)
    assert legal_share(torch.tensor([[0, 1, 4, 5, 5]])) == 0.75


# kills: a test that training has seen
def test_training_and_test_share_nothing():
    task = two_way_task(6)
    test = {tuple(row) for row in task.test_set(20).inputs.tolist()}
    train = {tuple(row) for k in range(5) for row in task.train_batch(k, 50).inputs.tolist()}
    assert not test & train


# kills: a mask that the model does not use, positions that are not added
def test_the_model_uses_its_mask_and_its_places():
    x = torch.randn(2, 6, 4)
    for rule, leaks in ((causal_mask, False), (lambda n: None, True)):
        assert leaks_future(OneLayerLM(rule, max_len=6, d_model=4).layer, x) == leaks
    model = OneLayerLM(causal_mask, max_len=6, d_model=4)
    logits = model(torch.zeros(1, 6, dtype=torch.int64))
    assert logits.shape == (1, 6, NUM_SYMBOLS)
    assert not torch.allclose(logits[0, 0], logits[0, 1])


# kills: a mean over the wrong axis
def test_the_loss_by_position_averages_to_the_loss():
    model = OneLayerLM(causal_mask, max_len=5, d_model=4)
    batch = two_way_task(5).test_set(7)
    by_position = loss_by_position(model, batch)
    assert by_position.shape == (5,)
    torch.testing.assert_close(by_position.mean(), next_token_loss(model, batch).detach())


# kills: symbols drawn from another position than the last, a generator that is global
def test_it_writes_what_it_predicts():
    class Certain(OneLayerLM):
        def forward(self, symbols):
            following = (symbols + 3) % NUM_SYMBOLS
            return 100.0 * torch.nn.functional.one_hot(following, NUM_SYMBOLS)

    written = Certain(causal_mask, max_len=6, d_model=4).generate(6, count=20)
    assert written.shape == (20, 6)
    assert ((written[:, 1:] - written[:, :-1]) % NUM_SYMBOLS == 3).all()
    assert len(written[:, 0].unique()) > 3


# kills: batches or a start drawn from the global generator, one seed for all runs
def test_a_run_depends_on_its_seed_alone():
    before = torch.get_rng_state()
    first = train_next_token(causal_mask, seed=1, settings=TINY)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    again, other = next_token_runs(causal_mask, seeds=(1, 2), settings=TINY)
    assert again.history.loss == first.history.loss
    assert again.legal == first.legal
    assert other.history.loss != first.history.loss


# kills: a source that can be foreseen, a leak that does not pay, a model that cannot learn
def test_a_leak_is_paid_for_in_writing():
    honest = train_next_token(causal_mask, seed=0)
    leaky = train_next_token(lambda n: None, seed=0)
    assert honest.loss == pytest.approx(FLOOR, abs=0.05)
    assert leaky.loss < FLOOR / 5
    assert honest.legal > 0.95 > leaky.legal


# -- the view ---------------------------------------------------------------------------------


# kills: a slider that is not read, a sentence's bars left over from a longer one
def test_the_view_follows_its_sliders():
    view = bank_view()
    bars, _ = view.axes

    def widths():
        return torch.tensor([bar.get_width() for bar in bars.patches])

    assert "money 2.1" in view.caption
    view.set(sentence="both")
    assert BOTH in view.caption
    assert (widths() > 0).sum() == len(hand_set_tokens(BOTH)[0])
    view.set(sentence="river", strength=4.0)
    assert "water 3.0" in view.caption
    assert (widths() > 0).sum() == len(hand_set_tokens(RIVER)[0])
    assert widths().sum().item() == pytest.approx(1)
    view.visit_extremes()


def test_as_layer_gives_the_output_alone():
    attention, x = SelfAttention(4, 3), torch.randn(2, 5, 4)
    torch.testing.assert_close(
        as_layer(attention, causal_mask(5))(x), attention(x, causal_mask(5))[0]
    )

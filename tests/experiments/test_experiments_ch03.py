"""Chapter 03's statistics of random scores, its trained look-up, and its views."""

import pytest
import torch
import torch.nn.functional as F

from attn_course.attention import lookup, scaled_dot_product_attention
from attn_course.experiments.ch03 import (
    LookUpSettings,
    fresh_lookup,
    lookup_accuracies,
    loss_gradients,
    query_gradient_sizes,
    random_vectors,
    train_lookup,
)
from attn_course.experiments.ch03_views import NUM_KEYS, WIDTHS, own_attention_view

TINY = LookUpSettings(
    num_pairs=3, num_keys=4, num_values=4, d_v=5, batch_size=8, steps=3, test_size=50
)


# -- random scores ----------------------------------------------------------------------------


# kills: entries of another variance, queries that are keys, a seed that is ignored
def test_random_vectors_are_standard_normal_and_follow_their_seed():
    query, key = random_vectors(32, sets=40, n=10, seed=1)
    assert query.shape == key.shape == (40, 10, 32)
    assert query.var().item() == pytest.approx(1, abs=0.05)
    assert (query * key).mean().item() == pytest.approx(0, abs=0.05)
    torch.testing.assert_close(random_vectors(32, sets=40, n=10, seed=1)[1], key)
    assert not torch.equal(random_vectors(32, sets=40, n=10, seed=2)[1], key)


# kills: the scale forgotten in the chain rule, keys not seen from their mean
@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_the_gradient_of_the_query_is_what_autograd_finds(scale):
    query, key = (vectors[0].double() for vectors in random_vectors(4, sets=1, n=5))

    def weights_of(one_query):
        return (scale * one_query @ key.mT).softmax(dim=-1)

    expected = torch.stack(
        [torch.autograd.functional.jacobian(weights_of, q).norm() for q in query]
    )
    found = query_gradient_sizes(weights_of(query), key, scale)
    torch.testing.assert_close(found, expected)


# -- the look-up ------------------------------------------------------------------------------


# kills: keys read where values stand, the question among the keys, the scale not applied
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_the_model_looks_up_with_its_scale(scale):
    model = fresh_lookup(4, scale, seed=0, settings=TINY)
    inputs = torch.tensor([[1, 5, 3, 6, 2, 7, 3]])  # (key, value) three times, then a key again
    query = scale * 2 * model.query(torch.tensor([[3]]))  # 2 = √d_k, which attention takes off
    keys, values = model.key(torch.tensor([[1, 3, 2]])), model.value(torch.tensor([[5, 6, 7]]))
    output, _ = scaled_dot_product_attention(query, keys, values)
    torch.testing.assert_close(model(inputs), model.read_out(output[:, 0]))


# kills: start_std on one table only, a start that follows the scale
def test_the_start_decides_the_variance_of_the_scores():
    ids = torch.arange(1, 17)
    for d_k, start_std in ((64, 1.0), (256, 256**-0.25)):
        model = fresh_lookup(d_k, 1.0, seed=0, start_std=start_std)
        scores = model.query(ids) @ model.key(ids).mT
        assert scores.var().item() == pytest.approx(d_k * start_std**4, rel=0.3)


# kills: weights that are no distribution, or transposed
def test_choices_are_the_weights_of_each_asked_symbol():
    model = fresh_lookup(4, 1.0, seed=0, settings=TINY)
    ids = torch.tensor([1, 3])
    choices = model.choices(ids)
    torch.testing.assert_close(choices.sum(dim=-1), torch.ones(2))
    _, expected = lookup(model.query(ids), model.key(ids), model.key(ids))
    torch.testing.assert_close(choices, expected)


# kills: batches or start drawn from the global generator, one seed for all runs
def test_a_run_depends_on_its_seed_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = train_lookup(4, 0.5, seed=1, settings=TINY)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    assert train_lookup(4, 0.5, seed=1, settings=TINY).history.loss == first.history.loss
    assert train_lookup(4, 0.5, seed=2, settings=TINY).history.loss != first.history.loss
    assert first.history.steps == TINY.steps
    assert 0 <= first.accuracy <= 1


# kills: gradients under the wrong names, left behind on the model, of another loss than training's
def test_the_gradients_of_the_loss_are_those_of_a_training_step():
    model = fresh_lookup(4, 1.0, seed=0, settings=TINY)
    batch = TINY.task(0).test_set(16)
    found = loss_gradients(model, batch)
    assert all(parameter.grad is None for parameter in model.parameters())
    F.cross_entropy(model(batch.inputs), batch.targets[:, -1]).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad)


def test_accuracies_come_one_for_each_seed():
    found = lookup_accuracies(4, 0.5, seeds=(3, 1), settings=TINY)
    assert found == [train_lookup(4, 0.5, seed=seed, settings=TINY).accuracy for seed in (3, 1)]


# kills: a task that no run can learn, a scale that changes nothing
def test_at_width_64_the_scale_decides_within_the_budget():
    assert train_lookup(64, 1 / 8, seed=0).accuracy > 0.95
    assert train_lookup(64, 1.0, seed=0).accuracy < 0.9
    assert train_lookup(64, 1.0, seed=0, start_std=64**-0.25).accuracy > 0.95


# -- the view --------------------------------------------------------------------------------


def heights(axes):
    return torch.tensor([bar.get_height() for bar in axes.patches])


# kills: the learner's function not called, the mask not passed on
def test_the_learners_own_function_moves_the_bars():
    view = own_attention_view(scaled_dot_product_attention)
    assert "agrees" in view.caption
    view.set(open_keys=3)
    assert (heights(view.axes[0]) > 0).tolist() == [True] * 3 + [False] * (NUM_KEYS - 3)
    view.set(open_keys=0)
    assert heights(view.axes[0]).sum() == 0
    assert "agrees" in view.caption
    view.visit_extremes()


def unwritten(query, key, value, mask):
    raise NotImplementedError("yours to write")


def failing(query, key, value, mask):
    raise IndexError("out of range")


def unknown(query, key, value, mask):
    return never_defined(query, key, value, mask)


def greedy(query, key, value, mask):
    query *= 0  # must not reach the next version's inputs
    return lookup(query, key, value)


@pytest.mark.parametrize(
    ("attend", "told"),
    [
        (unwritten, "not written yet"),
        (failing, "IndexError: out of range"),
        (unknown, "'never_defined' is not defined: run the cell"),
        (lambda q, k, v, m: None, "must return (output, weights), it returned NoneType"),
        (lambda q, k, v, m: (v, v), "output should have shape (1, 3), it is (16, 3)"),
        (lambda q, k, v, m: (v[:1], None), "weights should have shape (1, 16), it is NoneType"),
        (lambda q, k, v, m: lookup(q, k, v), "differs from the course's"),
        (lambda q, k, v, m: (v[:1] * float("nan"), (q @ k.mT).softmax(-1)), "NaN"),
        (greedy, "differs from the course's"),
    ],
)
def test_the_view_says_what_is_wrong_and_never_raises(attend, told):
    view = own_attention_view(attend)
    view.set(d_k=WIDTHS[-1])
    assert told in view.caption
    view.visit_extremes()
    assert view.error is None


# kills: a view that keeps the function it was made with
def test_a_new_version_is_seen_at_the_next_move():
    versions = [unwritten]
    view = own_attention_view(lambda *inputs: versions[-1](*inputs))
    assert "not written yet" in view.caption
    versions += [greedy, scaled_dot_product_attention]
    view.set(d_k=4)
    assert "agrees" in view.caption

"""N-grams: the formula by hand, probabilities that sum to one, no look beyond a window."""

from math import log

import pytest
import torch

from attn_course.ngrams import NGramModel

ABAC = torch.tensor([0, 1, 0, 2])


def test_the_formula_by_hand():
    model = NGramModel(4, 2).fit(ABAC)
    # alone: 0 twice of 4 tokens, three kinds; below that 1/4 each
    unigram = (2 + 3 * 0.25) / (4 + 3)
    assert model.prob(0, []) == pytest.approx(unigram)
    # after 1 came one token, one kind: 0
    assert model.prob(0, [1]) == pytest.approx((1 + unigram) / 2)
    # after 0 came two, of two kinds; a token that never was has what is left
    assert model.prob(3, [0]) == pytest.approx((0 + 2 * (3 * 0.25 / 7)) / 4)


def test_probabilities_sum_to_one_whatever_the_context():
    ids = torch.randint(6, (200,), generator=torch.Generator().manual_seed(0))
    model = NGramModel(7, 4).fit(ids)
    for context in ([], [0], [3, 1], [5, 5, 5], [6, 6, 6], [1, 2, 3, 4, 5]):
        assert sum(model.prob(w, context) for w in range(7)) == pytest.approx(1)


def test_only_the_last_tokens_of_a_context_are_read():
    model = NGramModel(5, 3).fit(torch.randint(5, (300,), generator=torch.Generator()))
    assert model.prob(2, [4, 4, 0, 1]) == model.prob(2, [0, 1])
    assert model.prob(2, [4, 4, 0, 1]) != model.prob(2, [4, 1])
    alone = NGramModel(5, 1).fit(ABAC)
    assert alone.prob(2, [0, 1]) == alone.prob(2, [])


def test_the_loss_reads_each_window_from_its_start():
    model = NGramModel(4, 3).fit(ABAC)
    windows, targets = torch.tensor([[0, 1], [2, 0]]), torch.tensor([[1, 0], [0, 1]])
    by_hand = [model.prob(1, [0]), model.prob(0, [0, 1]), model.prob(0, [2]), model.prob(1, [2, 0])]
    assert model.loss(windows, targets) == pytest.approx(-sum(map(log, by_hand)) / 4)


def test_more_context_helps_where_there_is_something_to_know():
    ids = torch.arange(6).repeat(20)
    windows, targets = ids[:30].reshape(5, 6), ids[1:31].reshape(5, 6)
    losses = [NGramModel(6, order).fit(ids).loss(windows, targets) for order in (1, 2)]
    assert losses[0] == pytest.approx(log(6), abs=0.01)
    assert losses[1] < 0.2


def test_sizes_and_ids_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="order=0"):
        NGramModel(4, 0)
    with pytest.raises(ValueError, match="ids from 0 to 4 do not fit a vocabulary of 4"):
        NGramModel(4, 2).fit(torch.tensor([0, 4]))
    with pytest.raises(ValueError, match="ids from -1"):
        NGramModel(4, 2).fit(torch.tensor([-1, 2]))

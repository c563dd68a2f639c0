"""Answers to exercise 9.4 that the check has to judge right: correct variants and wrong ones."""

import torch


def plain(ids, vocab_size, mask_token, p=0.15, generator=None):
    chosen = torch.rand(ids.shape, generator=generator) < p
    fate = torch.rand(ids.shape, generator=generator)
    inputs, targets = ids.clone(), torch.full_like(ids, -100)
    targets[chosen] = ids[chosen]
    inputs[chosen & (fate < 0.8)] = mask_token
    swap = chosen & (fate > 0.9)
    inputs[swap] = torch.randint(vocab_size, (int(swap.sum()),), generator=generator)
    return inputs, targets


def one_draw(ids, vocab_size, mask_token, p=0.15, generator=None):
    """One number decides both, as long as it is cut in the right places."""
    number = torch.rand(ids.shape, generator=generator)
    others = torch.randint(0, vocab_size, ids.shape, generator=generator)
    inputs = torch.where(number < 0.9 * p, others, ids)
    inputs = torch.where(number < 0.8 * p, mask_token, inputs)
    return [inputs, torch.where(number < p, ids, -100)]


def by_bernoulli(ids, vocab_size, mask_token, p=0.15, generator=None):
    """As the well-known collator does it: half of the rest is replaced."""

    def coin(share):
        return torch.bernoulli(torch.full(ids.shape, share), generator=generator).bool()

    chosen = coin(p)
    labels = ids.clone()
    labels[~chosen] = -100
    inputs = ids.clone()
    hidden = coin(0.8) & chosen
    inputs[hidden] = mask_token
    swap = coin(0.5) & chosen & ~hidden
    inputs[swap] = torch.randint(vocab_size, ids.shape, generator=generator)[swap]
    return inputs, labels


def by_loop(ids, vocab_size, mask_token, p=0.15, generator=None):
    chance = torch.rand(2, ids.numel(), generator=generator).tolist()
    drawn = torch.randint(vocab_size, (ids.numel(),), generator=generator).tolist()
    inputs, targets = [], []
    for token, choice, fate, other in zip(ids.flatten().tolist(), *chance, drawn, strict=True):
        targets.append(token if choice < p else -100)
        kept = choice >= p or fate >= 0.9
        inputs.append(token if kept else mask_token if fate < 0.8 else other)
    return torch.tensor(inputs).reshape(ids.shape), torch.tensor(targets).reshape(ids.shape)


def token_by_token(ids, vocab_size, mask_token, p=0.15, generator=None):
    """A loop in Python that draws one number at a time."""
    inputs, targets = ids.clone(), torch.full_like(ids, -100)
    for row in range(ids.shape[0]):
        for place in range(ids.shape[1]):
            if torch.rand((), generator=generator) < p:
                targets[row, place] = ids[row, place]
                fate = torch.rand((), generator=generator)
                if fate < 0.8:
                    inputs[row, place] = mask_token
                elif fate < 0.9:
                    inputs[row, place] = torch.randint(vocab_size, (), generator=generator)
    return inputs, targets


def boolean_targets(ids, vocab_size, mask_token, p=0.15, generator=None):
    chosen = torch.rand(ids.shape, generator=generator) < p
    return torch.where(chosen, mask_token, ids), chosen


def only_inputs(ids, vocab_size, mask_token, p=0.15, generator=None):
    return plain(ids, vocab_size, mask_token, p, generator)[0]


def no_generator(ids, vocab_size, mask_token, p=0.15):
    return plain(ids, vocab_size, mask_token, p)


def quarter_random(ids, vocab_size, mask_token, p=0.15, generator=None):
    chosen = torch.rand(ids.shape, generator=generator) < p
    fate = torch.rand(ids.shape, generator=generator)
    others = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.6), mask_token, ids)
    return torch.where(chosen & (fate >= 0.75), others, inputs), ids.masked_fill(~chosen, -100)


def first_twice(ids, vocab_size, mask_token, p=0.15, generator=None):
    """The first position is never chosen."""
    inputs, targets = plain(ids, vocab_size, mask_token, p, generator)
    inputs[:, 0], targets[:, 0] = ids[:, 0], -100
    return inputs, targets


def collator_without_the_rest(ids, vocab_size, mask_token, p=0.15, generator=None):
    """As the well-known collator, but hidden tokens may be replaced once more."""
    chosen = torch.rand(ids.shape, generator=generator) < p
    inputs = ids.clone()
    inputs[chosen & (torch.rand(ids.shape, generator=generator) < 0.8)] = mask_token
    swap = chosen & (torch.rand(ids.shape, generator=generator) < 0.5)
    inputs[swap] = torch.randint(vocab_size, ids.shape, generator=generator)[swap]
    return inputs, ids.masked_fill(~chosen, -100)


def one_fate(ids, vocab_size, mask_token, p=0.15, generator=None):
    """One number for the whole batch, by which all of it is hidden, replaced or kept."""
    chosen = torch.rand(ids.shape, generator=generator) < p
    fate = torch.rand(1, generator=generator).item()
    others = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(chosen, mask_token if fate < 0.8 else others if fate < 0.9 else ids, ids)
    return inputs, ids.masked_fill(~chosen, -100)


def in_pairs(ids, vocab_size, mask_token, p=0.15, generator=None):
    width = ids.shape[1]
    pairs = torch.rand(len(ids), (width + 1) // 2, generator=generator) < p
    chosen = pairs.repeat_interleave(2, dim=1)[:, :width]
    inputs, _ = plain(ids, vocab_size, mask_token, 1.0, generator)
    return torch.where(chosen, inputs, ids), ids.masked_fill(~chosen, -100)


def a_share_of_the_batch(ids, vocab_size, mask_token, p=0.15, generator=None):
    """Exactly p of all tokens, wherever they are."""
    order = torch.randperm(ids.numel(), generator=generator).reshape(ids.shape)
    inputs, _ = plain(ids, vocab_size, mask_token, 1.0, generator)
    chosen = order < int(p * ids.numel())
    return torch.where(chosen, inputs, ids), ids.masked_fill(~chosen, -100)


def below_p_alone(ids, vocab_size, mask_token, p=0.15, generator=None):
    number = torch.rand(ids.shape, generator=generator)
    others = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(number < 0.8, mask_token, torch.where(number < 0.9, others, ids))
    return inputs, ids.masked_fill(number >= p, -100)


def hard_mask(ids, vocab_size, mask_token, p=0.15, generator=None):
    return plain(ids, vocab_size, 0, p, generator)


RIGHT = {"mask_tokens": [plain, one_draw, by_bernoulli, by_loop, token_by_token]}
WRONG = {
    "mask_tokens": [
        (boolean_targets, None, "targets"),
        (only_inputs, None, "(inputs, targets)"),
        (no_generator, None, "TypeError"),
        (quarter_random, None, "80 %", "Yours: ["),
        (first_twice, None, "osition"),
        (collator_without_the_rest, "random-over-mask", "already"),
        (one_fate, "decided-together", "a number of its own"),
        (in_pairs, "spans", "together"),
        (a_share_of_the_batch, "fixed-total", "left to chance"),
        (below_p_alone, "unchosen-hidden", "not chosen"),
        (hard_mask, "mask-token-fixed", "not the mask token"),
    ]
}

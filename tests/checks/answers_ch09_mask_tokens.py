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


def hard_mask(ids, vocab_size, mask_token, p=0.15, generator=None):
    return plain(ids, vocab_size, 0, p, generator)


RIGHT = {"mask_tokens": [plain, one_draw, by_bernoulli, by_loop]}
WRONG = {
    "mask_tokens": [
        (boolean_targets, None, "targets"),
        (only_inputs, None, "(inputs, targets)"),
        (no_generator, None, "TypeError"),
        (quarter_random, None, "80 %", "Yours: ["),
        (first_twice, None, "osition"),
        (hard_mask, None, "mask token", "shares of the chosen"),
    ]
}

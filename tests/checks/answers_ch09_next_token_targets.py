"""Answers to exercise 9.1 that the check has to judge right: correct variants and wrong ones."""

import torch


def by_loop(ids, n):
    inputs, targets = [], []
    for start in range(0, len(ids) - n, n):
        inputs.append(ids[start : start + n])
        targets.append(ids[start + 1 : start + n + 1])
    return torch.stack(inputs), torch.stack(targets)


def by_unfold(ids, n):
    cut = ids.unfold(0, n + 1, n)
    return cut[:, :-1], cut[:, 1:]


def by_index(ids, n):
    starts = torch.arange(0, len(ids) - n, n)
    places = starts[:, None] + torch.arange(n)
    return ids[places], ids[places + 1]


def lists_inside(ids, n):
    count = (len(ids) - 1) // n
    text = ids.tolist()
    rows = [text[k * n : k * n + n + 1] for k in range(count)]
    return [torch.tensor([row[:-1] for row in rows]), torch.tensor([row[1:] for row in rows])]


def one_tensor(ids, n):
    return by_index(ids, n)[0]


def plain_lists(ids, n):
    return tuple(side.tolist() for side in by_index(ids, n))


def fixed_size(ids, n):
    return by_index(ids, 3)


def stops_early(ids, n):
    """One short wherever something is left over."""
    inputs, targets = by_index(ids, n)
    keep = max(1, len(inputs) - (len(ids) % n > 1))
    return inputs[:keep], targets[:keep]


def reshape_fails(ids, n):
    return ids[:-1].reshape(-1, n), ids[1:].reshape(-1, n)


def dropped_after_the_shift(ids, n):
    inputs, targets = ids[:-1], ids[1:]
    keep = len(inputs) - len(inputs) % n
    return inputs[:keep].view(-1, n), targets[:keep].view(-1, n)


def last_column_from_the_next(ids, n):
    count = (len(ids) - 1) // n
    inputs = ids[: count * n].reshape(count, n)
    return inputs, torch.cat([inputs[:, 1:], ids[n::n][:count, None]], dim=1)


def filled_from_any_count(ids, n):
    count = -(-len(ids) // n)
    longer = torch.cat([ids, torch.zeros(count * n + 1 - len(ids), dtype=torch.long)])
    return longer[:-1].reshape(count, n), longer[1:].reshape(count, n)


def unfolded_alone(ids, n):
    return ids.unfold(0, n, n), ids[1:].unfold(0, n, n)


def a_step_of_n_minus_one(ids, n):
    starts = range(0, len(ids) - n, max(1, n - 1))
    cut = torch.stack([ids[k : k + n + 1] for k in starts])
    return cut[:, :-1], cut[:, 1:]


def as_many_as_fit(ids, n):
    count = len(ids) // n
    return ids[: count * n].reshape(count, n), ids[1 : count * n + 1].reshape(count, n)


def one_window_less(ids, n):
    count = len(ids) // n - 1
    return ids[: count * n].reshape(count, n), ids[1 : count * n + 1].reshape(count, n)


RIGHT = {
    "next_token_targets": [
        by_loop,
        by_unfold,
        by_index,
        lists_inside,
        dropped_after_the_shift,
        last_column_from_the_next,
    ]
}
WRONG = {
    "next_token_targets": [
        (one_tensor, None, "must return (inputs, targets)"),
        (plain_lists, None, "must be a tensor"),
        (fixed_size, None, ""),
        (stops_early, None, "shape", "expected"),
        (reshape_fails, "nothing-dropped", "not dropped", "RuntimeError"),
        (filled_from_any_count, "filled-up", "nothing is made up"),
        (unfolded_alone, "last-target-lacking", "one behind them"),
        (as_many_as_fit, "last-target-lacking", "one behind them"),
        (a_step_of_n_minus_one, "overlapping", "0, n, 2n"),
        (one_window_less, "one-window-short", "missing"),
    ]
}

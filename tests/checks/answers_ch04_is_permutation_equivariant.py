"""Answers to exercise 4.2 that the check has to judge right: good tests of layers and bad."""

import itertools

import torch


def all_swaps(layer, x):
    output = layer(x)
    n = x.shape[1]
    for i, j in itertools.combinations(range(n), 2):
        order = list(range(n))
        order[i], order[j] = j, i
        if (layer(x[:, order]) - output[:, order]).abs().max() > 1e-6:
            return False
    return True


def by_matrices(layer, x):
    verdicts = []
    for _ in range(20):
        matrix = torch.eye(x.shape[1], dtype=x.dtype)[torch.randperm(x.shape[1])]
        verdicts.append(torch.allclose(layer(matrix @ x), matrix @ layer(x), atol=1e-8))
    return all(verdicts)


def undone(layer, x):
    good = torch.tensor(True)
    for seed in range(12):
        order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(seed))
        undo = torch.argsort(order)
        good = good & torch.isclose(layer(x[:, order])[:, undo], layer(x)).all()
    return good


def through_numpy(layer, x):
    import numpy as np

    rng = np.random.default_rng(0)
    agreed = []
    for _ in range(10):
        order = rng.permutation(x.shape[1])
        agreed.append(np.allclose(layer(x[:, order]).numpy(), layer(x)[:, order].numpy()))
    return np.all(agreed)


def invariant(layer, x):
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]), layer(x))


def flipped(layer, x):
    return torch.allclose(layer(x.flip(1)), layer(x).flip(1))


def rolled(layer, x):
    return torch.allclose(layer(x.roll(1, dims=1)), layer(x).roll(1, dims=1))


def flipped_and_rolled(layer, x):
    return all(
        torch.allclose(layer(move(x)), move(layer(x)))
        for move in (lambda t: t.flip(1), lambda t: t.roll(1, 1), lambda t: t.roll(2, 1))
    )


def exact(layer, x):
    return all(
        torch.equal(layer(x[:, order]), layer(x)[:, order])
        for order in (torch.randperm(x.shape[1]) for _ in range(9))
    )


def loose(layer, x):
    return all(
        (layer(x[:, order]) - layer(x)[:, order]).abs().mean() < 0.1
        for order in (torch.randperm(x.shape[1]) for _ in range(9))
    )


def whole_batch(layer, x):
    order = torch.randperm(len(x))
    return torch.allclose(layer(x[order]), layer(x)[order])


def of_ones(layer, x):
    x = torch.ones(2, 5, 4, dtype=torch.float64)
    order = torch.randperm(5)
    return torch.allclose(layer(x[:, order]), layer(x)[:, order])


def difference(layer, x):
    order = torch.randperm(x.shape[1])
    return (layer(x[:, order]) - layer(x)[:, order]).abs().max()


def looking_inside(layer, x):
    return "Attention" in type(layer.function).__name__


def altering(layer, x):
    output = layer(x)
    order = torch.randperm(x.shape[1])
    x[:] = x[:, order]
    return torch.allclose(layer(x), output[:, order])


def shuffled_once(layer, x):
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]), layer(x)[:, order])


def shuffled_once_and_summed(layer, x):
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]).sum(), layer(x).sum())


def two_exchanged(layer, x):
    other = x.clone()
    other[:, [0, 1]] = x[:, [1, 0]]
    return torch.allclose(layer(other)[:, [1, 0]], layer(x)[:, [0, 1]])


def features_shuffled(layer, x):
    order = torch.randperm(x.shape[-1])
    return torch.allclose(layer(x[:, :, order]), layer(x)[:, :, order])


def orders(x, count=10):
    return [torch.randperm(x.shape[1]) for _ in range(count)]


def the_last_of_ten(layer, x):
    alike = True
    for order in orders(x):
        alike = torch.allclose(layer(x[:, order]), layer(x)[:, order])
    return alike


def a_shuffle_that_moves_all(layer, x):
    n = x.shape[1]
    order = torch.tensor([2, 0, 3, 1, *range(4, n)]).roll(1)
    return torch.allclose(layer(x[:, order]), layer(x)[:, order])


def relative_tolerance(layer, x):
    return all(torch.allclose(layer(x[:, o]), layer(x)[:, o], rtol=0.1) for o in orders(x))


def two_decimals(layer, x):
    return all(torch.allclose(layer(x[:, o]), layer(x)[:, o], atol=1e-2) for o in orders(x))


def features_added_up(layer, x):
    return all(torch.allclose(layer(x[:, o]).sum(-1), layer(x)[:, o].sum(-1)) for o in orders(x))


def lengths_compared(layer, x):
    return all(
        torch.allclose(layer(x[:, o]).norm(dim=2), layer(x)[:, o].norm(dim=2)) for o in orders(x)
    )


def batch_averaged(layer, x):
    return all(torch.allclose(layer(x[:, o]).mean(0), layer(x)[:, o].mean(0)) for o in orders(x))


def sorted_outputs(layer, x):
    return all(torch.allclose(layer(x[:, o]).sort(1)[0], layer(x).sort(1)[0]) for o in orders(x))


def all_rotations(layer, x):
    steps = range(1, x.shape[1])
    return all(torch.allclose(layer(x.roll(k, 1)), layer(x).roll(k, 1)) for k in steps)


def ends_exchanged(layer, x):
    order = torch.tensor([x.shape[1] - 1, *range(1, x.shape[1] - 1), 0])
    return torch.allclose(layer(x[:, order]), layer(x)[:, order])


def all_in_one_batch(layer, x):
    shuffles = orders(x)
    together = layer(torch.cat([x[:, order] for order in shuffles])).unflatten(0, (10, -1))
    return torch.allclose(together, torch.stack([layer(x)[:, order] for order in shuffles]))


def tokens_of_its_own(layer, x):
    agree = []
    for order in orders(x):
        other = torch.randn_like(x)
        agree.append(torch.allclose(layer(other[:, order]), layer(other)[:, order]))
    return all(agree)


def by_a_relative_norm(layer, x):
    apart = [(layer(x[:, o]) - layer(x)[:, o]).norm() / layer(x).norm() for o in orders(x)]
    return max(apart) < 1e-8


RIGHT = {
    "is_permutation_equivariant": [
        all_swaps,
        by_matrices,
        undone,
        through_numpy,
        all_in_one_batch,
        tokens_of_its_own,
        by_a_relative_norm,
    ]
}
WRONG = {
    "is_permutation_equivariant": [
        (invariant, "invariance", "invariance"),
        (flipped, "reversal-only", "reversed"),
        (rolled, "rotation-only", "goes round"),
        (flipped_and_rolled, "symmetric-shuffles", "without any symmetry"),
        (exact, "exact-equality", "rounding"),
        (loose, "loose-tolerance", "Your test says True"),
        (whole_batch, "batch-shuffled", "second axis"),
        (of_ones, "constant-input", "All tokens"),
        (difference, None, "expected"),
        (shuffled_once, "one-shuffle", "Try several"),
        (shuffled_once_and_summed, "sums-compared-once", "token by token"),
        (two_exchanged, "first-two-exchanged", "exchanged"),
        (features_shuffled, "features-shuffled", "features"),
        (the_last_of_ten, "one-shuffle", "as soon as one disagrees"),
        (a_shuffle_that_moves_all, "one-shuffle", "one shuffle"),
        (relative_tolerance, "loose-tolerance", "let pass as rounding"),
        (two_decimals, "loose-tolerance", "let pass as rounding"),
        (features_added_up, "features-summed", "one by one"),
        (lengths_compared, "features-summed", "length"),
        (batch_averaged, "sequences-summed", "one by one"),
        (sorted_outputs, "outputs-sorted", "its own"),
        (all_rotations, "rotation-only", "goes round"),
        (ends_exchanged, "first-and-last-exchanged", "exchanged"),
        (looking_inside, None, "AttributeError"),
        (altering, None, "altered in place"),
        (lambda layer, x: True, "always-true"),
        (lambda layer, x: None, None, "return"),
    ]
}

"""Answers to exercise 4.4 that the check has to judge right: good tests of layers and bad."""

import torch


def by_jacobian(layer, x):
    jacobian = torch.autograd.functional.jacobian(layer, x)  # (b, n, d, b, n, d)
    size = jacobian.abs().amax(dim=(0, 2, 3, 5))  # (n, n)
    return bool((size.triu(1) > 1e-9).any())


def by_shorter_sequences(layer, x):
    full = layer(x)
    return any(
        not torch.allclose(layer(x[:, :t]), full[:, :t], atol=1e-8) for t in range(1, x.shape[1])
    )


def by_zeros(layer, x):
    full = layer(x)
    found = torch.zeros((), dtype=torch.bool)
    for t in range(x.shape[1] - 1):
        changed = x.clone()
        changed[:, t + 1 :] = 0
        found |= ((layer(changed) - full)[:, : t + 1].abs() > 1e-7).any()
    return found


def one_token_at_a_time(layer, x):
    full = layer(x)
    for t in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, t] = torch.randn_like(x[:, t])
        if not torch.allclose(layer(changed)[:, :t], full[:, :t]):
            return True
    return False


def by_random_mixtures(layer, x):
    x = x.clone().requires_grad_()
    output = layer(x)
    for t in range(x.shape[1] - 1):
        mixed = (output[:, t] * torch.randn_like(output[:, t])).sum()
        (gradient,) = torch.autograd.grad(mixed, x, retain_graph=True)
        if gradient[:, t + 1 :].abs().max() > 1e-8:
            return True
    return False


def last_token(layer, x):
    changed = x.clone()
    changed[:, -1] = torch.randn_like(x[:, -1])
    return not torch.allclose(layer(changed)[:, :-1], layer(x)[:, :-1])


def half(layer, x):
    m = x.shape[1] // 2
    changed = x.clone()
    changed[:, m:] = torch.randn_like(x[:, m:])
    return not torch.allclose(layer(changed)[:, :m], layer(x)[:, :m])


def own_token_too(layer, x):
    full = layer(x)
    for t in range(x.shape[1]):
        changed = x.clone()
        changed[:, t:] = torch.randn_like(x[:, t:])
        if not torch.allclose(layer(changed)[:, : t + 1], full[:, : t + 1]):
            return True
    return False


def skips_one(layer, x):
    full = layer(x)
    for t in range(x.shape[1] - 2):
        changed = x.clone()
        changed[:, t + 2 :] = torch.randn_like(x[:, t + 2 :])
        if not torch.allclose(layer(changed)[:, : t + 1], full[:, : t + 1]):
            return True
    return False


def sum_of_everything(layer, x):
    x = x.clone().requires_grad_()
    output = layer(x)
    for t in range(x.shape[1] - 1):
        (gradient,) = torch.autograd.grad(output[:, t].sum(), x, retain_graph=True)
        if gradient[:, t + 1 :].abs().sum() > 1e-6:
            return True
    return False


def plus_ten(layer, x):
    full = layer(x)
    for t in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, t:] += 10
        if not torch.allclose(layer(changed)[:, :t], full[:, :t]):
            return True
    return False


def the_other_way(layer, x):
    full = layer(x)
    for t in range(1, x.shape[1]):
        changed = x.clone()
        changed[:, :t] = torch.randn_like(x[:, :t])
        if not torch.allclose(layer(changed)[:, t:], full[:, t:]):
            return True
    return False


def does_not_leak(layer, x):
    return not by_zeros(layer, x)


def only_first_output(layer, x):
    changed = torch.cat([x[:, :1], torch.randn_like(x[:, 1:])], dim=1)
    return not torch.allclose(layer(changed)[:, 0], layer(x)[:, 0])


def altering(layer, x):
    full = layer(x)
    x[:, -1] = 0
    return not torch.allclose(layer(x)[:, :-1], full[:, :-1])


def any_gradient_of_a_sum(layer, x):
    x = x.clone().requires_grad_()
    output = layer(x)
    for t in range(x.shape[1]):
        (gradient,) = torch.autograd.grad(output[:, t].sum(), x, retain_graph=True)
        if (gradient[:, t + 1 :] != 0).any():
            return True
    return False


def the_very_next_token(layer, x):
    for t in range(x.shape[1] - 1):
        changed = x.clone()
        changed[:, t + 1] = torch.randn(x.shape[-1], dtype=x.dtype)
        if not torch.allclose(layer(x)[:, t], layer(changed)[:, t]):
            return True
    return False


def exactly_equal(layer, x):
    for t in range(x.shape[1]):
        changed = x.clone()
        changed[:, t] = 0
        if not torch.equal(layer(x)[:, :t], layer(changed)[:, :t]):
            return True
    return False


def changed_after(x, cut, new):
    return torch.cat([x[:, :cut], new[:, cut:]], dim=1)


def one_feature_changed(layer, x):
    full, new = layer(x), torch.cat([torch.randn_like(x[..., :1]), x[..., 1:]], dim=-1)
    cuts = range(1, x.shape[1])
    return any(
        not torch.allclose(layer(changed_after(x, c, new))[:, :c], full[:, :c]) for c in cuts
    )


def turned_round(layer, x):
    full, cuts = layer(x), range(1, x.shape[1])
    return any(not torch.allclose(layer(changed_after(x, c, -x))[:, :c], full[:, :c]) for c in cuts)


def nan_put_in(layer, x):
    new, cuts = torch.full_like(x, float("nan")), range(1, x.shape[1])
    return any(bool(layer(changed_after(x, c, new))[:, :c].isnan().any()) for c in cuts)


def two_decimals(layer, x):
    full, new = layer(x), torch.randn_like(x)
    for c in range(1, x.shape[1]):
        if (layer(changed_after(x, c, new)) - full)[:, :c].abs().max() > 0.01:
            return True
    return False


def returning_at_once(layer, x):
    new = torch.randn_like(x)
    for c in range(1, x.shape[1]):
        return not torch.allclose(layer(changed_after(x, c, new))[:, :c], layer(x)[:, :c])


def the_last_verdict(layer, x):
    new, leaks = torch.randn_like(x), False
    for c in range(1, x.shape[1]):
        leaks = not torch.allclose(layer(changed_after(x, c, new))[:, :c], layer(x)[:, :c])
    return leaks


def another_sequence_behind_the_cut(layer, x):
    full, new = layer(x), 0.5 - 3 * x.flip(0).flip(2)
    cuts = range(1, x.shape[1])
    return any(
        not torch.allclose(layer(changed_after(x, c, new))[:, :c], full[:, :c]) for c in cuts
    )


def feature_by_feature(layer, x):
    x = x.clone().requires_grad_()
    output = layer(x)
    for t in range(x.shape[1] - 1):
        for feature in output[:, t].sum(0):
            (gradient,) = torch.autograd.grad(feature, x, retain_graph=True)
            if gradient[:, t + 1 :].abs().max() > 1e-8:
                return True
    return False


RIGHT = {
    "leaks_future": [
        by_jacobian,
        by_shorter_sequences,
        by_zeros,
        one_token_at_a_time,
        by_random_mixtures,
        another_sequence_behind_the_cut,
        feature_by_feature,
    ]
}
WRONG = {
    "leaks_future": [
        (last_token, "last-token-only", "last token"),
        (half, "one-cut", "cut"),
        (own_token_too, "own-token-changed", "overlap by one"),
        (skips_one, "misses-one-ahead", "exactly one token ahead"),
        (sum_of_everything, "sum-of-features", "zero"),
        (plus_ten, "constant-added", "normalises"),
        (the_other_way, "past-for-future", "past"),
        (does_not_leak, "negated", "turned round"),
        (only_first_output, "first-position-only", "first position"),
        (any_gradient_of_a_sum, "exact-equality", "1e-17"),
        (the_very_next_token, "one-token-changed", "further ahead"),
        (exactly_equal, "exact-equality", "rounding"),
        (one_feature_changed, "one-feature-changed", "whole tokens"),
        (turned_round, "sign-changed", "sign"),
        (nan_put_in, "poisoned", "NaN"),
        (two_decimals, "loose-tolerance", "let pass as rounding"),
        (returning_at_once, "first-position-only", "return"),
        (the_last_verdict, "last-token-only", "last cut"),
        (altering, None, "altered in place"),
        (lambda layer, x: False, "always-false"),
        (lambda layer, x: None, None, "return"),
    ]
}

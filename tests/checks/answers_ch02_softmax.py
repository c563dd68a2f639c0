"""Answers to exercise 2.2 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F


def by_log_sum_exp(scores, dim=-1):
    return torch.exp(scores - torch.logsumexp(scores, dim, keepdim=True))


def with_max_values(scores, dim=-1):
    exponentials = torch.exp(scores - scores.max(dim=dim, keepdim=True).values)
    return exponentials / exponentials.sum(dim, keepdim=True)


def detached_shift(scores, dim=-1):
    exponentials = torch.exp(scores - scores.amax(dim, keepdim=True).detach())
    return exponentials / exponentials.sum(dim, keepdim=True)


def ready_made(scores, dim=-1):
    return F.softmax(scores, dim=dim)


def by_log_softmax(scores, dim=-1):
    return F.log_softmax(scores, dim).exp()


def axis_moved_last(scores, dim=-1):
    last = scores.movedim(dim, -1)
    e = (last - last.amax(-1)[..., None]).exp()
    return (e / e.sum(-1)[..., None]).movedim(-1, dim)


def unsqueezed_where_it_was(scores, dim=-1):
    e = (scores - scores.amax(dim).unsqueeze(dim)).exp()
    return e / e.sum(dim).unsqueeze(dim)


def in_double(scores, dim=-1):
    wide = scores.double()
    e = (wide - wide.amax(dim, keepdim=True)).exp()
    return (e / e.sum(dim, keepdim=True)).to(scores.dtype)


def by_loop(scores, dim=-1):
    if scores.ndim == 1:
        e = (scores - scores.max()).exp()
        return e / e.sum()
    dim = dim % scores.ndim
    other = 0 if dim != 0 else 1
    rest = dim - 1 if dim > other else dim
    return torch.stack([by_loop(part, rest) for part in scores.unbind(other)], dim=other)


def pairwise_differences(scores, dim=-1):
    last = scores.movedim(dim, -1)
    differences = last[..., None, :] - last[..., :, None]
    differences = differences.masked_fill(last[..., :, None].isneginf(), torch.inf)
    return (1 / differences.exp().sum(-1)).movedim(-1, dim)


def powers_of_two(scores, dim=-1):
    powers = torch.exp2(scores - scores.amax(dim, keepdim=True))
    return powers / powers.sum(dim, keepdim=True)


def softmin(scores, dim=-1):
    return F.softmin(scores, dim=dim)


def divided_by_root_of_n(scores, dim=-1):
    return (scores / scores.shape[-1] ** 0.5).softmax(dim)


def in_double_without_shift(scores, dim=-1):
    e = scores.double().exp()
    return (e / e.sum(dim, keepdim=True)).to(scores.dtype)


def shift_by_largest_size(scores, dim=-1):
    e = (scores - scores.abs().amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


def max_as_a_pair(scores, dim=-1):
    return (scores - scores.max(dim=dim, keepdim=True)).exp()


def without_dim(scores):
    return scores.softmax(-1)


def exponentials_in_place(scores, dim=-1):
    scores.sub_(scores.amax(dim, keepdim=True)).exp_()
    return scores.div_(scores.sum(dim, keepdim=True))


def fixed_length(scores, dim=-1):
    return scores.reshape(-1, 3).softmax(-1).reshape(scores.shape)


def through_numpy(scores, dim=-1):
    return torch.from_numpy(scores.detach().numpy()).softmax(dim)


def sum_as_a_number(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / torch.tensor(e.sum(dim, keepdim=True).tolist(), dtype=scores.dtype)


def hidden_scores_counted(scores, dim=-1):
    return scores.nan_to_num(neginf=0.0).softmax(dim)


def larger_epsilon(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / (e.sum(dim, keepdim=True) + 1e-6)


def visible_epsilon(scores, dim=-1):
    e = scores.exp()
    return e / (e.sum(dim, keepdim=True) + 1e-2)


def another_epsilon_for_a_shift(scores, dim=-1):
    e = scores.exp()
    return e / (e.sum(dim, keepdim=True) + 1e-12)


def harmless_epsilon(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / (e.sum(dim, keepdim=True) + 1e-14)


def clamped_far_out(scores, dim=-1):
    return scores.clamp(-1e4, 1e4).softmax(dim)


def dim_not_passed_on(scores, dim=-1):
    return F.softmax(scores)


def large_negative_for_hidden(scores, dim=-1):
    return scores.masked_fill(scores.isneginf(), -100.0).softmax(dim)


class Softmax:
    def __call__(self, scores, dim=-1):
        return F.normalize(torch.exp(scores - scores.amax(dim, keepdim=True)), p=1, dim=dim)


def online(scores, dim=-1):
    parts = scores.movedim(dim, 0)
    largest, total = torch.full_like(parts[0], -torch.inf), torch.zeros_like(parts[0])
    for part in parts:
        new = torch.maximum(largest, part)
        grown = total * torch.exp(largest - new) + torch.exp(part - new)
        total = torch.where(new.isneginf(), total, grown)
        largest = new
    return (torch.exp(parts - largest) / total).movedim(0, dim)


def by_logaddexp(scores, dim=-1):
    total, *parts = scores.unbind(dim)
    for part in parts:
        total = torch.logaddexp(total, part)
    return torch.exp(scores - total.unsqueeze(dim))


def squeezed(scores, dim=-1):
    return scores.softmax(dim).squeeze()


def a_finite_number_for_hidden(scores, dim=-1):
    return scores.masked_fill(scores == -torch.inf, -1e4).softmax(dim)


def zero_is_false(scores, dim=None):
    return scores.softmax(dim or -1)


def logarithm_of_a_plain_sum(scores, dim=-1):
    return torch.exp(scores - torch.log(torch.exp(scores).sum(dim, keepdim=True)))


def raised_to_a_limit(scores, dim=-1):
    return scores.softmax(dim).clamp(min=1e-7)


def one_added_to_the_sum(scores, dim=-1):
    e = (scores - scores.amax(dim, keepdim=True)).exp()
    return e / (1 + e.sum(dim, keepdim=True))


def over_the_largest_size(scores, dim=-1):
    return (scores / scores.abs().amax(dim, keepdim=True)).softmax(dim)


RIGHT = {
    "softmax": [
        by_log_sum_exp,
        with_max_values,
        detached_shift,
        ready_made,
        by_log_softmax,
        axis_moved_last,
        unsqueezed_where_it_was,
        in_double,
        by_loop,
        pairwise_differences,
        harmless_epsilon,
        Softmax(),
        online,
        by_logaddexp,
    ]
}
WRONG = {
    "softmax": [
        (large_negative_for_hidden, None, "minus infinity"),
        (powers_of_two, "powers-of-two", "powers of 2"),
        (softmin, "sign-turned", "sign"),
        (divided_by_root_of_n, "scores-scaled", "0.577"),
        (in_double_without_shift, "no-shift", "infinite"),
        (shift_by_largest_size, "shift-never-negative", "whatever its sign"),
        (max_as_a_pair, None, "TypeError"),
        (without_dim, None, "TypeError"),
        (exponentials_in_place, "scores-altered", "altered in place"),
        (fixed_length, None),
        (through_numpy, "detached", "gradient"),
        (sum_as_a_number, "sum-detached", "sum"),
        (clamped_far_out, "scores-clamped", "cut to a limit"),
        (dim_not_passed_on, "axis-left-to-torch", "`dim`"),
        (larger_epsilon, "epsilon-added", "not needed"),
        (visible_epsilon, "epsilon-added", "sum to one"),
        (another_epsilon_for_a_shift, "epsilon-for-shift", "0/0"),
        (hidden_scores_counted, None, "minus infinity"),
        (squeezed, None, "axes of size 1"),
        (a_finite_number_for_hidden, None, "minus infinity"),
        (zero_is_false, "dim-zero-lost", "false"),
        (logarithm_of_a_plain_sum, "no-shift", "infinite"),
        (raised_to_a_limit, "weights-raised", "more than one"),
        (one_added_to_the_sum, "epsilon-added", "1 is added"),
        (over_the_largest_size, None, "sum of exp"),
    ]
}

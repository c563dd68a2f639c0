"""Answers to exercise 3.3 that the check has to judge right: correct variants and wrong ones."""

import numpy as np
import torch


def one_score_after_the_other(scores, index, eps=1e-5):
    gradient = torch.zeros(len(scores), dtype=torch.float64)
    for m in range(len(scores)):
        above, below = scores.double().clone(), scores.double().clone()
        above[m] += eps
        below[m] -= eps
        gradient[m] = (torch.softmax(above, 0)[index] - torch.softmax(below, 0)[index]) / (2 * eps)
    return gradient


def through_autograd(scores, index, eps=1e-5):
    scores = scores.detach().double().requires_grad_()
    (gradient,) = torch.autograd.grad(scores.softmax(-1)[index], scores)
    return gradient


def by_the_formula(scores, index, eps=1e-5):
    p = torch.softmax(scores, -1)
    return p[index] * (torch.eye(len(p), dtype=p.dtype)[index] - p)


def with_a_step_of_its_own(scores, index, eps=1e-5):
    return one_score_after_the_other(scores, index, 1e-6)


def fourth_order(scores, index, eps=1e-5):
    near, far = (one_score_after_the_other(scores, index, k * eps) for k in (1, 2))
    return (4 * near - far) / 3


def with_numpy(scores, index, eps=1e-5):
    s = scores.double().numpy()

    def weight(values):
        exponentials = np.exp(values - values.max())
        return exponentials[index] / exponentials.sum()

    rows = np.eye(len(s)) * eps
    return torch.tensor([(weight(s + row) - weight(s - row)) / (2 * eps) for row in rows])


def rounded_back(scores, index, eps=1e-5):
    return one_score_after_the_other(scores, index, eps).to(scores.dtype)


def by_a_complex_step(scores, index, eps=1e-5):
    scores, gradient = scores.double() - scores.double().max(), []
    for m in range(len(scores)):
        moved = scores.to(torch.complex128)
        moved[m] += 1e-20j
        gradient.append((moved.exp()[index] / moved.exp().sum()).imag / 1e-20)
    return torch.stack(gradient)


def loop_in_float32(scores, index, eps=1e-5):
    gradient = torch.zeros_like(scores)
    for m in range(len(scores)):
        nudge = torch.zeros_like(scores)
        nudge[m] = eps
        above, below = (scores + nudge).softmax(0), (scores - nudge).softmax(0)
        gradient[m] = (above[index] - below[index]) / (2 * eps)
    return gradient


def always_float32(scores, index, eps=1e-5):
    return loop_in_float32(scores.float(), index, eps)


def caller_altered(scores, index, eps=1e-5):
    gradient = []
    for m in range(len(scores)):
        scores[m] += eps
        above = scores.softmax(0)[index]
        scores[m] -= 2 * eps
        gradient.append((above - scores.softmax(0)[index]) / (2 * eps))
        scores[m] += eps
    return torch.stack(gradient)


def float32_hidden(scores, index, eps=1e-5):
    return loop_in_float32(scores.float(), index, eps).double()


def a_wider_step(scores, index, eps=1e-5):
    return one_score_after_the_other(scores, index, 1e-3)


def rounded_to_four_places(scores, index, eps=1e-5):
    return one_score_after_the_other(scores, index, eps).round(decimals=4)


def list_of_floats(scores, index, eps=1e-5):
    return one_score_after_the_other(scores, index, eps).tolist()


def second_derivative(scores, index, eps=1e-5):
    nudges = 1e-4 * torch.eye(len(scores), dtype=torch.float64)
    p = [(scores.double() + k * nudges).softmax(-1)[:, index] for k in (-1, 0, 1)]
    return (p[0] - 2 * p[1] + p[2]) / 1e-8


def the_weights(scores, index, eps=1e-5):
    return scores.double().softmax(-1)


RIGHT = {
    "softmax_gradient": [
        one_score_after_the_other,
        through_autograd,
        by_the_formula,
        with_a_step_of_its_own,
        fourth_order,
        with_numpy,
        rounded_back,
        by_a_complex_step,
    ]
}
WRONG = {
    "softmax_gradient": [
        (loop_in_float32, "single-precision", "seven digits"),
        (always_float32, None, "coarser than the inputs' torch.float64"),
        (caller_altered, None, "`scores` is altered in place"),
        (float32_hidden, "single-precision", "become float32"),
        (a_wider_step, None, "Nearly right"),
        (rounded_to_four_places, None, "Entry m"),
        (list_of_floats, None, "must be a tensor"),
        (second_derivative, None, "Entry m"),
        (the_weights, None, "Entry m"),
    ]
}

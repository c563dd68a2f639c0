"""Answers to exercise 7.5 that the check has to judge right: correct variants and wrong ones."""

from math import prod

import torch


def by_shape(model):
    return sum(prod(p.shape) for p in model.parameters() if p.requires_grad)


def by_a_loop(model):
    number = 0
    for _, parameter in model.named_parameters():
        if parameter.requires_grad:
            number += parameter.nelement()
    return number


def by_identity(model):
    seen = {}
    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is not None and parameter.requires_grad:
                seen[id(parameter)] = parameter
    return torch.tensor(sum(p.numel() for p in seen.values()))


def everything_saved(model):
    return sum(p.numel() for p in model.state_dict().values())


def in_millions(model):
    return f"{by_shape(model) / 1e6:.1f}M"


def as_a_list(model):
    return [p.numel() for p in model.parameters()]


def without_return(model):
    print(by_shape(model))


def one_too_many(model):
    return by_shape(model) + 1


RIGHT = {"count_parameters": [by_shape, by_a_loop, by_identity]}
WRONG = {
    "count_parameters": [
        (everything_saved, "state-dict", "saved"),
        (in_millions, None, "must be a number"),
        (as_a_list, None, "must be a number"),
        (without_return, None, "return"),
        (one_too_many, None, "single layer"),
    ]
}

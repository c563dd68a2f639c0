"""Answers to exercise 8.2 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F


def by_pad(targets, start_token=0):
    return F.pad(targets, (1, -1), value=start_token)


def by_roll(targets, start_token=0):
    shifted = targets.roll(1, dims=1)
    shifted[:, 0] = start_token
    return shifted


def by_new_zeros(targets, start_token=0):
    shifted = targets.new_zeros(targets.shape)
    shifted[:, 1:] = targets[:, :-1]
    shifted[:, 0] = start_token
    return shifted


def by_lists(targets, start_token=0):
    return torch.tensor([[start_token, *row[:-1]] for row in targets.tolist()])


def start_needed(targets, start_token):
    return by_pad(targets, start_token)


def hard_coded(targets, start_token=0):
    return F.pad(targets, (1, -1))


def default_one(targets, start_token=1):
    return by_pad(targets, start_token)


def lists(targets, start_token=0):
    return by_pad(targets, start_token).tolist()


def one_row_only(targets, start_token=0):
    return torch.tensor([[start_token, *targets[0].tolist()[:-1]]])


def first_kept(targets, start_token=0):
    return torch.cat([targets[:, :1], targets[:, :-1]], dim=1)


def pair(targets, start_token=0):
    return by_pad(targets, start_token), targets


RIGHT = {"shift_right": [by_pad, by_roll, by_new_zeros, by_lists]}
WRONG = {
    "shift_right": [
        (start_needed, None, "TypeError", "start_token"),
        (hard_coded, "start-fixed", "whatever start_token is"),
        (default_one, "start-fixed", "starts with 1"),
        (lists, None, "must be a tensor", "list"),
        (one_row_only, None, "shape"),
        (first_kept, "first-kept", "before it is predicted"),
        (pair, None, "must be a tensor"),
    ]
}

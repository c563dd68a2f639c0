"""Answers to exercise 4.4 that the check has to judge right: correct variants and wrong ones."""

import torch

from attn_course.masks import combine_masks


def one_after_another(*masks, padding=None):
    result = None
    for mask in masks:
        if mask is None:
            continue
        if mask.dim() == 2:
            mask = mask[None, None]
        result = mask if result is None else result & mask
    if padding is not None:
        padding = padding[:, None, None, :]
        result = padding if result is None else padding & result
    return result


def by_product(*masks, padding=None):
    parts = [m.unsqueeze(0).unsqueeze(0) if m.ndim == 2 else m for m in masks if m is not None]
    parts += [padding.unsqueeze(1).unsqueeze(1)] if padding is not None else []
    if not parts:
        return None
    product = parts[0]
    for part in parts[1:]:
        product = product * part
    return product.bool()


def by_what_is_hidden(*masks, padding=None):
    hidden = [~m.reshape(1, 1, *m.shape) if m.ndim == 2 else ~m for m in masks if m is not None]
    if padding is not None:
        hidden.append(~padding.reshape(len(padding), 1, 1, -1))
    if len(hidden) == 0:
        return None
    joined = hidden[0].clone()
    for h in hidden[1:]:
        joined = joined | h
    return ~joined


def union(*masks, padding=None):
    parts = [m[None, None] if m.ndim == 2 else m for m in masks if m is not None]
    parts += [] if padding is None else [padding[:, None, None]]
    joined = parts[0] if parts else None
    for part in parts[1:]:
        joined = joined | part
    return joined


def on_the_query_side(*masks, padding=None):
    padded = None if padding is None else padding[:, None, :, None]
    return combine_masks(*masks, padded)


def three_axes(*masks, padding=None):
    joined = None
    for mask in masks:
        joined = mask if joined is None else joined & mask
    if padding is None:
        return joined
    return padding[:, None] if joined is None else joined & padding[:, None]


def none_forgotten(*masks, padding=None):
    joined = combine_masks(*[m for m in masks if m is not None], padding=padding)
    return torch.tensor(True) if joined is None else joined


def as_float(*masks, padding=None):
    joined = combine_masks(*masks, padding=padding)
    return None if joined is None else joined.float()


def in_place(*masks, padding=None):
    parts = [m[None, None] if m.ndim == 2 else m for m in masks if m is not None]
    parts += [] if padding is None else [padding[:, None, None]]
    joined = parts[0] if parts else None
    for part in parts[1:]:
        joined &= part.expand_as(joined) if part.shape[0] == joined.shape[0] else part
    return joined


def padding_by_position(*masks):
    return combine_masks(*masks)


def added(*masks, padding=None):
    parts = [m[None, None] if m.ndim == 2 else m for m in masks if m is not None]
    parts += [] if padding is None else [padding[:, None, None]]
    return sum(parts) if parts else None


RIGHT = {"combine_masks": [one_after_another, by_product, by_what_is_hidden]}
WRONG = {
    "combine_masks": [
        (union, "or-for-and", "in all of them"),
        (on_the_query_side, "padding-hides-queries", "hides keys"),
        (three_axes, "no-head-axis", "four axes"),
        (none_forgotten, None, "None"),
        (as_float, "numbers", "boolean"),
        (in_place, "altered-in-place", "altered in place"),
        (padding_by_position, None, "padding"),
        (added, "sum", "counts"),
        (lambda *m, padding=None: combine_masks(*m), "padding-ignored"),
    ]
}

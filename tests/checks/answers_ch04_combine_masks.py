"""Answers to exercise 4.6 that the check has to judge right: correct variants and wrong ones."""

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


def through_scores(*masks, padding=None):
    lifted = [m[None, None] if m.ndim == 2 else m for m in masks if m is not None]
    lifted += [] if padding is None else [padding.unsqueeze(1).unsqueeze(2)]
    low = [torch.zeros(m.shape).masked_fill(~m, -torch.inf) for m in lifted]
    return sum(low) == 0 if low else None


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


def two_of_them(*masks, padding=None):
    first, second, *_ = [*(m for m in masks if m is not None), None, None]
    return combine_masks(first, second, padding=padding)


def only_with_masks(*masks, padding=None):
    if not masks:
        return None
    return combine_masks(*masks, padding=padding)


def far_below(*masks, padding=None):
    joined = combine_masks(*masks, padding=padding)
    return None if joined is None else (~joined).float() * -1e9


def in_place_but_padding(*masks, padding=None):
    parts = [m[None, None] if m.ndim == 2 else m for m in masks if m is not None]
    for part in parts[1:]:
        parts[0] &= part
    return combine_masks(*parts[:1], padding=padding)


def queries_too(*masks, padding=None):
    joined = combine_masks(*masks, padding=padding)
    if joined is not None and padding is not None and joined.shape[-2] == joined.shape[-1]:
        joined = joined & padding[:, None, :, None]
    return joined


def heads_squeezed(*masks, padding=None):
    joined = combine_masks(*masks, padding=padding)
    return None if joined is None else joined.squeeze(1)


def padding_by_position(*masks):
    return combine_masks(*masks)


def added(*masks, padding=None):
    parts = [m[None, None] if m.ndim == 2 else m for m in masks if m is not None]
    parts += [] if padding is None else [padding[:, None, None]]
    return sum(parts) if parts else None


RIGHT = {"combine_masks": [one_after_another, by_product, by_what_is_hidden, through_scores]}
WRONG = {
    "combine_masks": [
        (union, "or-for-and", "in all of them"),
        (on_the_query_side, "padding-hides-queries", "hides keys"),
        (three_axes, "no-head-axis", "four axes"),
        (none_forgotten, None, "None"),
        (as_float, "numbers", "boolean"),
        (in_place, "altered-in-place", "altered in place"),
        (two_of_them, "two-only", "any number"),
        (only_with_masks, "padding-needs-masks", "Padding alone"),
        (far_below, "additive", "boolean"),
        (in_place_but_padding, "altered-in-place", "altered in place"),
        (queries_too, "padding-hides-both", "hide keys alone"),
        (heads_squeezed, "no-head-axis", "four axes"),
        (padding_by_position, None, "padding"),
        (added, "sum", "counts"),
        (lambda *m, padding=None: combine_masks(*m), "padding-ignored"),
    ]
}

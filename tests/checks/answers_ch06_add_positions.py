"""Answers to exercise 6.2 that the check has to judge right: correct variants and wrong ones."""

import torch

from attn_course.checks.catalogue.ch06.add_mistakes import the_faulty_one
from attn_course.positions import add_positions


def refuse(x, table, offset):
    if offset + x.shape[-2] > len(table):
        raise ValueError(f"{offset + x.shape[-2]} positions, {len(table)} rows")


def by_an_index(x, table, offset=0):
    refuse(x, table, offset)
    return x + table[torch.arange(x.shape[-2]) + offset]


def by_narrow(x, table, offset=0):
    refuse(x, table, offset)
    return x + table.narrow(0, offset, x.size(-2)).expand_as(x)


def by_loops(x, table, offset=0):
    refuse(x, table, offset)
    rows = [x[..., i, :] + table[offset + i] for i in range(x.shape[-2])]
    return torch.stack(rows, dim=-2)


def by_an_embedding(x, table, offset=0):
    refuse(x, table, offset)
    ids = torch.arange(offset, offset + x.shape[-2])
    return torch.nn.functional.embedding(ids, table) + x


def short_slices_refused(x, table, offset=0):
    rows = table[offset : offset + x.shape[-2]]
    if len(rows) < x.shape[-2]:
        raise ValueError("too few rows")
    return x.clone() + rows


def copied_then_added_in_place(x, table, offset=0):
    refuse(x, table, offset)
    summed = x.clone()
    summed += table[offset : offset + x.shape[-2]]
    return summed


def size_zero(x, table, offset=0):
    refuse(x, table, offset)
    return x + table[offset : offset + x.size(0)]


def size_one(x, table, offset=0):
    refuse(x, table, offset)
    return x + table[offset : offset + x.size(1)]


def with_batch_axis(x, table, offset=0):
    refuse(x, table, offset)
    return x + table[offset : offset + x.shape[-2]].unsqueeze(1)


def offset_not_at_the_end(x, table, offset=0):
    refuse(x, table, offset)
    return x + table[offset : x.shape[-2]]


def three_axes_only(x, table, offset=0):
    _, n, _ = x.shape
    refuse(x, table, offset)
    return x + table[offset : offset + n]


def only_the_axis_mended(x, table, offset=0):
    x += table[offset : x.shape[-2]]
    return x


def only_the_slot_mended(x, table, offset=0):
    return x + table[offset : offset + len(x)][:, None]


def index_error(x, table, offset=0):
    if offset + x.shape[-2] > len(table):
        raise IndexError("too few rows")
    return add_positions(x, table, offset)


def data_of_the_table(x, table, offset=0):
    refuse(x, table, offset)
    return x + table.data[offset : offset + x.shape[-2]]


def last_row_never_used(x, table, offset=0):
    if offset + x.shape[-2] >= table.shape[0]:
        raise ValueError("The table is too short!")
    return x + table[offset : offset + x.shape[-2]]


RIGHT = {
    "add_positions": [
        by_an_index,
        by_narrow,
        by_loops,
        by_an_embedding,
        short_slices_refused,
        copied_then_added_in_place,
    ]
}
WRONG = {
    "add_positions": [
        (the_faulty_one, "in-place", "`x` is altered"),
        (only_the_axis_mended, "in-place"),
        (only_the_slot_mended, "batch-axis", "axis of the batch"),
        (size_zero, "rows-counted-by-the-batch", "as many rows as there are sequences"),
        (size_one, "axis-counted-from-the-left", "from the right"),
        (with_batch_axis, "rows-along-the-batch", "meet from the right"),
        (offset_not_at_the_end, "slice-ends-at-n", "not a count"),
        (three_axes_only, None, "_, n, _ = x.shape"),
        (last_row_never_used, "last-row-refused", "The table is too short!"),
        (index_error, "not-refused", "raise a ValueError", "IndexError"),
        (data_of_the_table, "table-detached", "never be trained"),
        (lambda x, table, offset=0: x + table[: x.shape[-2]], "offset-ignored", "decoded alone"),
        (lambda x, table: x + table[: x.shape[-2]], None, "positional argument"),
        (lambda x, table, offset=0: x + table[x.shape[-2]], "one-row-for-all", "sliced"),
    ]
}

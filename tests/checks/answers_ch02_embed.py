"""Answers to exercise 2.1 that the check has to judge right: correct variants and wrong ones."""

import torch
import torch.nn.functional as F
from einops import einsum
from jaxtyping import Float, Int
from torch import nn


def by_one_hot(ids, table):
    return F.one_hot(ids, num_classes=table.shape[0]).to(table.dtype) @ table


def by_comparison(ids, table):
    chosen = (ids.unsqueeze(-1) == torch.arange(len(table))).float()
    return einsum(chosen, table, "... n v, v d -> ... n d")


def by_index_select(ids, table):
    return table.index_select(0, ids.reshape(-1)).reshape(*ids.shape, table.shape[1])


def by_gather(ids, table):
    index = ids.reshape(-1, 1).expand(-1, table.shape[1])
    return torch.gather(table, 0, index).view(*ids.shape, -1)


def by_loop(ids, table):
    rows = [table[int(k)] for k in ids.flatten()]
    return torch.stack(rows).unflatten(0, ids.shape)


def by_list(ids, table):
    return table[ids.tolist()] if ids.ndim == 1 else torch.stack([by_list(i, table) for i in ids])


def by_writing_into_zeros(ids, table):
    out = torch.zeros(*ids.shape, table.shape[-1])
    for k in range(table.shape[0]):
        out[ids == k] = table[k]
    return out


def by_functional(ids, table):
    return F.embedding(ids, table)


def sparse_gradient(ids, table):
    return F.embedding(ids, table, sparse=True)


def with_a_module(ids, table):
    return nn.Embedding.from_pretrained(table)(ids)


def rows_as_numbers(ids, table):
    return torch.tensor(
        [[table[k, d].item() for d in range(table.shape[1])] for k in ids.flatten()]
    )


def row_two_further(ids, table):
    return table[(ids + 2) % len(table)]


def integer_one_hot(ids, table):
    return F.one_hot(ids, len(table)) @ table


def last_token_only(ids, table):
    return table[ids[..., -1]]


def renormalised_in_place(ids, table):
    return F.embedding(ids, table, max_norm=1.0)


def fixed_width(ids, table):
    return table[ids].reshape(*ids.shape, 2)


def first_batch_only(ids, table):
    return table[ids[0]] if ids.ndim > 1 else table[ids]


def truncated_to_whole_numbers(ids, table):
    return table[ids].long()


def new_embedding(ids, table):
    return nn.Embedding(*table.shape)(ids)


class Embedder:
    def __call__(self, ids: Int[torch.Tensor, "*b n"], table: Float[torch.Tensor, "vocab d"]):
        return table[ids, :]


def by_where(ids, table):
    out = table.new_zeros(*ids.shape, table.shape[1])
    for k in range(len(table)):
        out = torch.where((ids == k)[..., None], table[k], out)
    return out


def columns_of_the_transpose(ids, table):
    return table.T[:, ids].movedim(0, -1)


def last_id_as_padding(ids, table):
    return F.embedding(ids, table, padding_idx=-1)


def ids_replaced_by_their_ranks(ids, table):
    return table[ids.argsort(dim=-1).argsort(dim=-1)]


def first_rows(ids, table):
    return table[: ids.shape[-1]]


def rows_side_by_side(ids, table):
    return torch.cat([table[k] for k in ids.flatten()])


def gradient_by_frequency(ids, table):
    return F.embedding(ids, table, scale_grad_by_freq=True)


RIGHT = {
    "embed": [
        by_one_hot,
        by_comparison,
        by_index_select,
        by_gather,
        by_loop,
        by_list,
        by_writing_into_zeros,
        by_functional,
        sparse_gradient,
        Embedder(),
        by_where,
        columns_of_the_transpose,
    ]
}
WRONG = {
    "embed": [
        (with_a_module, "detached", "gradient"),
        (new_embedding, "table-of-its-own", "never used"),
        (rows_as_numbers, "flattened"),
        (row_two_further, None, "Id 3", "row 1"),
        (integer_one_hot, None, "dtype"),
        (last_token_only, None, "summed or indexed away"),
        (renormalised_in_place, None, "in place"),
        (fixed_width, None, "RuntimeError"),
        (first_batch_only, None, "shape"),
        (truncated_to_whole_numbers, None, "dtype"),
        (last_id_as_padding, None, "vocabulary entry"),
        (ids_replaced_by_their_ranks, None, "gets row"),
        (first_rows, "by-position"),
        (rows_side_by_side, None, "joined into one"),
        (gradient_by_frequency, None, "wrong at 2"),
    ]
}

"""Exercise 9.4, mask_tokens: ways to hide tokens, right and wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Generator, Tensor

from attn_course.checks.exercise import Answer
from attn_course.tasks.base import IGNORE
from attn_course.tasks.language import mask_tokens

Choose = Callable[[Tensor, float, Generator | None], Tensor]


def chance(ids: Tensor, generator: Generator | None = None) -> Tensor:
    """A number between 0 and 1 for each token."""
    return torch.rand(ids.shape, generator=generator)


def each(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Each token for itself."""
    return chance(ids, generator) < p


def version(
    *,
    choose: Choose = each,
    masked: float = 0.8,
    drawn: float = 0.1,
    low: int = 0,
    high: int = 0,
    replacement: Callable[[Tensor, int, Generator | None], Tensor] | None = None,
    targets: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None,
    filler: int = IGNORE,
) -> Answer:
    """A version with these shares, these random tokens and these targets."""

    def answer(
        ids: Tensor,
        vocab_size: int,
        mask_token: int,
        p: float = 0.15,
        generator: Generator | None = None,
    ) -> Any:
        chosen, fate = choose(ids, p, generator), chance(ids, generator)
        if replacement is None:
            others = torch.randint(low, vocab_size + high, ids.shape, generator=generator)
        else:
            others = replacement(ids, vocab_size, generator)
        inputs = torch.where(chosen & (fate < masked), mask_token, ids)
        inputs = torch.where(chosen & (fate >= masked) & (fate < masked + drawn), others, inputs)
        if targets is not None:
            return inputs, targets(ids, inputs, chosen)
        return inputs, ids.masked_fill(~chosen, filler)

    return answer


def whole_rows(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """A sequence is chosen, with all its tokens."""
    return (torch.rand(len(ids), 1, generator=generator) < p).expand(ids.shape)


def whole_columns(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """A position is chosen, in all sequences."""
    return (torch.rand(ids.shape[1], generator=generator) < p).expand(ids.shape)


def fixed_number(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """The same number of tokens in each sequence."""
    order = chance(ids, generator).argsort(dim=1).argsort(dim=1)
    return order < round(p * ids.shape[1])


def in_spans(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Three neighbours are chosen, or none of them."""
    b, n = ids.shape
    starts = torch.rand(b, (n + 2) // 3, generator=generator) < p
    return starts.repeat_interleave(3, dim=1)[:, :n]


def fixed_total(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """The same number of tokens in each batch."""
    order = torch.randperm(ids.numel(), generator=generator).reshape(ids.shape)
    return order < round(p * ids.numel())


def never_a_zero(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Takes 0 for padding."""
    return each(ids, p, generator) & (ids != 0)


def always_the_same(ids: Tensor, p: float, generator: Generator | None) -> Tensor:
    """Draws from a seed of its own."""
    return torch.rand(ids.shape, generator=Generator().manual_seed(0)) < p


def one_for_all(ids: Tensor, vocab_size: int, generator: Generator | None) -> Tensor:
    """One random token, put in everywhere."""
    return torch.randint(vocab_size, (1,), generator=generator).expand(ids.shape)


def deciding(fate_of: Callable[[Tensor, Generator | None], Tensor]) -> Answer:
    """A version that decides for several tokens at once what becomes of them."""

    def answer(
        ids: Tensor,
        vocab_size: int,
        mask_token: int,
        p: float = 0.15,
        generator: Generator | None = None,
    ) -> Any:
        chosen, fate = each(ids, p, generator), fate_of(ids, generator).expand(ids.shape)
        others = torch.randint(vocab_size, ids.shape, generator=generator)
        inputs = torch.where(chosen & (fate < 0.8), mask_token, ids)
        inputs = torch.where(chosen & (fate >= 0.9), others, inputs)
        return inputs, ids.masked_fill(~chosen, IGNORE)

    return answer


def overwriting(share: float) -> Answer:
    """Draws anew for the random tokens, which may then fall on hidden places."""

    def answer(
        ids: Tensor,
        vocab_size: int,
        mask_token: int,
        p: float = 0.15,
        generator: Generator | None = None,
    ) -> Any:
        chosen = each(ids, p, generator)
        others = torch.randint(vocab_size, ids.shape, generator=generator)
        inputs = torch.where(chosen & each(ids, 0.8, generator), mask_token, ids)
        inputs = torch.where(chosen & each(ids, share, generator), others, inputs)
        return inputs, ids.masked_fill(~chosen, IGNORE)

    return answer


def with_mask_token(which: Callable[[int], int]) -> Answer:
    """Puts in another mask token than the one given."""

    def answer(
        ids: Tensor,
        vocab_size: int,
        mask_token: int,
        p: float = 0.15,
        generator: Generator | None = None,
    ) -> Any:
        return version()(ids, vocab_size, which(vocab_size), p, generator)

    return answer


def unchosen_too(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Decides what becomes of every token, the chosen or not."""
    chosen, fate = each(ids, p, generator), chance(ids, generator)
    others = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(fate < 0.8, mask_token, ids)
    inputs = torch.where(fate >= 0.9, others, inputs)
    return inputs, ids.masked_fill(~chosen, IGNORE)


def never_the_same(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Draws a random token among the others."""
    chosen, fate = each(ids, p, generator), chance(ids, generator)
    steps = torch.randint(1, vocab_size, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), mask_token, ids)
    inputs = torch.where(chosen & (fate >= 0.9), (ids + steps) % vocab_size, inputs)
    return inputs, ids.masked_fill(~chosen, IGNORE)


def two_draws(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Draws once for the inputs and once more for the targets."""
    inputs, _ = mask_tokens(ids, vocab_size, mask_token, p, generator)
    _, targets = mask_tokens(ids, vocab_size, mask_token, p, generator)
    return inputs, targets


def one_number(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Decides what becomes of a token by the very number that has chosen it."""
    number = chance(ids, generator)
    others = torch.randint(vocab_size, ids.shape, generator=generator)
    chosen = number < p
    inputs = torch.where(chosen & (number < 0.8), mask_token, ids)
    inputs = torch.where(chosen & (number >= 0.9), others, inputs)
    return inputs, ids.masked_fill(~chosen, IGNORE)


def in_place(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Writes into what it is given."""
    inputs, targets = mask_tokens(ids, vocab_size, mask_token, p, generator)
    ids.copy_(inputs)
    return ids, targets


def floats(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Both sides as floats."""
    inputs, targets = mask_tokens(ids, vocab_size, mask_token, p, generator)
    return inputs.float(), targets


def all_places(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Hides everything, whatever p is."""
    return mask_tokens(ids, vocab_size, mask_token, 1.0, generator)


def unseeded(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Draws from torch's own chance, whatever generator it is given."""
    return mask_tokens(ids, vocab_size, mask_token, p)


def exchanged(
    ids: Tensor,
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: Generator | None = None,
) -> Any:
    """Targets first."""
    inputs, targets = mask_tokens(ids, vocab_size, mask_token, p, generator)
    return targets, inputs

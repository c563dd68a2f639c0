"""What the two kinds of language model are asked: the next token, and the hidden one."""

import torch
from jaxtyping import Int
from torch import Tensor

from attn_course.tasks.base import IGNORE, Batch


def next_token_targets(ids: Int[Tensor, " length"], n: int) -> Batch:
    """Cut a text into windows of n tokens; return them, and the token that follows each of theirs.

    Windows start at 0, n, 2n, …, as many as have all their targets; what is left over at the end
    is dropped. The target at the last position of a window is the first token of the next one.

    Raises:
        ValueError: if ids is no single text, n is below 1, or not one window fits.
    """
    if ids.ndim != 1:
        raise ValueError(f"a text is one row of ids, got shape {tuple(ids.shape)}")
    if not 1 <= n < len(ids):
        raise ValueError(
            f"n={n}: windows of n tokens and one more to predict need 1 <= n < {len(ids)}"
        )
    count = (len(ids) - 1) // n
    return Batch(ids[: count * n].reshape(count, n), ids[1 : count * n + 1].reshape(count, n))


def mask_tokens(
    ids: Int[Tensor, "b n"],
    vocab_size: int,
    mask_token: int,
    p: float = 0.15,
    generator: torch.Generator | None = None,
) -> Batch:
    """Hide tokens, as BERT does (Devlin et al. 2019, section 3.1); return inputs and targets.

    Each token is chosen with probability p, independently. Of the chosen, 80 % become
    `mask_token`, 10 % a random one of 0 … vocab_size − 1, and 10 % stay what they are. Targets
    are the original tokens at the chosen places, `IGNORE` (−100) elsewhere.

    generator: where all chance comes from, on the CPU or the device of ids.

    Raises:
        ValueError: if p is no probability or the vocabulary is empty.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p={p} must lie between 0 and 1")
    if vocab_size < 1:
        raise ValueError(f"vocab_size={vocab_size} must be at least 1")
    device = ids.device if generator is None else generator.device
    chance = torch.rand(2, *ids.shape, generator=generator, device=device).to(ids.device)
    drawn = torch.randint(vocab_size, ids.shape, generator=generator, device=device).to(ids)
    chosen, fate = chance[0] < p, chance[1]
    inputs = torch.where(chosen & (fate < 0.8), mask_token, ids)
    inputs = torch.where(chosen & (fate >= 0.9), drawn, inputs)
    return Batch(inputs, ids.masked_fill(~chosen, IGNORE))

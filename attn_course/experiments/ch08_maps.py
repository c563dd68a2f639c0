"""Chapter 08: the attention map against the knife that hides each character in turn."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attn_course.experiments.ch08 import trimmed
from attn_course.experiments.ch08_search import log_probs
from attn_course.models import Seq2Seq
from attn_course.multihead import record_attention
from attn_course.tasks import START, Batch, shift_right

DIGITS = (0, 1, 2, 3, 5, 6, 8, 9)
"""The places of YYYY-MM-DD at which a digit stands."""


@torch.no_grad()
def cross_weights(
    model: Seq2Seq, source: Int[Tensor, "b j"], target: Int[Tensor, "b i"]
) -> Float[Tensor, "layer b h i j"]:
    """Return the weights of cross-attention: row i is the step that writes character i."""
    with record_attention(model) as maps:
        model(source, shift_right(target), source != START)
    return torch.stack(
        [maps[f"blocks.{layer}.cross_attention"] for layer in range(len(model.blocks))]
    )


def attention_map(
    model: Seq2Seq, source: Int[Tensor, "b j"], target: Int[Tensor, "b i"]
) -> Float[Tensor, "b i j"]:
    """Return the map that is usually drawn: the mean over all layers and heads."""
    return cross_weights(model, source, target).mean(dim=(0, 2))


@torch.no_grad()
def knife(
    model: Seq2Seq,
    source: Int[Tensor, "b j"],
    target: Int[Tensor, "b i"],
    *,
    in_encoder: bool = True,
) -> Float[Tensor, "b i j"]:
    """Hide each source character in turn: how much log-probability each target character loses.

    A hidden character is masked like padding, in the encoder and in cross-attention. In nats;
    below 0 where hiding helps.

    in_encoder: False hides it in cross-attention alone: the other vectors of the memory have
        read it.
    """
    before = log_probs(model, source, target)
    target_in = shift_right(target)
    losses = []
    for j in range(source.shape[1]):
        visible = source != START
        visible[:, j] = False
        memory = model.encode(source, visible if in_encoder else source != START)
        logits = model.decode(target_in, memory, visible)
        after = logits.log_softmax(dim=-1).gather(-1, target[..., None])[..., 0]
        losses.append(before - after)
    return torch.stack(losses, dim=-1)


NEEDED = 0.1
"""Nats: a digit that loses less than this by each single cut needs none of the characters."""


class Agreement(NamedTuple):
    """How well two maps (b, i, j) agree.

    same_top: the share of rows in which the same character stands first. rank: the mean over
    rows of Spearman's rank correlation of all their characters, 1 for the same order.
    """

    same_top: float
    rank: float


def agreement(
    one: Float[Tensor, "b i j"], other: Float[Tensor, "b i j"], visible: Bool[Tensor, "b j"]
) -> Agreement:
    """Compare two maps row by row, over the characters that are no padding."""
    shown = visible[:, None].expand_as(one)
    correlation = _correlation(_ranks(one, shown), _ranks(other, shown), shown)
    same = _same_top(one, other, visible)
    return Agreement(same.double().mean().item(), correlation.mean().item())


class KnifeReport(NamedTuple):
    """What an attention map says of what the knife finds, over all digits.

    same_top, rank: as `Agreement`. needed: the share of digits for which there is a character
    that costs more than `NEEDED` when it is hidden; same_top_needed: same_top among those.
    """

    same_top: float
    rank: float
    needed: float
    same_top_needed: float


def map_against_knife(model: Seq2Seq, test: Batch) -> KnifeReport:
    """Compare the attention map with the knife, at all digits of the test dates."""
    batch, digits = trimmed(test), list(DIGITS)
    weights, cut = (
        made(model, batch.inputs, batch.targets)[:, digits] for made in (attention_map, knife)
    )
    visible = batch.inputs != START
    same, needed = _same_top(weights, cut, visible).double(), cut.amax(dim=-1) > NEEDED
    of_needed = same[needed].mean().item() if needed.any() else float("nan")
    whole = agreement(weights, cut, visible)
    return KnifeReport(*whole, needed.double().mean().item(), of_needed)


def _same_top(one: Tensor, other: Tensor, visible: Tensor) -> Tensor:
    """In which rows (b, i) the same character stands first."""
    hidden = ~visible[:, None]
    tops = [m.masked_fill(hidden, -torch.inf).argmax(dim=-1) for m in (one, other)]
    return tops[0] == tops[1]


def _ranks(values: Tensor, shown: Tensor) -> Tensor:
    """How many of the shown values in its row are smaller than each one, equal ones half."""
    pairs = shown[..., None, :]
    smaller = ((values[..., None, :] < values[..., :, None]) & pairs).sum(dim=-1)
    equal = ((values[..., None, :] == values[..., :, None]) & pairs).sum(dim=-1)
    return smaller.double() + (equal.double() - 1) / 2


def _correlation(one: Tensor, other: Tensor, shown: Tensor) -> Tensor:
    """Pearson's correlation in each row, over what is shown."""
    count = shown.sum(dim=-1, keepdim=True)
    centred = [(x - (x * shown).sum(dim=-1, keepdim=True) / count) * shown for x in (one, other)]
    both = (centred[0] * centred[1]).sum(dim=-1)
    return both / (centred[0].norm(dim=-1) * centred[1].norm(dim=-1))

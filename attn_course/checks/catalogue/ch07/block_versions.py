"""What wrong versions of exercises 7.3 and 7.4 are made of, and the mistakes both can have."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attn_course.blocks import FeedForward, LayerNorm
from attn_course.checks.catalogue.ch07.block_parts import OTHER_HEADS, OTHER_WIDTH
from attn_course.checks.exercise import Answer, Mistake
from attn_course.checks.modules import of_repeated_calls
from attn_course.masks import causal_mask
from attn_course.multihead import MultiHeadAttention

Forward = Callable[[Any, Tensor, Tensor | None], Any]
Make = Callable[[Any, int, int, int], None]
Sublayer = Callable[[Any, Tensor, Tensor | None], Tensor]
Combine = Callable[[Any, Tensor, Callable[[Tensor], Tensor]], Tensor]
"""(norm, x, sublayer) -> what comes out of one step."""


@cache
def _parts(d_model: int, num_heads: int, d_ff: int) -> dict[str, nn.Module]:
    return {
        "self_attention": MultiHeadAttention(d_model, num_heads),
        "feed_forward": FeedForward(d_model, d_ff),
        "norm_1": LayerNorm(d_model),
        "norm_2": LayerNorm(d_model),
    }


def all_parts(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """The four parts asked for."""
    # nobody trains these versions, so they may share what takes long to make
    for role, part in _parts(d_model, num_heads, d_ff).items():
        setattr(block, role, part)


def version(forward: Forward, make: Make = all_parts) -> Answer:
    """A block with this forward pass, and made in this way."""

    class Block(nn.Module):
        def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
            super().__init__()
            make(self, d_model, num_heads, d_ff)

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Any:
            return forward(self, x, mask)

    return Block


def attend(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """What self-attention gives."""
    return block.self_attention(x, x, x, mask)[0]


def feed(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """What the feed-forward gives."""
    return block.feed_forward(x)


def nothing(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
    """A sublayer that is left out."""
    return torch.zeros_like(x)


class Identity(nn.Module):
    """A norm that is left out."""

    def forward(self, x: Tensor) -> Tensor:
        """Return what came."""
        return x


def steps(
    first: Combine,
    second: Combine,
    *,
    sublayers: tuple[Sublayer, Sublayer] = (attend, feed),
    norms: tuple[str, str] = ("norm_1", "norm_2"),
) -> Answer:
    """A block whose two steps are put together in these ways; "" stands for no norm."""

    def forward(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
        for combine, sublayer, name in zip((first, second), sublayers, norms, strict=True):
            norm = getattr(block, name) if name else Identity()
            x = combine(norm, x, lambda y, sublayer=sublayer: sublayer(block, y, mask))
        return x

    return version(forward)


def either(wrong: Combine, right: Combine) -> dict[str, Any]:
    """A mistake made in both steps, or in one of them only."""
    return {
        "answer": steps(wrong, wrong),
        "also": (steps(wrong, right), steps(right, wrong)),
    }


# -- ways to put norm, sublayer and residual together -----------------------------------------


def post(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """norm(x + sublayer(x))."""
    return norm(x + sublayer(x))


def pre(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """x + sublayer(norm(x))."""
    return x + sublayer(norm(x))


def of_the_output(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """The norm of the sublayer's output alone."""
    return x + norm(sublayer(x))


def from_the_normalised(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """The residual of what the norm returns."""
    y = norm(x)
    return y + sublayer(y)


def around(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """The norm before the sublayer and after the sum."""
    return norm(x + sublayer(norm(x)))


def doubled(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """Pre-norm: x is overwritten before it is added."""
    y = sublayer(norm(x))
    return y + y


def doubled_post(norm: Any, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
    """Post-norm: x is overwritten before it is added."""
    y = sublayer(x)
    return norm(y + y)


# -- mistakes of both -------------------------------------------------------------------------


def shared_norm(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """One norm under two names."""
    all_parts(block, d_model, num_heads, d_ff)
    block.norm_2 = block.norm_1


def other_width(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """A feed-forward of a width of its own."""
    all_parts(block, d_model, num_heads, d_ff)
    block.feed_forward = FeedForward(d_model, 4 * d_model)


def one_head(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """An attention with a number of heads of its own."""
    all_parts(block, d_model, num_heads, d_ff)
    block.self_attention = MultiHeadAttention(d_model, 1)


def library_attention(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """PyTorch's attention, whose fourth argument is a mask of padding."""
    all_parts(block, d_model, num_heads, d_ff)
    block.self_attention = nn.MultiheadAttention(d_model, num_heads, batch_first=True)


def one_norm_more(block: Any, d_model: int, num_heads: int, d_ff: int) -> None:
    """A norm too many."""
    all_parts(block, d_model, num_heads, d_ff)
    block.norm_3 = LayerNorm(d_model)


def asks_with(query: Callable, key: Callable, value: Callable) -> Sublayer:
    """Self-attention with other arguments."""
    return lambda block, x, mask: block.self_attention(query(x), key(x), value(x), mask)[0]


def common(combine: Combine, right: Forward) -> tuple[Mistake, ...]:
    """The mistakes that both orders can have, made in this one."""

    def with_sublayers(first: Sublayer, second: Sublayer, *norms: str) -> Answer:
        named = (norms[0], norms[1]) if norms else ("norm_1", "norm_2")
        return steps(combine, combine, sublayers=(first, second), norms=named)

    def attending(sublayer: Sublayer) -> Answer:
        return with_sublayers(sublayer, feed)

    def masked_by(change: Callable[[Tensor, Tensor | None], Tensor | None]) -> Answer:
        return version(lambda block, x, mask: right(block, x, change(x, mask)))

    def also_causal(x: Tensor, mask: Tensor | None) -> Tensor:
        causal = causal_mask(x.shape[1])
        return causal if mask is None else mask & causal

    def detached(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
        with torch.no_grad():
            return right(block, x, mask)

    def dropping(when: Callable[[Any], bool]) -> Forward:
        return lambda block, x, mask: F.dropout(right(block, x, mask), 0.3, when(block))

    def made_anew(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
        d_model = x.shape[-1]
        block.feed_forward = FeedForward(d_model, 2 * d_model).to(x.dtype)
        return right(block, x, mask)

    def remembers(block: Any, x: Tensor, mask: Tensor | None) -> Tensor:
        block.kept = mask if mask is not None else getattr(block, "kept", None)
        return right(block, x, block.kept)

    return (
        Mistake(
            "shared-norm",
            "One norm stands in both places. Each has gains and biases of its own to learn.",
            version(right, shared_norm),
        ),
        Mistake("width", OTHER_WIDTH, version(right, other_width)),
        Mistake(
            "heads-not-handed-on",
            OTHER_HEADS,
            version(right, one_head),
        ),
        Mistake(
            "library-attention",
            "The attention is PyTorch's nn.MultiheadAttention. Its fourth argument is a mask of "
            "padding, True where it is *hidden*, and it averages the weights of the heads. Asked "
            "for is the course's MultiHeadAttention, or your own.",
            version(right, library_attention),
        ),
        Mistake(
            "third-norm",
            "There is a third norm. A block has two, one for each sublayer; what stands at the end "
            "of a stack of blocks belongs to the model.",
            version(lambda block, x, mask: block.norm_3(right(block, x, mask)), one_norm_more),
        ),
        *of_repeated_calls(
            dropping=(version(dropping(lambda block: block.training)),),
            made_anew=(version(dropping(lambda block: True)), version(made_anew)),
        ),
        Mistake(
            "feed-forward-first",
            "The feed-forward stands before self-attention. First tokens inform each other, then "
            "each is worked on alone.",
            with_sublayers(feed, attend),
            also=(with_sublayers(feed, attend, "norm_2", "norm_1"),),
        ),
        Mistake(
            "no-attention",
            "Self-attention is left out: no token sees another.",
            with_sublayers(nothing, feed),
            also=(
                version(
                    lambda block, x, mask: combine(block.norm_2, x, lambda y: feed(block, y, mask))
                ),
            ),
        ),
        Mistake(
            "no-feed-forward",
            "The feed-forward is left out.",
            with_sublayers(attend, nothing),
            also=(
                version(
                    lambda block, x, mask: combine(
                        block.norm_1, x, lambda y: attend(block, y, mask)
                    )
                ),
            ),
        ),
        Mistake(
            "norms-exchanged",
            "The norms are exchanged: norm_1 is for self-attention, norm_2 for the feed-forward.",
            with_sublayers(attend, feed, "norm_2", "norm_1"),
        ),
        Mistake(
            "one-norm-used",
            "One norm is used in both places, and the other in none.",
            with_sublayers(attend, feed, "norm_1", "norm_1"),
            also=(with_sublayers(attend, feed, "norm_2", "norm_2"),),
        ),
        Mistake(
            "norm-1-unused",
            "norm_1, the norm of self-attention, is made and not used.",
            with_sublayers(attend, feed, "", "norm_2"),
        ),
        Mistake(
            "norm-2-unused",
            "norm_2, the norm of the feed-forward, is made and not used.",
            with_sublayers(attend, feed, "norm_1", ""),
        ),
        Mistake(
            "no-norms",
            "The norms are made and not used.",
            with_sublayers(attend, feed, "", ""),
        ),
        Mistake(
            "sublayer-twice",
            "A sublayer is applied twice in a row.",
            with_sublayers(
                lambda block, x, mask: attend(block, attend(block, x, mask), mask), feed
            ),
            also=(
                with_sublayers(
                    attend, lambda block, x, mask: feed(block, feed(block, x, None), None)
                ),
            ),
        ),
        Mistake(
            "mask-ignored",
            "The mask changes nothing.",
            masked_by(lambda x, mask: None),
        ),
        Mistake(
            "mask-inverted",
            "The mask works the other way round: True means “may attend”.",
            masked_by(lambda x, mask: None if mask is None else ~mask),
        ),
        Mistake(
            "always-causal",
            "The future is hidden without being asked. The mask comes from the caller.",
            masked_by(also_causal),
        ),
        Mistake(
            "mask-kept",
            "A mask of an earlier call is kept, and used in a call that has none.",
            version(remembers),
        ),
        Mistake(
            "pair-added",
            "self.self_attention returns a pair, (output, weights). Its output alone is added.",
            attending(lambda block, x, mask: block.self_attention(x, x, x, mask)),
            also=(attending(lambda block, x, mask: block.self_attention(x, x, x, mask) + x),),
        ),
        Mistake(
            "attention-asked-with-less",
            "self.self_attention takes query, key, value and mask. In self-attention the first "
            "three are one and the same, and each of them is given.",
            attending(lambda block, x, mask: block.self_attention(x, mask)[0]),
            also=(
                attending(lambda block, x, mask: block.self_attention(x)[0]),
                attending(lambda block, x, mask: block.self_attention(x, mask=mask)[0]),
            ),
        ),
        Mistake(
            "sequence-first",
            "Sequences and positions are exchanged on the way into the attention, which takes the "
            "batch first: tokens then see other sequences, and not their own.",
            attending(
                lambda block, x, mask: attend(block, x.transpose(0, 1), mask).transpose(0, 1)
            ),
            also=(
                attending(
                    lambda block, x, mask: attend(block, x.transpose(0, 1), None).transpose(0, 1)
                ),
            ),
        ),
        Mistake(
            "pair",
            "A pair comes back. The block returns its output alone.",
            version(lambda block, x, mask: (right(block, x, mask), None)),
            also=(
                version(
                    lambda block, x, mask: (
                        right(block, x, mask),
                        block.self_attention(x, x, x, mask)[1],
                    )
                ),
            ),
        ),
        Mistake(
            "no-gradient",
            "No gradient comes through: the block runs under no_grad, or detaches.",
            version(detached),
        ),
        Mistake(
            "input-detached",
            "No gradient reaches x, so that nothing below this block would be trained.",
            version(lambda block, x, mask: right(block, x.detach(), mask)),
        ),
    )

"""The Transformer's blocks: feed-forward, the residual round each sublayer, and the whole.

Sequences are (b, n, d_model), batch first. A decoder-only model attends to no other
sequence: its block is the `EncoderBlock` with a causal mask.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, get_args

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attn_course.multihead import Cache, MultiHeadAttention, projection
from attn_course.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from attn_course.positions import PositionHook
from attn_course.torch_layers import BlockExchange

__all__ = [
    "DecoderBlock",
    "EncoderBlock",
    "FeedForward",
    "LayerNorm",
    "PreNormBlock",
    "RMSNorm",
    "Residual",
    "layer_norm",
    "rms_norm",
]

Order = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "swiglu"]


class FeedForward(nn.Module):
    """Two projections with a non-linearity between, for each token alone.

    "relu"    max(0, x W_1 + b_1) W_2 + b_2           Vaswani et al. 2017, equation 2
    "gelu"    the same with x Φ(x), Φ exact            Hendrycks and Gimpel 2016
    "swiglu"  (SiLU(x W_gate) ⊙ x W_1) W_2            Shazeer 2020, equation 6

    SwiGLU has a third matrix: two thirds of the d_ff of the others cost the same.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Activation = "relu",
        dropout_p: float = 0.0,
        bias: bool = True,
    ) -> None:
        """Make the projections; dropout is on the hidden features, in training only.

        Raises ValueError for an activation that is none of the three.
        """
        super().__init__()
        _check_choice("activation", activation, get_args(Activation))
        self.activation = activation
        self.W_1 = projection(d_model, d_ff, bias=bias)
        self.W_gate = projection(d_model, d_ff, bias=bias) if activation == "swiglu" else None
        self.W_2 = projection(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Float[Tensor, "*b d_model"]) -> Float[Tensor, "*b d_model"]:
        """Transform each token."""
        if self.W_gate is not None:
            hidden = F.silu(self.W_gate(x)) * self.W_1(x)
        elif self.activation == "gelu":
            hidden = F.gelu(self.W_1(x))
        else:
            hidden = F.relu(self.W_1(x))
        return self.W_2(self.dropout(hidden))


class Residual(nn.Module):
    """What stands round each sublayer: a sum that lets the input pass, and a norm.

    "post"  norm(x + sublayer(x))    Vaswani et al. 2017, section 3.1
    "pre"   x + sublayer(norm(x))    Xiong et al. 2020: nothing stands in the way through

    With "pre" the last block returns a sum that nothing has normalised, so the model puts
    one norm at its end.
    """

    def __init__(self, norm_module: nn.Module, order: Order, dropout_p: float = 0.0) -> None:
        """Take the norm and where it stands; dropout is on what the sublayer returns.

        Raises ValueError for an order that is neither of the two.
        """
        super().__init__()
        _check_choice("norm", order, get_args(Order))
        self.norm = norm_module
        self.order = order
        self.dropout = nn.Dropout(dropout_p)

    def forward(
        self, x: Float[Tensor, "b n d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "b n d_model"]:
        """Run the sublayer within its residual."""
        if self.order == "pre":
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderBlock(BlockExchange):
    """Self-attention, then feed-forward, each within its residual.

    Vaswani et al. 2017, section 3.1 and figure 1, left.
    """

    torch_class = nn.TransformerEncoderLayer
    torch_names: ClassVar = {
        "self_attention": "self_attn",
        "around_self.norm": "norm1",
        "feed_forward.W_1": "linear1",
        "feed_forward.W_2": "linear2",
        "around_feed_forward.norm": "norm2",
    }

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        norm: Order = "post",
        norm_layer: Callable[[int], nn.Module] = LayerNorm,
        activation: Activation = "relu",
        dropout_p: float = 0.0,
        bias: bool = True,
        num_kv_heads: int | None = None,
        position: PositionHook | None = None,
    ) -> None:
        """Make the two sublayers.

        norm: "post" or "pre", see `Residual`.
        norm_layer: makes a norm from d_model: `LayerNorm`, `RMSNorm` or your own.
        activation: that of `FeedForward`.
        dropout_p: on attention weights, hidden features and sublayers, in training only.
        bias: False leaves the biases out of the projections.
        num_kv_heads, position: those of `MultiHeadAttention`.

        Raises ValueError for a head count that does not divide d_model and for a choice
        that does not exist.
        """
        super().__init__()
        self.self_attention = MultiHeadAttention(
            d_model,
            num_heads,
            dropout_p=dropout_p,
            bias=bias,
            num_kv_heads=num_kv_heads,
            position=position,
        )
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout_p=dropout_p, bias=bias
        )
        self.around_self = Residual(norm_layer(d_model), norm, dropout_p)
        self.around_feed_forward = Residual(norm_layer(d_model), norm, dropout_p)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """Let the tokens of x inform each other where the mask allows it.

        mask and cache are those of `MultiHeadAttention`. Its weights are not returned:
        `multihead.record_attention` collects them.
        """
        x = self.around_self(x, lambda y: attend(self.self_attention, y, y, mask, cache))
        return self.around_feed_forward(x, self.feed_forward)


class PreNormBlock(EncoderBlock):
    """An `EncoderBlock` whose norms stand before its sublayers.

    Xiong et al. 2020, figure 1 (b). The model puts one more norm after its last block.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, *, norm: Order = "pre", **options: Any
    ) -> None:
        """Make the two sublayers; options are those of `EncoderBlock`.

        Raises ValueError for another order than "pre", and what `EncoderBlock` raises.
        """
        if norm != "pre":
            raise ValueError(f"a PreNormBlock has norm='pre', got {norm!r}")
        super().__init__(d_model, num_heads, d_ff, norm=norm, **options)


class DecoderBlock(BlockExchange):
    """Self-attention, attention to another sequence, feed-forward, each within its residual.

    Vaswani et al. 2017, section 3.1 and figure 1, right. In cross-attention the queries
    come from x; keys and values from the memory, the encoder's output.
    """

    torch_class = nn.TransformerDecoderLayer
    torch_names: ClassVar = {
        "self_attention": "self_attn",
        "around_self.norm": "norm1",
        "cross_attention": "multihead_attn",
        "around_cross.norm": "norm2",
        "feed_forward.W_1": "linear1",
        "feed_forward.W_2": "linear2",
        "around_feed_forward.norm": "norm3",
    }

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        norm: Order = "post",
        norm_layer: Callable[[int], nn.Module] = LayerNorm,
        activation: Activation = "relu",
        dropout_p: float = 0.0,
        bias: bool = True,
        num_kv_heads: int | None = None,
        position: PositionHook | None = None,
    ) -> None:
        """Make the three sublayers; parameters and errors are those of `EncoderBlock`.

        The position is put into self-attention alone: between two sequences there is no
        distance.
        """
        super().__init__()
        self.self_attention = MultiHeadAttention(
            d_model,
            num_heads,
            dropout_p=dropout_p,
            bias=bias,
            num_kv_heads=num_kv_heads,
            position=position,
        )
        self.cross_attention = MultiHeadAttention(
            d_model, num_heads, dropout_p=dropout_p, bias=bias, num_kv_heads=num_kv_heads
        )
        self.feed_forward = FeedForward(
            d_model, d_ff, activation=activation, dropout_p=dropout_p, bias=bias
        )
        self.around_self = Residual(norm_layer(d_model), norm, dropout_p)
        self.around_cross = Residual(norm_layer(d_model), norm, dropout_p)
        self.around_feed_forward = Residual(norm_layer(d_model), norm, dropout_p)

    def forward(
        self,
        x: Float[Tensor, "b n d_model"],
        memory: Float[Tensor, "b n_memory d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: Cache | None = None,
    ) -> Float[Tensor, "b n d_model"]:
        """Let x attend to itself where `mask` allows, to the memory where `memory_mask` does.

        The cache is that of self-attention.
        """
        x = self.around_self(x, lambda y: attend(self.self_attention, y, y, mask, cache))
        x = self.around_cross(x, lambda y: attend(self.cross_attention, y, memory, memory_mask))
        return self.around_feed_forward(x, self.feed_forward)


def attend(
    attention: nn.Module,
    x: Float[Tensor, "b n d_model"],
    source: Float[Tensor, "b j d_model"],
    mask: Bool[Tensor, "..."] | None,
    cache: Cache | None = None,
) -> Float[Tensor, "b n d_model"]:
    """Let x ask the source, by the fused kernel: the output without the weights."""
    return attention(x, source, source, mask, need_weights=False, cache=cache)[0]


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is none of {', '.join(choices)}")

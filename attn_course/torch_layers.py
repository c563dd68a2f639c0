"""Weights exchanged with PyTorch's attention and Transformer layers, role by role."""

from functools import partial
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attn_course.norms import LayerNorm
from attn_course.positions import PositionHook

Pairs = list[tuple[Tensor | None, Tensor | None]]


class AttentionExchange(nn.Module):
    """Attention that can be made from `nn.MultiheadAttention`, and turned into it.

    A subclass takes (d_model, num_heads, dropout_p=, bias=, kdim=, vdim=) and has what is
    declared here.
    """

    num_heads: int
    num_kv_heads: int
    dropout_p: float
    position: PositionHook | None
    W_q: nn.Linear
    W_k: nn.Linear
    W_v: nn.Linear
    W_o: nn.Linear

    @classmethod
    def from_torch(cls, other: nn.MultiheadAttention) -> Self:
        """Return the same attention with copies of the weights of `nn.MultiheadAttention`.

        Batch first, whatever `other.batch_first` says; masks are to be inverted.
        Raises ValueError for what has no counterpart here: `add_bias_kv`, `add_zero_attn`.
        """
        if other.bias_k is not None or other.add_zero_attn:
            raise ValueError("add_bias_kv and add_zero_attn have no counterpart here")
        ours = cls(
            other.embed_dim,
            other.num_heads,
            dropout_p=other.dropout,
            bias=other.in_proj_bias is not None,
            kdim=other.kdim,
            vdim=other.vdim,
        ).to(other.out_proj.weight)
        copy_pairs(attention_pairs(ours, other))
        return ours.train(other.training)

    def to_torch(self) -> nn.MultiheadAttention:
        """Return an `nn.MultiheadAttention` (batch first) with copies of the weights.

        Raises ValueError for what it cannot express: shared key heads and positions.
        """
        if self.num_kv_heads != self.num_heads or self.position is not None:
            raise ValueError(
                "nn.MultiheadAttention knows no positions and no shared key heads, this has "
                f"position={self.position}, {self.num_kv_heads} key heads for {self.num_heads}"
            )
        other = nn.MultiheadAttention(
            self.W_q.in_features,
            self.num_heads,
            dropout=self.dropout_p,
            bias=self.W_q.bias is not None,
            kdim=self.W_k.in_features,
            vdim=self.W_v.in_features,
            batch_first=True,
        ).to(self.W_o.weight)
        copy_pairs([(theirs, ours) for ours, theirs in attention_pairs(self, other)])
        return other.train(self.training)


class BlockExchange(nn.Module):
    """A block that can be made from PyTorch's layer of the same kind, and turned into it.

    A subclass names that layer's class, and for each of its own submodules the layer's.
    """

    torch_class: ClassVar[type[nn.Module]]
    torch_names: ClassVar[dict[str, str]]

    @classmethod
    def from_torch(cls, other: Any) -> Self:
        """Return the same block with copies of the weights of PyTorch's layer.

        Batch first, whatever the layer says; masks are to be inverted.
        Raises ValueError for another kind of layer and for an activation that is neither
        ReLU nor exact GELU.
        """
        if not isinstance(other, cls.torch_class):
            raise ValueError(f"{cls.__name__} is made from {cls.torch_class}, got {type(other)}")
        ours = cls(**_block_settings(other)).to(next(other.parameters()))
        copy_pairs(ours._pairs(other))
        return ours.train(other.training)

    def to_torch(self) -> Any:
        """Return PyTorch's layer (batch first) with copies of the weights.

        Raises ValueError for what it cannot express: SwiGLU, another norm than LayerNorm,
        positions in attention, shared key heads, a bias in some places only.
        """
        other = self.torch_class(**_layer_settings(self)).to(next(self.parameters()))
        copy_pairs([(theirs, ours) for ours, theirs in self._pairs(other)])
        return other.train(self.training)

    def _pairs(self, other: nn.Module) -> Pairs:
        pairs: Pairs = []
        for our_name, their_name in self.torch_names.items():
            ours, theirs = self.get_submodule(our_name), other.get_submodule(their_name)
            if isinstance(ours, AttentionExchange) and isinstance(theirs, nn.MultiheadAttention):
                pairs += attention_pairs(ours, theirs)
            elif isinstance(ours, LayerNorm) and isinstance(theirs, nn.LayerNorm):
                pairs += [(ours.gain, theirs.weight), (ours.bias, theirs.bias)]
            elif isinstance(ours, nn.Linear) and isinstance(theirs, nn.Linear):
                pairs += [(ours.weight, theirs.weight), (ours.bias, theirs.bias)]
        return pairs


def copy_pairs(pairs: Pairs) -> None:
    """Copy the second weight of each pair into the first; a pair of None is no bias.

    Raises ValueError where only one of the two has a bias.
    """
    with torch.no_grad():
        for target, source in pairs:
            if target is not None and source is not None:
                target.copy_(source)
            elif target is not source:
                raise ValueError("one of the two has a bias that the other lacks")


def attention_pairs(ours: AttentionExchange, theirs: nn.MultiheadAttention) -> Pairs:
    """Pair our weights with those of `nn.MultiheadAttention` by the role that they play."""
    if theirs.in_proj_weight is not None:
        weights = theirs.in_proj_weight.chunk(3)  # one tall matrix when all widths agree
    else:
        weights = theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight
    biases = (None,) * 3 if theirs.in_proj_bias is None else theirs.in_proj_bias.chunk(3)
    linears = ours.W_q, ours.W_k, ours.W_v
    pairs: Pairs = [
        (ours.W_o.weight, theirs.out_proj.weight),
        (ours.W_o.bias, theirs.out_proj.bias),
    ]
    pairs += [(linear.weight, weight) for linear, weight in zip(linears, weights, strict=True)]
    return pairs + [(linear.bias, bias) for linear, bias in zip(linears, biases, strict=True)]


def _block_settings(layer: Any) -> dict[str, Any]:
    if layer.activation is F.relu or isinstance(layer.activation, nn.ReLU):
        activation = "relu"
    elif layer.activation is F.gelu or repr(layer.activation) == repr(nn.GELU()):
        activation = "gelu"
    else:
        raise ValueError(f"activation {layer.activation} is neither ReLU nor exact GELU")
    return {
        "d_model": layer.linear1.in_features,
        "num_heads": layer.self_attn.num_heads,
        "d_ff": layer.linear1.out_features,
        "norm": "pre" if layer.norm_first else "post",
        "activation": activation,
        "dropout_p": layer.dropout.p,
        "bias": layer.linear1.bias is not None,
        "norm_layer": partial(LayerNorm, eps=layer.norm1.eps, bias=layer.norm1.bias is not None),
    }


def _layer_settings(block: Any) -> dict[str, Any]:
    attention, feed_forward, norm = block.self_attention, block.feed_forward, block.around_self.norm
    beyond = {
        "SwiGLU": feed_forward.activation == "swiglu",
        "norm": not isinstance(norm, LayerNorm),
        "positions in attention": attention.position is not None,
        "shared key heads": attention.num_kv_heads != attention.num_heads,
    }
    if any(beyond.values()):
        found = ", ".join(name for name, there in beyond.items() if there)
        raise ValueError(f"PyTorch's layer cannot express this block's {found}")
    return {
        "d_model": feed_forward.W_1.in_features,
        "nhead": attention.num_heads,
        "dim_feedforward": feed_forward.W_1.out_features,
        "dropout": attention.dropout_p,
        "activation": feed_forward.activation,
        "layer_norm_eps": norm.eps,
        "norm_first": block.around_self.order == "pre",
        "bias": feed_forward.W_1.bias is not None,
        "batch_first": True,
    }

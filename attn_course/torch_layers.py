"""Weights exchanged with PyTorch's Transformer layers, role by role."""

from functools import partial
from typing import Any, ClassVar, TypeVar

import torch.nn.functional as F
from torch import nn

from attn_course.multihead import MultiHeadAttention, Pairs, attention_pairs, copy_pairs
from attn_course.norms import LayerNorm

Block = TypeVar("Block", bound="TorchExchange")


class TorchExchange(nn.Module):
    """A block that can be made from PyTorch's layer of the same kind, and turned into it.

    A subclass names that layer's class, and for each of its own submodules the layer's.
    """

    torch_class: ClassVar[type[nn.Module]]
    torch_names: ClassVar[dict[str, str]]

    @classmethod
    def from_torch(cls: type[Block], other: Any) -> Block:
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
            if isinstance(ours, MultiHeadAttention) and isinstance(theirs, nn.MultiheadAttention):
                pairs += attention_pairs(ours, theirs)
            elif isinstance(ours, LayerNorm) and isinstance(theirs, nn.LayerNorm):
                pairs += [(ours.gain, theirs.weight), (ours.bias, theirs.bias)]
            elif isinstance(ours, nn.Linear) and isinstance(theirs, nn.Linear):
                pairs += [(ours.weight, theirs.weight), (ours.bias, theirs.bias)]
        return pairs


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

"""Normalisation of each token by itself: layer norm and RMS norm, function and module."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


def layer_norm(
    x: Float[Tensor, "*b d"],
    gain: Float[Tensor, " d"],
    bias: Float[Tensor, " d"],
    eps: float = 1e-5,
) -> Float[Tensor, "*b d"]:
    """Give each token mean 0 and variance 1 over its features, then gain and bias.

    gain · (x − mean) / √(variance + eps) + bias (Ba et al. 2016, equation 4), with the
    biased variance, divided by d. One token's statistics never touch another's.
    """
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return gain * centred / torch.sqrt(variance + eps) + bias


def rms_norm(
    x: Float[Tensor, "*b d"], gain: Float[Tensor, " d"], eps: float = 1e-6
) -> Float[Tensor, "*b d"]:
    """Give each token root mean square 1 over its features, then a gain.

    gain · x / √(mean(x²) + eps) (Zhang and Sennrich 2019, equation 4): layer norm without
    the centring.
    """
    # the square of a small number is 0 in half precision: widen before it, not after
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return gain * (wide / torch.sqrt(mean_square + eps)).to(x.dtype)


class LayerNorm(nn.Module):
    """`layer_norm` with its gain, from 1, and its bias, from 0."""

    def __init__(self, d_model: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        """Leave the bias out with bias=False."""
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Float[Tensor, "*b d_model"]) -> Float[Tensor, "*b d_model"]:
        """Normalise each token."""
        # the numbers of layer_norm above, from one kernel that reads x once
        return F.layer_norm(x, self.gain.shape, self.gain, self.bias, self.eps)


class RMSNorm(nn.Module):
    """`rms_norm` with its gain, from 1."""

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        """Make the gain."""
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*b d_model"]) -> Float[Tensor, "*b d_model"]:
        """Normalise each token."""
        return rms_norm(x, self.gain, self.eps)

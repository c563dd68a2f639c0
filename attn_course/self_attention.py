"""Self-attention with its weights, and two tests of what a layer does to positions.

b counts sequences, n positions, d features. The tests take any layer from (*b, n, d) to
(*b, n, d_out): they look at what comes out, never inside.
"""

from collections.abc import Callable
from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attn_course.attention import scaled_dot_product_attention

Layer = Callable[[Float[Tensor, "*b n d"]], Float[Tensor, "*b n d_out"]]

_SEED = 8_236_511_407


class SelfAttention(nn.Module):
    """One head of self-attention: query, key and value are made from the same tokens.

    Attention(x W_q, x W_k, x W_v), Vaswani et al. 2017, equation 1. `nn.Linear` stores its
    weight transposed, (d_k, d_model). Several heads and W_o come with `MultiHeadAttention`.
    """

    def __init__(self, d_model: int, d_k: int) -> None:
        """Make the three projections from d_model to d_k features, without biases."""
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_k, bias=False)

    def forward(self, x: Float[Tensor, "*b n d_model"], mask: Bool[Tensor, "..."] | None = None):
        """Return the output, (*b, n, d_k), and the weights, (*b, n, n).

        mask: True means "may attend"; as `scaled_dot_product_attention` takes it.
        """
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x), mask)


def is_permutation_equivariant(
    layer: Layer, x: Float[Tensor, "*b n d"], *, trials: int = 8
) -> bool:
    """Say whether shuffling the positions of x shuffles the layer's output alike, and only that.

    f(Px) = P f(x) for `trials` random permutations P: a single one may leave alone just the
    position that is treated differently. The layer must not drop anything at random.
    Raises ValueError for fewer than two positions, and for a layer that gives no (*b, n, d_out).
    """
    output = _output(layer, x)
    generator = torch.Generator().manual_seed(_SEED)
    for _ in range(trials):
        order = torch.randperm(x.shape[-2], generator=generator).to(x.device)
        if not _agree(_output(layer, x[..., order, :]), output[..., order, :]):
            return False
    return True


def leaks_future(layer: Layer, x: Float[Tensor, "*b n d"]) -> bool:
    """Say whether the output at any position depends on the input at a later one.

    For each cut, all that follows it is replaced by other random tokens, and the outputs up
    to the cut must stay as they were. The layer must not drop anything at random.
    Raises ValueError for fewer than two positions, and for a layer that gives no (*b, n, d_out).
    """
    output = _output(layer, x)
    # a seed that x will not have been drawn from: tokens replaced by themselves find no leak
    generator = torch.Generator().manual_seed(_SEED)
    other = torch.randn(x.shape, generator=generator).to(x)
    for cut in range(1, x.shape[-2]):
        changed = torch.cat([x[..., :cut, :], other[..., cut:, :]], dim=-2)
        if not _agree(_output(layer, changed)[..., :cut, :], output[..., :cut, :]):
            return True
    return False


def _output(layer: Layer, x: Tensor) -> Tensor:
    if x.ndim < 2 or x.shape[-2] < 2:
        raise ValueError(f"x must be (*b, n, d) with at least 2 positions, got {tuple(x.shape)}")
    output = layer(x)
    got = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if not isinstance(output, Tensor) or output.shape[:-1] != x.shape[:-1]:
        raise ValueError(
            f"the layer must give one tensor (*b, n, d_out) for x {tuple(x.shape)}, it gave {got}; "
            "wrap an attention that gives (output, weights): lambda x: attention(x)[0]"
        )
    return output


def _agree(one: Tensor, other: Tensor) -> bool:
    """Equal but for rounding: in half of the digits that their dtype keeps."""
    largest = other.abs().max()
    return bool(((one - other).abs() <= sqrt(torch.finfo(other.dtype).eps) * largest).all())

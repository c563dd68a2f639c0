"""Where a token stands: four ways to tell attention, which by itself sees no order.

Sinusoidal and learned positions are added to the embeddings. RoPE turns queries and keys,
ALiBi and the clipped relative bias add to the scores; for `MultiHeadAttention` these three
are wrapped as a `PositionHook`. Where there are fewer queries than keys, the queries are
the last positions, as in `masks.causal_mask`.
"""

import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn


def sinusoidal_encoding(n: int, d_model: int) -> Float[Tensor, "n d_model"]:
    """Return the encoding of positions 0 … n − 1 (Vaswani et al. 2017, section 3.5).

    PE[pos, 2i] = sin(pos / 10000^(2i/d_model)) and PE[pos, 2i + 1] = cos(same angle);
    an odd d_model ends in a sine.
    """
    # float64 until the end: an angle of many turns keeps few digits of its last turn
    positions = torch.arange(n, dtype=torch.float64)
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = einsum(positions, 10000.0**-exponents, "n, pair -> n pair")
    interleaved = rearrange([angles.sin(), angles.cos()], "wave n pair -> n (pair wave)")
    return interleaved[:, :d_model].to(torch.get_default_dtype())


def add_positions(
    x: Float[Tensor, "*b n d_model"], table: Float[Tensor, "max_len d_model"], offset: int = 0
) -> Float[Tensor, "*b n d_model"]:
    """Return x with the rows offset … offset + n − 1 of `table` added to its n positions.

    Every sequence of the batch gets the same rows (Vaswani et al. 2017, section 3.5). `offset`
    is the number of positions that came before x, as in decoding token by token. The result
    has the dtype of x. Raises ValueError for a position that has no row.
    """
    n, max_len = x.shape[-2], len(table)
    if not 0 <= offset <= offset + n <= max_len:
        raise ValueError(
            f"positions {offset} … {offset + n - 1} asked for, the table has 0 … {max_len - 1}"
        )
    return x + table[offset : offset + n].to(x.dtype)


def relative_shift(shift: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """Return the matrix that moves a sinusoidal encoding on by `shift` positions.

    PE[pos] M = PE[pos + shift] for every pos, with PE of `sinusoidal_encoding` as row vectors:
    the linear function that Vaswani et al. 2017 (section 3.5) mention. Each pair (sin, cos) is
    turned by shift / 10000^(2i/d_model); a negative shift turns it back.
    Raises ValueError if d_model is odd: a sine without its cosine cannot be turned.
    """
    if d_model % 2 != 0:
        raise ValueError(f"a shift turns pairs (sin, cos), but d_model={d_model} is odd")
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    angles = shift * 10000.0**-exponents
    cos, sin = angles.cos(), angles.sin()
    # (sin a, cos a) times this block is (sin(a + angle), cos(a + angle))
    blocks = rearrange([cos, -sin, sin, cos], "(row column) pair -> pair row column", row=2)
    return torch.block_diag(*blocks).to(torch.get_default_dtype())


class LearnedPositions(nn.Module):
    """One trained vector for each of `max_len` positions (Gehring et al. 2017, section 3.1).

    Drawn at first from N(0, 0.02²), as token embeddings of GPT-2 and BERT are.
    """

    def __init__(self, max_len: int, d_model: int) -> None:
        """Raise ValueError unless both sizes are at least 1."""
        super().__init__()
        if min(max_len, d_model) < 1:
            raise ValueError(f"max_len={max_len} and d_model={d_model} must be at least 1")
        self.table = nn.Parameter(0.02 * torch.randn(max_len, d_model))

    def forward(self, n: int, offset: int = 0) -> Float[Tensor, "n d_model"]:
        """Return the vectors of positions offset … offset + n − 1.

        Raises ValueError for a position without a vector: what was never trained cannot
        be looked up.
        """
        max_len = len(self.table)
        if not 0 <= offset <= offset + n <= max_len:
            raise ValueError(
                f"positions {offset} … {offset + n - 1} asked for, 0 … {max_len - 1} learned"
            )
        return self.table[offset : offset + n]


def apply_rope(
    x: Float[Tensor, "*b n d"], positions: Int[Tensor, " n"], base: float = 10000.0
) -> Float[Tensor, "*b n d"]:
    """Turn each pair of features by an angle that grows with position (Su et al. 2021).

    (x₂ᵢ, x₂ᵢ₊₁) becomes (x₂ᵢ cos θ − x₂ᵢ₊₁ sin θ, x₂ᵢ sin θ + x₂ᵢ₊₁ cos θ), equation 34
    there, with θ = position · base^(−2i/d). A turn keeps every norm, and the dot product of
    two turned vectors depends on the difference of their positions alone.
    Raises ValueError if d is odd or there is not one position for each of the n rows.
    """
    n, d = x.shape[-2:]
    if d % 2 != 0:
        raise ValueError(f"RoPE turns pairs of features, but d={d} is odd")
    if positions.shape != (n,):
        raise ValueError(f"x has {n} rows, positions the shape {tuple(positions.shape)}")
    # in half precision, angles of distant positions would be wrong by whole turns
    precise = torch.promote_types(x.dtype, torch.float32)
    exponents = torch.arange(0, d, 2, dtype=precise, device=x.device) / d
    angles = einsum(positions.to(precise), base**-exponents, "n, pair -> n pair")
    cos, sin = angles.cos(), angles.sin()
    even, odd = rearrange(x, "... (pair two) -> two ... pair", two=2)
    turned = [even * cos - odd * sin, even * sin + odd * cos]
    return rearrange(turned, "two ... pair -> ... (pair two)").to(x.dtype)


def alibi_slopes(num_heads: int) -> Float[Tensor, " h"]:
    """Return ALiBi's slope for each head (Press et al. 2022, section 3).

    For h heads, a power of two, the geometric sequence 2^(−8/h), 2^(−16/h), … 2^(−8). For
    other counts the published rule: the slopes of the next lower power of two p, then as
    many as are missing from those of 2p, taking the first, third, fifth, …
    Raises ValueError unless there is at least one head.
    """
    if num_heads < 1:
        raise ValueError(f"num_heads={num_heads} must be at least 1")
    lower_power = 2 ** (num_heads.bit_length() - 1)
    exponents = 8 * torch.arange(1, lower_power + 1) / lower_power
    between = 8 * torch.arange(1, 2 * lower_power, 2) / (2 * lower_power)
    return 2.0 ** -torch.cat([exponents, between])[:num_heads]


def alibi_bias(
    num_heads: int, n_query: int, n_key: int, *, device: torch.device | str | None = None
) -> Float[Tensor, "h i j"]:
    """Return ALiBi's bias −slope_h · |i − j|, to be added to the scaled scores.

    Each head looks away from distant keys at its own rate. The queries are the last
    positions. Raises ValueError for more queries than keys.
    """
    slopes = alibi_slopes(num_heads).to(device)
    distance = relative_positions(n_query, n_key, device=device).abs().to(slopes.dtype)
    return -einsum(slopes, distance, "h, i j -> h i j")


def relative_bias(
    table: Float[Tensor, "h distances"], n_query: int, n_key: int
) -> Float[Tensor, "h i j"]:
    """Return a trained bias for each head and each clipped distance from query to key.

    `table` holds the biases of the distances −k … k, so distances = 2k + 1; what is farther
    away than k shares the last. The clipping is that of Shaw et al. 2018 (section 3.2), the
    one number for a head and a distance that of Raffel et al. 2020.
    Raises ValueError for a table without a middle and for more queries than keys.
    """
    if table.shape[-1] % 2 == 0:
        raise ValueError(f"distances −k … k are odd in number, the table has {table.shape[-1]}")
    k = table.shape[-1] // 2
    distance = relative_positions(n_query, n_key, device=table.device)
    return table[:, distance.clamp(-k, k) + k]


def relative_positions(
    n_query: int, n_key: int, *, device: torch.device | str | None = None
) -> Int[Tensor, "i j"]:
    """Return j − i for each query and key: below 0 for keys of the past.

    The queries are the last positions. Raises ValueError for more queries than keys.
    """
    if not 0 <= n_query <= n_key:
        raise ValueError(f"relative positions need n_query <= n_key, got {n_query} and {n_key}")
    key_position = torch.arange(n_key, device=device)
    query_position = key_position[n_key - n_query :]
    return key_position - query_position[:, None]


class PositionHook(nn.Module):
    """What `MultiHeadAttention` asks about positions; by default nothing changes.

    A kind of position overrides one of the two methods.
    """

    def rotate(
        self, x: Float[Tensor, "b h n d"], positions: Int[Tensor, " n"]
    ) -> Float[Tensor, "b h n d"]:
        """Return the queries or the keys of each head with their positions put in."""
        return x

    def score_bias(
        self, n_query: int, n_key: int, device: torch.device
    ) -> Float[Tensor, "h i j"] | None:
        """Return what is added to the scaled scores; None adds nothing."""
        return None


class RotaryPositions(PositionHook):
    """`apply_rope` on the queries and keys of each head, never on the values."""

    def __init__(self, base: float = 10000.0) -> None:
        """Take the base of the angles: the larger, the longer the slowest turn.

        Raises ValueError for a base that is not positive.
        """
        super().__init__()
        if base <= 0:
            raise ValueError(f"base={base} must be positive")
        self.base = base

    def rotate(
        self, x: Float[Tensor, "b h n d"], positions: Int[Tensor, " n"]
    ) -> Float[Tensor, "b h n d"]:
        """Turn the queries or the keys of each head."""
        return apply_rope(x, positions, self.base)


class AlibiPositions(PositionHook):
    """`alibi_bias` on the scores."""

    def __init__(self, num_heads: int) -> None:
        """Take the number of heads, which decides the slopes; ValueError for none."""
        super().__init__()
        if num_heads < 1:
            raise ValueError(f"num_heads={num_heads} must be at least 1")
        self.num_heads = num_heads

    def score_bias(self, n_query: int, n_key: int, device: torch.device) -> Float[Tensor, "h i j"]:
        """Return −slope_h · |i − j|."""
        return alibi_bias(self.num_heads, n_query, n_key, device=device)


class RelativePositions(PositionHook):
    """`relative_bias` on the scores, with its trained table, which starts at zero."""

    def __init__(self, num_heads: int, max_distance: int) -> None:
        """Raise ValueError unless there is a head and a distance that is told apart."""
        super().__init__()
        if min(num_heads, max_distance) < 1:
            raise ValueError(
                f"num_heads={num_heads} and max_distance={max_distance} must be at least 1"
            )
        self.table = nn.Parameter(torch.zeros(num_heads, 2 * max_distance + 1))

    def score_bias(self, n_query: int, n_key: int, device: torch.device) -> Float[Tensor, "h i j"]:
        """Return the bias of each head for each clipped distance."""
        return relative_bias(self.table, n_query, n_key)

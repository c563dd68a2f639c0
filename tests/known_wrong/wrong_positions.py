"""Positions as they were got wrong: frequencies, pairs, signs, offsets."""

import torch
from wrong_versions import Wrong

SINUSOIDAL = "positions.sinusoidal_encoding"
FORMULA, CIRCLE = (
    "test_positions.test_sinusoidal_encoding_by_its_formula",
    "test_positions.test_sinusoidal_pairs_lie_on_a_circle",
)
ROPE, COMPLEX = "positions.apply_rope", "test_positions.test_rope_equals_complex_multiplication"
SLOPES, RULE = (
    "positions.alibi_slopes",
    "test_positions.test_alibi_slopes_follow_the_published_rule",
)
ALIBI, DISTANCE = "positions.alibi_bias", "test_positions.test_alibi_bias_falls_with_distance"
RELATIVE, CLIPPED = (
    "positions.relative_bias",
    "test_positions.test_relative_bias_has_one_number_for_each_clipped_distance",
)
LEARNED, SLICES = (
    "positions.LearnedPositions.forward",
    "test_positions.test_learned_positions_are_slices_of_a_trained_table",
)
cached = {"n_query": 2, "n_key": 5}
clipped = {"n_query": 2, "n_key": 6, "k": 3}


def encoding(frequency, dtype=torch.float64, place="interleaved", odd_frequency=None):
    """Sinusoids of pair i, feature 2i, at frequency(2i, d_model)."""

    def encode(n, d_model):
        even = torch.arange(0, d_model, 2, dtype=dtype)
        at = torch.arange(n, dtype=dtype)[:, None]
        sines = (at * frequency(even, d_model)).sin()
        cosines = (at * (odd_frequency or frequency)(even, d_model)).cos()
        if place == "concatenated":
            return torch.cat([sines, cosines], -1)[:, :d_model].float()
        return torch.stack([sines, cosines], -1).flatten(-2)[:, :d_model].float()

    return encode


def paper(even, d_model):
    return 10000.0 ** (-even / d_model)


def overwritten(n, d_model):
    angles = torch.arange(n)[:, None] * paper(torch.arange(0, d_model, 2), d_model)
    sines = angles.sin_()
    return torch.stack([sines, angles.cos()], -1).flatten(-2)[:, :d_model]


def even_widths_only(n, d_model):
    table = torch.zeros(n, d_model)
    angles = torch.arange(n)[:, None] * paper(torch.arange(0, d_model, 2), d_model)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


def rope(
    pairing="interleaved", layout="interleaved", sign=-1, sense=1, precision=None, base_used=None,
    width=1,
):  # fmt: skip
    """RoPE with one thing changed."""

    def turn(x, positions, base=10000.0):
        d = x.shape[-1]
        precise = precision or torch.promote_types(x.dtype, torch.float32)
        base = base if base_used is None else base_used
        frequencies = base ** (-torch.arange(0, d, 2).to(precise) / (d * width))
        angles = sense * positions.to(precise)[:, None] * frequencies
        half = pairing == "half"
        a, b = x.chunk(2, -1) if half else (x[..., 0::2], x[..., 1::2])
        if layout == "half":
            angles = torch.cat([angles, angles], -1)
            cos, sin = angles[..., 0::2].cos(), angles[..., 1::2].sin()
        else:
            cos, sin = angles.cos(), angles.sin()
        turned = a * cos + sign * b * sin, a * sin + b * cos
        joined = torch.cat(turned, -1) if half else torch.stack(turned, -1).flatten(-2)
        return joined.to(x.dtype)

    return turn


def dtype_of_the_angles(x, positions, base=10000.0):
    return rope()(x, positions, base).float()


def added(rows):
    """Positions added whose rows are rows(x, table, offset)."""
    return lambda x, table, offset=0: x + rows(x, table, offset)


def shifted(block):
    """A shift whose blocks are made from cosine and sine of each pair's angle."""

    def matrix(shift, d_model):
        angles = shift * paper(torch.arange(0, d_model, 2).double(), d_model)
        pairs = zip(angles.cos().tolist(), angles.sin().tolist(), strict=True)
        return torch.block_diag(*(torch.tensor(block(cos, sin)) for cos, sin in pairs))

    return matrix


def simple_slopes(num_heads):
    return 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)


def slopes_from_zero(num_heads):
    return 2.0 ** (-8 * torch.arange(num_heads) / num_heads)


def distances(n_query, n_key, aligned="bottom-right"):
    offset = n_key - n_query if aligned == "bottom-right" else 0
    return torch.arange(n_key) - (torch.arange(n_query) + offset)[:, None]


def alibi(sign=-1, aligned="bottom-right", of=torch.abs):
    slopes = torch.tensor([2.0**-4, 2.0**-8, 2.0**-2])  # right for three heads

    def bias(num_heads, n_query, n_key, *, device=None):
        return (
            sign * slopes[:num_heads, None, None] * of(distances(n_query, n_key, aligned).float())
        )

    return bias


def relative(change):
    def bias(table, n_query, n_key):
        k = table.shape[-1] // 2
        return table[:, change(distances(n_query, n_key), k)]

    return bias


ADD, ROW = "positions.add_positions", "test_positions.test_each_position_gets_its_row"
SHIFT, MOVED = (
    "positions.relative_shift",
    "test_positions.test_a_shift_is_one_matrix_for_all_positions",
)
POSITIONS = [
    Wrong(
        "positions counted on the batch axis",
        {ADD: added(lambda x, table, offset: table[offset : offset + len(x)][:, None])},
        ROW,
        {"leading": (3,), "offset": 0},
    ),
    Wrong(
        "D10 the table indexed where it should be sliced",
        {ADD: added(lambda x, table, offset: table[offset])},
        ROW,
        {"leading": (3,), "offset": 0},
    ),
    Wrong(
        "D17 a token decoded alone stands at position 0",
        {ADD: added(lambda x, table, offset: table[: x.shape[-2]])},
        ROW,
        {"leading": (), "offset": 2},
    ),
    Wrong(
        "a shift for column vectors",
        {SHIFT: shifted(lambda cos, sin: [[cos, sin], [-sin, cos]])},
        MOVED,
    ),
    Wrong(
        "a shift whose minus is lost",
        {SHIFT: shifted(lambda cos, sin: [[cos, sin], [sin, cos]])},
        MOVED,
    ),
    Wrong(
        "D1 the index doubled twice",
        {SINUSOIDAL: encoding(lambda even, d: 10000.0 ** (-2 * even / d))},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D2 sine and cosine of a pair at different frequencies",
        {SINUSOIDAL: encoding(paper, odd_frequency=lambda even, d: paper(even + 1, d))},
        CIRCLE,
    ),
    Wrong(
        "D4 base and exponent swapped",
        {SINUSOIDAL: encoding(lambda even, d: (even / d) ** 1e-4)},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D5 base 1000",
        {SINUSOIDAL: encoding(lambda even, d: 1000.0 ** (-even / d))},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D7 an odd width crashes",
        {SINUSOIDAL: even_widths_only},
        FORMULA,
        {"d_model": 9},
        error=RuntimeError,
    ),
    Wrong("D8 sine in place of the angles", {SINUSOIDAL: overwritten}, CIRCLE),
    Wrong(
        "sines first, then cosines",
        {SINUSOIDAL: encoding(paper, place="concatenated")},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "positions from one",
        {SINUSOIDAL: lambda n, d_model: encoding(paper)(n + 1, d_model)[1:]},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D16 angles in half precision",
        {SINUSOIDAL: encoding(paper, dtype=torch.bfloat16)},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "angles in float32",
        {SINUSOIDAL: encoding(paper, dtype=torch.float32)},
        "test_positions.test_sinusoidal_encoding_is_precise_far_out",
        error=AssertionError,
    ),
    Wrong(
        "D10 one row for all", {LEARNED: lambda self, n, offset=0: self.table[n : n + 1]}, SLICES
    ),
    Wrong("D17 offset ignored", {LEARNED: lambda self, n, offset=0: self.table[:n]}, SLICES),
    Wrong(
        "positions never learned go unnoticed",
        {LEARNED: lambda self, n, offset=0: self.table[offset : offset + n]},
        "test_positions.test_a_position_that_was_never_learned",
        {"n": 8, "offset": 0},
    ),
    Wrong("E1 halves paired", {ROPE: rope(pairing="half")}, COMPLEX),
    Wrong(
        "E2 angles laid out for the other pairing",
        {ROPE: rope(layout="half")},
        "test_positions.test_rope_keeps_norms",
    ),
    Wrong("E5 frequencies from another width", {ROPE: rope(width=3)}, COMPLEX),
    Wrong("E7 base ignored", {ROPE: rope(base_used=1000.0)}, COMPLEX),
    Wrong(
        "E7 another base unless told",
        {ROPE: lambda x, at, base=1000.0: rope()(x, at, base)},
        "test_positions.test_rope_has_the_papers_base_unless_told",
    ),
    Wrong(
        "E10 the minus lost",
        {ROPE: rope(sign=1)},
        "test_positions.test_rope_keeps_norms",
    ),
    Wrong("turned the other way", {ROPE: rope(sense=-1)}, COMPLEX),
    Wrong(
        "not turned at all",
        {ROPE: lambda x, positions, base=10000.0: x},
        "test_positions.test_rope_scores_depend_on_differences_alone",
    ),
    Wrong(
        "E11 angles in half precision",
        {ROPE: rope(precision=torch.bfloat16)},
        "test_positions.test_rope_far_out_in_half_precision",
        {"dtype": torch.bfloat16, "tolerance": 1e-2},
    ),
    Wrong(
        "the dtype of the angles returned",
        {ROPE: dtype_of_the_angles},
        "test_positions.test_rope_far_out_in_half_precision",
        {"dtype": torch.bfloat16, "tolerance": 1e-2},
    ),
    Wrong("E17 the rule of powers of two for all", {SLOPES: simple_slopes}, RULE, {"num_heads": 6}),
    Wrong("slopes that start at one", {SLOPES: slopes_from_zero}, RULE, {"num_heads": 8}),
    Wrong("E19 distance rewarded", {ALIBI: alibi(sign=1)}, DISTANCE, cached),
    Wrong("E20 queries aligned top-left", {ALIBI: alibi(aligned="top-left")}, DISTANCE, cached),
    Wrong(
        "the future rewarded",
        {ALIBI: alibi(of=lambda distance: -distance)},
        DISTANCE,
        {"n_query": 4, "n_key": 4},
    ),
    Wrong(
        "far distances wrapped, not clipped",
        {RELATIVE: relative(lambda distance, k: (distance + k) % (2 * k + 1))},
        CLIPPED,
        clipped,
    ),
    Wrong(
        "past and future swapped",
        {RELATIVE: relative(lambda distance, k: (-distance).clamp(-k, k) + k)},
        CLIPPED,
        clipped,
    ),
]

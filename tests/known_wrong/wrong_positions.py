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
ADD, ROW = "positions.add_positions", "test_positions.test_each_position_gets_its_row"
SHIFT, MOVED = (
    "positions.relative_shift",
    "test_positions.test_a_shift_is_one_matrix_for_all_positions",
)
RATES = "10000.0**-exponents"
ANGLES = 'einsum(positions, 10000.0**-exponents, "n, pair -> n pair")'
ROWS = "table[offset : offset + n]"
DISTANCE_OF = "relative_positions(n_query, n_key, device=device)"

POSITIONS = [
    Wrong(
        "positions counted on the batch axis",
        {ADD: {ROWS: "table[offset : offset + len(x)][:, None]"}},
        ROW,
        {"leading": (3,), "offset": 0},
    ),
    Wrong(
        "D10 the table indexed where it should be sliced",
        {ADD: {ROWS: "table[offset]"}},
        ROW,
        {"leading": (3,), "offset": 0},
    ),
    Wrong(
        "D17 a token decoded alone stands at position 0",
        {ADD: {ROWS: "table[:n]"}},
        ROW,
        {"leading": (), "offset": 2},
    ),
    Wrong(
        "a shift for column vectors",
        {SHIFT: {"[cos, -sin, sin, cos]": "[cos, sin, -sin, cos]"}},
        MOVED,
    ),
    Wrong(
        "a shift whose minus is lost",
        {SHIFT: {"[cos, -sin, sin, cos]": "[cos, sin, sin, cos]"}},
        MOVED,
    ),
    Wrong(
        "D1 the index doubled twice",
        {SINUSOIDAL: {RATES: "10000.0 ** (-2 * exponents)"}},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D2 sine and cosine of a pair at different frequencies",
        {SINUSOIDAL: {"angles.cos()": "(angles * 10000.0 ** (-1 / d_model)).cos()"}},
        CIRCLE,
    ),
    Wrong(
        "D4 base and exponent swapped",
        {SINUSOIDAL: {RATES: "exponents**1e-4"}},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D5 base 1000",
        {SINUSOIDAL: {RATES: "1000.0**-exponents"}},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D7 an odd width crashes",
        {SINUSOIDAL: {"interleaved[:, :d_model]": "interleaved.view(n, d_model)"}},
        FORMULA,
        {"d_model": 9},
        error=RuntimeError,
    ),
    Wrong(
        "D8 sine in place of the angles", {SINUSOIDAL: {"angles.sin()": "angles.sin_()"}}, CIRCLE
    ),
    Wrong(
        "sines first, then cosines",
        {SINUSOIDAL: {"(pair wave)": "(wave pair)"}},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "positions from one",
        {SINUSOIDAL: {"torch.arange(n,": "torch.arange(1, n + 1,"}},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "D16 angles in half precision",
        {SINUSOIDAL: {ANGLES: f"{ANGLES}.bfloat16()"}},
        FORMULA,
        {"d_model": 16},
    ),
    Wrong(
        "angles in float32",
        {SINUSOIDAL: {ANGLES: f"{ANGLES}.float()"}},
        "test_positions.test_sinusoidal_encoding_is_precise_far_out",
        error=AssertionError,
    ),
    Wrong("D10 one row for all", {LEARNED: {ROWS: "table[n : n + 1]"}}, SLICES),
    Wrong("D17 offset ignored", {LEARNED: {ROWS: "table[:n]"}}, SLICES),
    Wrong(
        "positions never learned go unnoticed",
        {LEARNED: {"0 <= offset <= offset + n <= max_len": "True"}},
        "test_positions.test_a_position_that_was_never_learned",
        {"n": 8, "offset": 0},
    ),
    Wrong(
        "E1 halves paired",
        {
            ROPE: {
                "(pair two) -> two": "(two pair) -> two",
                "-> ... (pair two)": "-> ... (two pair)",
            }
        },
        COMPLEX,
    ),
    Wrong(
        "E2 angles laid out for the other pairing",
        {
            ROPE: {
                "cos, sin = angles.cos(), angles.sin()": "twice = torch.cat([angles, angles], -1)\n"
                "    cos, sin = twice[..., 0::2].cos(), twice[..., 1::2].sin()"
            }
        },
        "test_positions.test_rope_keeps_norms",
    ),
    Wrong(
        "E5 frequencies from another width",
        {ROPE: {"device=x.device) / d": "device=x.device) / (3 * d)"}},
        COMPLEX,
    ),
    Wrong("E7 base ignored", {ROPE: {"base**-exponents": "1000.0**-exponents"}}, COMPLEX),
    Wrong(
        "E7 another base unless told",
        {ROPE: {"base: float = 10000.0": "base: float = 1000.0"}},
        "test_positions.test_rope_has_the_papers_base_unless_told",
    ),
    Wrong(
        "E10 the minus lost",
        {ROPE: {"cos - odd * sin": "cos + odd * sin"}},
        "test_positions.test_rope_keeps_norms",
    ),
    Wrong("turned the other way", {ROPE: {"angles.sin()": "-angles.sin()"}}, COMPLEX),
    Wrong(
        "not turned at all",
        {ROPE: {"[even * cos - odd * sin, even * sin + odd * cos]": "[even, odd]"}},
        "test_positions.test_rope_scores_depend_on_differences_alone",
    ),
    Wrong(
        "E11 angles in half precision",
        {ROPE: {"torch.promote_types(x.dtype, torch.float32)": "torch.bfloat16"}},
        "test_positions.test_rope_far_out_in_half_precision",
        {"dtype": torch.bfloat16, "tolerance": 1e-2},
    ),
    Wrong(
        "the dtype of the angles returned",
        {ROPE: {".to(x.dtype)": ".float()"}},
        "test_positions.test_rope_far_out_in_half_precision",
        {"dtype": torch.bfloat16, "tolerance": 1e-2},
    ),
    Wrong(
        "E17 the rule of powers of two for all",
        {SLOPES: {"2 ** (num_heads.bit_length() - 1)": "num_heads"}},
        RULE,
        {"num_heads": 6},
    ),
    Wrong(
        "slopes that start at one",
        {SLOPES: {"torch.arange(1, lower_power + 1)": "torch.arange(lower_power)"}},
        RULE,
        {"num_heads": 8},
    ),
    Wrong("E19 distance rewarded", {ALIBI: {"return -einsum": "return einsum"}}, DISTANCE, cached),
    Wrong(
        "E20 queries aligned top-left",
        {ALIBI: {DISTANCE_OF: "relative_positions(n_key, n_key, device=device)[:n_query]"}},
        DISTANCE,
        cached,
    ),
    Wrong(
        "the future rewarded",
        {ALIBI: {".abs()": ".neg()"}},
        DISTANCE,
        {"n_query": 4, "n_key": 4},
    ),
    Wrong(
        "far distances wrapped, not clipped",
        {RELATIVE: {"distance.clamp(-k, k) + k": "(distance + k) % (2 * k + 1)"}},
        CLIPPED,
        clipped,
    ),
    Wrong(
        "past and future swapped",
        {RELATIVE: {"distance.clamp(": "distance.neg().clamp("}},
        CLIPPED,
        clipped,
    ),
]

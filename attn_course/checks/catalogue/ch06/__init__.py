"""The exercises of chapter 06, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("6.1", "sinusoidal_encoding"),
    Listed("6.2", "add_positions"),
    Listed("6.3", "relative_shift"),
    Listed("6.4", "apply_rope"),
    Listed("6.5", "alibi_bias"),
)

"""The exercises of chapter 04, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("4.1", "causal_mask"),
    Listed("4.2", "SelfAttention", "self_attention"),
    Listed("4.3", "padding_mask"),
    Listed("4.4", "combine_masks"),
    Listed("4.5", "is_permutation_equivariant"),
    Listed("4.6", "leaks_future"),
)

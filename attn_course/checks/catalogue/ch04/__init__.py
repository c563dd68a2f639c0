"""The exercises of chapter 04, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("4.1", "SelfAttention", "self_attention"),
    Listed("4.2", "is_permutation_equivariant"),
    Listed("4.3", "causal_mask"),
    Listed("4.4", "leaks_future"),
    Listed("4.5", "padding_mask"),
    Listed("4.6", "combine_masks"),
)

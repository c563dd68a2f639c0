"""The exercises of chapter 05, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("5.1", "split_heads"),
    Listed("5.2", "merge_heads"),
    Listed("5.3", "MultiHeadAttention", "multi_head_attention"),
    Listed("5.4", "fuse_value_output"),
    Listed("5.5", "attention_memory"),
    Listed("5.6", "ablate_heads"),
)

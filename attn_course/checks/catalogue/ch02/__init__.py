"""The exercises of chapter 02, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("2.1", "embed"),
    Listed("2.2", "softmax"),
    Listed("2.3", "attention_scores"),
    Listed("2.4", "project_qkv"),
    Listed("2.5", "lookup"),
    Listed("2.6", "additive_attention"),
)

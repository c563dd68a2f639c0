"""The exercises of chapter 03, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("3.1", "attention_entropy"),
    Listed("3.2", "scaled_dot_product_attention"),
    Listed("3.3", "softmax_gradient"),
    Listed("3.4", "softmax_jacobian"),
    Listed("3.5", "repaired_attention"),
)

"""The exercises of chapter 00, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("0.1", "dot_products"),
    Listed("0.2", "cross_entropy"),
    Listed("0.3", "training_step"),
)

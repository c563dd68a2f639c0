"""The exercises of chapter 01, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("1.1", "rnn_step"),
    Listed("1.2", "run_rnn"),
    Listed("1.3", "gradient_by_distance"),
)

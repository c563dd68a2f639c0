"""The exercises of chapter 08, in the order of the lesson."""

from attn_course.checks.catalogue.listed import Listed

EXERCISES = (
    Listed("8.1", "cross_attention"),
    Listed("8.2", "shift_right"),
    Listed("8.3", "DecoderBlock", "decoder_block"),
    Listed("8.4", "masked_cross_entropy"),
    Listed("8.5", "greedy_decode"),
    Listed("8.6", "Seq2Seq", "seq2seq"),
)

"""Exercise 8.6, Seq2Seq: its stages."""

from __future__ import annotations

from collections.abc import Sequence

from attn_course.checks.catalogue.ch08 import seq2seq_probes as probes
from attn_course.checks.catalogue.ch08.seq2seq_mistakes import MISTAKES, Translator
from attn_course.checks.exercise import Diagnosis, Exercise, Output, Seen, Stage
from attn_course.checks.modules import repeated_calls
from attn_course.models import Config, Seq2Seq
from attn_course.sentences import joined, say


def reference(
    source_vocab: int, target_vocab: int, d_model: int, num_heads: int, d_ff: int, num_layers: int
) -> Seq2Seq:
    """The course's model in the paper's form: post-norm and ReLU."""
    sizes = Config(
        d_model=d_model,
        num_heads=num_heads,
        d_ff=d_ff,
        num_layers=num_layers,
        max_len=32,
        norm="post",
        activation="relu",
    )
    return Seq2Seq(source_vocab, target_vocab, sizes)


def not_post_norm(seen: Sequence[Seen]) -> Diagnosis:
    """What a model is told whose own blocks do not normalise what leaves them."""
    known = next(mistake for mistake in MISTAKES if mistake.id == "pre-norm-blocks")
    sides = zip(("encoder", "decoder"), seen[0].actual, strict=True)
    one, *more = [f"{side}_blocks" for side, right in sides if not right]
    look = say("Look at self.{blocks}.", blocks=one)
    if more:
        look = say("Look at self.{one} and {other}.", one=one, other=more[0])
    return Diagnosis(joined([known.message, look]), known.id)


LOGITS = (Output("logits", "b n v"),)
MEMORY = (Output("memory", "b n d"),)

EXERCISE = Exercise(
    number="8.6",
    reference=reference,
    right=Translator,
    wire="class",
    alias="Seq2Seq",
    outputs=LOGITS,
    difficulty=3,
    minutes=30,
    points=5,
    may_use="torch, your own or the course's EncoderBlock, DecoderBlock, masks and "
    "sinusoidal_encoding",
    stages=(
        Stage(
            "parts",
            probes.draw_sizes,
            "A new model should have num_layers different blocks on each side, and the tables and "
            "the head of the skeleton.",
            call=probes.parts_of,
            outputs=(Output(say("the model's parts")),),
            inputs=("d_model", "num_heads", "d_ff", "num_layers"),
        ),
        repeated_calls(
            MISTAKES,
            probes.draw_repeated,
            probes.repeated,
            ("source", "target", "source_table", "target_table"),
        ),
        Stage(
            "encode",
            probes.draw_encode,
            "Without padding the memory differs: embeddings times √d_model, plus positions, then "
            "all encoder blocks, one after the other.",
            call=probes.encode,
            outputs=MEMORY,
        ),
        Stage(
            "encode, padded",
            probes.draw_encode_padded,
            "With padding in the source the memory differs.",
            call=probes.encode,
            outputs=MEMORY,
        ),
        Stage(
            "decode",
            probes.draw_decode,
            "Without padding the logits differ: embeddings times √d_model, plus positions, all "
            "decoder blocks under a causal mask, then the head.",
            call=probes.decode,
        ),
        Stage(
            "decode, padded",
            probes.draw_decode_padded,
            "With padding in the memory the logits differ.",
            call=probes.decode,
        ),
        Stage(
            "forward",
            probes.draw_forward,
            "encode and decode are right, but what forward makes of them is not.",
            call=probes.forward,
        ),
        Stage(
            "own blocks",
            probes.draw_sizes,
            "The parts are put together right, but the model's own blocks are not post-norm.",
            call=probes.own_blocks,
            outputs=(
                Output(say("memory is normalised")),
                Output(say("what the head reads is normalised")),
            ),
            inputs=("d_model", "num_heads", "d_ff", "num_layers"),
            diagnose=not_post_norm,
        ),
        Stage(
            "trained",
            probes.draw_sizes,
            "Not every weight of a new model is reached by the gradient.",
            call=probes.untrained,
            outputs=(Output(say("weights without a gradient")),),
            inputs=("d_model", "num_heads", "d_ff", "num_layers"),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "Follow a source through the picture of the model: which table, what is added, which "
        "blocks, which mask? Then a target. The two ways meet in one place only.",
        "combine_masks(padding=padding) is the mask (b, 1, 1, j) for whoever reads the source: the "
        "encoder's own attention, and the decoder's attention to the memory. causal_mask(n) is for "
        "the decoder's own attention.",
        "encode: x = self.embed(self.source_embedding, source), then x = block(x, mask) for each. "
        "decode: x = block(x, memory, causal_mask(n), mask) for each, then self.head(x). forward: "
        "self.decode(target, self.encode(source, padding), padding).",
    ),
)

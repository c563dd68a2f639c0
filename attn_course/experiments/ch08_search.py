"""Chapter 08: what a wider search finds, and who is to blame for a wrong date."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attn_course.experiments.ch08 import ISO_LENGTH, exact_match, write
from attn_course.generation import beam_search
from attn_course.models import Seq2Seq
from attn_course.tasks import START, Batch, shift_right


class SearchReport(NamedTuple):
    """What a beam changes, as shares of all test dates.

    greedy, beam: exact match. likelier: the beam's text has a higher probability than the
    greedy one. Of the dates that are wrong with the beam: `search_errors` are those in which the
    truth would have been likelier than what was found, `model_errors` the others.
    """

    greedy: float
    beam: float
    likelier: float
    search_errors: float
    model_errors: float


@torch.no_grad()
def log_probs(
    model: Seq2Seq, source: Int[Tensor, "b n"], target: Int[Tensor, "b n_target"]
) -> Float[Tensor, "b n_target"]:
    """Return the log-probability of each character of `target` after those before it, in nats."""
    logits = model(source, shift_right(target), source != START)
    return logits.log_softmax(dim=-1).gather(-1, target[..., None])[..., 0]


def compare_search(model: Seq2Seq, test: Batch, *, beams: int = 4) -> SearchReport:
    """Write all test dates greedily and with a beam, and weigh what differs."""
    source, padding = test.inputs, test.inputs != START
    greedy = write(model, source)
    # no date contains START: it serves as a stop token that never comes, for ten characters
    found, _ = beam_search(model, source, START, START, ISO_LENGTH, beams=beams, padding=padding)
    probability = {
        name: log_probs(model, source, text).sum(dim=1)
        for name, text in (("greedy", greedy), ("beam", found), ("truth", test.targets))
    }
    wrong = ~exact_match(found, test.targets)
    missed = wrong & (probability["truth"] > probability["beam"])
    gained = probability["beam"] > probability["greedy"] + 1e-4
    measured = (
        exact_match(greedy, test.targets),
        ~wrong,
        gained,
        missed,
        wrong & ~missed,
    )
    return SearchReport(*(share.double().mean().item() for share in measured))

"""Chapter 02: a sentence whose vectors are set by hand, and two scores on one copying task."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import cos, radians, sin
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from attn_course.attention import lookup
from attn_course.device import pick_device
from attn_course.experiments.devices import seeded
from attn_course.plots import Choices, LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.recurrent import RecurrentSeq2Seq, Score
from attn_course.sentences import Sentence, say, spoken
from attn_course.tasks import START, Batch, Task, copy_task, shift_right
from attn_course.training import History, fit

Keys = Mapping[str, tuple[float, float]]

SENTENCE = "The animal didn't cross the street because it was too tired."

ENDINGS = ("tired", "wide")
"""The two last words that turn what "it" means round."""

HAND_SET_KEYS: Keys = {
    "the": (0.15, 0.25),
    "animal": (1.0, 0.1),
    "didn't": (-0.4, 0.15),
    "cross": (0.4, 0.5),
    "street": (0.1, 1.0),
    "because": (-0.3, -0.35),
    "it": (0.3, -0.2),
    "was": (-0.1, -0.6),
    "too": (-0.65, -0.2),
    "tired": (0.7, -0.5),
    "wide": (-0.4, 0.65),
    ".": (0.0, -0.1),
}
"""A key for each token, set by hand: along the first axis what lives, along the second places."""


def split_into_tokens(sentence: str) -> list[str]:
    """Split a sentence into lower-case words and punctuation marks.

    Real models learn how to split, into pieces of words (chapter 09).
    """
    return re.findall(r"[\w’']+|[^\w\s]", sentence.lower())


def vector(angle: float, length: float) -> Float[Tensor, " 2"]:
    """Return the vector of this length whose angle, in degrees, counts from the first axis."""
    turn = radians(angle)
    return length * torch.tensor([cos(turn), sin(turn)])


def ending_with(last_word: str) -> list[str]:
    """Return the tokens of the sentence with another last word before the full stop."""
    return [*split_into_tokens(SENTENCE)[:-2], last_word, "."]


def keys_of(tokens: list[str], keys: Keys = HAND_SET_KEYS) -> Float[Tensor, "n 2"]:
    """Return the key of each token.

    Raises ValueError for a token that has none.
    """
    strange = [token for token in tokens if token not in keys]
    if strange:
        raise ValueError(f"no key is set for {strange}; there are {', '.join(keys)}")
    return torch.tensor([keys[token] for token in tokens])


def sentence_view(keys: Keys = HAND_SET_KEYS) -> LiveFigure:
    """Return the view in which the learner sets the query of "it": its angle and its length.

    keys: a point of the plane for each token, by default those set here.
    """
    return live_figure(
        partial(_draw_sentence, dict(keys)),
        alt=say(
            "Left: the hand-set keys of the sentence's tokens as points of a plane, and the query "
            "of “it” as a line from its middle. Right: the weight of each token as a bar."
        ),
        size=(9.0, 4.4),
        panels=2,
        angle=Slider(say("angle of the query (degrees)"), 0, 360, start=200, step=5),
        length=Slider(say("length of the query"), 0.0, 8.0, start=3.0, step=0.5),
        last_word=Choices(say("the last word"), ENDINGS, start=ENDINGS[0]),
    )


def _draw_sentence(keys: Keys, plane: Axes, bars: Axes):
    show_keys = _draw_keys(plane, ending_with(ENDINGS[0]), keys)
    (line,) = plane.plot([0, 0], [0, 0], color=COLOURS[1], linewidth=2.5)
    line.set_label(spoken("query of “it”"))
    (tip,) = plane.plot([0], [0], "o", color=COLOURS[1], markersize=7)
    plane.legend(frameon=False, loc="lower left", fontsize=9)
    show_weights = _draw_weights(bars, len(ending_with(ENDINGS[0])))

    def update(angle: float, length: float, last_word: str) -> Sentence:
        tokens = ending_with(last_word)
        query = vector(angle, length)
        _, weights = lookup(query[None], keys_of(tokens, keys), keys_of(tokens, keys))
        show_keys(tokens)
        end = (query / 8).tolist()  # at its greatest length it reaches the unit circle
        line.set_data([0, end[0]], [0, end[1]])
        tip.set_data([end[0]], [end[1]])
        return show_weights(tokens, weights[0])

    return update


def _draw_keys(plane: Axes, tokens: list[str], keys: Keys) -> Callable[[list[str]], None]:
    distinct = list(dict.fromkeys(tokens))
    plane.set(xlim=(-1.2, 1.4), ylim=(-1.1, 1.3), aspect="equal")
    plane.set(xlabel=spoken("lives"), ylabel=spoken("is a place"))
    plane.set_title(spoken("The keys, and the query that you set"))
    for rule in (plane.axhline, plane.axvline):
        rule(0, color="0.85", linewidth=0.8)
    points = plane.scatter(*keys_of(distinct, keys).T.numpy(), s=20, color=COLOURS[0])
    names = [
        plane.annotate(token, keys[token], (4, 4), textcoords="offset points", fontsize=9)
        for token in distinct
    ]

    def show(tokens: list[str]) -> None:
        distinct = list(dict.fromkeys(tokens))
        points.set_offsets(keys_of(distinct, keys).numpy())
        for name, token in zip(names, distinct, strict=True):
            name.set_text(token)
            name.xy = keys[token]

    return show


def _draw_weights(bars: Axes, count: int) -> Callable[[list[str], Tensor], Sentence]:
    drawn = bars.barh(range(count), [0.0] * count, color=COLOURS[0])
    bars.set(xlim=(0, 1), xlabel=spoken("attention weight"))
    bars.invert_yaxis()

    def show(tokens: list[str], weights: Tensor) -> Sentence:
        bars.set_yticks(range(count), tokens)
        for bar, weight in zip(drawn, weights.tolist(), strict=True):
            bar.set_width(weight)
        best, shared = int(weights.argmax()), int((weights >= 0.05).sum())
        return say(
            "Most weight: “{best}”. {shared} of {count} tokens get 5 % or more.",
            best=tokens[best],
            shared=shared,
            count=count,
        )

    return show


@dataclass(frozen=True)
class CopyingSettings:
    """What both scores are given alike: the task, the model's width and the budget."""

    n: int = 8
    num_symbols: int = 8
    d_model: int = 48
    batch_size: int = 64
    steps: int = 250
    lr: float = 5e-3
    eval_every: int = 50
    test_size: int = 200


class CopyingRun(NamedTuple):
    """A trained model, what was measured on the way, and the test it was measured on."""

    model: RecurrentSeq2Seq
    history: History
    test: Batch


def train_copying(
    score: Score, *, seed: int, settings: CopyingSettings | None = None
) -> CopyingRun:
    """Train the copying model of chapter 01 with one of the two scores.

    The encoder and decoder start alike for both scores of a seed, and both see the same
    batches. `history.metrics["accuracy"]` is the share of symbols that are right when the
    model reads back its own output, on sequences that training never draws.
    """
    settings = settings or CopyingSettings()
    task = copy_task(settings.n, settings.num_symbols, seed=seed)
    test = task.test_set(settings.test_size, pick_device())
    model = _fresh_model(task, score, settings.d_model, seed)

    def accuracy(model: RecurrentSeq2Seq) -> dict[str, float]:
        written, _ = model.generate(test.inputs, settings.n, START)
        return {"accuracy": (written == test.targets).double().mean().item()}

    history = fit(
        model,
        _loss,
        task.batches(settings.batch_size, pick_device()),
        steps=settings.steps,
        lr=settings.lr,
        warmup=20,
        evaluate=accuracy,
        eval_every=settings.eval_every,
        label=spoken(say("copying, {score} score, seed {seed}", score=score, seed=seed)),
    )
    return CopyingRun(model, history, test)


def _fresh_model(task: Task, score: Score, d_model: int, seed: int) -> RecurrentSeq2Seq:
    def scored_by(score: Score) -> RecurrentSeq2Seq:
        sizes = (task.vocab_size, task.num_classes, d_model)
        return seeded(seed, lambda: RecurrentSeq2Seq(*sizes, attention=True, score=score))

    model = scored_by(score)
    shared = scored_by("additive").state_dict()
    model.load_state_dict(shared, strict=False)  # all but the score's weights
    return model


def _loss(model: RecurrentSeq2Seq, batch: Batch) -> Tensor:
    logits, _ = model(batch.inputs, shift_right(batch.targets))
    return F.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())


def states_of(
    model: RecurrentSeq2Seq, batch: Batch
) -> tuple[Float[Tensor, "b n_target d_model"], Float[Tensor, "b n_source d_model"]]:
    """Return the decoder's states, which ask, and the encoder's, which are asked.

    The decoder reads the true target, shifted right, as in training.
    """
    with torch.no_grad():
        states, last = model.encode(batch.inputs)
        query, _ = model.decoder(model.target_embedding(shift_right(batch.targets)), last)
    return query, states

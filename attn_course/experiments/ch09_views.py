"""Chapter 09's view: what temperature, top-k and top-p make of the next character."""

import torch
from matplotlib.axes import Axes

from attn_course.experiments.devices import device_of
from attn_course.generation import generate, next_token_probs
from attn_course.models import DecoderLM
from attn_course.plots import Choices, LiveFigure, Slider, live_figure
from attn_course.plots.picture import COLOURS
from attn_course.sentences import Sentence, counted, say, spoken
from attn_course.tasks import Text

SHOWN = 16  # characters as bars: the most likely ones
WRITTEN = 60  # characters in the caption

_VISIBLE = {" ": "␣", "\n": "↵"}


def written(
    model: DecoderLM,
    text: Text,
    prompt: str,
    length: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
) -> str:
    """Return what the model writes after a prompt, without the prompt."""
    ids = generate(
        model,
        text.encode(prompt)[None].to(device_of(model)),
        length,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        generator=torch.Generator().manual_seed(seed),
    )
    return text.decode(ids[0, len(prompt) :])


def sampling_view(model: DecoderLM, text: Text, prompt: str) -> LiveFigure:
    """Return the view of the next character's distribution, and what is written by it."""
    with torch.no_grad():
        ids = text.encode(prompt)[None].to(device_of(model))
        logits = model.eval()(ids)[0, -1].cpu()
    order = logits.argsort(descending=True)[:SHOWN]
    names = [text.decode(token[None]) or "START" for token in order]

    def draw(axes: Axes):
        before = logits.softmax(dim=-1)[order].tolist()
        axes.bar(range(SHOWN), before, color="0.85", label=spoken("temperature 1, nothing cut"))
        bars = axes.bar(range(SHOWN), before, width=0.5, color=COLOURS[0], label=spoken("as set"))
        axes.set_xticks(range(SHOWN), [_VISIBLE.get(name, name) for name in names])
        axes.set(ylim=(0, 1), xlabel=spoken("next character"), ylabel=spoken("probability"))
        axes.legend(frameon=False, loc="upper right")

        def update(temperature: float, top_k: str, top_p: float) -> Sentence:
            k = None if top_k == "all" else int(top_k)
            probs = next_token_probs(logits, temperature, k, top_p)
            for bar, height in zip(bars, probs[order].tolist(), strict=True):
                bar.set_height(height)
            text_after = written(
                model, text, prompt, WRITTEN, temperature=temperature, top_k=k, top_p=top_p
            )
            return counted(
                "{n} character can come. It writes: …{prompt}|{written}",
                "{n} characters can come. It writes: …{prompt}|{written}",
                n=int((probs > 0).sum()),
                prompt=prompt[-20:],
                written=text_after,
            )

        return update

    return live_figure(
        draw,
        alt=say(
            "The {n} most likely next characters as bars, grey at temperature 1 with nothing cut, "
            "blue as the sliders say. A low temperature and small k or p leave few of them.",
            n=SHOWN,
        ),
        size=(8.0, 3.6),
        temperature=Slider(say("temperature"), 0.0, 2.0, start=1.0, step=0.1),
        top_k=Choices(
            say("top-k"),
            ["1", "2", "4", "8", "16", "all"],
            start="all",
            names={"all": say("all")},
        ),
        top_p=Slider(say("top-p"), 0.05, 1.0, start=1.0, step=0.05),
    )

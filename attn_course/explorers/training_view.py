"""TrainingView: a run of `training.fit` while it goes on, and the record that it leaves."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from math import inf, isfinite
from time import perf_counter
from typing import Any
from warnings import warn

import numpy as np
import traitlets
from matplotlib.figure import Figure
from torch import Tensor, nn

from attn_course.explorers.attention_maps import (
    amount,
    are_sentences,
    codes_of,
    dequantise,
    entropies_of,
    reading,
    recorded,
    sentences_of,
)
from attn_course.explorers.base import STATE, Explorer
from attn_course.explorers.data import Whole, show, to_plain
from attn_course.explorers.example_run import example_run
from attn_course.explorers.viewer import draw_map_of, draw_thumbnails
from attn_course.notebook.cells import shown
from attn_course.plots.picture import COLOURS
from attn_course.sentences import say
from attn_course.training import History, StepInfo

_POINTS = 400  # of a curve
_SNAPSHOTS = 32
_FEWEST = 4
_WEIGHTS = 600_000  # of all snapshots together: 0.8 MB
_SHARE = 0.02  # of the time that the view may take for itself, for each of its two jobs
_PAUSE = 0.2  # seconds between two messages to the browser
_CHOICES = {"metric": "", "kind": "", "layer": 0, "head": 0}

Watch = Tensor | tuple[Any, ...] | Callable[[nn.Module], Any]


class TrainingView(Explorer):
    """Loss and metrics, speed and time left, and attention at moments that can be scrubbed.

    view = TrainingView(watch=ids, tokens=tokens)
    display(view)
    fit(model, loss, batches, steps=300, on_step=view)

    It takes about a twentieth of the run's time at most, draws no random numbers and
    leaves the model's modes as they are, so that the run gets the numbers that it gets
    without it. Each run begins anew. Without any argument it opens on an example.

    Args:
        watch: what the model reads when its attention is looked at: an input, or a tuple
            of them; or a function of the model that returns its maps, in a form that
            `AttentionViewer` takes. Of a batch the first sentence is shown.
        tokens, key_tokens: as those of `AttentionViewer`.
        at: the step that is looked at; None follows the newest.
        metric: the name of the metric that is shown; "" is the first.
        kind, layer, head, stretch: as those of `AttentionViewer`; kind "" is the last.
        log: a logarithmic scale for the loss.

    A metric, kind, layer or head may be chosen before the run that has it.

    Raises:
        TraitError: for a step, metric, layer or head that does not exist; in the first step
            of a run for maps that are none, or too large to be kept several times, or
            without the kind, layer or head that was chosen.
    """

    module = "training_view"
    size = (9.0, 6.4)

    status = traitlets.Unicode("waiting").tag(**STATE)
    step = Whole(0).tag(**STATE)
    total = traitlets.Float(None, allow_none=True).tag(**STATE)
    elapsed = traitlets.Float(0.0).tag(**STATE)
    pace = traitlets.Float(0.0).tag(**STATE)
    curve = traitlets.Dict({"steps": [], "loss": []}).tag(**STATE)
    metrics = traitlets.Dict().tag(**STATE)
    snapshots = traitlets.List(traitlets.Dict()).tag(**STATE)
    at = Whole(None, allow_none=True).tag(**STATE)
    metric = traitlets.Unicode("").tag(**STATE)
    kind = traitlets.Unicode("").tag(**STATE)
    layer = Whole(0).tag(**STATE)
    head = Whole(0).tag(**STATE)
    stretch = traitlets.Bool(False).tag(**STATE)
    log = traitlets.Bool(False).tag(**STATE)

    def __init__(
        self,
        watch: Watch | None = None,
        tokens: Any = None,
        key_tokens: Any = None,
        **state: Any,
    ) -> None:
        """Wait for a run; without arguments show an example until there is one."""
        if watch is None and (tokens is not None or key_tokens is not None):
            unwatched = say("tokens need something to watch: give watch, the input")
            raise traitlets.TraitError(unwatched)
        self._watch, self._tokens, self._key_tokens = watch, tokens, key_tokens
        self._history: History | None = None
        self._model: nn.Module | None = None
        self._displayed = False
        self._chosen = {name: value for name, value in state.items() if name in _CHOICES}
        # the example's own metric and maps are all that may be chosen in it
        own = {"curve", "metric", "kind"} & state.keys()
        bare = watch is None and not own
        super().__init__(**((example_run() if bare else {}) | state))

    # -- what a run tells -------------------------------------------------------------------

    def __call__(self, info: StepInfo) -> None:
        """Take note of a step: pass the view to `fit` as `on_step`."""
        if info.history is not self._history:
            self._begin(info)
        self._model = info.model
        total = info.total if isfinite(info.total) else None
        if self._watch is not None and self._looking.due(info.step):
            with self._looking.working():
                self._take(info.history)
        if self._telling.due(info.step):
            with self._telling.working():
                self._tell(info.history, "running", total)

    def finish(self, history: History) -> None:
        """Complete the record: `fit` calls it when the run has ended, however it ended."""
        if history is not self._history:  # ended before its first step
            return
        if self._taken and self._taken[-1]["step"] != history.steps:
            self._take(history)
        self._tell(history, history.stopped or "diverged", float(history.steps))
        self._history = self._model = None  # nothing keeps the model alive but its owner
        if self._displayed and self.comm is not None:
            from IPython.display import update_display

            update_display(self._bundle(), **self._how())

    def _begin(self, info: StepInfo) -> None:
        self._history = info.history
        self._before = info.step - 1  # of a run that goes on from a checkpoint
        seconds = info.history.seconds
        self._start = perf_counter() - (seconds[-1] - (seconds[-2] if len(seconds) > 1 else 0))
        self._marks = deque([(self._start, self._before)], maxlen=10)
        self._taken: list[dict[str, Any]] = []
        self._looking, self._telling = _Throttle(0.0), _Throttle(_PAUSE)
        waited = self.status == "waiting"
        with self.hold_trait_notifications():
            self.at, self.metrics, self.snapshots = None, {}, []
            for name, nothing in _CHOICES.items() if not waited else ():
                self.set_trait(name, self._chosen.get(name, nothing))
        # said even where nothing changes here: what was chosen in the browser during a run
        # is heard only after it, and means nothing in the next
        self.send_state(["at", *_CHOICES])

    def _take(self, history: History) -> None:
        """Keep the attention of this step; of too many snapshots every other one goes."""
        maps = _maps(self._watch, self._model)
        sentence = sentences_of(maps, self._tokens, self._key_tokens)[0]
        size = amount([sentence])
        if size * _FEWEST > _WEIGHTS:
            too_large = say(
                "{size} weights a snapshot are more than {most}: watch a shorter sentence, or "
                "fewer layers and heads",
                size=size,
                most=_WEIGHTS // _FEWEST,
            )
            raise traitlets.TraitError(too_large)
        moment = {"step": history.steps, "loss": history.loss[-1]}
        self._taken.append(moment | {"groups": sentence["groups"]})
        if len(self._taken) == 1:  # now there is something to hold the choices against
            problem = self._check(self.state | {"at": None, "snapshots": self._taken})
            if problem:
                raise traitlets.TraitError(problem)
        if len(self._taken) > min(_SNAPSHOTS, _WEIGHTS // size):
            self._taken = self._taken[:-1:2] + self._taken[-1:]
            self._looking.gap *= 2

    def _tell(self, history: History, status: str, total: float | None) -> None:
        """Bring the traits up to date, in one message."""
        now = perf_counter()
        self._marks.append((now, history.steps))
        since, steps = self._marks[0] if status == "running" else (self._start, self._before)
        metrics = _metrics(history)
        if metrics and self.metric and self.metric not in metrics:
            warn(self._unlisted("metric", self.metric, metrics), stacklevel=2)
            self.metric = ""
        with self.hold_sync(), self.hold_trait_notifications():
            self.status, self.step, self.total = status, history.steps, total
            self.elapsed = now - self._start
            self.pace = (history.steps - steps) / max(now - since, 1e-9)
            self.curve = binned(history.loss)
            self.metrics = metrics
            self.snapshots = list(self._taken)

    # -- what is looked at --------------------------------------------------------------------

    @traitlets.validate("status", "curve", "metrics", "snapshots")
    def _recorded(self, proposal: Any) -> Any:
        name, value = proposal["trait"].name, proposal["value"]
        if not _RECORDS[name](value):
            raise traitlets.TraitError(self.t("record_allowed", name=name, got=f"{value!r:.60}"))
        return value

    @traitlets.validate("at", "metric", "kind", "layer", "head")
    def _valid(self, proposal: Any) -> Any:
        return self._possible(proposal)

    def _check(self, state: Mapping[str, Any]) -> str | None:
        if state["at"] is not None and not 1 <= state["at"] <= state["step"]:
            return self.t("at_allowed", last=state["step"], got=state["at"])
        groups = state["snapshots"][0]["groups"] if state["snapshots"] else []
        kinds = [group["kind"] for group in groups]
        for name, allowed in (("metric", state["metrics"]), ("kind", kinds)):
            # before a run there is nothing yet to hold the choice against
            if state[name] and allowed and state[name] not in allowed:
                return self._unlisted(name, state[name], allowed)
        layers = max((len(group["heads"]) for group in groups), default=inf)
        heads = max((max(group["heads"]) for group in groups), default=inf)
        for name, size in (("layer", layers), ("head", heads)):
            if not 0 <= state[name] < size:
                last = show(size - 1, 6)
                return self.t("index_allowed", name=name, last=last, got=state[name])
        return None

    def _unlisted(self, name: str, got: str, allowed: Iterable[str]) -> str:
        return self.t("choice_allowed", name=name, allowed=", ".join(allowed), got=got)

    def numbers(self) -> Mapping[str, np.ndarray]:
        """The curves, the step that is looked at, its loss, the attention at it, the time left."""
        loss = np.array(self.curve["loss"], dtype=np.float64)
        steps = np.array(self.curve["steps"], dtype=np.float64)
        name = self.metric or next(iter(self.metrics), "")
        metric = self.metrics.get(name, {"steps": [], "values": []})
        stops = [one["step"] for one in self.snapshots] or self.curve["steps"]
        place = _nearest(stops, self.at)
        numbers = {
            "steps": steps,
            "loss": loss,
            "metric_steps": np.array(metric["steps"], dtype=np.float64),
            "metric": np.array([float(value) for value in metric["values"]]),
            "stops": np.array(stops, dtype=np.float64),
            "place": np.array(place),
            "left": np.array(self._left()),
        }
        if self.snapshots:
            group, layer, head = self._shown()
            at = sum(group["heads"][:layer]) + head
            numbers["weights"] = dequantise(codes_of(group)[at])
            numbers["entropy"] = entropies_of(group).mean(axis=1)
        return numbers

    def _left(self) -> float:
        if self.status != "running":
            return 0.0
        if self.total is None or self.pace <= 0:
            return inf
        return max(self.total - self.step, 0) / self.pace

    def _shown(self) -> tuple[dict[str, Any], int, int]:
        """Return the group, layer and head at the moment that is looked at."""
        place = _nearest([one["step"] for one in self.snapshots], self.at)
        groups = self.snapshots[place]["groups"]
        group = next((one for one in groups if one["kind"] == self.kind), groups[-1])
        layer = min(self.layer, len(group["heads"]) - 1)
        return group, layer, min(self.head, group["heads"][layer] - 1)

    # -- the record ---------------------------------------------------------------------------

    def _ipython_display_(self, **_: Any) -> None:
        """Show the view under a name, by which its picture is renewed when the run has ended."""
        from IPython.display import display

        shown(self)
        self._displayed = True
        display(self._bundle(), **self._how())

    def _how(self) -> dict[str, Any]:
        name = f"training-{self.model_id}"
        return {"raw": True, "display_id": name, "metadata": self._metadata()}

    def _describe(self, numbers: Mapping[str, np.ndarray]) -> str:
        """The same words before, in and after a run: no figure in them holds elsewhere."""
        return self.words["drawn"]

    def _draw(self, figure: Figure, numbers: Mapping[str, np.ndarray]) -> None:
        axes = figure.subplots(2 if self.snapshots else 1, 2, squeeze=False)
        for panel, x, y, label, colour in (
            (axes[0, 0], "steps", "loss", self.words["loss"], COLOURS[0]),
            (axes[0, 1], "metric_steps", "metric", self._metric_name(), COLOURS[1]),
        ):
            panel.plot(numbers[x], numbers[y], color=colour, marker="o" if y == "metric" else None)
            panel.set(xlabel=self.words["steps"], ylabel=label)
        if self.log and (numbers["loss"] > 0).any():
            axes[0, 0].set_yscale("log")
        if not self.snapshots:
            figure.set_size_inches(self.size[0], self.size[1] / 2)
            return
        group, layer, head = self._shown()
        draw_thumbnails(axes[1, 0], group, layer, head, self.words, stretch=self.stretch)
        draw_map_of(figure, axes[1, 1], group, layer, head, self.words, stretch=self.stretch)

    def _metric_name(self) -> str:
        return self.metric or next(iter(self.metrics), "")


class _Throttle:
    """Lets work through as long as it takes no more than a small share of the time."""

    def __init__(self, pause: float) -> None:
        """`pause`: seconds between two times at least; `gap`: the same in steps."""
        self.pause, self.gap = pause, 1
        self._next, self._last = -inf, -inf

    def due(self, step: int) -> bool:
        """Whether the work may be done in this step; its doing is to follow then."""
        due = perf_counter() >= self._next and step - self._last >= self.gap
        if due:
            self._last = step
        return due

    @contextmanager
    def working(self):
        """Measure the work, and put the next off until it has become cheap."""
        start = perf_counter()
        yield
        now = perf_counter()
        self._next = now + max(self.pause, (now - start) / _SHARE)


def binned(values: list[float], most: int = _POINTS) -> dict[str, list]:
    """Return means over stretches of 1, 2, 4, … steps, so many that `most` points suffice.

    A stretch is named by its last step, counted from 1.
    """
    size = 1
    while len(values) > most * size:
        size *= 2
    starts = np.arange(0, len(values), size)
    ends = np.minimum(starts + size, len(values))
    if not len(values):
        return {"steps": [], "loss": []}
    means = np.add.reduceat(np.asarray(values), starts) / (ends - starts)
    return {"steps": ends.tolist(), "loss": to_plain(means)}


def _metrics(history: History) -> dict[str, dict[str, list]]:
    """Return what was measured, of many values every second, fourth, …, and the last."""
    stride = 1
    while len(history.eval_steps) > _POINTS * stride:
        stride *= 2

    def thinned(values: list) -> list:
        return values[-1::-stride][::-1]

    steps = history.eval_steps
    return {
        name: {"steps": thinned(steps[-len(values) :]), "values": to_plain(thinned(values))}
        for name, values in history.metrics.items()
    }


def _is_curve(data: Any, values: str = "loss") -> bool:
    try:
        known = [float(number) for number in data[values]]
        return len(known) == len(data["steps"]) and all(type(k) is int for k in data["steps"])
    except (KeyError, TypeError, ValueError):
        return False


def _are_snapshots(data: Any) -> bool:
    try:
        steps = [one["step"] + 0 * float(one["loss"]) for one in data]
    except (KeyError, TypeError, ValueError):
        return False
    named = [{"name": "", "groups": one.get("groups")} for one in data]
    return not steps or are_sentences(named)


_STATUSES = (
    "waiting", "example", "running", "finished", "interrupted", "asked", "diverged"
)  # fmt: skip
_RECORDS: dict[str, Callable[[Any], bool]] = {
    "status": lambda status: status in _STATUSES,
    "curve": _is_curve,
    "metrics": lambda metrics: all(_is_curve(one, "values") for one in metrics.values()),
    "snapshots": _are_snapshots,
}


def _maps(watch: Any, model: Any) -> Any:
    if callable(watch) and not isinstance(watch, Tensor):
        with reading(model):
            return watch(model)
    inputs = watch if isinstance(watch, tuple) else (watch,)
    device = next((p.device for p in model.parameters()), None)
    return recorded(model, *(x.to(device) if isinstance(x, Tensor) else x for x in inputs))


def _nearest(stops: list[int], at: int | None) -> int:
    """Return which stop lies nearest to a step; the last if there is no step, -1 of none."""
    if at is None or not stops:
        return len(stops) - 1
    return min(range(len(stops)), key=lambda place: abs(stops[place] - at))

// TrainingView: loss and metrics of a run, its speed, and attention at moments to scrub through.

import { make, show } from "./core.mjs";
import { Plot } from "./charts.mjs";
import { Mosaic, TokenMap, headAt, headEntropies, mapsOf, weightsOf } from "./attention_maps.mjs";

// -- numbers ----------------------------------------------------------------------------

const groupsOf = ({ snapshots }) => snapshots[0]?.groups ?? [];

export function check(state) {
  const { at, step, metric, metrics, kind } = state;
  if (at !== null && !(Number.isInteger(at) && at >= 1 && at <= step)) {
    return ["at_allowed", { last: step, got: at }];
  }
  const groups = groupsOf(state);
  const choices = { metric: Object.keys(metrics), kind: groups.map((group) => group.kind) };
  for (const [name, allowed] of Object.entries(choices)) {
    const got = { metric, kind }[name];
    // before a run there is nothing yet to hold the choice against
    if (got !== "" && allowed.length && !allowed.includes(got)) {
      return ["choice_allowed", { name, allowed: allowed.join(", "), got }];
    }
  }
  const layers = Math.max(...groups.map(({ heads }) => heads.length));
  const heads = Math.max(...groups.map((group) => Math.max(...group.heads)));
  for (const [name, most] of [["layer", layers], ["head", heads]]) {
    const size = groups.length ? most : Infinity;
    const got = state[name];
    if (!Number.isInteger(got) || got < 0 || got >= size) {
      return ["index_allowed", { name, last: show(size - 1, 6), got }];
    }
  }
  return null;
}

// The moments that the slider stops at: those whose attention is known, else the curve's points.
const stopsOf = ({ snapshots, curve }) =>
  (snapshots.length ? snapshots.map(({ step }) => step) : curve.steps);

// The last for no step, -1 where there is none.
function nearestTo(stops, at) {
  if (at === null || !stops.length) return stops.length - 1;
  const far = (place) => Math.abs(stops[place] - at);
  return stops.reduce((best, _, place) => (far(place) < far(best) ? place : best), 0);
}

function shownIn(state) {
  const { groups } = state.snapshots[nearestTo(stopsOf(state), state.at)];
  const group = groups.find(({ kind }) => kind === state.kind) ?? groups[groups.length - 1];
  const layer = Math.min(state.layer, group.heads.length - 1);
  const head = Math.min(state.head, group.heads[layer] - 1);
  return { group, layer, head, at: headAt(group, layer, head) };
}

const metricName = ({ metric, metrics }) => metric || (Object.keys(metrics)[0] ?? "");

/** The curves, the step that is looked at, its attention, and the time left. */
export function compute(state) {
  const metric = state.metrics[metricName(state)] ?? { steps: [], values: [] };
  const stops = stopsOf(state);
  const numbers = {
    steps: state.curve.steps,
    loss: state.curve.loss.map(Number),
    metric_steps: metric.steps,
    metric: metric.values.map(Number),
    stops,
    place: nearestTo(stops, state.at),
    left: timeLeft(state),
  };
  if (state.snapshots.length) {
    const { group, at } = shownIn(state);
    numbers.weights = weightsOf(group, at);
    numbers.entropy = headEntropies(group);
  }
  return numbers;
}

function timeLeft({ status, total, step, pace }) {
  if (status !== "running") return 0;
  return total === null || pace <= 0 ? Infinity : Math.max(total - step, 0) / pace;
}

// -- words ------------------------------------------------------------------------------

export function describe(numbers, state, t) {
  if (numbers.place < 0) return t("waiting");
  const step = numbers.stops[numbers.place];
  const said = [lossAt(numbers, state, step, t)];
  const measured = nearestTo(numbers.metric_steps, step);
  if (measured >= 0) {
    const value = show(numbers.metric[measured], 3);
    said.push(t("described_metric", { name: metricName(state), value, step: numbers.metric_steps[measured] }));
  }
  if (state.snapshots.length) {
    const { group, layer, head, at } = shownIn(state);
    const most = show(Math.log(group.columns.length), 2);
    said.push(t("described_map", { layer, head, entropy: show(numbers.entropy[at], 2), most }));
  }
  return said.join(" ");
}

// At a snapshot the loss of that very step; a point of a long curve is the mean over several.
function lossAt({ place, steps, loss }, { snapshots }, step, t) {
  if (snapshots.length) return t("described", { step, loss: show(snapshots[place].loss, 3) });
  const first = (steps[place - 1] ?? 0) + 1;
  const key = first < step ? "described_mean" : "described";
  return t(key, { first, step, loss: show(loss[place], 3) });
}

export function tables(numbers, state, t) {
  const listed = (xs, ys) => ys.map((y, k) => [String(xs[k]), y]);
  const found = [
    { title: t("loss"), columns: [t("steps"), t("loss")], rows: listed(numbers.steps, numbers.loss) },
  ];
  const name = metricName(state);
  if (name) {
    found.push({ title: name, columns: [t("steps"), name], rows: listed(numbers.metric_steps, numbers.metric) });
  }
  if (!state.snapshots.length) return found;
  const { group, layer, head } = shownIn(state);
  const step = numbers.stops[numbers.place];
  found.push({
    title: `${t("at_step", { step })}, ${t("map_title", { layer, head })}`,
    columns: [t("query_axis"), ...group.columns.map((text, j) => `${text} (${j})`)],
    rows: numbers.weights.map((row, i) => [`${group.rows[i]} (${i})`, ...row]),
  });
  return found;
}

function duration(seconds, t) {
  if (!Number.isFinite(seconds)) return "∞";
  const whole = Math.round(seconds);
  if (whole < 60) return t("seconds", { seconds: whole });
  if (whole < 3600) return t("minutes", { minutes: Math.floor(whole / 60), seconds: whole % 60 });
  return t("hours", { hours: Math.floor(whole / 3600), minutes: Math.floor((whole % 3600) / 60) });
}

function progress({ left }, { status, step, total, pace, elapsed }, t) {
  const key = status === "running" && total === null ? "running_on" : status;
  return t(key, {
    step, total: Math.round(total ?? 0), pace: show(pace, 2),
    elapsed: duration(elapsed, t), left: duration(left, t),
  });
}

// -- the view ---------------------------------------------------------------------------

export function view(ui) {
  const t = ui.t;
  const parts = [scrubber(ui), curves(ui), maps(ui)];
  const said = make("p");
  said.style.minHeight = "2.8em";
  const stretch = ui.toggle({ name: "stretch", label: t("stretch") });
  const log = ui.toggle({ name: "log", label: t("log") });
  const metric = ui.choice({
    name: "metric", label: t("metric"), options: ({ metrics }) => Object.keys(metrics).map((name) => [name, name]),
  });
  const kind = ui.choice({
    name: "kind", label: t("kind"),
    options: (state) =>
      groupsOf(state).map((group) => [group.kind, ui.words[`kind_${group.kind}`] ?? group.kind]).reverse(),
  });
  const hint = make("p", { textContent: t("hint") });
  ui.body.append(
    parts[0].element, said, parts[1].element, parts[2].element, hint, ui.row(metric, kind, log, stretch),
  );
  return (numbers, state) => {
    said.textContent = progress(numbers, state, t);
    hint.hidden = stretch.hidden = !state.snapshots.length;
    for (const part of parts) part.draw(numbers, state);
  };
}

// A slider over the moments there are so far; its end follows the newest.
function scrubber(ui) {
  const t = ui.t;
  const input = make("input", { type: "range", min: 0, step: 1 });
  const readout = make("output");
  readout.style.minWidth = "6em";
  const element = make("label", { className: "control" });
  element.append(make("span", { textContent: t("moment") }), input, readout);
  ui.listen(input, "input", () => {
    const { stops } = ui.numbers;
    const place = Number(input.value);
    ui.set({ at: place >= stops.length - 1 ? null : stops[place] });
  });
  const draw = ({ stops, place }) => {
    ui.enable(input, stops.length > 1);
    input.max = Math.max(stops.length - 1, 0);
    input.value = Math.max(place, 0);
    readout.textContent = place < 0 ? "" : t("at_step", { step: stops[place] });
    input.setAttribute("aria-valuetext", readout.textContent);
  };
  return { element, draw };
}

function curves(ui) {
  const t = ui.t;
  const x = { label: t("steps") };
  const [loss, metric] = ["loss", "metric"].map((name) => new Plot(ui, { label: t(name), x, height: 13 }));
  const draw = (numbers, state) => {
    const marker = numbers.place < 0 ? null : numbers.stops[numbers.place];
    const high = Math.max(state.step, 2);
    const both = [
      [loss, t("loss"), numbers.steps, numbers.loss, state.log],
      [metric, metricName(state) || t("no_metric"), numbers.metric_steps, numbers.metric, false],
    ];
    for (const [plot, name, xs, ys, log] of both) {
      plot.label(t("curve", { name, value: ys.length ? show(ys[ys.length - 1], 3) : t("nothing") }));
      plot.show({ lines: [{ name, xs, ys }], marker, x: { low: 1, high }, y: { label: name, log } });
    }
  };
  return { element: ui.row(loss.element, metric.element), draw };
}

function maps(ui) {
  const t = ui.t;
  const mosaic = new Mosaic(ui, {
    label: t("thumbnails"), height: 22, onPick: (layer, head) => ui.set({ layer, head }),
  });
  const map = new TokenMap(ui, {
    label: t("map"), rows: t("query_axis"), columns: t("key_axis"), height: 22, onPoint: () => {},
  });
  const element = ui.row(mosaic.element, map.element);
  const draw = (numbers, state) => {
    element.hidden = !state.snapshots.length;
    if (element.hidden) return;
    const place = shownIn(state);
    const { group, at } = place;
    mosaic.show({ ...place, entropy: numbers.entropy, stretch: state.stretch });
    map.show({
      values: numbers.weights,
      limits: [0, (state.stretch && mapsOf(group).tops[at]) || 1],
      rowLabels: group.rows,
      columnLabels: group.columns,
      legend: true,
    });
  };
  return { element, draw };
}

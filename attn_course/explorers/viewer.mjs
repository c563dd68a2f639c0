// AttentionViewer: all heads of a model as thumbnails, one of them large, a token's row and column.

import { cut, make, show } from "./core.mjs";
import { Plot } from "./charts.mjs";
import { Mosaic, TokenMap, headAt, headEntropies, mapsOf, token, weightsOf } from "./attention_maps.mjs";

const PANES = ["", "beside_"]; // a prefix of names: the sentence, and the one beside it

const panesOf = ({ beside }) => (beside === null ? PANES.slice(0, 1) : PANES);

// How many values each position may take, in the largest map there is.
function sizes({ sentences }) {
  const groups = sentences.flatMap((one) => one.groups);
  const most = (count) => Math.max(...groups.map(count));
  const [rows, columns] = [most((group) => group.rows.length), most((group) => group.columns.length)];
  return {
    sentence: sentences.length, beside: sentences.length,
    layer: most(({ heads }) => heads.length), head: most(({ heads }) => Math.max(...heads)),
    row: rows, column: columns, beside_row: rows, beside_column: columns,
  };
}

export function check(state) {
  if (!state.sentences.length) return ["no_sentences"];
  for (const [name, size] of Object.entries(sizes(state))) {
    const got = state[name];
    if (name === "beside" && got === null) continue;
    if (!Number.isInteger(got) || got < 0 || got >= size) {
      return ["index_allowed", { name, last: size - 1, got }];
    }
  }
  const kinds = state.sentences[0].groups.map(({ kind }) => kind);
  if (kinds.includes(state.kind)) return null;
  return ["kind_allowed", { allowed: kinds.join(", "), got: state.kind }];
}

// What a pane looks at; a map that is smaller than the position shows its last.
function placeIn(state, pane) {
  const sentence = state.sentences[pane ? state.beside : state.sentence];
  const group = sentence.groups.find(({ kind }) => kind === state.kind);
  const layer = Math.min(state.layer, group.heads.length - 1);
  const head = Math.min(state.head, group.heads[layer] - 1);
  const row = Math.min(state[`${pane}row`], group.rows.length - 1);
  const column = Math.min(state[`${pane}column`], group.columns.length - 1);
  return { sentence, group, layer, head, row, column, at: headAt(group, layer, head) };
}

/** The weights of the map, of its row and its column, and the mean entropy of every head. */
export function compute(state) {
  const numbers = {};
  for (const pane of panesOf(state)) {
    const { group, at, row, column } = placeIn(state, pane);
    const weights = weightsOf(group, at);
    numbers[`${pane}weights`] = weights;
    numbers[`${pane}attends`] = weights[row];
    numbers[`${pane}attended`] = weights.map((line) => line[column]);
    numbers[`${pane}entropy`] = headEntropies(group);
    numbers[`${pane}row_entropy`] = mapsOf(group).entropy[at * group.rows.length + row];
  }
  return numbers;
}

// -- words ------------------------------------------------------------------------------

function largest(t, tokens, weights, count) {
  const places = Array.from(weights.keys()).filter((place) => weights[place] > 0);
  places.sort((a, b) => weights[b] - weights[a]);
  const named = places.slice(0, count).map((place) => `${token(t, tokens, place)} ${show(weights[place], 2)}`);
  return named.length ? named.join(", ") : t("nothing");
}

export function describe(numbers, state, t) {
  const said = panesOf(state).map((pane) => {
    const { group, layer, head, row, column } = placeIn(state, pane);
    return t("described", {
      layer, head,
      row: token(t, group.rows, row),
      column: token(t, group.columns, column),
      value: show(numbers[`${pane}attends`][column], 2),
      largest: largest(t, group.columns, numbers[`${pane}attends`], 1),
      entropy: show(numbers[`${pane}row_entropy`], 2),
      most: show(Math.log(group.columns.length), 2),
    });
  });
  return said.join(" ");
}

// What could be said of a sentence whose tokens were all as long as the longest, to keep room.
function longestDescription(state, t) {
  const longest = (tokens) => {
    const texts = tokens.map((_, place) => token(t, tokens, place));
    return texts.reduce((best, text) => (text.length > best.length ? text : best));
  };
  const [value, entropy, most] = [show(1.6e-5, 2), show(0.12, 2), show(4.8, 2)];
  const said = panesOf(state).map((pane) => {
    const { group, layer, head } = placeIn(state, pane);
    const [row, column] = [longest(group.rows), longest(group.columns)];
    return t("described", { layer, head, row, column, value, largest: `${column} ${value}`, entropy, most });
  });
  return said.join(" ");
}

export function tables(numbers, state, t) {
  return panesOf(state).flatMap((pane) => {
    const { sentence, group, layer, head, row, column } = placeIn(state, pane);
    const about = `${sentence.name}: ${t("map_title", { layer, head })}`;
    const listed = (tokens, weights) => weights.map((weight, place) => [token(t, tokens, place), weight]);
    const bars = (key, tokens, place, names, axis) => ({
      title: `${about}, ${t(key, { token: token(t, tokens, place) })}`,
      columns: [t(axis), t("weight")],
      rows: listed(names, numbers[`${pane}${key}`]),
    });
    const every = {
      title: `${sentence.name}: ${t("entropy")}`,
      columns: [t("layers_axis"), t("heads_axis"), t("mean_entropy")],
      rows: group.heads.flatMap((count, l) => Array.from({ length: count }, (_, h) => [
        String(l), String(h), numbers[`${pane}entropy`][headAt(group, l, h)],
      ])),
    };
    const whole = {
      title: about,
      columns: [t("query_axis"), ...group.columns.map((_, j) => token(t, group.columns, j))],
      rows: numbers[`${pane}weights`].map((line, i) => [token(t, group.rows, i), ...line]),
    };
    return [
      every,
      bars("attends", group.rows, row, group.columns, "key_axis"),
      bars("attended", group.columns, column, group.rows, "query_axis"),
      whole,
    ];
  });
}

// -- the view ---------------------------------------------------------------------------

export function view(ui) {
  const panes = PANES.map((pane) => buildPane(ui, pane));
  const hint = make("p", { textContent: ui.t("hint") });
  ui.body.append(ui.row(...panes.map((pane) => pane.element)), hint, controls(ui));
  return (numbers, state) => {
    ui.keepRoom(longestDescription(state, ui.t));
    panes.forEach((pane, k) => {
      pane.element.hidden = k > 0 && state.beside === null;
      if (!pane.element.hidden) pane.draw(numbers, state);
    });
  };
}

function controls(ui) {
  const t = ui.t;
  const named = ({ sentences }) => sentences.map(({ name }, k) => [k, `${k}: ${name}`]);
  const beside = (state) => (state.sentences.length > 1 ? [[null, t("nothing")], ...named(state)] : []);
  const kinds = ({ sentences }) =>
    sentences[0].groups.map(({ kind }) => [kind, ui.words[`kind_${kind}`] ?? kind]);
  return ui.row(
    ui.choice({ name: "kind", label: t("kind"), options: kinds }),
    ui.choice({ name: "sentence", label: t("sentence"), options: named }),
    ui.choice({ name: "beside", label: t("beside"), options: beside }),
    ui.toggle({ name: "stretch", label: t("stretch") }),
  );
}

function buildPane(ui, pane) {
  const t = ui.t;
  const mosaic = new Mosaic(ui, {
    label: t("thumbnails"), height: 24, onPick: (layer, head) => ui.set({ layer, head }),
  });
  const map = new TokenMap(ui, {
    label: t("map"), rows: t("query_axis"), columns: t("key_axis"), height: 24,
    onPoint: (row, column) => ui.set({ [`${pane}row`]: row, [`${pane}column`]: column }),
  });
  const bars = ["attends", "attended"].map((label) => new Plot(ui, { label: t(label), height: 9 }));
  const heading = make("h4");
  const element = make("div", { className: "group", role: "group" });
  element.append(
    heading, ui.row(mosaic.element, map.element), ui.row(...bars.map((plot) => plot.element)),
  );
  const draw = (numbers, state) => {
    const place = placeIn(state, pane);
    heading.textContent = place.sentence.name;
    for (const surface of [mosaic, map]) surface.grow(sizes(state).layer > 6 ? 34 : 24);
    element.setAttribute("aria-label", place.sentence.name);
    mosaic.element.hidden = place.group.shape[0] === 1; // nothing to choose
    mosaic.show({ ...place, entropy: numbers[`${pane}entropy`], stretch: state.stretch });
    showMap(map, place, numbers[`${pane}weights`], state.stretch);
    showBars(t, bars, place, numbers[`${pane}attends`], numbers[`${pane}attended`]);
  };
  return { element, draw };
}

function showMap(map, { group, at, row, column }, values, stretch) {
  map.show({
    values,
    limits: [0, (stretch && mapsOf(group).tops[at]) || 1],
    rowLabels: group.rows,
    columnLabels: group.columns,
    cursor: [row, column],
    cross: true,
    legend: true,
  });
}

function showBars(t, [attends, attended], { group, row, column }, inRow, inColumn) {
  const sides = [
    [attends, t("attends", { token: token(t, group.rows, row) }), group.columns, inRow],
    [attended, t("attended", { token: token(t, group.columns, column) }), group.rows, inColumn],
  ];
  for (const [plot, title, tokens, ys] of sides) {
    plot.label(t("bars_label", { title, largest: largest(t, tokens, ys, 3) }));
    const known = ys.filter((y) => !Number.isNaN(y));
    plot.show({
      bars: [{ name: title, ys }],
      xLabels: tokens.map(cut),
      y: { label: title, low: 0, high: Math.max(0, ...known) || 1 },
    });
  }
}

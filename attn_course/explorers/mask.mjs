// MaskExplorer: causal, padding and window masks, painted over, and what softmax makes of them.

import { cut, make, normals, softmax, toNumbers } from "./core.mjs";
import { HeatMap } from "./charts.mjs";

const LARGEST = 16; // queries, and keys, whose names can still be read
const ALIGNMENTS = ["bottom-right", "top-left"];
const FILLS = ["zeros", "-inf", "-1e9"];
const RULES = ["mask", "causal", "window", "padding"];

// -- arithmetic -------------------------------------------------------------------------

export function check(state) {
  return checkSizes(state) ?? checkRules(state) ?? checkGiven(state);
}

function checkSizes(state) {
  const { n_query, n_key } = state;
  const ranges = {
    n_query: [1, LARGEST], n_key: [1, LARGEST], window: [0, LARGEST], padding: [0, n_key],
    i: [0, n_query - 1], j: [0, n_key - 1],
  };
  for (const [name, [low, high]] of Object.entries(ranges)) {
    const got = state[name];
    if (!Number.isInteger(got) || got < low || got > high) return ["size_allowed", { name, low, high, got }];
  }
  return null;
}

function checkRules({ align, fill, causal, window, n_query, n_key }) {
  for (const [name, got, allowed] of [["align", align, ALIGNMENTS], ["fill", fill, FILLS]]) {
    if (!allowed.includes(got)) return ["one_of", { name, allowed: allowed.join(", "), got }];
  }
  const ordered = causal || window > 0;
  const impossible = ordered && align === "bottom-right" && n_query > n_key;
  return impossible ? ["needs_fewer", { n_query, n_key }] : null;
}

function checkGiven({ n_query, n_key, mask, scores, tokens, painted }) {
  const expected = `(${n_query}, ${n_key})`;
  for (const [name, rows] of Object.entries({ mask, scores })) {
    const fits = !rows || (rows.length === n_query && rows.every((row) => row.length === n_key));
    if (!fits) return ["wrong_shape", { name, expected, got: `(${rows.length}, ${rows[0].length})` }];
  }
  if (tokens.length < n_key) return ["tokens_count", { expected: n_key, got: tokens.length }];
  const inside = (at) => Number.isInteger(at) && at >= 0 && at < LARGEST;
  const wrong = painted.find(([i, j, open]) => !inside(i) || !inside(j) || typeof open !== "boolean");
  return wrong ? ["painted_allowed", { last: LARGEST - 1, got: JSON.stringify(wrong) }] : null;
}

/** Where query i stands among the keys. */
const positionOf = (i, { align, n_query, n_key }) => (align === "top-left" ? i : n_key - n_query + i);

const ALLOWS = {
  mask: (i, j, { mask }) => !mask || mask[i][j],
  causal: (i, j, state) => !state.causal || j <= positionOf(i, state),
  // the window is a band of the causal mask: keys i − window + 1 … i
  window(i, j, state) {
    const back = positionOf(i, state) - j;
    return state.window === 0 || (back >= 0 && back < state.window);
  },
  padding: (i, j, { padding, n_key }) => j < n_key - padding,
};

const gridOf = ({ n_query, n_key }, cell) =>
  Array.from({ length: n_query }, (_, i) => Array.from({ length: n_key }, (_, j) => cell(i, j)));

const brushOf = ({ painted }, i, j) => painted.find((one) => one[0] === i && one[1] === j)?.[2];

/** The masks of the rules, what they and the paint allow together, and the weights. */
export function compute(state) {
  const numbers = Object.fromEntries(
    RULES.map((rule) => [rule, gridOf(state, (i, j) => Number(ALLOWS[rule](i, j, state)))]),
  );
  numbers.allowed = gridOf(state, (i, j) =>
    Number(brushOf(state, i, j) ?? RULES.every((rule) => numbers[rule][i][j])));
  const scores = scoresOf(state);
  numbers.weights = numbers.allowed.map((row, i) => weighted(scores[i], row.map(Boolean), state.fill));
  return numbers;
}

const example = normals(0, LARGEST * LARGEST);

const scoresOf = (state) =>
  state.scores ? toNumbers(state.scores) : gridOf(state, (i, j) => example[i * LARGEST + j]);

function weighted(scores, open, fill) {
  if (fill === "zeros") return softmax(scores, open);
  const instead = fill === "-inf" ? -Infinity : -1e9;
  return softmax(scores.map((score, j) => (open[j] ? score : instead)));
}

// -- words ------------------------------------------------------------------------------

const countOf = (row) => row.reduce((sum, open) => sum + open, 0);
const emptyRows = ({ allowed }) => [...allowed.keys()].filter((i) => countOf(allowed[i]) === 0);

export function describe(numbers, state, t) {
  const { n_query, n_key, i, fill } = state;
  const [open, empty] = [countOf(numbers.allowed.flat()), emptyRows(numbers)];
  const said = t("described", { open, all: n_query * n_key, i, n_key, count: countOf(numbers.allowed[i]) });
  if (!empty.length) return said;
  const outcome = t(`outcome_${fill}`);
  const key = empty.length === 1 ? "described_one_empty" : "described_empty";
  return `${said} ${t(key, { count: empty.length, first: empty[0], outcome })}`;
}

/** A query is called by the token that stands where it stands, if one does. */
const queryName = (i, state, t) => state.tokens.slice(0, state.n_key)[positionOf(i, state)] ?? t("query_name", { i });
const queryNames = (state, t) => Array.from({ length: state.n_query }, (_, i) => queryName(i, state, t));

export function tables(numbers, state, t) {
  const names = queryNames(state, t);
  const keys = state.tokens.slice(0, state.n_key);
  const seen = names.map((name, i) => {
    const tokens = keys.filter((_, j) => numbers.allowed[i][j]);
    return [`${i} ${name}`, String(tokens.length), tokens.join(" ")];
  });
  return [
    { title: t("who"), columns: [t("query_axis"), t("count_column"), t("sees_column")], rows: seen },
    ...["allowed", "weights"].map((what) => ({
      title: t(what === "allowed" ? "mask" : "weights"),
      columns: [t("query_axis"), ...keys.map((key, j) => `${j} ${key}`)],
      rows: numbers[what].map((row, i) => [`${i} ${names[i]}`, ...row]),
    })),
  ];
}

function reasonOf(numbers, state, t) {
  const { i, j } = state;
  const brush = brushOf(state, i, j);
  if (brush) return t("painted_open", { i, j });
  if (numbers.allowed[i][j]) return t("open_cell", { i, j });
  const hiding = brush === false ? ["painted"] : RULES.filter((rule) => !numbers[rule][i][j]);
  return t("shut_cell", { i, j, rules: hiding.map((rule) => t(`rule_${rule}`)).join(t("and")) });
}

/** The package's call that builds this mask. */
function codeOf(state) {
  const { causal, window, padding, mask, align, n_query, n_key, painted, fill } = state;
  const masks = [
    mask && "mask",
    causal && madeBy(align, n_query, n_key, "causal_mask", ""),
    window && madeBy(align, n_query, n_key, "sliding_window_mask", `, window=${window}`),
    padding && `padding=padding_mask(tensor([${n_key - padding}]), ${n_key})`,
  ].filter(Boolean);
  const lines = [`mask = ${masks.length ? `combine_masks(${masks.join(", ")})` : "None"}`];
  const here = painted.filter(([i, j]) => i < n_query && j < n_key);
  const shown = here.slice(0, 2).map(([i, j, open]) => `mask[..., ${i}, ${j}] = ${open ? "True" : "False"}`);
  if (here.length) lines.push(shown.join("; ") + (here.length > 2 ? "; …" : ""));
  const softmaxed = fill === "zeros"
    ? "scaled_dot_product_attention(query, key, value, mask)"
    : `scores.masked_fill(~mask, ${fill}).softmax(dim=-1)`;
  return [...lines, `weights = ${softmaxed}${fill === "zeros" ? "[1]" : ""}`].join("\n");
}

// The package aligns bottom-right; from the first corner it is the square mask's corner.
function madeBy(align, n_query, n_key, name, more) {
  const size = Math.max(n_query, n_key);
  if (align === "bottom-right" || n_query === n_key) return `${name}(${n_query}, ${n_key}${more})`;
  return `${name}(${size}, ${size}${more})[:${n_query}, :${n_key}]`;
}

// -- the view ---------------------------------------------------------------------------

const MASK_STYLE = `
.attn-ex .call { white-space: pre-wrap; display: block; font-size: .85em; min-height: 5.6em; }
.attn-ex .who { min-height: 4.4em; }
.attn-ex .who span { display: inline-block; padding: 0 .4em; margin: .1em .2em .1em 0; border-radius: 4px; border: 2px solid transparent; }
.attn-ex .who .says { display: block; border: 0; padding: 0; }
.attn-ex .who .seen { border-color: var(--ink); -webkit-text-stroke: .03em currentColor; } /* as wide as the others */
.attn-ex .who .unseen { color: var(--soft); text-decoration: line-through; }
.attn-ex .reason { min-height: 1.4em; }
.attn-ex[data-narrow] .who { min-height: 9em; }
.attn-ex[data-narrow] .call { min-height: 14em; }
.attn-ex[data-narrow] .reason { min-height: 4.2em; }
.attn-ex[data-narrow] .who .says { min-height: 2.8em; }
.attn-ex[data-narrow][data-explorer=MaskExplorer] .caption { min-height: 5.6em; }
`;

export function view(ui) {
  const t = ui.t;
  ui.style(MASK_STYLE);
  const maps = mapsOf(ui);
  const code = make("code", { className: "call" });
  const [sees, seenBy] = [make("p", { className: "who" }), make("p", { className: "who" })];
  const reason = make("p", { className: "reason" });
  ui.body.append(
    ui.group(t("sizes"), sizeControls(ui)),
    ui.group(t("rules"), ruleControls(ui)),
    ui.row(ui.group(t("mask"), maps.mask.element), ui.group(t("weights"), maps.weights.element)),
    make("p", { textContent: t("hint") }),
    ui.group(t("who"), reason, sees, seenBy),
    ui.group(t("code"), code),
  );
  return (numbers, state) => {
    showMaps(maps, numbers, state, t);
    reason.textContent = reasonOf(numbers, state, t);
    code.textContent = codeOf(state);
    showTokens(sees, seenBy, numbers, state, t);
  };
}

function sizeControls(ui) {
  const t = ui.t;
  const free = ({ mask, scores }) => !mask && !scores;
  const sized = (name, changes) => ui.slider({
    name, label: t(name), low: 1, high: LARGEST, text: String, usable: free,
    write: (count) => ({ [name]: count, ...changes(count, ui.state) }),
  });
  // fewer keys take the queries along where there cannot be more; more queries are refused
  const key = (count, { n_query, i, j, padding, causal, window, align }) => {
    const tied = (causal || window > 0) && align === "bottom-right";
    const queries = tied ? Math.min(n_query, count) : n_query;
    return {
      n_query: queries, i: Math.min(i, queries - 1),
      j: Math.min(j, count - 1), padding: Math.min(padding, count),
    };
  };
  return ui.row(
    sized("n_key", key),
    sized("n_query", (count, { i }) => ({ i: Math.min(i, count - 1) })),
  );
}

function ruleControls(ui) {
  const t = ui.t;
  const options = (values) => values.map((value) => [value, t(value)]);
  const clear = ui.button(t("clear"), () => ui.set({ painted: [] }));
  ui.follow(({ painted }) => ui.enable(clear, painted.length > 0));
  const window = (size) => (size ? String(size) : t("no_window"));
  const box = make("div");
  box.append(
    ui.row(
      ui.toggle({ name: "causal", label: t("causal") }),
      ui.slider({ name: "window", label: t("window"), high: LARGEST, text: window }),
      ui.slider({ name: "padding", label: t("padding"), high: ({ n_key }) => n_key, text: String }),
    ),
    ui.row(
      ui.choice({ name: "align", label: t("align"), options: options(ALIGNMENTS) }),
      ui.choice({ name: "fill", label: t("fill"), options: options(FILLS) }),
      clear,
    ),
  );
  return box;
}

function mapsOf(ui) {
  const axes = { rows: ui.t("query_axis"), columns: ui.t("key_axis"), height: 20 };
  const onPoint = (i, j) => ui.set({ i, j });
  let brush = true; // what a stroke paints: the opposite of the cell where it began
  const onPaint = (i, j, begins) => {
    if (begins) brush = !ui.numbers.allowed[i][j];
    const others = ui.state.painted.filter((one) => one[0] !== i || one[1] !== j);
    const bare = RULES.every((rule) => ui.numbers[rule][i][j]) === brush;
    ui.set({ i, j, painted: bare ? others : [...others, [i, j, brush]] });
  };
  return {
    mask: new HeatMap(ui, { label: ui.t("mask"), ...axes, onPoint, onPaint }),
    weights: new HeatMap(ui, { label: ui.t("weights"), ...axes, onPoint }),
  };
}

function showMaps({ mask, weights }, numbers, state, t) {
  const { allowed } = numbers;
  const empty = new Set(emptyRows(numbers));
  const shared = {
    rowLabels: queryNames(state, t), columnLabels: state.tokens.slice(0, state.n_key),
    cursor: [state.i, state.j],
  };
  mask.show({ ...shared, values: allowed, limits: [0, 1.4], seen: (i, j) => allowed[i][j] > 0 });
  // an empty row shows what its softmax comes to
  const seen = (i, j) => allowed[i][j] > 0 || empty.has(i);
  weights.show({ ...shared, values: numbers.weights, seen });
}

function showTokens(sees, seenBy, numbers, state, t) {
  const { i, j, n_query, n_key } = state;
  const keys = state.tokens.slice(0, n_key);
  const queries = queryNames(state, t);
  const [row, column] = [numbers.allowed[i], numbers.allowed.map((one) => one[j])];
  const line = (place, key, values, names, open) => {
    const chips = names.map((name, at) =>
      make("span", { className: open[at] ? "seen" : "unseen", textContent: name }));
    const said = t(key, { ...values, token: cut(values.token), count: countOf(open) });
    place.replaceChildren(make("span", { className: "says", textContent: said }), ...chips);
  };
  line(sees, "sees", { i, token: queries[i], all: n_key }, keys, row);
  line(seenBy, "seen_by", { j, token: keys[j], all: n_query }, queries, column);
}

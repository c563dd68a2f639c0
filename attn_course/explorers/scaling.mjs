// ScalingExplorer: what dividing by √d_k does to scores, softmax, entropy and gradient.

import { entropy, kept, normals, show, softmaxInPlace, toNumbers } from "./core.mjs";
import { Plot } from "./charts.mjs";

const N = 16; // queries, and keys, of the random draw
const WIDEST = 1024;
const MOST = 128; // queries, and keys, that are compared in a moment at every d_k
const MEASURES = ["spread", "entropy", "gradient"];

// One draw of the widest vectors: d_k takes their first features, so that a step of the
// slider adds features and leaves the others as they were.
function vectors(query, key, seed) {
  if (query) return { query: toNumbers(query), key: toNumbers(key) };
  const numbers = normals(seed, 2 * N * WIDEST);
  const row = (i) => numbers.subarray(i * WIDEST, (i + 1) * WIDEST);
  const rows = (from) => Array.from({ length: N }, (_, i) => row(from + i));
  return { query: rows(0), key: rows(N) };
}

/** The values of d_k that the slider offers. */
export function allowed({ query }) {
  const widest = query ? query[0].length : WIDEST;
  const powers = Array.from({ length: 11 }, (_, k) => 2 ** k).filter((d_k) => d_k < widest);
  return [...powers, widest];
}

export function check(state) {
  if (!Number.isInteger(state.seed) || state.seed < 0) return ["seed_allowed", { got: state.seed }];
  const problem = checkGiven(state);
  if (problem) return problem;
  const values = allowed(state);
  if (values.includes(state.d_k)) return null;
  return ["d_k_allowed", { allowed: values.join(", "), got: state.d_k }];
}

function checkGiven({ query, key }) {
  if (!query || !key) return query === key ? null : ["both_or_neither"];
  for (const [name, rows] of [["query", query], ["key", key]]) {
    if (rows.length <= MOST && rows[0].length <= WIDEST) continue;
    return ["too_large", { name, rows: MOST, features: WIDEST, got: shapeOf(rows) }];
  }
  if (query[0].length === key[0].length) return null;
  return ["wrong_shape", { name: "key", expected: `(n_key, ${query[0].length})`, got: shapeOf(key) }];
}

const shapeOf = (rows) => `(${rows.length}, ${rows[0].length})`;

/** Spread, entropy, gradient over d_k, for scores that are scaled and that are not. */
export function compute(state) {
  const { sizes, scaled, unscaled } = curves(state.query, state.key, state.seed);
  const numbers = { sizes, at: sizes.indexOf(state.d_k) };
  for (const [name, all] of Object.entries({ scaled, unscaled })) {
    for (const what of MEASURES) numbers[`${name}_${what}`] = all.map((one) => one[what]);
    numbers[`${name}_weights`] = all[numbers.at].weights;
  }
  return numbers;
}

// A step along d_k needs none of this again.
const curves = kept((givenQuery, givenKey, seed) => {
  const { query, key } = vectors(givenQuery, givenKey, seed);
  const found = { sizes: allowed({ query }), scaled: [], unscaled: [] };
  const scores = query.map(() => new Float64Array(key.length));
  let before = 0;
  for (const d_k of found.sizes) {
    scores.forEach((row, i) => addDots(row, query[i], key, before, d_k));
    before = d_k;
    found.scaled.push(measured(scores, 1 / Math.sqrt(d_k)));
    found.unscaled.push(measured(scores, 1));
  }
  return found;
});

// The scores at a larger d_k are those at the smaller one, and what the further features add.
function addDots(scores, q, key, from, to) {
  for (let j = 0; j < scores.length; j++) {
    for (let d = from; d < to; d++) scores[j] += q[d] * key[j][d];
  }
}

function measured(scores, scale) {
  const weights = scores.map((row) => {
    const scaled = row.map((score) => scale * score);
    softmaxInPlace(scaled);
    return scaled;
  });
  return {
    spread: scale * deviation(scores),
    entropy: mean(weights.map(entropy)),
    gradient: mean(weights.map(jacobianSize)),
    weights: Array.from(weights[0]),
  };
}

const sum = (values, of) => values.reduce((total, value) => total + of(value), 0);
const mean = (values, of = (value) => value) => sum(values, of) / values.length;

// All rows are as long as one another.
function deviation(rows) {
  const middle = mean(rows, (row) => mean(row));
  return Math.sqrt(mean(rows, (row) => mean(row, (score) => (score - middle) ** 2)));
}

// Frobenius norm of ∂p/∂s = diag(p) − p pᵀ: its square is Σp² − 2 Σp³ + (Σp²)².
function jacobianSize(p) {
  const squares = sum(p, (weight) => weight * weight);
  const square = squares - 2 * sum(p, (weight) => weight * weight * weight) + squares * squares;
  return Math.sqrt(square < 0 ? 0 : square);
}

export function describe(numbers, { d_k }, t) {
  const at = numbers.at;
  const largest = (weights) => show(Math.max(...weights), 2);
  return t("described", {
    d_k,
    spread: show(numbers.unscaled_spread[at], 2),
    scaled_spread: show(numbers.scaled_spread[at], 2),
    largest: largest(numbers.unscaled_weights),
    scaled_largest: largest(numbers.scaled_weights),
    gradient: show(numbers.unscaled_gradient[at], 2),
    scaled_gradient: show(numbers.scaled_gradient[at], 2),
  });
}

export function tables(numbers, { d_k }, t) {
  return [
    {
      title: `${t("weights")}, d_k = ${d_k}`,
      columns: [t("key_axis"), t("unscaled"), t("scaled")],
      rows: numbers.scaled_weights.map((w, j) => [String(j), numbers.unscaled_weights[j], w]),
    },
    ...MEASURES.map((what) => ({
      title: t(what),
      columns: [t("d_k"), t("unscaled"), t("scaled")],
      rows: numbers.sizes.map((d, at) => [
        String(d), numbers[`unscaled_${what}`][at], numbers[`scaled_${what}`][at],
      ]),
    })),
  ];
}

export function view(ui) {
  const t = ui.t;
  const slider = ui.slider({ name: "d_k", label: t("d_k"), values: allowed, text: String });
  const redraw = ui.button(t("redraw"), () => ui.set({ seed: ui.state.seed + 1 }));
  ui.follow(({ query }) => (redraw.hidden = Boolean(query)));
  const weights = new Plot(ui, {
    label: t("weights"), x: { label: t("key_axis") }, y: { label: t("weight"), low: 0, high: 1 },
  });
  const plots = MEASURES.map((what) => {
    const log = what === "spread";
    return new Plot(ui, { label: t(what), x: { label: t("d_k"), log: true }, y: { label: t(what), log } });
  });
  ui.body.append(
    ui.row(slider, redraw),
    ui.group(t("weights"), weights.element),
    ui.row(...plots.map((plot) => plot.element)),
  );
  return (numbers, { d_k }) => {
    const names = ["unscaled", "scaled"];
    weights.show({
      bars: names.map((name) => ({ name: t(name), ys: numbers[`${name}_weights`] })),
      xLabels: numbers.scaled_weights.map((_, j) => String(j)),
    });
    MEASURES.forEach((what, k) => {
      const lines = names.map((name) => ({
        name: t(name), xs: numbers.sizes, ys: numbers[`${name}_${what}`],
      }));
      plots[k].show({ lines, marker: d_k });
    });
  };
}

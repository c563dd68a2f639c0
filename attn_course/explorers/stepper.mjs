// AttentionStepper: one small example through every step of attention, number by number.

import { cut, labelled, make, matmul, show, softmax, toNumbers } from "./core.mjs";
import { NumberGrid, fixed, parsed, typed } from "./number_grid.mjs";

const STAGES = ["dot", "scale", "mask", "softmax", "sum"];
const PACES = ["number", "row", "stage"];
const LIMIT = 8; // tokens, and features, of which every number can still be read
const RESULTS = { dot: "scores", scale: "scaled", mask: "masked", softmax: "weights", sum: "output" };
const FEATURES = ["query", "key", "value", "output"]; // whose columns are features

// Which cells take part in a stage: of each matrix, the axis that its rows and its columns
// must agree with; null agrees with all. The last entry is the result.
const LINKS = {
  dot: { query: ["i", null], key: ["j", null], scores: ["i", "j"] },
  scale: { scores: ["i", "j"], scaled: ["i", "j"] },
  mask: { scaled: ["i", "j"], mask: ["i", "j"], masked: ["i", "j"] },
  softmax: { masked: ["i", null], weights: ["i", "j"] },
  sum: { weights: ["i", null], value: [null, "d"], output: ["i", "d"] },
};

const CODE = {
  dot: 'scores = einsum(query, key, "i d, j d -> i j")',
  scale: "scores = scores / sqrt(d_k)",
  mask: "scores = scores.masked_fill(~mask, -inf)",
  softmax: "weights = scores.softmax(dim=-1)",
  sum: 'output = einsum(weights, value, "i j, j d -> i d")',
};
// the softmax of a row of −∞ is NaN; a query that sees nothing gets zeros
const EMPTY_ROWS = "\n  .masked_fill(~mask.any(dim=-1, keepdim=True), 0)";

const FORMULA = `<math><mrow>
  <mi data-stage="softmax">softmax</mi><mo>(</mo><mi data-stage="mask">mask</mi><mo>(</mo>
  <mfrac><mrow data-stage="dot"><mi>q</mi><msup><mi>k</mi><mi>T</mi></msup></mrow>
  <msqrt data-stage="scale"><msub><mi>d</mi><mi>k</mi></msub></msqrt></mfrac>
  <mo>)</mo><mo>)</mo><mspace width="0.2em"/><mi data-stage="sum">v</mi></mrow></math>`;

// -- arithmetic -------------------------------------------------------------------------

const even = (rows) => rows.every((row) => row.length === rows[0].length);
const shapeOf = (rows) => [rows.length, rows[0].length];
const shapeText = (shape) => `(${shape.join(", ")})`;

export function check(state) {
  return checkShapes(state) ?? checkPlace(state);
}

function checkShapes({ query, key, value, mask, tokens, query_tokens }) {
  const shapes = {};
  for (const [name, rows] of Object.entries({ query, key, value, mask })) {
    if (!even(rows)) return ["equal_rows", { name }];
    const shape = shapeOf(rows);
    if (Math.max(...shape) > LIMIT) return ["too_large", { limit: LIMIT, name, got: shapeText(shape) }];
    shapes[name] = shape;
  }
  const [n_query, d_k] = shapes.query;
  const n_key = shapes.key[0];
  const wanted = { key: [n_key, d_k], value: [n_key, shapes.value[1]], mask: [n_query, n_key] };
  for (const [name, shape] of Object.entries(wanted)) {
    const [expected, got] = [shapeText(shape), shapeText(shapes[name])];
    if (expected !== got) return ["wrong_shape", { name, expected, got }];
  }
  const counts = { tokens: [tokens, n_key], query_tokens: [query_tokens, n_query] };
  for (const [name, [list, expected]] of Object.entries(counts)) {
    if (list.length !== expected) return ["tokens_count", { name, expected, got: list.length }];
  }
  return null;
}

function checkPlace(state) {
  const { stage, pace, query, key, value } = state;
  if (!STAGES.includes(stage)) return ["stage_allowed", { allowed: STAGES.join(", "), got: stage }];
  if (!PACES.includes(pace)) return ["pace_allowed", { allowed: PACES.join(", "), got: pace }];
  for (const [name, count] of [["i", query.length], ["j", key.length], ["d", value[0].length]]) {
    const at = state[name];
    if (!Number.isInteger(at) || at < 0 || at >= count) {
      return ["place_allowed", { name, last: count - 1, got: at }];
    }
  }
  return null;
}

/** What each stage makes of the numbers: scores, scaled, masked, weights, output. */
export function compute(state) {
  const [query, key, value] = ["query", "key", "value"].map((name) => toNumbers(state[name]));
  const scores = matmul(query, key[0].map((_, d) => key.map((row) => row[d])));
  const root = Math.sqrt(query[0].length);
  const scaled = scores.map((row) => row.map((score) => score / root));
  const masked = scaled.map((row, i) => row.map((score, j) => (state.mask[i][j] ? score : -Infinity)));
  const weights = masked.map((row, i) => softmax(row, state.mask[i]));
  return { scores, scaled, masked, weights, output: matmul(weights, value) };
}

// -- steps: all numbers in the order in which they arise --------------------------------

const columnsOf = (stage, { key, value }) => (stage === "sum" ? value[0].length : key.length);
const placeOf = ({ stage, i, j, d }) => ({ stage, i, column: stage === "sum" ? d : j });

/** Every place (stage, row, column), stage by stage and row by row. */
function orderOf(state) {
  const columns = (stage) => Array.from({ length: columnsOf(stage, state) }, (_, column) => column);
  const rows = (stage) => state.query.flatMap((_, i) => columns(stage).map((column) => ({ stage, i, column })));
  return STAGES.flatMap(rows);
}

/** What one step is: a prediction is always of one number. */
const paceOf = ({ pace, predict }) => (predict ? "number" : pace);

/** The places at which a step ends. */
function stopsOf(state) {
  const endsRow = ({ stage, column }) => column === columnsOf(stage, state) - 1;
  const ends = {
    number: () => true,
    row: endsRow,
    stage: (place) => endsRow(place) && place.i === state.query.length - 1,
  };
  return orderOf(state).filter(ends[paceOf(state)]);
}

/** Above 0 if place a comes after b, 0 if it is b. */
const order = (a, b) =>
  STAGES.indexOf(a.stage) - STAGES.indexOf(b.stage) || a.i - b.i || a.column - b.column;

const changesTo = ({ stage, i, column }) => ({ stage, i, [stage === "sum" ? "d" : "j"]: column });

/** The place in view: in prediction the one that is asked for, else the one that is reached. */
function focusOf(state) {
  const reached = placeOf(state);
  const next = state.predict && orderOf(state).find((place) => order(place, reached) > 0);
  return next ? { ...next, asked: true } : { ...reached, asked: false };
}

const valueAt = (numbers, { stage, i, column }) => numbers[RESULTS[stage]][i][column];

// -- words ------------------------------------------------------------------------------

const factor = (x) => (x < 0 ? `(${typed(x)})` : typed(x));

function named({ stage, i, column }, state, t) {
  // where columns are features there may be no token
  const key = cut(state.tokens[column] ?? "");
  return t(`number_${stage}`, { query: cut(state.query_tokens[i]), key, d: column });
}

export function describe(numbers, state, t) {
  const place = placeOf(state);
  const { stage, i, column } = place;
  return t(`described_${stage}`, {
    query: cut(state.query_tokens[i]), key: cut(state.tokens[column] ?? ""), d: column,
    d_k: state.query[0].length, value: fixed(valueAt(numbers, place)),
    before: stage === "scale" ? fixed(numbers.scores[i][column]) : "",
    total: fixed(numbers.weights[i].reduce((sum, weight) => sum + weight, 0)),
  });
}

// The longest that there may be to say, to keep room for it.
function longestDescription({ tokens, query_tokens, query }, t) {
  const longer = (best, text) => (text.length > best.length ? text : best);
  const [key, word] = [tokens, query_tokens].map((texts) => cut(texts.reduce(longer)));
  const value = fixed(-123.45);
  const values = { query: word, key, d: 0, d_k: query[0].length, value, before: value, total: value };
  return STAGES.map((stage) => t(`described_${stage}`, values)).reduce(longer);
}

export function tables(numbers, state, t) {
  const features = (rows) => rows[0].map((_, d) => `d = ${d}`);
  const given = ["query", "key", "value"].map((name) => ({
    title: t(name),
    columns: [t("token"), ...features(state[name])],
    rows: state[name].map((row, at) => [rowNames(name, state)[at], ...row]),
  }));
  const told = (x, place) => (state.predict && order(place, placeOf(state)) > 0 ? "?" : x);
  const results = STAGES.map((stage) => ({
    title: t(RESULTS[stage]),
    columns: [t("token"), ...(stage === "sum" ? features(state.value) : state.tokens)],
    rows: numbers[RESULTS[stage]].map((row, i) => [
      state.query_tokens[i], ...row.map((x, column) => told(x, { stage, i, column })),
    ]),
  }));
  return [...given, ...results];
}

const rowNames = (name, { tokens, query_tokens }) =>
  name === "key" || name === "value" ? tokens : query_tokens;

// How the number at a place comes about: the way there, what lies between the way and the
// number, and `told` where the way says it all.
const UNFOLD = {
  dot({ i, column }, numbers, { query, key }) {
    const k = toNumbers(key[column]);
    return { way: toNumbers(query[i]).map((q, d) => `${factor(q)}×${factor(k[d])}`).join(" + ") };
  },
  scale: ({ i, column }, { scores }, { query }) => ({ way: `${fixed(scores[i][column])} / √${query[0].length}` }),
  mask({ i, column }, { scaled }, { mask }, t) {
    const value = fixed(scaled[i][column]);
    return { way: mask[i][column] ? t("stays", { value }) : t("hidden"), told: true };
  },
  softmax({ i, column }, { masked }, { mask }, t) {
    if (!mask[i].some(Boolean)) return { way: t("nothing_seen"), told: true };
    const top = Math.max(...masked[i]);
    // exponentials too large or too small to be read: all less the largest, as in the code
    const shift = Math.abs(top) > 20 && Number.isFinite(top) ? top : 0;
    const powers = masked[i].map((score) => Math.exp(score - shift));
    const terms = masked[i].map((score) => `exp(${fixed(score - shift)})`);
    const sum = powers.reduce((total, power) => total + power, 0);
    const before = shift ? `${t("shifted", { top: fixed(top) })} ` : "";
    return {
      way: `${before}${terms[column]} / (${terms.join(" + ")})`,
      between: `${fixed(powers[column])} / ${fixed(sum)}`,
    };
  },
  sum({ i, column }, { weights }, { value }) {
    const v = toNumbers(value).map((row) => row[column]);
    return { way: weights[i].map((w, j) => `${fixed(w)}×${factor(v[j])}`).join(" + ") };
  },
};

function unfolded(place, numbers, state, asked, t) {
  const { way, between, told } = UNFOLD[place.stage](place, numbers, state, t);
  if (asked) return told ? "?" : `${way} = ?`;
  const value = fixed(valueAt(numbers, place));
  return told ? way : [way, between, value].filter((part) => part !== undefined).join(" = ");
}

// -- the view ---------------------------------------------------------------------------

const STEPPER_STYLE = `
.attn-ex .formula { font-size: 1.3em; min-height: 3.2em; display: flex; align-items: center; }
.attn-ex .formula [data-stage] { cursor: pointer; padding: .1em .15em; border: 2px solid transparent; }
.attn-ex .formula .lit { border-color: var(--accent); background: var(--faint); }
.attn-ex .lines button { display: block; width: 100%; text-align: left; border-width: 2px; font-weight: 400;
  white-space: pre-wrap; margin: 0 0 .15em; padding: .1em .4em; font-size: .85em; }
.attn-ex .lines button::before { content: "▸ "; visibility: hidden; }
.attn-ex .lines button[aria-pressed=true]::before { visibility: visible; }
.attn-ex .shapes { min-height: 3.2em; margin: 0; }
.attn-ex .in-full { list-style: none; margin: 0; padding: 0; font-size: .9em; }
.attn-ex .in-full li { min-height: 1.5em; padding-left: .5em; border-left: 3px solid transparent;
  font-family: ui-monospace, monospace; display: grid; }
.attn-ex .in-full span { grid-area: 1 / 1; }
.attn-ex .in-full .now { border-color: var(--accent); font-weight: 600; }
.attn-ex .grids { display: flex; flex-wrap: wrap; gap: .4em .6em; align-items: start; margin: .2em 0 .5em; }
.attn-ex .asked { min-height: 5em; }
.attn-ex[data-narrow] .asked { min-height: 12.5em; }
.attn-ex[data-narrow] .shapes, .attn-ex[data-narrow][data-explorer=AttentionStepper] .caption { min-height: 4.4em; }
`;

export function view(ui) {
  const t = ui.t;
  ui.style(STEPPER_STYLE);
  const [question, formula, shapes, code, full, grids] = [
    questionPane, formulaPane, shapePane, codePane, fullPane, gridPane,
  ].map((pane) => pane(ui));
  const left = make("div", { className: "group" });
  left.append(ui.group(t("formula"), formula.element), ui.group(t("shapes"), shapes.element));
  ui.body.append(
    stepControls(ui),
    question.element,
    topped(ui.row(left, ui.group(t("code"), code.element))),
    ui.group(t("in_full"), full.element),
    ui.group(t("cells"), grids.element),
    make("p", { textContent: t("hint") }),
  );
  return (numbers, state) => {
    const focus = focusOf(state);
    ui.keepRoom(longestDescription(state, t));
    for (const pane of [question, formula, shapes, code, full, grids]) pane.draw(numbers, state, focus);
  };
}

function topped(row) {
  row.style.alignItems = "start";
  return row;
}

const go = (ui, place) => place && ui.set(changesTo(place));

/** Which of the stops the place in view belongs to: the first that is not before it. */
const stopAt = (state, stops) => stops.findIndex((stop) => order(stop, placeOf(state)) >= 0);

function stepBy(ui, by) {
  const stops = stopsOf(ui.state);
  go(ui, stops[stopAt(ui.state, stops) + by]);
}

function changeStage(ui, by) {
  const { stage } = ui.state;
  const to = STAGES[STAGES.indexOf(stage) + by];
  if (to) ui.set({ stage: to });
}

function stepControls(ui) {
  const t = ui.t;
  const [forward, back] = [() => stepBy(ui, 1), () => stepBy(ui, -1)];
  const restore = ui.button(t("restore"), () => ui.set(ui.given));
  ui.follow((state) => {
    // what was not edited here was given anew
    const now = JSON.stringify(givenIn(state));
    if (now !== ui.edited) [ui.given, ui.edited] = [givenIn(state), now];
    ui.enable(restore, now !== JSON.stringify(ui.given));
  });
  return ui.row(
    stepSlider(ui, forward, back),
    ui.button(t("back"), back),
    ui.button(t("forward"), forward),
    ui.choice({ name: "pace", label: t("pace"), options: PACES.map((pace) => [pace, t(`pace_${pace}`)]) }),
    ui.toggle({ name: "predict", label: t("predict") }),
    restore,
  );
}

// Not ui.slider: a click on a number may lead between two stops of the pace.
function stepSlider(ui, forward, back) {
  const slider = make("input", { type: "range", min: 0, step: 1 });
  const readout = make("output");
  const moves = {
    ArrowRight: forward, ArrowUp: forward, ArrowLeft: back, ArrowDown: back,
    PageDown: () => changeStage(ui, 1), PageUp: () => changeStage(ui, -1),
  };
  ui.keys(slider, (event) => {
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  ui.listen(slider, "input", () => go(ui, stopsOf(ui.state)[Number(slider.value)]));
  ui.follow((state) => {
    const stops = stopsOf(state);
    const at = stopAt(state, stops);
    slider.max = stops.length - 1;
    slider.value = at;
    readout.textContent = ui.t("step_of", { step: at + 1, steps: stops.length });
    slider.setAttribute("aria-valuetext", `${readout.textContent}: ${named(placeOf(state), state, ui.t)}`);
  });
  return labelled(ui.t("step"), slider, readout);
}

const stageName = (stage, t) => t(stage === "mask" ? "mask_stage" : stage);

function formulaPane(ui) {
  const element = make("div", { className: "formula", role: "img", innerHTML: FORMULA });
  // for the mouse; the lines of code do the same by key
  ui.listen(element, "click", ({ target }) => {
    const stage = target.closest("[data-stage]")?.dataset.stage;
    if (stage) ui.set({ stage });
  });
  const draw = (numbers, state, { stage }) => {
    element.setAttribute("aria-label", ui.t("formula_label", { term: stageName(stage, ui.t) }));
    for (const term of element.querySelectorAll("[data-stage]")) {
      term.classList.toggle("lit", term.dataset.stage === stage);
    }
  };
  return { element, draw };
}

function codePane(ui) {
  const element = make("div", { className: "lines" });
  const buttons = STAGES.map((stage) => {
    const button = ui.button("", () => ui.set({ stage }));
    const code = make("code");
    button.append(code);
    element.append(button);
    return { stage, button, code };
  });
  const draw = (numbers, state, focus) => {
    const empty = state.mask.some((row) => !row.some(Boolean));
    for (const { stage, button, code } of buttons) {
      button.setAttribute("aria-pressed", String(stage === focus.stage));
      const text = CODE[stage] + (stage === "softmax" && empty ? EMPTY_ROWS : "");
      if (code.textContent !== text) code.textContent = text;
    }
  };
  return { element, draw };
}

function shapePane(ui) {
  const element = make("p", { className: "shapes" });
  const draw = (numbers, state, { stage }) => {
    const all = { ...state, ...numbers };
    const names = Object.keys(LINKS[stage]);
    const told = names.map((name) => `${name} ${shapeText(shapeOf(all[name]))}`);
    const code = make("code", { textContent: `${told.slice(0, -1).join(", ")} → ${told.at(-1)}` });
    const axes = { dot: "i d, j d → i j", sum: "i j, j d → i d" }[stage] ?? "i j → i j";
    const said = {
      dot: ui.t("summed", { axis: "d" }), sum: ui.t("summed", { axis: "j" }), softmax: ui.t("each_row"),
    };
    element.replaceChildren(code, make("br"), `${axes}: ${said[stage] ?? ui.t("each_alone")}`);
  };
  return { element, draw };
}

// The stages behind one number; one that is not reached keeps its line empty. A number of
// the output stands alone: it comes from a whole row of weights.
function fullPane(ui) {
  const element = make("ol", { className: "in-full" });
  const lines = STAGES.slice(1).map(() => {
    const [line, room, text] = [make("li"), make("span", { className: "room" }), make("span")];
    line.append(room, text);
    element.append(line);
    return { line, room, text };
  });
  let shown = [];
  const draw = (numbers, state, focus) => {
    const given = [state.query, state.key, state.value, state.mask];
    if (given.some((rows, k) => rows !== shown[k])) {
      lines.forEach(({ room }, k) => (room.textContent = longest(k, numbers, state, ui.t)));
    }
    shown = given;
    const reached = STAGES.slice(0, STAGES.indexOf(focus.stage) + 1);
    const chain = focus.stage === "sum" ? ["sum"] : reached;
    lines.forEach(({ line, text }, k) => {
      const [stage, now] = [chain[k], chain[k] === focus.stage];
      line.className = now ? "now" : "";
      const way = stage && unfolded({ ...focus, stage }, numbers, state, now && focus.asked, ui.t);
      text.textContent = stage ? `${stageName(stage, ui.t)}: ${way}` : "";
    });
  };
  return { element, draw };
}

// The longest text that a line comes to hold: it keeps its room, so that no step moves the page.
function longest(line, numbers, state, t) {
  const stages = line === 0 ? ["dot", "sum"] : [STAGES[line]];
  const texts = orderOf(state).filter(({ stage }) => stages.includes(stage)).map((place) =>
    `${stageName(place.stage, t)}: ${unfolded(place, numbers, state, false, t)}`);
  const most = texts.reduce((best, text) => (text.length > best.length ? text : best));
  return `${most} 00000`; // a shorter text may be broken less luckily
}

function gridPane(ui) {
  const grids = {};
  for (const name of ["query", "key", "value"]) {
    const write = (i, d, text) => changeNumber(ui, name, i, d, text);
    grids[name] = new NumberGrid(ui, ui.t(name), { edit: write });
  }
  const turn = (i, j) => edit(ui, { mask: replaced(ui.state.mask, i, j, !ui.state.mask[i][j]) });
  grids.mask = new NumberGrid(ui, ui.t("mask"), { pick: turn });
  for (const stage of STAGES) {
    const pick = (i, column) => ui.set(changesTo({ stage, i, column }));
    grids[RESULTS[stage]] = new NumberGrid(ui, ui.t(RESULTS[stage]), { pick });
  }
  const element = make("div");
  for (const names of [["query", "key", "scores", "scaled"], ["mask", "masked", "weights", "value", "output"]]) {
    const line = make("div", { className: "grids" });
    line.append(...names.map((name) => grids[name].element));
    element.append(line);
  }
  const draw = (numbers, state, focus) => {
    for (const [name, grid] of Object.entries(grids)) grid.show(cellsOf(name, numbers, state, focus, ui.t));
  };
  return { element, draw };
}

const replaced = (rows, i, j, value) =>
  rows.map((row, a) => (a === i ? row.map((old, b) => (b === j ? value : old)) : row));

function changeNumber(ui, name, i, d, text) {
  const value = parsed(text);
  if (!Number.isFinite(value)) return ui.refuse(ui.t("number_needed", { got: text }));
  edit(ui, { [name]: replaced(ui.state[name], i, d, value) });
}

const givenIn = ({ query, key, value, mask }) => ({ query, key, value, mask });

/** Change numbers so that they can be put back. */
function edit(ui, changes) {
  if (ui.set(changes)) ui.edited = JSON.stringify(givenIn(ui.state));
}

// What a matrix shows: its numbers, those that take part now, and those still to come.
function cellsOf(name, numbers, state, focus, t) {
  const values = { ...state, ...numbers }[name];
  const stage = STAGES.find((one) => RESULTS[one] === name);
  const from = (i, column) => (stage ? order({ stage, i, column }, focus) : -1);
  const text = (i, column) => {
    if (name === "mask") return t(values[i][column] ? "may" : "may_not");
    if (!stage) return typed(Number(values[i][column]));
    if (focus.asked && from(i, column) === 0) return "?";
    return state.predict && from(i, column) > 0 ? "·" : fixed(values[i][column]);
  };
  return {
    rows: rowNames(name, state),
    columns: FEATURES.includes(name) ? values[0].map((_, d) => String(d)) : state.tokens,
    text,
    part: (i, column) => partOf(name, i, column, paceOf(state), focus),
    later: (i, column) => from(i, column) > 0,
  };
}

function partOf(name, row, column, pace, focus) {
  const link = LINKS[focus.stage][name];
  const meets = (axis, at) => {
    if (axis === null || pace === "stage") return true;
    return axis === "i" ? at === focus.i : pace === "row" || at === focus.column;
  };
  if (!link || !meets(link[0], row) || !meets(link[1], column)) return "";
  return name === RESULTS[focus.stage] ? "to" : "from";
}

function questionPane(ui) {
  const t = ui.t;
  const [told, verdict] = [make("span"), make("p", { role: "status" })];
  const input = make("input", { type: "text", inputMode: "decimal", size: 8 });
  const label = labelled("", input);
  label.firstChild.replaceWith(told);
  const score = { right: 0, asked: 0 };
  const judge = () => {
    const state = ui.state;
    const focus = focusOf(state);
    const guess = parsed(input.value);
    if (Number.isNaN(guess) && input.value.trim().toLowerCase() !== "nan") {
      return ui.refuse(t("number_needed", { got: input.value }));
    }
    verdict.textContent = verdictOn(guess, valueAt(ui.numbers, focus), score, named(focus, state, t), t);
    input.value = "";
    ui.set(changesTo(focus));
  };
  const button = ui.button(t("judge"), judge);
  ui.keys(input, (event) => event.key === "Enter" && judge());
  const element = make("div", { className: "asked" });
  element.append(ui.row(label, button), verdict);
  const draw = (numbers, state, focus) => {
    if (element.hidden !== !state.predict) verdict.textContent = "";
    element.hidden = !state.predict;
    for (const control of [input, button]) ui.enable(control, focus.asked);
    told.textContent = focus.asked ? t("ask", { number: named(focus, state, t) }) : t("at_the_end");
  };
  return { element, draw };
}

// Right means what rounding by hand can explain: 0.02, or one part in a hundred.
function verdictOn(guess, truth, score, number, t) {
  const error = Object.is(guess, truth) || guess === truth ? 0 : Math.abs(guess - truth);
  const right = error <= 0.02 + 0.01 * Math.min(Math.abs(truth), 1e9);
  score.asked += 1;
  score.right += right ? 1 : 0;
  const values = { number, value: fixed(truth), guess: show(guess, 4), error: show(error, 2), ...score };
  return t(right ? "judged_right" : "judged_wrong", values);
}

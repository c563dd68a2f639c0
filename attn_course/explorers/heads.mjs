// HeadsExplorer: what the number of heads changes at a fixed d_model, and what it does not.

import { cut, kept, make, show, softmaxInPlace, unpack } from "./core.mjs";
import { HeatMap, Plot, Surface, canvasOf, outline, pixelOf, ramp, stepOf } from "./charts.mjs";

const FEW = 8; // heads that are named one by one
const BYTES = 4; // of a float32
const SHOWN = 48; // features of the output's map; its table has all
const MOST_WEIGHTS = 2 ** 20; // of all heads together: more take longer than a frame

export const divisors = (whole) =>
  Array.from({ length: whole }, (_, k) => k + 1).filter((count) => whole % count === 0);

/** The head counts that the slider offers: the small ones all, the large ones if they divide. */
export const offered = (state) => {
  const { d_model } = state;
  const small = Array.from({ length: Math.min(d_model, 16) }, (_, k) => k + 1);
  const all = [...small, ...divisors(d_model).filter((count) => count > 16)];
  return all.filter((count) => count <= mostHeads(state));
};

const mostHeads = ({ tensors }) => Math.floor(MOST_WEIGHTS / tensors.query.shape[0] ** 2);

export function check(state) {
  const { d_model, num_heads, head, off, tensors, tokens } = state;
  const [n, width] = tensors.query.shape;
  if (d_model !== width) return ["d_model_fixed", { width, got: d_model }];
  if (tokens.length !== n) return ["tokens_count", { n, got: tokens.length }];
  const count = Number.isInteger(num_heads) && num_heads >= 1 && num_heads <= d_model;
  if (!count) return ["num_heads_allowed", { d_model, got: num_heads }];
  const most = mostHeads(state);
  if (num_heads > most) return ["too_many_weights", { n, most, got: num_heads }];
  const wrong = [head, ...off].find((k) => !Number.isInteger(k) || k < 0 || k >= d_model);
  return wrong === undefined ? null : ["head_allowed", { last: d_model - 1, got: wrong }];
}

/** Sizes and costs at any count; weights, output and its change where the count divides. */
export function compute(state) {
  const { tensors, num_heads, d_model, causal, off, biases } = state;
  const [n] = tensors.query.shape;
  const d_k = Math.floor(d_model / num_heads);
  const numbers = {
    n, d_k, left_over: d_model - d_k * num_heads, divisors: divisors(d_model),
    parameters: 4 * d_model ** 2 + biases * d_model,
    // four projections, the scores, the weighted sums: none of them knows the head count
    multiply_adds: 4 * n * d_model ** 2 + 2 * n * n * d_model,
  };
  if (numbers.left_over) return numbers;
  return {
    ...numbers,
    weight_bytes: num_heads * n * n * BYTES,
    weights: attended(state).weights,
    change: changed(tensors, num_heads, causal, off),
    // a wide output takes longer than all the rest, and only its table needs all of it
    get output() {
      return outputOf(state, d_model);
    },
  };
}

const opened = new WeakMap();

// The packed tensors, unpacked once, the keys by columns: { query, keys, value, W_o, b_o }.
function tensorsOf(tensors) {
  if (!opened.has(tensors)) {
    const entries = Object.entries(tensors).map(([name, one]) => [name, Float64Array.from(unpack(one).values)]);
    const all = Object.fromEntries(entries);
    const [n, width] = tensors.query.shape;
    const keys = all.key.map((_, at) => all.key[(at % n) * width + Math.floor(at / n)]);
    opened.set(tensors, { ...all, keys });
  }
  return opened.get(tensors);
}

// out[o] += Σ_d row[d] matrix[d, o]; the matrix begins at `start`, a row of it is `stride` long.
// Four d at a time: with one, each sum would wait for the one before it. Plain constants, for
// a list taken apart at each step costs more than the arithmetic.
function addProduct(out, row, matrix, start, stride) {
  let [d, p] = [0, start];
  for (; d + 3 < row.length; d += 4, p += 4 * stride) {
    const q = p + stride, r = q + stride, s = r + stride;
    const a = row[d], b = row[d + 1], c = row[d + 2], e = row[d + 3];
    for (let o = 0; o < out.length; o++) {
      out[o] += a * matrix[p + o] + b * matrix[q + o] + c * matrix[r + o] + e * matrix[s + o];
    }
  }
  for (; d < row.length; d++, p += stride) {
    for (let o = 0; o < out.length; o++) out[o] += row[d] * matrix[p + o];
  }
}

// The same for two rows at once, or for one that is left: what is read of the matrix serves both.
function addProducts([out, next], [row, below], matrix, start, stride) {
  let [d, p] = [0, start];
  for (; next && d + 3 < row.length; d += 4, p += 4 * stride) {
    const q = p + stride, r = q + stride, s = r + stride;
    const a = row[d], b = row[d + 1], c = row[d + 2], e = row[d + 3];
    const f = below[d], g = below[d + 1], h = below[d + 2], k = below[d + 3];
    for (let o = 0; o < out.length; o++) {
      const x = matrix[p + o], y = matrix[q + o], z = matrix[r + o], w = matrix[s + o];
      out[o] += a * x + b * y + c * z + e * w;
      next[o] += f * x + g * y + h * z + k * w;
    }
  }
  addProduct(out, row.subarray(d), matrix, p, stride);
  if (next) addProduct(next, below.subarray(d), matrix, p, stride);
}

const pairs = (count) =>
  Array.from({ length: Math.ceil(count / 2) }, (_, k) => (2 * k + 1 < count ? [2 * k, 2 * k + 1] : [2 * k]));

/** `make` for tensors, a head count and causal or not, which makes each once as long as the tensors stay. */
function once(make) {
  const made = new WeakMap();
  return ({ tensors, num_heads, causal }) => {
    if (!made.has(tensors)) made.set(tensors, {});
    return (made.get(tensors)[`${num_heads} ${causal}`] ??= make(tensors, num_heads, causal));
  };
}

// The weights (h, i, j), and the weighted values of all heads side by side, (n, d_model).
const attended = once((tensors, num_heads, causal) => {
  const { query, keys, value } = tensorsOf(tensors);
  const [n, width] = tensors.query.shape;
  const d_k = width / num_heads;
  const all = new Float64Array(num_heads * n * n);
  const merged = new Float64Array(n * width);
  const features = (matrix, head, i) => matrix.subarray(i * width + head * d_k, i * width + (head + 1) * d_k);
  const weights = Array.from({ length: num_heads }, (_, head) => pairs(n).flatMap((pair) => {
    const rows = pair.map((i) => all.subarray((head * n + i) * n, (head * n + i + 1) * n));
    addProducts(rows, pair.map((i) => features(query, head, i)), keys, head * d_k * n, n);
    rows.forEach((row, k) => weigh(row, Math.sqrt(d_k), causal ? pair[k] + 1 : n));
    addProducts(pair.map((i) => features(merged, head, i)), rows, value, head * d_k, width);
    return rows;
  }));
  return { weights, merged };
});

// Scores to weights of the first `seen` keys, in their place.
function weigh(row, root, seen) {
  for (let j = 0; j < seen; j++) row[j] /= root;
  softmaxInPlace(row.subarray(0, seen));
  row.fill(0, seen);
}

// (n, columns): what W_o makes of these heads' features, its first columns.
function mix(state, heads, columns) {
  const { tensors, num_heads } = state;
  const { merged } = attended(state);
  const [n, width] = tensors.query.shape;
  const { W_o } = tensorsOf(tensors);
  const d_k = width / num_heads;
  const out = Array.from({ length: n }, () => new Float64Array(columns));
  for (const head of heads) {
    for (const pair of pairs(n)) {
      const features = pair.map((i) => merged.subarray(i * width + head * d_k, i * width + (head + 1) * d_k));
      addProducts(pair.map((i) => out[i]), features, W_o, head * d_k * width, width);
    }
  }
  return out;
}

const headsOf = ({ num_heads }) => Array.from({ length: num_heads }, (_, head) => head);
const present = ({ off, num_heads }) => [...new Set(off)].filter((head) => head < num_heads).sort((a, b) => a - b);
const remaining = (state) => headsOf(state).filter((head) => !state.off.includes(head));

const combined = (one, other, combine) => one.map((row, i) => row.map((part, o) => combine(part, other[i][o])));
const plus = (a, b) => a + b;
const minus = (a, b) => a - b;
const size = (vector) => Math.sqrt(vector.reduce((sum, part) => sum + part * part, 0));

// A head that is off adds nothing, the bias stays.
function outputOf(state, columns) {
  const { b_o } = tensorsOf(state.tensors);
  return mix(state, remaining(state), columns).map((row) => row.map((part, o) => part + b_o[o]));
}

// What all heads together add, and how long that is with the bias: no switch of a head changes it.
const whole = once(() => ({ sums: null, lengths: null }));

// How long what the heads that are off would add is, as a share of the whole output.
const changed = kept((tensors, num_heads, causal, off) => {
  const state = { tensors, num_heads, causal, off };
  if (!present(state).length) return new Float64Array(tensors.query.shape[0]);
  const lost = lostIn(state);
  const { lengths } = whole(state);
  return lost.map((row, i) => size(row) / lengths[i]);
});

function lostIn(state) {
  const all = whole(state);
  const [off, on] = [present(state), remaining(state)];
  const mixed = (heads) => mix(state, heads, state.tensors.query.shape[1]);
  if (all.sums) return off.length <= on.length ? mixed(off) : combined(all.sums, mixed(on), minus);
  const lost = mixed(off);
  const { b_o } = tensorsOf(state.tensors);
  all.sums = combined(lost, mixed(on), plus);
  all.lengths = all.sums.map((row) => size(row.map((part, o) => part + b_o[o])));
  return lost;
}

// -- in words ---------------------------------------------------------------------------

const grouped = (count) => Math.round(count).toLocaleString("en-US");
const chosen = ({ head, num_heads }) => Math.min(head, num_heads - 1);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

export function describe(numbers, state, t) {
  const { d_model, num_heads, tokens } = state;
  const { d_k, left_over, parameters } = numbers;
  if (left_over) return t("does_not_divide", told(numbers, state));
  const head = chosen(state);
  const [i, j] = largest(numbers.weights[head]);
  const weight = numbers.weights[head][i][j];
  const said = t(Number.isNaN(weight) ? "described_nan" : "described", {
    num_heads, d_k, d_model, parameters: grouped(parameters), head,
    weight: show(weight, 2), from_token: cut(tokens[i]), to_token: cut(tokens[j]),
  });
  const off = present(state);
  if (!off.length) return said;
  const percent = show(100 * mean(numbers.change), 2);
  return `${said} ${t("described_off", { off: listed(off, num_heads, t), percent })}`;
}

/** The heads that are off; of many only how many. */
const listed = (off, num_heads, t) =>
  off.length > FEW ? t("off_count", { count: off.length, num_heads }) : off.join(", ");

// The longest that there may be to say, to keep room for it.
function longestDescription({ divisors, parameters }, { d_model, tokens }, t) {
  const longer = (best, text) => (text.length > best.length ? text : best);
  const [word, num_heads] = [cut(tokens.reduce(longer)), d_model];
  const said = t("described", {
    num_heads, d_k: d_model, d_model, parameters: grouped(parameters), head: d_model, weight: 0.123,
    from_token: word, to_token: word,
  });
  const off = t("described_off", { off: Array(FEW).fill(d_model).join(", "), percent: 0.123 });
  const at = { d_k: d_model, left_over: d_model, divisors };
  return longer(`${said} ${off}`, t("does_not_divide", { ...told(at, { d_model, num_heads }), quotient: 12.34 }));
}

const told = ({ d_k, left_over, divisors }, { d_model, num_heads }) => ({
  d_model, num_heads, d_k, used: d_k * num_heads, left_over,
  quotient: show(d_model / num_heads, 4), divisors: divisors.join(", "),
});

function largest(rows) {
  let [best, at] = [-Infinity, [0, 0]];
  rows.forEach((row, i) => row.forEach((weight, j) => {
    if (weight > best) [best, at] = [weight, [i, j]];
  }));
  return at;
}

// What is paid with one head and with these: [word, [one head, now]]; NaN where a layer with
// these heads cannot be made.
function costs({ n, left_over, parameters, multiply_adds, weight_bytes }) {
  const now = (count) => (left_over ? NaN : count);
  return [
    ["parameters", [parameters, now(parameters)]],
    ["multiply_adds", [multiply_adds, now(multiply_adds)]],
    ["weight_bytes", [n * n * BYTES, now(weight_bytes)]],
  ];
}

export function tables(numbers, state, t) {
  const { tokens, num_heads } = state;
  const counts = {
    title: t("costs"),
    columns: [t("cost"), t("one_head"), t("these_heads", { num_heads })],
    rows: costs(numbers).map(([name, both]) => [t(name), ...both]),
  };
  if (numbers.left_over) return [counts];
  const head = chosen(state);
  return [
    counts,
    {
      title: t("map_of", { head }),
      columns: [t("query_axis"), ...tokens],
      rows: numbers.weights[head].map((row, i) => [tokens[i], ...row]),
    },
    {
      title: t("output"),
      columns: [t("token"), t("change"), ...Array.from(numbers.output[0], (_, o) => String(o))],
      rows: numbers.output.map((row, i) => [tokens[i], numbers.change[i], ...row]),
    },
  ];
}

// -- the path through the layer, and its price ------------------------------------------

// Each step: [word, code, axes, sizes]; sizes are numbers, or null where there are none.
function steps({ n, d_k, left_over }, { d_model, num_heads }) {
  const from = (...sizes) => (left_over ? null : sizes);
  return [
    ["project", "q, k, v = x W_q, x W_k, x W_v", "(b, n, d_model)", [1, n, d_model]],
    ["split", "b n (h d) -> b h n d", "(b, h, n, d_k)", from(1, num_heads, n, d_k)],
    ["attend", "weights = softmax(q kᵀ / √d_k)", "(b, h, n, n)", from(1, num_heads, n, n)],
    ["sum", "heads = weights v", "(b, h, n, d_k)", from(1, num_heads, n, d_k)],
    ["merge", "b h n d -> b n (h d)", "(b, n, d_model)", from(1, n, d_model)],
    ["mix", "output = merged W_o", "(b, n, d_model)", from(1, n, d_model)],
  ];
}

function path(ui) {
  const list = make("ol", { className: "row" });
  list.style.cssText = "list-style: none; padding: 0; align-items: stretch";
  const lines = steps({}, {}).map(([word, code]) => {
    const item = make("li");
    item.style.cssText = "flex: 1 1 15em; border-left: 3px solid var(--line); padding-left: .6em";
    const sizes = make("strong");
    const text = [make("span", { textContent: ui.t(word) }), make("code", { textContent: code }), sizes];
    for (const part of text) part.style.display = "block";
    item.append(...text);
    list.append(item);
    return [item, sizes];
  });
  return [list, (numbers, state) => {
    steps(numbers, state).forEach(([, , axes, sizes], k) => {
      const [item, place] = lines[k];
      const broken = k === 1 ? ui.t("no_whole", told(numbers, state)) : ui.t("not_reached");
      place.textContent = sizes ? `${axes} = (${sizes.join(", ")})` : broken;
      place.style.color = sizes ? "" : "var(--wrong)";
      item.style.borderLeftStyle = sizes ? "solid" : "dashed";
    });
  }];
}

function bill(ui) {
  const table = make("table");
  const head = table.createTHead().insertRow();
  const titles = ["cost", "one_head", "these_heads"].map((word) => {
    const cell = make("th", { scope: "col", textContent: ui.t(word) });
    head.append(cell);
    return cell;
  });
  const body = table.createTBody();
  const lines = ["parameters", "multiply_adds", "weight_bytes"].map((word) => {
    const row = body.insertRow();
    row.append(make("th", { scope: "row", textContent: ui.t(word) }));
    return [row.insertCell(), row.insertCell()];
  });
  const place = make("div", { className: "scroll", tabIndex: 0, role: "group" }); // for large text
  place.setAttribute("aria-label", ui.t("costs"));
  place.append(table);
  return [place, (numbers, { num_heads, d_model }) => {
    titles[2].textContent = ui.t("these_heads", { num_heads });
    // as wide as the largest of all counts makes them, so that no count moves the page
    const { n, parameters, multiply_adds } = numbers;
    const most = [parameters, multiply_adds, d_model * n * n * BYTES].map((count) => grouped(count).length);
    for (const title of titles.slice(1)) title.style.minWidth = `calc(${Math.max(...most)}ch + 1.2em)`;
    costs(numbers).forEach(([, both], k) => both.forEach((count, at) => {
      lines[k][at].textContent = Number.isNaN(count) ? "–" : grouped(count);
    }));
  }];
}

// -- pictures ---------------------------------------------------------------------------

// The d_model features of a token, cut into heads; what is left over is hatched.
function drawStrip(pen, width, height, colours, em, { numbers, state }) {
  const { d_model, num_heads } = state;
  const wide = width / d_model; // of a feature
  const w = numbers.d_k * wide; // of a head
  const off = present(state);
  for (let k = 0; k < num_heads; k++) {
    pen.fillStyle = k % 2 ? colours.faint : colours.paper;
    pen.fillRect(k * w, 0, w, height);
    if (off.includes(k)) cross(pen, k * w, 0, w, height, colours);
  }
  for (let d = num_heads * numbers.d_k; d < d_model; d++) cross(pen, d * wide, 0, wide, height, colours);
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  for (let d = 0; wide > 4 && d <= d_model; d++) pen.strokeRect(d * wide, 0, 0, 0.3 * height);
  pen.strokeRect(0.5, 0.5, width - 1, height - 1);
  pen.fillStyle = colours.ink;
  pen.textAlign = "center";
  const every = Math.ceil((1.4 * em) / w);
  for (let k = 0; k < num_heads; k += every) pen.fillText(k, (k + 0.5) * w, 0.66 * height);
  outline(pen, chosen(state) * w + 2, 2, w - 4, height - 4, colours);
}

function cross(pen, x, y, width, height, colours) {
  pen.strokeStyle = colours.wrong;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + width, y + height);
  pen.moveTo(x + width, y);
  pen.lineTo(x, y + height);
  pen.stroke();
}

/** All heads as small maps: arrow keys choose one, Enter or Space switches it off and on. */
class HeadGrid extends Surface {
  constructor(ui, { label, height, onHead, onSwitch }) {
    super(ui, label, height, (...all) => this.drawGrid(...all));
    Object.assign(this, { onHead, onSwitch, sheet: null });
    const { canvas } = this;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    ui.keys(canvas, (event) => this.take(event));
    ui.listen(canvas, "click", ({ offsetX, offsetY }) => {
      const { columns, tile, tall, count } = this.grid ?? {};
      const [row, column] = [Math.floor(offsetY / tall), Math.floor(offsetX / tile)];
      const at = row * columns + column;
      if (column < columns && at < count) this.onHead(at);
    });
  }

  take(event) {
    const { columns = 1, count = 0 } = this.grid ?? {};
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const at = this.data.head + (moves[event.key] ?? 0);
    if (event.key in moves) at >= 0 && at < count && this.onHead(at);
    else if (event.key === "Home") this.onHead(0);
    else if (event.key === "End") this.onHead(Math.max(count - 1, 0));
    else if (event.key === "Enter" || event.key === " ") this.onSwitch(this.data.head);
    else return;
    event.preventDefault();
  }

  /** maps: (h, i, j), or null with a text instead; off: heads; head: the chosen one. */
  show(data) {
    this.data = data;
    this.label(data.text);
  }

  drawGrid(pen, width, height, colours) {
    if (!this.data) return;
    const { maps, text, off, head, causal } = this.data;
    this.grid = null;
    if (!maps) return wrapped(pen, text, width, this.em, colours);
    this.grid = tiled(maps.length, width, height, this.em);
    const { columns, tile, tall, title, count } = this.grid;
    const side = Math.max(tile - 0.3 * this.em, 4);
    this.paintSheet(maps, causal, colours);
    const { picture, across } = this.sheet;
    const n = maps[0].length;
    pen.imageSmoothingEnabled = false;
    for (let k = 0; k < count; k++) {
      const [x, y] = [(k % columns) * tile + 3, Math.floor(k / columns) * tall + title];
      const from = [(k % across) * n, Math.floor(k / across) * n, n, n];
      pen.globalAlpha = off.includes(k) ? 0.25 : 1;
      pen.drawImage(picture, ...from, x, y, side - 3, side - 3);
      pen.globalAlpha = 1;
      if (off.includes(k)) cross(pen, x, y, side - 3, side - 3, colours);
      if (title) this.write(k, x, y, tile, off.includes(k), colours);
      if (k === head) outline(pen, x, y, side - 3, side - 3, colours, 3);
    }
  }

  write(k, x, y, tile, off, colours) {
    const pen = this.canvas.getContext("2d");
    pen.fillStyle = colours.ink;
    pen.textAlign = "left";
    pen.fillText(this.ui.t(off ? "head_off" : "head_on", { head: k }), x, y - 0.8 * this.em, tile - 4);
  }

  // All maps in one image, a pixel a cell, made anew only for other maps or another theme.
  paintSheet(maps, causal, colours) {
    if (this.sheet?.maps === maps && this.sheet.colours === colours) return;
    const { pixels } = ramp();
    const [hidden, unknown] = [colours.faint, colours.wrong].map((hex) =>
      pixelOf([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16))));
    const across = Math.ceil(Math.sqrt(maps.length));
    const n = maps[0].length;
    const image = new ImageData(across * n, Math.ceil(maps.length / across) * n);
    const points = new Uint32Array(image.data.buffer);
    maps.forEach((rows, k) => rows.forEach((row, i) => {
      const from = (Math.floor(k / across) * n + i) * across * n + (k % across) * n;
      for (let j = 0; j < n; j++) {
        const colour = Number.isNaN(row[j]) ? unknown : pixels[stepOf(row[j], [0, 1])];
        points[from + j] = causal && j > i ? hidden : colour;
      }
    }));
    this.sheet = { maps, colours, across, picture: canvasOf(image) };
  }
}

// As many columns as make the tiles largest; titles where there is room for them.
function tiled(count, width, height, em) {
  const plans = [1.6 * em, 0].map((title) => {
    const sizes = Array.from({ length: count }, (_, k) => {
      const [columns, rows] = [k + 1, Math.ceil(count / (k + 1))];
      return { columns, tile: Math.min(width / columns, height / rows - title) };
    });
    const best = sizes.reduce((one, other) => (other.tile > one.tile ? other : one));
    return { ...best, title: title || 3, tall: best.tile + title, count };
  });
  return plans[0].tile > 3 * em ? plans[0] : { ...plans[1], title: 0 };
}

function wrapped(pen, text, width, em, colours) {
  pen.fillStyle = colours.ink;
  pen.textAlign = "left";
  let [line, y] = ["", em];
  for (const word of [...text.split(" "), null]) {
    if (word === null || pen.measureText(`${line} ${word}`).width > width - em) {
      pen.fillText(line, 0.3 * em, y, width);
      [line, y] = [word ?? "", y + 1.4 * em];
    } else line = line ? `${line} ${word}` : word;
  }
}

// -- the view ---------------------------------------------------------------------------

export function view(ui) {
  const t = ui.t;
  const [list, walk] = path(ui);
  const [table, charge] = bill(ui);
  const strip = new Surface(ui, t("strip"), 2.4, (pen, width, height, colours) =>
    drawStrip(pen, width, height, colours, strip.em, ui));
  const source = make("p");
  const facts = ui.row(ui.group(t("costs"), table), ui.group(t("example"), source));
  facts.style.alignItems = "start";
  const heads = switches(ui);
  const map = new HeatMap(ui, {
    label: t("map"), rows: t("query_axis"), columns: t("key_axis"), height: 20, onPoint: () => {},
  });
  const change = new Plot(ui, { label: t("change"), y: { label: t("change"), low: 0 } });
  const output = new HeatMap(ui, {
    label: t("output"), rows: t("token"), height: 13,
    columns: t("feature"),
  });
  const pictures = ui.row(ui.group(t("map"), map.element), ui.group(t("heads"), heads.grid.element));
  ui.body.append(
    ui.row(
      ui.slider({ name: "num_heads", label: t("num_heads"), values: offered, text: String }),
      ui.toggle({ name: "causal", label: t("causal") }),
    ),
    ui.group(t("strip"), strip.element), ui.group(t("path"), list),
    facts,
    pictures, make("p", { textContent: t("hint") }), heads.buttons,
    ui.row(ui.group(t("change_title"), change.element), ui.group(t("output"), output.element)),
  );
  return (numbers, state) => {
    ui.keepRoom(longestDescription(numbers, state, t));
    walk(numbers, state);
    charge(numbers, state);
    heads.follow(numbers, state);
    source.textContent = t(`source_${state.source}`, { d_model: state.d_model });
    output.columns = t(state.d_model > SHOWN ? "first_features" : "feature", { count: SHOWN });
    strip.label(stripText(numbers, state, t));
    showMaps(numbers, state, map, output, change);
  };
}

const larger = (most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most);

function stripText(numbers, state, t) {
  const word = numbers.left_over ? "strip_left" : "strip_label";
  return t(word, told(numbers, state));
}

function showMaps(numbers, state, map, output, change) {
  const { tokens, causal } = state;
  const blank = tokens.map(() => tokens.map(() => NaN));
  map.show({
    values: numbers.weights?.[chosen(state)] ?? blank, rowLabels: tokens, columnLabels: tokens,
    seen: (i, j) => Boolean(numbers.weights) && (!causal || j <= i),
  });
  // of wide outputs the first features: the cells of all would be too small to see
  const values = numbers.weights ? outputOf(state, Math.min(state.d_model, SHOWN)) : blank;
  const top = values.reduce((most, row) => row.reduce(larger, most), 0);
  output.show({ values, rowLabels: tokens, diverging: true, limits: [-top, top], seen: () => Boolean(numbers.weights) });
  const ys = Array.from(numbers.change ?? tokens, (share) => (numbers.change ? share : 0));
  change.show({ bars: [{ name: "", ys }], xLabels: tokens, y: { high: Math.max(1, ...ys.filter(Number.isFinite)) } });
}

// The small maps and the buttons that switch heads off and on.
function switches(ui) {
  const t = ui.t;
  const now = () => chosen(ui.state);
  const flip = (head) => {
    const { off } = ui.state;
    ui.set({ off: off.includes(head) ? off.filter((other) => other !== head) : [...off, head] });
  };
  const others = () => headsOf(ui.state).filter((head) => head !== now());
  const grid = new HeadGrid(ui, {
    label: t("heads"), height: 20, onHead: (head) => ui.set({ head }), onSwitch: flip,
  });
  const one = ui.button("", () => flip(now()));
  const only = ui.button("", () => ui.set({ off: others() }));
  const all = ui.button(t("all_on"), () => ui.set({ off: [] }));
  return {
    grid,
    buttons: ui.row(one, only, all),
    follow(numbers, state) {
      const [head, off] = [now(), present(state)];
      one.textContent = t(off.includes(head) ? "switch_on" : "switch_off", { head });
      only.textContent = t("only", { head });
      for (const button of [one, only, all]) ui.enable(button, Boolean(numbers.weights));
      const values = { ...told(numbers, state), head, off: listed(off, state.num_heads, t) || t("none") };
      const text = t(numbers.weights ? "heads_label" : "does_not_divide", values);
      grid.show({ maps: numbers.weights ?? null, text, off, head, causal: state.causal });
    },
  };
}

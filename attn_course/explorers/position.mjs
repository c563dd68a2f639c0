// PositionExplorer: four ways to tell attention where a token stands, and a token to move.

import { cut, dot, kept, make, normals, show, softmax, toNumbers } from "./core.mjs";
import { HeatMap, Plot, Surface, outline, shorten } from "./charts.mjs";

const KINDS = ["sinusoidal", "learned", "rope", "alibi"];
const LONGEST = 128; // positions, and features
const BASES = [10, 100, 1000, 10000, 100000, 1000000];

const drawn = {};

// `rows` vectors of the widest size, of which d_model takes the first features.
function vectors(seed, rows) {
  const name = `${seed} ${rows}`;
  if (!drawn[name]) {
    const all = normals(seed, rows * LONGEST);
    drawn[name] = Array.from({ length: rows }, (_, i) => all.slice(i * LONGEST, (i + 1) * LONGEST));
  }
  return drawn[name];
}

// The same word has the same vector: half its own, and a whole that all words share.
const content = kept((x, tokens, d_model) => {
  if (x) return toNumbers(x);
  const [common, ...own] = vectors(0, tokens.length + 1);
  return tokens.map((word) => {
    const mine = own[tokens.indexOf(word)];
    return Array.from({ length: d_model }, (_, d) => common[d] + 0.5 * mine[d]);
  });
});

// Drawn as large as the sinusoids are on average, as before any training.
const learned = (table, d_model, max_len) =>
  table
    ? toNumbers(table)
    : vectors(1, LONGEST).slice(0, max_len).map((row) => row.slice(0, d_model).map((z) => z * Math.SQRT1_2));

export function check(state) {
  const { kind, n, d_model, base, num_heads, tokens } = state;
  const within = (name, low, high) => {
    const fits = Number.isInteger(state[name]) && state[name] >= low && state[name] <= high;
    return fits ? null : ["within", { name, low, high, got: state[name] }];
  };
  if (!KINDS.includes(kind)) return ["kind_allowed", { allowed: KINDS.join(", "), got: kind }];
  if (!(base > 1 && base <= 1e9)) return ["base_allowed", { got: base }];
  if (d_model % 2) return ["even", { got: d_model }];
  return (
    within("n", 2, LONGEST) ?? within("d_model", 2, LONGEST) ?? within("max_len", 1, LONGEST) ??
    within("num_heads", 1, 64) ?? within("head", 0, num_heads - 1) ??
    within("token", 0, tokens.length - 1) ?? within("position", 0, n - 1) ??
    within("dimension", 0, LONGEST - 1) ?? fixed(state) ?? placed(state)
  );
}

// What the learner's own data decide.
function fixed({ x, table, tokens, d_model, max_len }) {
  for (const [name, given, rows] of [["x", x, tokens.length], ["table", table, max_len]]) {
    if (!given || (given.length === rows && given[0].length === d_model)) continue;
    return ["wrong_shape", { name, expected: `(${rows}, ${d_model})`, got: `(${given.length}, ${given[0].length})` }];
  }
  return null;
}

function placed({ places, tokens, n }) {
  if (places.length !== tokens.length) return ["places_count", { count: tokens.length, got: places.length }];
  const wrong = places.find((place, k) => !(place >= 0 && place < n) || places.indexOf(place) !== k);
  return wrong === undefined ? null : ["places_allowed", { last: n - 1, got: wrong }];
}

/** Where each token stands now: the chosen one at `position`; whoever stood there swaps. */
export const standing = ({ places, token, position }) =>
  places.map((place, k) => (k === token ? position : place === position ? places[token] : place));

/** ALiBi's slopes: a geometric sequence, between powers of two the published rule. */
export function slopes(num_heads) {
  const power = 2 ** Math.floor(Math.log2(num_heads));
  const sequence = Array.from({ length: power }, (_, k) => 2 ** ((-8 * (k + 1)) / power));
  const between = Array.from({ length: power }, (_, k) => 2 ** ((-4 * (2 * k + 1)) / power));
  return [...sequence, ...between].slice(0, num_heads);
}

const encodingsOf = ({ kind, n, d_model, base, head, num_heads, max_len, table }) =>
  encodings(kind, n, d_model, base, slopes(num_heads)[head], max_len, table);

// A token that moves leaves the table as it is.
const encodings = kept((kind, n, d_model, base, slope, max_len, table) => {
  const rows = (cell, width = d_model) =>
    Array.from({ length: n }, (_, place) => Array.from({ length: width }, (_, d) => cell(place, d)));
  if (kind === "learned") {
    const known = learned(table, d_model, max_len);
    return rows((place, d) => (place < max_len ? known[place][d] : NaN));
  }
  if (kind === "alibi") return rows((i, j) => -slope * Math.abs(i - j), n);
  const waves = kind === "sinusoidal" ? [Math.sin, Math.cos] : [Math.cos, Math.sin];
  const turns = Array.from({ length: d_model }, (_, d) => base ** (-(d - (d % 2)) / d_model));
  return rows((place, d) => waves[d % 2](place * turns[d]));
});

// The dimension whose wave is shown, and the other of its pair; a smaller d_model keeps both.
function shownPair({ dimension, d_model }) {
  const shown = Math.min(dimension, d_model - 1);
  return [shown, shown % 2 ? shown - 1 : shown + 1];
}

const shownHeads = ({ head, num_heads }) => [head, 0, num_heads - 1];

/** The table of positions, two of its waves, similarity from here and from before, attention. */
export function compute(state) {
  const { kind, position, places, token, num_heads, n } = state;
  const table = encodingsOf(state);
  const home = places[token];
  const now = standing(state);
  const column = (d) => table.map((row) => row[d]);
  // the slope of every head, over the positions that the chosen token looks at
  const slope = slopes(num_heads);
  const biases = (h) => table.map((_, j) => -slope[h] * Math.abs(position - j));
  const waves = kind === "alibi" ? shownHeads(state).map(biases) : shownPair(state).map(column);
  return {
    home, now, table, waves,
    row: table[position], row_home: table[home],
    similarity: similarity(table, position, state),
    similarity_home: similarity(table, home, state),
    attention: attend(state, now, table), attention_home: attend(state, places, table),
    attention_without: attend(state, null),
    lost: kind === "learned" ? now.filter((place) => place >= state.max_len) : [],
    beyond: Math.max(0, n - state.max_len),
  };
}

// How alike two positions are: the cosine of their rows; for RoPE that of one vector of ones
// turned to both; for ALiBi what is added to the score.
function similarity(table, from, { kind }) {
  if (kind === "alibi") return table[from];
  const length = lengths(table);
  return table.map((row, j) => dot(table[from], row) / (length[from] * length[j]));
}

const lengths = kept((table) => table.map((row) => Math.sqrt(dot(row, row))));

// The weights of the chosen token over all tokens; without places, by what they are alone.
function attend(state, places, table) {
  const { kind, token, d_model, num_heads, head, max_len } = state;
  if (places && kind === "learned" && places.some((place) => place >= max_len)) return places.map(() => NaN);
  const x = content(state.x, state.tokens, d_model);
  const put = places ? x.map((vector, k) => withPlace(vector, places[k], table, state)) : x;
  const slope = slopes(num_heads)[head];
  const bias = (k) => (places && kind === "alibi" ? -slope * Math.abs(places[token] - places[k]) : 0);
  return softmax(put.map((vector, k) => dot(put[token], vector) / Math.sqrt(d_model) + bias(k)));
}

function withPlace(vector, place, table, { kind }) {
  if (kind === "alibi") return vector;
  const row = table[place];
  return kind === "rope" ? turned(vector, row) : vector.map((feature, d) => feature + row[d]);
}

// (x₂ᵢ cos θ − x₂ᵢ₊₁ sin θ, x₂ᵢ sin θ + x₂ᵢ₊₁ cos θ); a row holds (cos θ, sin θ) for each pair.
const turned = (vector, row) =>
  vector.map((feature, d) =>
    d % 2 ? vector[d - 1] * row[d] + feature * row[d - 1] : feature * row[d] - vector[d + 1] * row[d + 1]);

// -- in words ---------------------------------------------------------------------------

export function describe(numbers, state, t) {
  const { kind, tokens, token, position, max_len } = state;
  const { home } = numbers;
  const key = position === home ? "described_home" : "described";
  const said = t(key, { word: cut(tokens[token]), position, home });
  const values = { last: max_len - 1, max_len, places: numbers.lost.join(", ") };
  if (numbers.lost.length) return `${said} ${t("lost", values)}`;
  const unseen = kind !== "learned" && numbers.now.some((place) => place >= max_len);
  return [said, looks(numbers, state, t), unseen ? t("unseen", values) : ""].filter(Boolean).join(" ");
}

// Whom the chosen token attends to besides itself.
function looks({ attention, attention_home, now, home }, { tokens, token, places, position }, t) {
  if (tokens.length < 2) return "";
  const others = tokens.map((_, k) => k).filter((k) => k !== token);
  const first = (weights) => others.reduce((best, k) => (weights[k] > weights[best] ? k : best));
  const [to, to_home] = [first(attention), first(attention_home)];
  return t(position === home ? "looks_home" : "looks", {
    own: show(attention[token], 2), own_home: show(attention_home[token], 2),
    to: cut(tokens[to]), at: now[to], top: show(attention[to], 2),
    to_home: cut(tokens[to_home]), at_home: places[to_home], top_home: show(attention_home[to_home], 2),
  });
}

// The longest that there may be to say, to keep room for it.
function longestDescription({ tokens, n, max_len, kind }, t) {
  const word = cut(tokens.reduce((best, text) => (text.length > best.length ? text : best)));
  const [at, value] = [n - 1, show(0.0012, 2)];
  const said = t("described", { word, position: at, home: at });
  const weights = { own: value, own_home: value, top: value, top_home: value };
  const looked = t("looks", { ...weights, to: word, to_home: word, at, at_home: at });
  const beyond = n <= max_len ? "" : t(kind === "learned" ? "lost" : "unseen", { max_len, last: at, places: at });
  return [said, looked, beyond].filter(Boolean).join(" ");
}

export function tables(numbers, state, t) {
  const { tokens, position, kind } = state;
  const { home, now, attention, attention_home, attention_without, similarity, similarity_home } = numbers;
  const [here, before] = [t("at_now", { position }), t("at_home", { home })];
  return [
    {
      title: t("attention"),
      columns: [t("token"), t("position"), t("without"), before, here],
      rows: tokens.map((word, k) => [word, now[k], attention_without[k], attention_home[k], attention[k]]),
    },
    {
      title: t(`similarity_${kind}`),
      columns: [t("position"), t("distance"), here, before],
      rows: similarity.map((value, j) => [String(j), j - position, value, similarity_home[j]]),
    },
    {
      title: t(`table_${kind}`),
      columns: [t("position"), ...numbers.table[0].map((_, d) => String(d))],
      rows: numbers.table.map((row, place) => [String(place), ...row]),
    },
  ];
}

// -- the line on which the tokens stand -------------------------------------------------

/**
 * Left and right move the chosen token, up and down choose another; a token can be dragged.
 * onMove(position), onChoose(token).
 */
class TokenLine extends Surface {
  constructor(ui, { label, onMove, onChoose }) {
    super(ui, label, 7.5, (...all) => this.drawTokens(...all));
    Object.assign(this, { onMove, onChoose, boxes: [] });
    const { canvas } = this;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.style.touchAction = "pan-y"; // a finger that goes sideways drags
    ui.keys(canvas, (event) => this.take(event));
    ui.listen(canvas, "pointerdown", (event) => this.grasp(event));
    ui.listen(canvas, "pointermove", (event) => {
      if (canvas.hasPointerCapture(event.pointerId)) this.moveTo(this.placeAt(event.offsetX));
    });
  }

  show(data) {
    this.data = data;
    this.label(data.text);
  }

  take(event) {
    const { position, n, token, tokens } = this.data;
    const moves = { ArrowLeft: position - 1, ArrowRight: position + 1, Home: 0, End: n - 1 };
    const others = { ArrowUp: -1, ArrowDown: 1 };
    if (event.key in moves) this.moveTo(moves[event.key]);
    else if (event.key in others) this.onChoose((token + others[event.key] + tokens.length) % tokens.length);
    else return;
    event.preventDefault();
  }

  // The word under the pointer, else the token nearest to it on the line.
  grasp(event) {
    const { offsetX: x, offsetY: y } = event;
    const { now, token } = this.data;
    const hit = this.boxes.find((box) => x >= box.x && x <= box.x + box.width && Math.abs(y - box.y) < this.em);
    const at = this.placeAt(x);
    const closest = now.reduce((best, place, k) => (Math.abs(place - at) < Math.abs(now[best] - at) ? k : best), 0);
    const grasped = hit?.k ?? closest;
    if (grasped !== token) this.onChoose(grasped);
    this.canvas.setPointerCapture(event.pointerId);
  }

  placeAt(x) {
    const { left, step } = this.area;
    return Math.round((x - left) / step);
  }

  moveTo(place) {
    const { position, n } = this.data;
    const at = Math.min(Math.max(place, 0), n - 1);
    if (at !== position) this.onMove(at);
  }

  drawTokens(pen, width, height, colours) {
    if (!this.data) return;
    const { n, max_len } = this.data;
    const em = this.em;
    const left = 0.8 * em;
    this.area = { left, step: (width - 2 * left) / (n - 1), line: height - 1.8 * em };
    const { step, line } = this.area;
    const end = left + (max_len - 0.5) * step;
    if (max_len < n) this.drawBeyond(pen, end, width - left + 0.4 * em, line, colours);
    pen.strokeStyle = colours.line;
    pen.fillStyle = colours.soft;
    pen.lineWidth = 1;
    pen.textAlign = "center";
    const every = Math.ceil((2.2 * em) / step);
    for (let place = 0; place < n; place++) {
      const x = left + place * step;
      const numbered = place % every === 0;
      pen.strokeRect(x, line, 0, (numbered ? 0.5 : 0.25) * em);
      if (numbered) pen.fillText(place, x, line + 1.2 * em);
    }
    pen.strokeRect(left, line, width - 2 * left, 0);
    this.drawWords(pen, width, colours);
  }

  drawBeyond(pen, from, to, line, colours) {
    const em = this.em;
    pen.fillStyle = colours.faint;
    pen.fillRect(from, line - 4.6 * em, to - from, 4.6 * em);
    pen.strokeStyle = colours.ink;
    pen.setLineDash([4, 3]);
    pen.lineWidth = 1.5;
    pen.strokeRect(from, line - 4.6 * em, 0, 4.6 * em);
    pen.setLineDash([]);
    pen.fillStyle = colours.ink;
    pen.textAlign = to - from > 7 * em ? "left" : "right";
    pen.fillText(this.data.beyond, from + (to - from > 7 * em ? 0.4 : -0.4) * em, line - 5.2 * em);
  }

  // Each word in the lowest row in which it covers no other, on a stem to its place.
  drawWords(pen, width, colours) {
    const { now, tokens, token } = this.data;
    const em = this.em;
    const ends = [-Infinity, -Infinity, -Infinity, -Infinity];
    this.boxes = now
      .map((place, k) => ({ k, at: this.area.left + place * this.area.step }))
      .sort((one, other) => one.at - other.at)
      .map(({ k, at }) => {
        const text = shorten(pen, tokens[k], Math.min(width / 3, 9 * em));
        const wide = pen.measureText(text).width + 0.7 * em;
        const x = Math.min(Math.max(at - wide / 2, 1), width - wide - 1);
        const free = ends.findIndex((end) => end < x - 0.2 * em);
        const row = free < 0 ? ends.length - 1 : free;
        ends[row] = x + wide;
        return { k, at, x, text, width: wide, y: this.area.line - (1.2 + 1.25 * row) * em };
      });
    const front = this.boxes.filter(({ k }) => k === token);
    for (const box of [...this.boxes.filter(({ k }) => k !== token), ...front]) {
      this.drawWord(pen, box, box.k === token, colours);
    }
  }

  drawWord(pen, { text, at, x, y, width }, chosen, colours) {
    const em = this.em;
    pen.strokeStyle = chosen ? colours.accent : colours.line;
    pen.lineWidth = chosen ? 3 : 1.5;
    pen.strokeRect(at, y, 0, this.area.line - y);
    pen.fillStyle = chosen ? colours.accent : colours.paper;
    pen.fillRect(x, y - 0.55 * em, width, 1.1 * em);
    if (chosen) outline(pen, x, y - 0.55 * em, width, 1.1 * em, colours, 2);
    else pen.strokeRect(x, y - 0.55 * em, width, 1.1 * em);
    pen.fillStyle = chosen ? colours.paper : colours.ink;
    pen.textAlign = "center";
    pen.fillText(text, x + width / 2, y);
  }
}

// -- the view ---------------------------------------------------------------------------

// Choosing another token settles the one that was moved where it stands.
const choose = (ui, token) => {
  const now = standing(ui.state);
  ui.set({ token, places: now, position: now[token] });
};

export function view(ui) {
  const t = ui.t;
  const line = new TokenLine(ui, {
    label: t("line"), onMove: (position) => ui.set({ position }), onChoose: (token) => choose(ui, token),
  });
  const back = ui.button(t("back"), () => ui.set({ position: ui.state.places[ui.state.token] }));
  const panels = pictures(ui);
  ui.body.append(
    ui.group(t("line"), line.element, make("p", { textContent: t("hint") })), ui.row(...sliders(ui), back),
    ui.row(panels.attention.group, panels.table.group),
    ui.row(panels.waves.group, panels.similarity.group),
    panels.row.group,
  );
  return (numbers, state) => {
    const { tokens, token, n, max_len, position, kind } = state;
    const spots = tokens.map((word, k) => `${word} ${numbers.now[k]}`).join(", ");
    line.show({
      tokens, token, n, max_len, position, now: numbers.now,
      beyond: t(kind === "learned" ? "no_row" : "untrained"),
      text: t("line_label", { word: tokens[token], position, spots }),
    });
    ui.keepRoom(longestDescription(state, t));
    for (const panel of Object.values(panels)) panel.fill(numbers, state);
  };
}

function sliders(ui) {
  const t = ui.t;
  const evens = Array.from({ length: 16 }, (_, k) => 4 * (k + 1));
  const own = ({ x, table }) => Boolean(x || table);
  return [
    ui.choice({ name: "kind", label: t("kind"), options: KINDS.map((kind) => [kind, t(kind)]) }),
    ui.slider({ name: "position", label: t("position"), high: ({ n }) => n - 1, text: String }),
    ui.slider({
      name: "dimension", label: t("dimension"), high: ({ d_model }) => d_model - 1,
      text: (dimension) => String(Math.min(dimension, ui.state.d_model - 1)),
      usable: ({ kind }) => kind !== "alibi",
    }),
    ui.slider({ name: "n", label: t("n"), low: 2, high: LONGEST, text: String }),
    ui.slider({
      name: "max_len", label: t("max_len"), low: 1, high: LONGEST, text: String, usable: ({ table }) => !table,
    }),
    ui.slider({
      name: "d_model", label: t("d_model"), values: [2, ...evens, 96, 128], text: String, usable: (state) => !own(state),
    }),
    ui.slider({
      name: "base", label: t("base"), values: BASES, text: String,
      usable: ({ kind }) => kind === "sinusoidal" || kind === "rope",
    }),
    ui.slider({
      name: "head", label: t("head"), high: ({ num_heads }) => num_heads - 1, text: String,
      usable: ({ kind }) => kind === "alibi",
    }),
  ];
}

// Each panel: its group, whose heading follows the kind, and fill(numbers, state).
function pictures(ui) {
  const t = ui.t;
  const panel = (title, chart, fill) => {
    const group = ui.group(t(title("sinusoidal")), chart.element);
    const heading = group.querySelector("h4");
    return {
      group,
      fill(numbers, state) {
        heading.textContent = t(title(state.kind));
        group.setAttribute("aria-label", heading.textContent);
        chart.label(heading.textContent);
        fill(numbers, state);
      },
    };
  };
  const plot = (x, y, height = 14) => new Plot(ui, { label: "", x: { label: t(x) }, y, height });
  const attention = plot("token", { label: t("weight"), low: 0, high: 1 }, 18);
  const waves = plot("position", { label: t("value") });
  const similarity = plot("distance", { label: t("value") });
  const row = plot("dimension", { label: t("value") });
  return {
    attention: panel(() => "attention", attention, (numbers, state) => fillAttention(attention, numbers, state, t)),
    table: tablePanel(ui, panel),
    waves: panel((kind) => `waves_${kind}`, waves, (numbers, state) => fillWaves(waves, numbers, state, t)),
    similarity: panel((kind) => `similarity_${kind}`, similarity, (numbers, state) =>
      fillSimilarity(similarity, numbers, state, t)),
    row: panel((kind) => `row_${kind}`, row, (numbers, state) => fillRow(row, numbers, state, t)),
  };
}

/** A map with a line where training ended. */
class EncodingMap extends HeatMap {
  drawMap(pen, width, height, colours) {
    super.drawMap(pen, width, height, colours);
    const { max_len } = this.ui.state;
    const { left, top, cell, rows, columns } = this.area;
    if (max_len >= rows) return;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.setLineDash([4, 3]);
    pen.strokeRect(left - 0.4 * this.em, top + max_len * cell, columns * cell + 0.8 * this.em, 0);
    pen.setLineDash([]);
  }
}

function tablePanel(ui, panel) {
  const t = ui.t;
  const map = new EncodingMap(ui, {
    label: t("encodings"), rows: t("position"), columns: t("dimension"), height: 18,
    onPick: (position, dimension) =>
      ui.set(ui.state.kind === "alibi" ? { position } : { position, dimension }),
  });
  return panel((kind) => `table_${kind}`, map, ({ table }, state) => {
    const { kind, position, n } = state;
    map.name = t(`table_${kind}`);
    map.columns = t(kind === "alibi" ? "key_position" : "dimension");
    const top = largestIn(table) || 1;
    map.show({
      values: table, diverging: true, limits: [-top, top], legend: true,
      seen: (i, j) => !Number.isNaN(table[i][j]),
      cursor: [position, kind === "alibi" ? Math.min(position, n - 1) : shownPair(state)[0]], cross: true,
    });
  });
}

const largestIn = kept((table) =>
  table.reduce((most, row) => row.reduce((top, x) => (Number.isFinite(x) ? Math.max(top, Math.abs(x)) : top), most), 0));

const pairOf = (numbers, state, t) => [t("at_now", { position: state.position }), t("at_home", { home: numbers.home })];

function fillAttention(chart, numbers, state, t) {
  const [here, before] = pairOf(numbers, state, t);
  chart.show({
    bars: [
      { name: t("without"), ys: numbers.attention_without },
      { name: before, ys: numbers.attention_home },
      { name: here, ys: numbers.attention },
    ],
    xLabels: state.tokens,
  });
}

function fillWaves(chart, { waves, table }, state, t) {
  const alibi = state.kind === "alibi";
  const numbered = alibi ? shownHeads(state) : shownPair(state);
  const name = (k) => t(alibi ? "head_line" : "dimension_line", { number: numbered[k] });
  const xs = table.map((_, j) => j);
  chart.show({ lines: waves.map((ys, k) => ({ name: name(k), xs, ys })), marker: state.position });
}

function fillSimilarity(chart, numbers, state, t) {
  const [here, before] = pairOf(numbers, state, t);
  const from = (place) => numbers.table.map((_, j) => j - place);
  chart.show({
    lines: [
      { name: before, xs: from(numbers.home), ys: numbers.similarity_home },
      { name: here, xs: from(state.position), ys: numbers.similarity },
    ],
    marker: 0,
  });
}

function fillRow(chart, numbers, state, t) {
  const [here, before] = pairOf(numbers, state, t);
  const xs = numbers.row.map((_, d) => d);
  chart.show({
    lines: [{ name: before, xs, ys: numbers.row_home }, { name: here, xs, ys: numbers.row }],
    marker: state.kind === "alibi" ? null : shownPair(state)[0],
    x: { label: t(state.kind === "alibi" ? "key_position" : "dimension") },
  });
}

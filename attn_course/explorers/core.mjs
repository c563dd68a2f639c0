// What all explorers share: the life of a view, its controls and canvases, words and theme.
//
// An explorer's own module exports five functions, of which the first four are pure:
//   check(state)                  null, or [key of WORDS, values] for what is impossible
//   compute(state)                the numbers of the view, as named plain arrays
//   describe(numbers, state, t)   one sentence: what is to be seen now
//   tables(numbers, state, t)     [{ title, columns, rows }]: the same numbers to be read
//   view(ui)                      builds the view once; returns draw(numbers, state)
// Python joins this file, charts.mjs and the explorer's into one module (base.py), which
// anywidget renders with a kernel's model, and exported HTML with `stillModel`.

// -- numbers ----------------------------------------------------------------------------

/** JSON has no NaN and no infinity: they travel as words. Nested lists stay nested. */
export const toNumbers = (data) => (Array.isArray(data) ? data.map(toNumbers) : Number(data));

/** The inverse of toNumbers. */
export const toPlain = (data) =>
  Array.isArray(data) ? data.map(toPlain) : Number.isFinite(data) ? data : String(data);

/** A packed tensor { shape, data: base64 of little-endian float32 } as { shape, values }. */
export function unpack({ shape, data }) {
  const bytes = bytesOf(data);
  return { shape, values: new Float32Array(bytes.buffer, 0, bytes.length >> 2) };
}

/** The bytes behind base64 text. */
export function bytesOf(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  // a loop: megabytes through Uint8Array.from take a tenth of a second
  for (let k = 0; k < bytes.length; k++) bytes[k] = letters.charCodeAt(k);
  return bytes;
}

/** Sum of products of two vectors, of their first `count` features. */
export function dot(a, b, count = a.length) {
  let sum = 0;
  for (let d = 0; d < count; d++) sum += a[d] * b[d];
  return sum;
}

/** (i, d) by (d, j) -> (i, j), as nested lists. */
export function matmul(a, b) {
  const columns = b[0].map((_, j) => b.map((row) => row[j]));
  return a.map((row) => columns.map((column) => dot(row, column)));
}

/** Softmax of one row of scores; where `seen` is false the weight is 0, all false gives zeros. */
export function softmax(scores, seen = null) {
  const open = (j) => !seen || seen[j];
  let top = -Infinity;
  for (let j = 0; j < scores.length; j++) {
    if (open(j) && (scores[j] > top || Number.isNaN(scores[j]))) top = scores[j];
    if (Number.isNaN(top)) break;
  }
  const powers = Array.from(scores, (score, j) => (open(j) ? Math.exp(score - top) : 0));
  const sum = powers.reduce((total, power) => total + power, 0);
  return sum === 0 ? powers.map(() => 0) : powers.map((power) => power / sum);
}

/** Softmax of a row of scores in a typed array, in their place. */
export function softmaxInPlace(scores) {
  let top = -Infinity;
  for (let j = 0; j < scores.length; j++) {
    if (scores[j] > top) top = scores[j];
  }
  let sum = 0;
  for (let j = 0; j < scores.length; j++) sum += scores[j] = Math.exp(scores[j] - top);
  for (let j = 0; j < scores.length; j++) scores[j] /= sum;
}

/** `make`, which keeps what it made last and makes it anew only for other values. */
export function kept(make) {
  let [before, made] = [null, null];
  return (...given) => {
    if (!before || given.some((one, k) => one !== before[k])) [before, made] = [given, make(...given)];
    return made;
  };
}

/** Entropy of weights in nats; 0 log 0 counts as 0. */
export const entropy = (weights) =>
  -weights.reduce((sum, weight) => sum + (weight === 0 ? 0 : weight * Math.log(weight)), 0);

/** Standard normal numbers, the same for the same seed (mulberry32, Box and Muller). */
export function normals(seed, count) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (((mixed ^ (mixed >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  const drawn = new Float64Array(count);
  for (let k = 0; k < count; k++) {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    drawn[k] = radius * Math.cos(2 * Math.PI * uniform());
  }
  return drawn;
}

/** A number for people: about `digits` digits, NaN and infinities in words' stead. */
export function show(x, digits = 3) {
  if (Number.isNaN(x)) return "NaN";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text = size >= 1e6 || size < 1e-4 ? x.toExponential(digits - 1) : trimmed(x, digits);
  return text.replace("-", "−");
}

/** {name} gives way to its value, {name:one|more} to the word that goes with that count. */
export const filled = (text, values) =>
  text.replace(/\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g, (all, name, one, more) => {
    if (!(name in values)) return all;
    if (one === undefined) return values[name];
    return String(values[name]) === "1" ? one : more;
  });

/** A text so short that a sentence holds it. */
export const cut = (text) => (text.length > 24 ? `${text.slice(0, 23)}…` : text);

function trimmed(x, digits) {
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x))));
  const text = x.toFixed(Math.min(places, 6));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

// -- a view's life ----------------------------------------------------------------------

/** What anywidget wants of a module. */
export const explorer = (parts) => ({ render: ({ model, el }) => mount(parts, model, el) });

/** A model without a kernel: keeps the state where the page is, and tells who listens. */
export function stillModel(state) {
  const values = { ...state };
  const listeners = {};
  return {
    get: (name) => values[name],
    set(name, value) {
      values[name] = value;
      for (const tell of listeners[`change:${name}`] ?? []) tell();
    },
    save_changes() {},
    on: (event, tell) => (listeners[event] ??= new Set()).add(tell),
    off: (event, tell) => listeners[event]?.delete(tell),
    send() {},
  };
}

/** Builds the view in `el`; returns the function that takes everything back. */
export function mount(parts, model, el) {
  let takeDown = build(parts, model, el);
  const again = () => {
    takeDown();
    takeDown = build(parts, model, el);
  };
  model.on("change:words", again);
  return () => {
    model.off("change:words", again);
    takeDown();
  };
}

function build(parts, model, el) {
  const life = new AbortController();
  const ui = new View(parts, model, life.signal);
  el.classList.add("attn-course-view");
  el.replaceChildren(ui.root);
  const live = (globalThis.attnCourseViews ??= new Set());
  live.add(ui);
  ui.start();
  return () => {
    live.delete(ui);
    life.abort();
    ui.root.remove(); // front ends keep the element that they gave us
  };
}

const TYPED_IN = "input[type=number], input[type=text]";
const KEYS_OF_A_FIELD = /^([acvxyz]|Arrow\w+|Home|End|Backspace|Delete|Insert)$/i;

/** A key that is meant for the notebook: to run the cell, to save, whatever goes with Ctrl, Meta or Alt. */
function isCommand(event) {
  const { key, target } = event;
  const held = (event.ctrlKey || event.metaKey || event.altKey) && !event.getModifierState("AltGraph");
  if (key === "Enter") return held || event.shiftKey;
  // copy, paste and undo are a field's own
  return held && !(target.matches(TYPED_IN) && KEYS_OF_A_FIELD.test(key));
}

class View {
  constructor(parts, model, signal) {
    Object.assign(this, { parts, model, signal, surfaces: [], controls: [], frame: 0 });
    addStyle("attn-course-style", STYLE);
    this.words = model.get("words");
    const { name, title } = model.get("about");
    this.root = make("section", { className: "attn-ex", lang: this.words.language });
    this.root.dataset.explorer = name;
    this.root.setAttribute("aria-label", title);
    this.message = make("p", { className: "message", role: "alert" });
    this.caption = make("p", { className: "caption" });
    [this.longest, this.said] = [make("span", { className: "room" }), make("span")];
    this.caption.append(this.longest, this.said);
    this.spoken = make("p", { className: "spoken", role: "status" });
    this.body = make("div", { className: "body" });
    this.root.append(this.body, this.message, this.caption);
    // Lab and Notebook listen for keys on the page: a key that is meant for the view ends here.
    this.listen(this.root, "keydown", (event) => isCommand(event) || event.stopPropagation());
  }

  /** The traits that make up the state, as plain data. */
  get state() {
    return Object.fromEntries(this.model.get("fields").map((name) => [name, this.model.get(name)]));
  }

  /** A word of the table, with {names} filled in. */
  t = (key, values = {}) => filled(this.words[key] ?? key, values);

  /** Take new values, or say why not. Returns whether they were taken. */
  set(changes) {
    const problem = this.parts.check({ ...this.state, ...changes });
    this.refuse(problem ? this.t(...problem) : "");
    if (!problem) {
      for (const [name, value] of Object.entries(changes)) this.model.set(name, value);
      this.model.save_changes();
    }
    this.redraw(); // also after a refusal: the control goes back to what holds
    return !problem;
  }

  /** Show why something cannot be; an empty text takes it away. */
  refuse(text) {
    this.message.textContent = text;
  }

  /** Keep room for the longest sentence that there may be to say, so that none moves the page. */
  keepRoom(text) {
    this.longest.textContent = text;
  }

  /** Have a screen reader say this, once the hand rests; of each `part` what came last. */
  announce(text, part = "view") {
    clearTimeout(this.pause);
    this.toSay = { ...this.toSay, [part]: text };
    this.pause = setTimeout(() => {
      const parts = Object.values(this.toSay);
      // a caption may end with the cell that was pointed at
      this.spoken.textContent = parts.filter((one, k) => !parts.slice(k + 1).some((all) => all.includes(one))).join(" ");
      this.toSay = {};
    }, 400);
  }

  /** Listen until the view goes. */
  listen(target, event, tell, options = {}) {
    target.addEventListener(event, tell, { ...options, signal: this.signal });
  }

  /** Take the keys that are pressed on `target` and are meant for it. */
  keys(target, take) {
    this.listen(target, "keydown", (event) => isCommand(event) || take(event));
  }

  /** Run `undo` when the view goes. */
  atEnd(undo) {
    this.signal.addEventListener("abort", undo, { once: true });
  }

  start() {
    this.draw = this.parts.view(this);
    this.root.append(tableButton(this), this.spoken);
    for (const name of this.model.get("fields")) {
      const changed = () => this.redraw();
      this.model.on(`change:${name}`, changed);
      this.atEnd(() => this.model.off(`change:${name}`, changed));
    }
    followTheme(this);
    followWidth(this);
    this.atEnd(() => {
      clearTimeout(this.pause);
      cancelAnimationFrame(this.frame);
    });
    this.redraw();
  }

  /** Compute and draw once, in the next frame, however often it is asked for. */
  redraw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.update();
    });
  }

  update() {
    const state = this.state;
    const problem = this.parts.check(state);
    if (problem || this.impossible) this.refuse(problem ? this.t(...problem) : "");
    this.impossible = Boolean(problem); // it was not the view that asked for it
    if (problem) return;
    this.numbers = this.parts.compute(state);
    for (const follow of this.controls) follow(state);
    this.draw(this.numbers, state);
    for (const surface of this.surfaces) surface.paint();
    const said = this.parts.describe(this.numbers, state, this.t);
    this.caption.hidden = !said;
    if (said === this.said.textContent) return;
    if (this.said.textContent) this.announce(said, "caption");
    this.said.textContent = said;
  }

  // -- controls: each follows the state, whoever changes it ------------------------------

  /**
   * A slider over `values` (any list) or from low to high in steps. `name`: the field.
   * values and high may be functions of the state; usable(state): false greys the slider.
   * write(value): what to change, if that is more than the field.
   */
  slider({ name, label, values, low = 0, high = 0, step = 1, text = show, usable = () => true, write }) {
    const of = (given, state) => (typeof given === "function" ? given(state) : given);
    const top = (state) => (values ? of(values, state).length - 1 : of(high, state));
    const input = make("input", { type: "range", min: low, max: top(this.state), step });
    const readout = make("output");
    const at = (place) => (values ? of(values, this.state)[place] : place);
    // compared by value: a field that is not in the list is shown at the nearest entry
    const place = (state) => (values ? nearest(of(values, state), state[name]) : state[name]);
    const change = write ?? ((value) => ({ [name]: value }));
    this.listen(input, "input", () => this.set(change(at(Number(input.value)))));
    this.follow((state) => {
      input.max = top(state); // before the value, which it would cut
      this.enable(input, usable(state));
      input.value = place(state);
      readout.textContent = text(state[name]);
      input.setAttribute("aria-valuetext", readout.textContent);
    });
    return labelled(label, input, readout);
  }

  /**
   * A drop-down list over [value, text] pairs, or over those of options(state); away while
   * there is nothing to choose. A value that is not listed shows the first.
   */
  choice({ name, label, options }) {
    const select = make("select");
    const element = labelled(label, select);
    this.listen(select, "change", () => this.set({ [name]: JSON.parse(select.value) }));
    let listed = "";
    this.follow((state) => {
      const now = typeof options === "function" ? options(state) : options;
      if (JSON.stringify(now) !== listed) {
        listed = JSON.stringify(now);
        select.replaceChildren(...now.map(([value, text]) => new Option(text, JSON.stringify(value))));
      }
      select.value = JSON.stringify(state[name]);
      if (select.selectedIndex < 0) select.selectedIndex = 0;
      element.hidden = now.length < 2;
    });
    return element;
  }

  /** One of several texts (HTML from our own words), as radio buttons. The field is an index. */
  radios({ name, label, options }) {
    const group = make("fieldset", { className: "radios" });
    group.append(make("legend", { className: "spoken", textContent: label }));
    const family = `attn-${Math.random().toString(36).slice(2)}`;
    const buttons = options.map((html, index) => {
      const button = make("input", { type: "radio", name: family });
      this.listen(button, "change", () => this.set({ [name]: index }));
      const line = make("label", { className: "toggle" });
      line.append(button, make("span", { innerHTML: html }));
      group.append(line);
      return button;
    });
    this.follow((state) => buttons.forEach((button, k) => (button.checked = state[name] === k)));
    return group;
  }

  /** A check box for a field that is true or false. */
  toggle({ name, label }) {
    const box = make("input", { type: "checkbox" });
    this.listen(box, "change", () => this.set({ [name]: box.checked }));
    this.follow((state) => (box.checked = state[name]));
    const element = make("label", { className: "toggle" });
    element.append(box, label);
    return element;
  }

  /** A number to type; Enter or leaving the field takes it, Escape does not. `read(state)`, `write(number)`. */
  number({ label, read, write, step = "any" }) {
    const input = make("input", { type: "number", step });
    this.listen(input, "change", () => this.set(write(input.valueAsNumber)));
    this.keys(input, ({ key }) => key === "Escape" && this.redraw());
    this.follow((state) => (input.value = read(state)));
    return labelled(label, input);
  }

  /** A push button. */
  button(label, act) {
    const button = make("button", { type: "button", textContent: label });
    this.listen(button, "click", () => act());
    return button;
  }

  /** Let a control be used or not. One that has the focus hands it to the view: keys that
      went to the page instead would be commands to the notebook. */
  enable(control, yes) {
    if (!yes && control === document.activeElement) {
      this.root.tabIndex = -1;
      this.root.focus({ preventScroll: true });
      // only now: else a click on the view would keep the keys from the notebook too
      this.root.addEventListener("blur", () => this.root.removeAttribute("tabindex"), { once: true });
    }
    control.disabled = !yes;
  }

  /** More style, once a page under this name; its rules start with .attn-ex too. */
  style(text, name = this.root.dataset.explorer) {
    addStyle(`attn-course-style-${name}`, text);
  }

  /** Call `follow(state)` at each drawing, so that a control shows what holds. */
  follow(follow) {
    this.controls.push(follow);
  }

  /** Elements side by side, wrapped where the page is narrow. */
  row(...children) {
    const row = make("div", { className: "row" });
    row.append(...children);
    return row;
  }

  /** Elements under a heading. */
  group(title, ...children) {
    const group = make("div", { className: "group" });
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", title);
    group.append(make("h4", { textContent: title }), ...children);
    return group;
  }
}

export function make(tag, properties = {}) {
  const { role, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  if (role) element.setAttribute("role", role);
  return element;
}

/** A control with its label before it. */
export function labelled(text, control, ...after) {
  const label = make("label", { className: "control" });
  label.append(make("span", { textContent: text }), control, ...after);
  return label;
}

function nearest(values, value) {
  const far = (place) => Math.abs(values[place] - value);
  const exact = values.indexOf(value);
  if (exact >= 0 || typeof value !== "number") return Math.max(exact, 0);
  return values.reduce((best, _, place) => (far(place) < far(best) ? place : best), 0);
}

// -- the table of the numbers -----------------------------------------------------------

function tableButton(ui) {
  const place = make("div", { className: "tables", hidden: true });
  const button = ui.button(ui.t("table"), () => {
    place.hidden = !place.hidden;
    button.setAttribute("aria-expanded", String(!place.hidden));
    fill();
  });
  button.setAttribute("aria-expanded", "false");
  const read = () => ui.parts.tables(ui.numbers, ui.state, ui.t);
  const save = ui.button(ui.t("csv"), () => download(`${ui.root.dataset.explorer}.csv`, csv(read())));
  const all = make("div", { className: "numbers" });
  let known = false;
  const fill = () => {
    if (!known) all.hidden = !read().length; // a question has no numbers
    known = true;
    if (!place.hidden) fillTables(place, read().map((table) => shortened(table, ui.t)));
  };
  ui.follow(fill);
  all.append(button, save, place);
  return all;
}

const MOST_CELLS = 2500; // of a table in the page: more take longer than a step may

function shortened(table, t) {
  const { title, columns, rows } = table;
  const shown = Math.max(1, Math.floor(MOST_CELLS / columns.length));
  if (rows.length <= shown) return table;
  return { columns, rows: rows.slice(0, shown), title: t("cut_table", { title, shown, rows: rows.length }) };
}

// The frames stay, with their scroll and the focus that one of them may have.
function fillTables(place, tables) {
  while (place.children.length > tables.length) place.lastChild.remove();
  while (place.children.length < tables.length) {
    place.append(make("div", { className: "scroll", tabIndex: 0, role: "region" }));
  }
  tables.forEach((table, k) => {
    const frame = place.children[k];
    frame.setAttribute("aria-label", table.title);
    const old = frame.firstChild;
    const fits = old?.rows.length === table.rows.length + 1 && old.rows[0].cells.length === table.columns.length;
    if (!fits) frame.replaceChildren(emptyTable(table.columns.length, table.rows.length));
    writeTable(frame.firstChild, table);
  });
}

function emptyTable(columns, rows) {
  const table = make("table");
  table.append(make("caption"));
  const head = table.createTHead().insertRow();
  for (let k = 0; k < columns; k++) head.append(make("th", { scope: "col" }));
  const body = table.createTBody();
  for (let i = 0; i < rows; i++) {
    const line = body.insertRow();
    line.append(make("th", { scope: "row" }));
    for (let k = 1; k < columns; k++) line.insertCell();
  }
  return table;
}

// Only what has changed: of thousands of cells most stay as they are from step to step.
function writeTable(table, { title, columns, rows }) {
  const write = (cell, text) => {
    if (cell.textContent !== text) cell.textContent = text;
  };
  write(table.caption, title);
  [columns, ...rows].forEach((row, i) => {
    const cells = Array.from(table.rows[i].cells); // by number each would be looked up anew
    row.forEach((cell, k) => write(cells[k], typeof cell === "number" ? show(cell, 5) : String(cell)));
  });
}

/** Tables as CSV (RFC 4180), one after another with their titles; numbers in full. */
export function csv(tables) {
  const quoted = (cell) => {
    // a spreadsheet takes text that begins so for a formula
    const text = typeof cell === "string" && /^[=+@\t\r-]/.test(cell) ? `'${cell}` : String(cell);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = tables.flatMap(({ title, columns, rows }) => [[title], columns, ...rows, []]);
  return lines.map((line) => line.map(quoted).join(",")).join("\r\n");
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// -- theme ------------------------------------------------------------------------------

const LIGHT = {
  paper: "#ffffff", ink: "#1b1b1b", soft: "#555555", line: "#757575", faint: "#e2e2e2",
  accent: "#0b57a4", wrong: "#b3261e", right: "#1b6e2c",
  series: ["#0072b2", "#c04a00", "#007a5a", "#a0428a", "#5a5a00", "#444444"],
};
const DARK = {
  paper: "#171717", ink: "#eeeeee", soft: "#bdbdbd", line: "#8f8f8f", faint: "#383838",
  accent: "#8ab8ff", wrong: "#ff9a91", right: "#83d693",
  series: ["#56b4e9", "#f0a35e", "#3dcb9f", "#e6a0c4", "#d6cf5c", "#cccccc"],
};

// The background that the view stands on decides, whichever program or theme sets it. Where
// a frame lets that of another page through, as VS Code does, the ink tells.
function isDark(element) {
  const channels = (colour) => colour.match(/[\d.]+/g)?.map(Number) ?? [];
  const light = ([r, g, b]) => 0.299 * r + 0.587 * g + 0.114 * b >= 128;
  for (let at = element.parentElement; at; at = at.parentElement) {
    const parts = channels(getComputedStyle(at).backgroundColor);
    if (parts.length && (parts[3] ?? 1) > 0.5) return !light(parts);
  }
  return light(channels(getComputedStyle(element.parentElement ?? document.body).color));
}

function followTheme(ui) {
  const look = () => {
    const dark = isDark(ui.root);
    if (ui.colours && dark === (ui.colours === DARK)) return;
    ui.colours = dark ? DARK : LIGHT;
    ui.root.dataset.theme = dark ? "dark" : "light";
    for (const [name, value] of Object.entries(ui.colours)) {
      if (name !== "series") ui.root.style.setProperty(`--${name}`, value);
    }
    for (const surface of ui.surfaces) surface.paint();
  };
  const watch = new MutationObserver(look);
  for (const element of [document.documentElement, document.body]) {
    watch.observe(element, { attributes: true });
  }
  // a theme's style sheet may arrive later than its attribute
  ui.listen(document, "transitionend", look);
  ui.listen(matchMedia("(prefers-color-scheme: dark)"), "change", look);
  const sizes = new ResizeObserver(look);
  sizes.observe(ui.root);
  ui.atEnd(() => {
    watch.disconnect();
    sizes.disconnect();
  });
  look();
}

// How wide the view is, not the window: it may share a row, or a tab may show it later.
function followWidth(ui) {
  const ruler = make("div", { className: "ruler" }); // of a height that nothing changes
  ui.root.prepend(ruler);
  const widths = new ResizeObserver(() => {
    const em = parseFloat(getComputedStyle(ruler).fontSize);
    ui.root.toggleAttribute("data-narrow", ruler.clientWidth < 40 * em);
  });
  widths.observe(ruler);
  ui.atEnd(() => widths.disconnect());
}

// -- style: once a page -----------------------------------------------------------------

const STYLE = `
.attn-ex { background: var(--paper); color: var(--ink); border: 1px solid var(--line); border-radius: 6px;
  padding: .8em; font: 1em/1.4 system-ui, sans-serif; max-width: 64em; box-sizing: border-box; overflow-wrap: anywhere; }
.attn-course-still { margin: .5em 0; }
.attn-course-view { min-width: 0; } /* beside another it shrinks, whatever a list of it holds */
.attn-ex * { box-sizing: border-box; }
.attn-ex h4 { font-size: 1em; margin: .2em 0; }
.attn-ex p { margin: .3em 0; }
.attn-ex .row { display: flex; flex-wrap: wrap; gap: .4em 1.4em; align-items: end; margin: .3em 0; }
.attn-ex .row > .group, .attn-ex .row > .surface { flex: 1 1 18em; min-width: 0; }
.attn-ex .row > button, .attn-ex .row > .control, .attn-ex .row > .toggle { align-self: center; }
.attn-ex .control { display: inline-flex; flex-wrap: wrap; gap: .1em .6em; align-items: center; }
.attn-ex [hidden] { display: none !important; }
.attn-ex fieldset { border: 0; padding: 0; margin: .3em 0; min-width: 0; }
.attn-ex .radios .toggle { display: flex; align-items: baseline; }
.attn-ex .prompt p, .attn-ex .prompt pre { margin: .2em 0 .5em; }
.attn-ex .reasons { display: grid; max-width: 46em; }
.attn-ex .reasons > div { grid-area: 1 / 1; visibility: hidden; border-left: 4px solid var(--line); padding-left: .8em; }
.attn-ex .reasons > .shown { visibility: visible; }
.attn-ex .control, .attn-ex .control > * { min-width: 0; max-width: 100%; }
.attn-ex .toggle { display: inline-flex; gap: .4em; align-items: center; min-height: 1.8em; }
.attn-ex input { font: inherit; } /* else an em of theirs stays small where text grows */
.attn-ex input[type=range] { flex: 1 1 9em; width: 12em; max-width: min(12em, 100%); accent-color: var(--accent); height: 1.8em; margin: 0; }
.attn-ex input[type=checkbox], .attn-ex input[type=radio] { flex: none; width: 1em; height: 1em; accent-color: var(--accent); margin: .2em; }
.attn-ex output { min-width: 3.5em; font-variant-numeric: tabular-nums; }
.attn-ex input[type=number], .attn-ex input[type=text], .attn-ex select, .attn-ex button { font: inherit; color: var(--ink);
  background: var(--paper); border: 1px solid var(--line); border-radius: 4px; padding: .2em .5em; min-height: 1.8em; max-width: 100%; }
.attn-ex input[type=number] { width: 6.5em; }
.attn-ex button { cursor: pointer; margin: 0 .4em .2em 0; }
.attn-ex button[aria-pressed=true], .attn-ex button[aria-expanded=true] { border: 2px solid var(--accent); font-weight: 600; }
.attn-ex button:disabled, .attn-ex input:disabled { opacity: .7; cursor: default; }
.attn-ex :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.attn-ex canvas { display: block; width: 100%; }
.attn-ex .surface { contain: inline-size; } /* what was drawn last asks for no width */
.attn-ex .message { color: var(--wrong); font-weight: 600; min-height: 1.4em; }
.attn-ex .caption { min-height: 2.8em; display: grid; align-content: start; }
.attn-ex .caption > * { grid-area: 1 / 1; }
.attn-ex .room { visibility: hidden; }
.attn-ex[data-narrow] .caption { min-height: 8.4em; }
.attn-ex[data-narrow] .message { min-height: 2.8em; }
.attn-ex .ruler { height: 1em; margin-bottom: -1em; visibility: hidden; }
.attn-ex .spoken { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.attn-ex .scroll { overflow: auto; max-height: 24em; margin: .4em 0; }
.attn-ex table { overflow-wrap: normal; border-collapse: collapse; color: var(--ink); background: var(--paper); font-size: .9em; }
.attn-ex caption { text-align: left; font-weight: 600; }
.attn-ex th, .attn-ex td { border: 1px solid var(--line); padding: .15em .5em; text-align: right; background: var(--paper); }
.attn-ex code { font-family: ui-monospace, monospace; background: none; color: inherit; }
@media (prefers-reduced-motion: reduce) {
  .attn-ex, .attn-ex *, .attn-ex ::before { transition: none !important; animation: none !important; }
}
`;

function addStyle(id, textContent) {
  if (!document.getElementById(id)) document.head.append(make("style", { id, textContent }));
}

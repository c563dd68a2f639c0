// Canvases that the explorers share: a map of values, and a plot of lines or bars.
//
// A surface keeps its height (in em, so that it grows with the text) and is painted again
// when its size, the theme or the numbers change. Nothing is told by colour alone: hidden
// cells are hatched, series differ in dash and shape.

import { make, show } from "./core.mjs";

/** A canvas that `draw(pen, width, height, colours)` fills. Height in em. */
export class Surface {
  constructor(ui, label, height, draw) {
    Object.assign(this, { ui, draw });
    this.canvas = make("canvas", { role: "img" });
    this.canvas.setAttribute("aria-label", label);
    this.canvas.style.height = `${height}em`;
    this.element = make("div", { className: "surface" });
    this.element.append(this.canvas);
    ui.surfaces.push(this);
    const sizes = new ResizeObserver(() => this.paint());
    sizes.observe(this.canvas);
    ui.atEnd(() => sizes.disconnect());
  }

  /** Take another height, in em. */
  grow(height) {
    this.canvas.style.height = `${height}em`;
  }

  /** Say in words what the canvas shows now. */
  label(text) {
    this.canvas.setAttribute("aria-label", text);
  }

  paint() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !this.ui.numbers) return;
    const sharp = globalThis.devicePixelRatio || 1;
    const [w, h] = [Math.round(width * sharp), Math.round(height * sharp)];
    if (this.canvas.width !== w || this.canvas.height !== h) {
      Object.assign(this.canvas, { width: w, height: h });
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(sharp, 0, 0, sharp, 0, 0);
    pen.fillStyle = this.ui.colours.paper;
    pen.fillRect(0, 0, width, height);
    this.em = parseFloat(getComputedStyle(this.canvas).fontSize);
    pen.font = `${0.8 * this.em}px system-ui, sans-serif`;
    pen.textBaseline = "middle";
    this.draw(pen, width, height, this.ui.colours);
  }
}

const VIRIDIS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"];
const BLUE_RED = ["2166ac", "67a9cf", "d1e5f0", "f7f7f7", "fddbc7", "ef8a62", "b2182b"];

/** The colour [r, g, b] at `part` (0 … 1) of a scale. */
export function colourAt(part, scale = VIRIDIS) {
  const place = Math.min(Math.max(part, 0), 1) * (scale.length - 1);
  const low = Math.min(Math.floor(place), scale.length - 2);
  const channel = (hex, k) => parseInt(hex.slice(2 * k, 2 * k + 2), 16);
  return [0, 1, 2].map((k) => {
    const [from, to] = [channel(scale[low], k), channel(scale[low + 1], k)];
    return Math.round(from + (to - from) * (place - low));
  });
}

// 256 steps of a scale: as CSS, with an ink of at least 4.5 to 1 on it, and as pixels.
function rampOf(scale) {
  const colours = Array.from({ length: 256 }, (_, k) => colourAt(k / 255, scale));
  return {
    css: colours.map((colour) => `rgb(${colour})`),
    inks: colours.map((colour) => (luminance(colour) > 0.179 ? "#000" : "#fff")),
    pixels: Uint32Array.from(colours, pixelOf),
  };
}

/** A colour as the four bytes of an image, in the order of all processors that run browsers. */
export const pixelOf = ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;

let ramps = null;

/** The colours of a scale in 256 steps: { css, inks, pixels }. */
export function ramp(diverging = false) {
  ramps ??= { up: rampOf(VIRIDIS), both: rampOf(BLUE_RED) };
  return diverging ? ramps.both : ramps.up;
}

/** The step of a scale that a value has between two limits. */
export function stepOf(value, [low, high]) {
  const step = Math.round((255 * (value - low)) / (high - low || 1));
  return step > 0 ? Math.min(step, 255) : 0; // NaN has no colour of its own
}

/** Relative luminance of [r, g, b], as WCAG 2 defines it. */
export function luminance(colour) {
  const [r, g, b] = colour.map((part) => (part <= 10 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export class HeatMap extends Surface {
  /**
   * rows, columns: names of the axes. onPoint(i, j): the cursor moved there, by arrow key
   * or pointer. onPick(i, j): clicked, or Enter. Without either the map takes no focus.
   * onPaint(i, j, begins): in place of onPick, also for each cell that a pressed mouse meets.
   */
  constructor(ui, { label, rows, columns, height = 16, onPoint, onPick, onPaint }) {
    super(ui, label, height, (...all) => this.drawMap(...all));
    Object.assign(this, { name: label, rows, columns, onPoint, onPick, cursor: null });
    if (onPaint) this.onPick = (i, j) => onPaint(i, j, true);
    if (onPoint || this.onPick) this.takeKeys();
    if (onPaint) this.takeStrokes(onPaint);
  }

  /**
   * values: (rows, columns) nested lists. limits: values at both ends of the scale.
   * diverging: blue–white–red. seen(i, j): false draws the cell hatched. rowLabels,
   * columnLabels: tokens. cursor: [i, j] or null. cross: outline its row and column too.
   * legend: say what the ends of the scale mean.
   */
  show(data) {
    this.data = { limits: [0, 1], diverging: false, seen: null, ...data };
    if ("cursor" in data) this.cursor = data.cursor;
    const { values } = this.data;
    if (this.cursor) {
      this.cursor = [
        Math.min(this.cursor[0], values.length - 1),
        Math.min(this.cursor[1], values[0].length - 1),
      ];
    }
    const size = { name: this.name, rows: values.length, columns: values[0].length };
    this.label(this.ui.t("map_label", size) + (this.cursor ? ` ${this.read(...this.cursor)}` : ""));
  }

  /** The cell in words. */
  read(i, j) {
    const { values, rowLabels, columnLabels, seen } = this.data;
    const told = seen && !seen(i, j) ? this.ui.t("hidden_cell") : show(values[i][j]);
    const row = rowLabels?.[i] ?? i;
    return this.ui.t("cell", { row, column: columnLabels?.[j] ?? j, value: told });
  }

  takeKeys() {
    const { canvas, ui } = this;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    ui.keys(canvas, (event) => {
      const { values } = this.data;
      const [i, j] = this.cursor ?? [0, 0];
      const last = [values.length - 1, values[0].length - 1];
      if (moves[event.key]) {
        const [down, right] = this.cursor ? moves[event.key] : [0, 0];
        this.point(Math.min(Math.max(i + down, 0), last[0]), Math.min(Math.max(j + right, 0), last[1]));
      } else if (event.key === "Home") this.point(i, 0);
      else if (event.key === "End") this.point(i, last[1]);
      else if (event.key === "Enter" || event.key === " ") this.onPick?.(i, j);
      else return;
      event.preventDefault();
    });
    ui.listen(canvas, "pointermove", (event) => {
      const at = this.under(event);
      if (at && this.onPoint && String(at) !== String(this.cursor)) this.point(...at);
    });
    ui.listen(canvas, "click", (event) => {
      const at = this.under(event);
      if (!at) return;
      this.point(...at);
      if (!this.stroked) this.onPick?.(...at);
      this.stroked = null;
    });
  }

  // A finger that moves scrolls the page: it paints by taps alone.
  takeStrokes(onPaint) {
    const paint = (event, begins) => {
      const at = this.under(event);
      if (!at || String(at) === this.stroked) return;
      this.stroked = String(at);
      onPaint(...at, begins);
    };
    this.ui.listen(this.canvas, "pointerdown", (event) => {
      this.stroked = null;
      if (event.pointerType !== "touch" && event.button === 0) paint(event, true);
    });
    this.ui.listen(this.canvas, "pointermove", (event) => {
      if (this.stroked && event.buttons & 1) paint(event, false);
    });
  }

  /** The cell under the pointer, or null. */
  under(event) {
    const { left, top, width, height, rows, columns } = this.area ?? {};
    const j = Math.floor(((event.offsetX - left) / width) * columns);
    const i = Math.floor(((event.offsetY - top) / height) * rows);
    return i >= 0 && j >= 0 && i < rows && j < columns ? [i, j] : null;
  }

  point(i, j) {
    this.cursor = [i, j];
    this.ui.announce(this.read(i, j), "cell");
    this.onPoint?.(i, j);
    this.label(`${this.name} ${this.read(i, j)}`);
    this.paint();
  }

  drawMap(pen, width, height, colours) {
    if (!this.data) return;
    const { cross, legend } = this.data;
    this.layOut(pen, width, height);
    const { left, top, rows, columns, cell } = this.area;
    if (rows * columns > MANY) this.drawImage(pen);
    this.drawCells(pen, cell, colours, rows * columns > MANY);
    this.drawLabels(pen, cell, colours);
    if (legend) this.drawLegend(pen, width, colours);
    if (!this.cursor) return;
    const [i, j] = this.cursor;
    if (cross) {
      outline(pen, left, top + i * cell, columns * cell, cell, colours, 1);
      outline(pen, left + j * cell, top, cell, rows * cell, colours, 1);
    }
    outline(pen, left + j * cell, top + i * cell, cell, cell, colours);
  }

  // Where the cells lie. Names of columns that are wider than a cell are turned.
  layOut(pen, width, height) {
    const { values, rowLabels, columnLabels } = this.data;
    const [n, m, em] = [values.length, values[0].length, this.em];
    const left = Math.min(widest(pen, rowLabels ?? [n - 1]) + 2 * em, width / 2.5);
    const cellBelow = (top) => Math.min((width - left - 2) / m, (height - top - 2) / n);
    const long = columnLabels ? widest(pen, columnLabels) + 0.4 * em : 0;
    const turned = long > cellBelow(2.6 * em);
    const top = turned ? Math.min(long, height / 3) + 1.4 * em : 2.6 * em;
    const cell = Math.max(cellBelow(top), 0);
    this.area = { left, top, cell, turned, width: cell * m, height: cell * n, rows: n, columns: m };
  }

  // Many cells: a point each, drawn larger. A fill for each would take a frame or more.
  drawImage(pen) {
    const { left, top, width, height, rows, columns } = this.area;
    const { values, limits, diverging } = this.data;
    const { pixels } = ramp(diverging);
    const image = new ImageData(columns, rows);
    const points = new Uint32Array(image.data.buffer);
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) points[i * columns + j] = pixels[stepOf(values[i][j], limits)];
    }
    pen.imageSmoothingEnabled = false;
    pen.drawImage(canvasOf(image), left, top, width, height);
  }

  drawCells(pen, cell, colours, drawn) {
    const { left, top, rows, columns } = this.area;
    const { values, seen } = this.data;
    const fits = cell > 2.3 * this.em;
    const hidden = [];
    for (let i = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++) {
        const [x, y] = [left + j * cell, top + i * cell];
        if (seen && !seen(i, j)) hidden.push([x, y]);
        else if (Number.isNaN(values[i][j])) unknown(pen, x, y, cell, colours);
        else if (!drawn) this.drawCell(pen, x, y, cell, values[i][j], fits);
      }
    }
    hatch(pen, hidden, cell, colours);
  }

  drawCell(pen, x, y, cell, value, fits) {
    const { css, inks } = ramp(this.data.diverging);
    const step = stepOf(value, this.data.limits);
    pen.fillStyle = css[step];
    pen.fillRect(x, y, cell + 0.4, cell + 0.4);
    if (!fits) return;
    pen.fillStyle = inks[step];
    pen.textAlign = "center";
    pen.fillText(show(value, 2), x + cell / 2, y + cell / 2, cell - 4);
  }

  drawLabels(pen, cell, colours) {
    const { left, top, rows, turned } = this.area;
    const em = this.em;
    pen.fillStyle = colours.ink;
    pen.textAlign = "right";
    for (let i = 0; i < rows; i += Math.ceil((1.1 * em) / cell)) {
      const text = shorten(pen, this.data.rowLabels?.[i] ?? i, left - 1.5 * em);
      pen.fillText(text, left - 0.3 * em, top + (i + 0.5) * cell);
    }
    if (turned) this.drawTurned(pen, cell);
    else this.drawLevel(pen, cell);
    pen.fillStyle = colours.soft;
    pen.textAlign = "left";
    pen.fillText(this.columns, left, 0.6 * em);
    pen.save();
    pen.translate(0.6 * em, top);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "right";
    pen.fillText(this.rows, 0, 0);
    pen.restore();
  }

  drawLevel(pen, cell) {
    const { left, top, columns } = this.area;
    const texts = Array.from({ length: columns }, (_, j) => this.data.columnLabels?.[j] ?? j);
    const every = Math.ceil((widest(pen, texts) + 0.4 * this.em) / cell);
    pen.textAlign = "center";
    for (let j = 0; j < columns; j += every) {
      pen.fillText(texts[j], left + (j + 0.5) * cell, top - 0.8 * this.em);
    }
  }

  drawTurned(pen, cell) {
    const { left, top, columns } = this.area;
    pen.textAlign = "left";
    for (let j = 0; j < columns; j += Math.ceil((1.1 * this.em) / cell)) {
      pen.save();
      pen.translate(left + (j + 0.5) * cell, top - 0.3 * this.em);
      pen.rotate(-Math.PI / 2);
      pen.fillText(shorten(pen, this.data.columnLabels[j], top - 1.6 * this.em), 0, 0);
      pen.restore();
    }
  }

  drawLegend(pen, width, colours) {
    const [em, [low, high]] = [this.em, this.data.limits];
    const after = pen.measureText(show(high, 2)).width + 0.3 * em;
    const [from, to] = [width - after - 4.5 * em, width - after - 0.3 * em];
    const free = this.area.left + pen.measureText(this.columns).width;
    if (from - pen.measureText(show(low, 2)).width < free + em) return;
    for (let x = from; x < to; x++) {
      pen.fillStyle = ramp(this.data.diverging).css[stepOf(x, [from, to])];
      pen.fillRect(x, 0.2 * em, 1.4, 0.8 * em);
    }
    pen.fillStyle = colours.soft;
    pen.textAlign = "left";
    pen.fillText(show(high, 2), to + 0.3 * em, 0.6 * em);
    pen.textAlign = "right";
    pen.fillText(show(low, 2), from - 0.3 * em, 0.6 * em);
  }
}

const MANY = 1024; // cells

const widest = (pen, texts) => Math.max(...Array.from(texts, (text) => pen.measureText(text).width));

/** A text that is cut, between letters, so that it is no wider than `room`. */
export function shorten(pen, text, room) {
  const whole = String(text);
  if (pen.measureText(whole).width <= room) return whole;
  const start = whole.slice(0, 64); // wider than any room
  const letters = Intl.Segmenter ? Array.from(new Intl.Segmenter().segment(start), (at) => at.segment) : [...start];
  while (letters.length > 1 && pen.measureText(`${letters.join("")}…`).width > room) letters.pop();
  return `${letters.join("")}…`;
}

/** A canvas of its own that holds an image, to be drawn at any size. */
export function canvasOf(image) {
  const canvas = make("canvas", { width: image.width, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// All hidden cells in one stroke: a stroke for each of thousands would take several frames.
function hatch(pen, places, cell, colours) {
  pen.fillStyle = colours.faint;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const [x, y] of places) {
    pen.fillRect(x, y, cell, cell);
    pen.moveTo(x, y + cell);
    pen.lineTo(x + cell, y);
  }
  pen.stroke();
}

function unknown(pen, x, y, cell, colours) {
  pen.fillStyle = colours.paper;
  pen.fillRect(x, y, cell, cell);
  pen.fillStyle = colours.wrong;
  pen.textAlign = "center";
  const fits = pen.measureText("NaN").width < cell;
  pen.fillText(fits ? "NaN" : "×", x + cell / 2, y + cell / 2, cell);
}

export function outline(pen, x, y, width, height, colours, thick = 2.5) {
  for (const [colour, wide] of [[colours.paper, 2 * thick], [colours.ink, thick]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = wide;
    pen.strokeRect(x, y, width, height);
  }
}

export class Plot extends Surface {
  /** x, y: { label, log, low, high, ticks }; what is left out is taken from the data. */
  constructor(ui, { label, x = {}, y = {}, height = 13 }) {
    super(ui, label, height, (...all) => this.drawPlot(...all));
    Object.assign(this, { x, y });
  }

  /**
   * lines: [{ name, xs, ys }], bars: [{ name, ys }] over 0, 1, …; marker: an x to point at.
   * xLabels: what to write below bars. Values that are no finite numbers are left out.
   */
  show({ lines = [], bars = [], marker = null, xLabels = null, x = {}, y = {} }) {
    this.data = { lines, bars, marker, xLabels };
    this.axes = { x: { ...this.x, ...x }, y: { ...this.y, ...y } };
  }

  drawPlot(pen, width, height, colours) {
    if (!this.data) return;
    const { lines, bars, marker } = this.data;
    const em = this.em;
    const top = this.drawLegend(pen, width, colours, [...lines, ...bars]);
    const xs = bars.length ? [-0.5, bars[0].ys.length - 0.5] : lines.flatMap((line) => Array.from(line.xs));
    const ys = [...lines, ...bars].flatMap((one) => Array.from(one.ys));
    const yAxis = axis(this.axes.y, bars.length && !this.axes.y.log ? [0, ...ys] : ys);
    const xAxis = axis(this.axes.x, xs);
    const wide = Math.max(0, ...yAxis.ticks.map((tick) => pen.measureText(show(tick, 2)).width));
    const area = { left: wide + 0.8 * em, top, right: width - 0.6 * em, bottom: height - 2.6 * em };
    const px = (value) => area.left + xAxis.part(value) * (area.right - area.left);
    const py = (value) => area.bottom - yAxis.part(value) * (area.bottom - area.top);
    this.drawAxes(pen, area, xAxis, yAxis, px, py, colours);
    bars.forEach((bar, k) => drawBars(pen, bar.ys, k, bars.length, px, py, area, colours));
    lines.forEach((line, k) => drawLine(pen, line, k, px, py, colours, em));
    if (marker === null || !Number.isFinite(px(marker))) return;
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 1.5;
    pen.setLineDash([]);
    pen.beginPath();
    pen.moveTo(px(marker), area.top);
    pen.lineTo(px(marker), area.bottom);
    pen.stroke();
  }

  drawLegend(pen, width, colours, named) {
    const em = this.em;
    let [x, y] = [0.5 * em, 0.7 * em];
    pen.fillStyle = colours.soft;
    pen.textAlign = "left";
    pen.fillText(this.axes.y.label ?? "", x, y, width - em);
    if (named.length > 1) y += 1.3 * em;
    named.forEach(({ name }, k) => {
      if (named.length < 2) return;
      const room = pen.measureText(name).width + 2.8 * em;
      if (x > em && x + room > width) [x, y] = [0.5 * em, y + 1.3 * em];
      sample(pen, x, y, k, this.data.bars.length > 0, colours, em);
      pen.fillStyle = colours.ink;
      pen.fillText(name, x + 2 * em, y, width - x - 2.4 * em);
      x += room;
    });
    return y + 1.1 * em;
  }

  drawAxes(pen, area, xAxis, yAxis, px, py, colours) {
    const em = this.em;
    const { xLabels } = this.data;
    pen.lineWidth = 1;
    pen.setLineDash([]);
    for (const tick of yAxis.ticks) {
      pen.strokeStyle = colours.faint;
      pen.strokeRect(area.left, py(tick), area.right - area.left, 0);
      pen.fillStyle = colours.ink;
      pen.textAlign = "right";
      pen.fillText(show(tick, 2), area.left - 0.3 * em, py(tick));
    }
    pen.textAlign = "center";
    const count = xLabels?.length ?? 0;
    const room = (area.right - area.left) / Math.max(count, 1);
    const every = Math.ceil((Math.min(4 * em, Math.max(0, ...(xLabels ?? []).map((l) => pen.measureText(l).width))) + 0.3 * em) / room);
    const ticks = xLabels ? xLabels.map((_, k) => k).filter((k) => k % every === 0) : xAxis.ticks;
    for (const tick of ticks) {
      pen.fillStyle = colours.ink;
      const text = xLabels ? shorten(pen, xLabels[tick], every * room - 0.3 * em) : show(tick, 3);
      const half = pen.measureText(text).width / 2;
      const x = xLabels ? px(tick) : Math.min(px(tick), area.right + 0.5 * em - half);
      pen.fillText(text, x, area.bottom + 0.8 * em);
    }
    pen.strokeStyle = colours.line;
    pen.strokeRect(area.left, area.bottom, area.right - area.left, 0);
    pen.fillStyle = colours.soft;
    pen.textAlign = "right";
    pen.fillText(this.axes.x.label ?? "", area.right, area.bottom + 2 * em, area.right);
  }
}

// An axis: where a value lies between both ends, and where to write numbers.
function axis({ log = false, low, high, ticks }, values) {
  const usable = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  let from = low ?? Math.min(...usable);
  let to = high ?? Math.max(...usable);
  if (!usable.length && (low === undefined || high === undefined)) [from, to] = log ? [1, 10] : [0, 1];
  if (from === to) [from, to] = log ? [from / 2, to * 2] : [from - 0.5, to + 0.5];
  const scale = log ? Math.log10 : (value) => value;
  const part = (value) => (scale(value) - scale(from)) / (scale(to) - scale(from));
  return { part, ticks: ticks ?? (log ? decades(from, to) : round(from, to)) };
}

function decades(from, to) {
  const [first, last] = [Math.ceil(Math.log10(from) - 1e-9), Math.floor(Math.log10(to) + 1e-9)];
  const step = Math.max(1, Math.ceil((last - first) / 5));
  const ticks = [];
  for (let power = first; power <= last; power += step) ticks.push(10 ** power);
  return ticks.length > 1 ? ticks : [from, to];
}

function round(from, to) {
  const rough = (to - from) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const quarters = power === 1 ? [] : [2.5]; // what is counted from 1 to 10 has no quarters
  const step = [1, 2, ...quarters, 5, 10].map((k) => k * power).find((size) => size >= rough);
  const first = Math.ceil(from / step - 1e-9);
  // counted, not stepped to the end: next to 1e16 a step of 1 leads nowhere
  const count = Math.min(Math.floor(to / step + 1e-9) - first + 1, 6);
  return Array.from({ length: count > 0 ? count : 0 }, (_, k) => (first + k) * step);
}

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [5, 2], [1, 2]];

function drawLine(pen, { xs, ys }, k, px, py, colours, em) {
  pen.strokeStyle = colours.series[k % 6];
  pen.lineWidth = 2;
  pen.setLineDash(DASHES[k % 6]);
  pen.beginPath();
  let drawn = false;
  for (let at = 0; at < xs.length; at++) {
    const [x, y] = [px(xs[at]), py(ys[at])];
    if (!Number.isFinite(x) || !Number.isFinite(y)) drawn = false;
    else {
      if (drawn) pen.lineTo(x, y);
      else pen.moveTo(x, y);
      drawn = true;
    }
  }
  pen.stroke();
  pen.setLineDash([]);
  if (xs.length > 40) return;
  for (let at = 0; at < xs.length; at++) {
    if (Number.isFinite(py(ys[at]))) dotAt(pen, px(xs[at]), py(ys[at]), k, colours, em);
  }
}

// Series differ in shape as well as in colour.
function dotAt(pen, x, y, k, colours, em) {
  const size = 0.22 * em;
  pen.fillStyle = colours.series[k % 6];
  pen.beginPath();
  if (k % 2) pen.rect(x - size, y - size, 2 * size, 2 * size);
  else pen.arc(x, y, size, 0, 7);
  pen.fill();
}

function drawBars(pen, ys, k, of, px, py, area, colours) {
  const wide = ((px(1) - px(0)) * 0.8) / of;
  ys.forEach((y, at) => {
    if (!Number.isFinite(py(y))) return;
    const x = px(at) - (wide * of) / 2 + k * wide;
    const zero = Math.min(py(0), area.bottom);
    bar(pen, x, Math.min(py(y), zero), Math.max(wide - 1, 1), Math.abs(zero - py(y)), k, colours);
  });
}

// The first series is full, the second striped, the third empty: told apart without colour.
function bar(pen, x, y, width, height, k, colours) {
  pen.fillStyle = pen.strokeStyle = colours.series[k % 6];
  if (k % 3 === 0) return pen.fillRect(x, y, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.lineWidth = 2.5; // half of the frame's is cut off
  // from the ground up, so that the stripes of a bar that grows stay where they are
  for (let from = y + height; k % 3 === 1 && from > y - width; from -= 5) {
    pen.moveTo(x, from);
    pen.lineTo(x + width, from + width);
  }
  pen.stroke();
  pen.restore();
}

function sample(pen, x, y, k, bars, colours, em) {
  if (bars) return bar(pen, x + 0.5 * em, y - 0.4 * em, em, 0.8 * em, k, colours);
  pen.strokeStyle = colours.series[k % 6];
  pen.lineWidth = 2;
  pen.setLineDash(DASHES[k % 6]);
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x + 1.7 * em, y);
  pen.stroke();
  pen.setLineDash([]);
  dotAt(pen, x + 0.85 * em, y, k, colours, em);
}


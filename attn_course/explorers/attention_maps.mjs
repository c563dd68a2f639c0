// Attention maps as Python packs them (attention_maps.py), and thumbnails of all heads.

import { bytesOf, cut, show, unpack } from "./core.mjs";
import { HeatMap, Surface, canvasOf, outline, pixelOf, ramp, stepOf } from "./charts.mjs";

// the code of NaN
const NAN = 255;
// code = 254 √weight: fine steps where weights are small, as most are
const WEIGHTS = Array.from({ length: 256 }, (_, code) => (code === NAN ? NaN : (code / 254) ** 2));

const opened = new WeakMap(); // decoding megabytes once, not at each step

/** { codes, entropy, tops } of a group { shape, data, entropy }: see attention_maps.py. */
export function mapsOf(group) {
  if (!opened.has(group)) {
    const [codes, entropy] = [bytesOf(group.data), unpack(group.entropy).values];
    const [heads, rows, columns] = group.shape;
    const tops = Array.from({ length: heads }, (_, at) => {
      let top = 0;
      for (let k = at * rows * columns; k < (at + 1) * rows * columns; k++) {
        if (codes[k] > top && codes[k] !== NAN) top = codes[k];
      }
      return WEIGHTS[top];
    });
    opened.set(group, { codes, entropy, tops });
  }
  return opened.get(group);
}

/** Where the map of a head stands among all of a group. */
export const headAt = ({ heads }, layer, head) =>
  heads.slice(0, layer).reduce((sum, count) => sum + count, head);

/** The weights (i, j) of one head; a step from token to token needs no others. */
export function weightsOf(group, at) {
  const maps = mapsOf(group);
  if (maps.shown?.at !== at) maps.shown = { at, weights: decoded(group, at) };
  return maps.shown.weights;
}

function decoded(group, at) {
  const [, rows, columns] = group.shape;
  const { codes } = mapsOf(group);
  return Array.from({ length: rows }, (_, i) => {
    const row = new Array(columns);
    for (let j = 0; j < columns; j++) row[j] = WEIGHTS[codes[(at * rows + i) * columns + j]];
    return row;
  });
}

/** The mean over queries of the entropy of each head, in nats. */
export function headEntropies(group) {
  const [heads, rows] = group.shape;
  const maps = mapsOf(group);
  const mean = (at) =>
    maps.entropy.subarray(at * rows, (at + 1) * rows).reduce((sum, one) => sum + one, 0) / rows;
  return (maps.means ??= Array.from({ length: heads }, (_, at) => mean(at)));
}

/** A token in words; tokens repeat, so its place always stands beside. */
export const token = (t, tokens, place) => t("token", { token: cut(tokens[place]), place });

/** A map whose rows and columns are tokens. */
export class TokenMap extends HeatMap {
  read(i, j) {
    const { values, rowLabels, columnLabels } = this.data;
    const t = this.ui.t;
    const [row, column] = [token(t, rowLabels, i), token(t, columnLabels, j)];
    return t("token_cell", { row, column, value: show(values[i][j]) });
  }
}

/** Thumbnails of all heads, a row for each layer; onPick(layer, head) by arrow key or click. */
export class Mosaic extends Surface {
  constructor(ui, { label, height, onPick }) {
    super(ui, label, height, (...all) => this.drawAll(...all));
    Object.assign(this, { onPick, pictures: null });
    const { canvas } = this;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    ui.keys(canvas, (event) => {
      const to = this.beside(event.key);
      if (!to) return;
      event.preventDefault();
      onPick(...to);
    });
    ui.listen(canvas, "click", ({ offsetX, offsetY }) => {
      const { left, top, wide, high, lines, columns } = this.area;
      const [line, column] = [Math.floor((offsetY - top) / high), Math.floor((offsetX - left) / wide)];
      const layer = Math.floor(line / lines);
      const head = (line % lines) * columns + column;
      if (column >= 0 && column < columns && head < this.group.heads[layer]) onPick(layer, head);
    });
  }

  // The layer and head to which a key leads. A layer that takes several lines is gone through line by line.
  beside(key) {
    const { layer, head, group } = this;
    const { columns } = this.area;
    const last = group.heads.length - 1;
    const end = (at) => group.heads[at] - 1;
    const clipped = (at, to) => [at, Math.min(Math.max(to, 0), end(at))];
    const [start, column] = [head - (head % columns), head % columns];
    if (key === "ArrowLeft" || key === "ArrowRight") return clipped(layer, head + (key === "ArrowLeft" ? -1 : 1));
    if (key === "Home" || key === "End") return clipped(layer, key === "Home" ? 0 : Infinity);
    if (key === "ArrowDown") {
      if (start + columns <= end(layer)) return clipped(layer, head + columns);
      return layer < last ? clipped(layer + 1, column) : [layer, head];
    }
    if (key !== "ArrowUp") return null;
    if (start) return [layer, head - columns];
    if (!layer) return [layer, head];
    const above = layer - 1;
    return clipped(above, end(above) - (end(above) % columns) + column);
  }

  /** group: packed maps. entropy: a number below each. stretch: each to its largest weight. */
  show({ group, layer, head, entropy, stretch }) {
    Object.assign(this, { group, layer, head, entropy, stretch });
    const at = headAt(group, layer, head);
    this.label(this.ui.t("head_label", {
      layer, head, layers: group.heads.length, entropy: show(entropy[at], 2),
    }));
  }

  drawAll(pen, width, height, colours) {
    if (!this.group) return;
    const { em, group } = this;
    this.area = this.layOut(width, height);
    const { left, top, wide, high, lines, columns, scale } = this.area;
    this.paintPictures();
    pen.imageSmoothingQuality = "high";
    pen.fillStyle = colours.soft;
    pen.textAlign = "left";
    pen.fillText(this.ui.t("heads_axis"), left, 0.5 * em);
    pen.fillText(this.ui.t("layers_axis"), 0, 0.5 * em, left);
    pen.textAlign = "center";
    if (lines === 1) this.drawNumbers(pen);
    const size = [group.shape[2] * scale, group.shape[1] * scale];
    group.heads.forEach((count, layer) => {
      for (let head = 0; head < count; head++) {
        const x = left + ((head % columns) + 0.5) * wide - size[0] / 2;
        const y = top + (layer * lines + Math.floor(head / columns)) * high + 3;
        if (head % columns === 0) this.drawLine(pen, layer, head, y + size[1] / 2, colours);
        this.drawOne(pen, layer, head, x, y, size, colours);
      }
    });
  }

  // How the maps come to be largest: the heads of a layer in one line, or in several.
  layOut(width, height) {
    const { em, group } = this;
    const [, rows, columns] = group.shape;
    const most = Math.max(...group.heads);
    const plans = Array.from({ length: most }, (_, k) => {
      const lines = k + 1;
      const [left, top] = [(lines > 1 ? 4 : 2.4) * em, 2.2 * em];
      const across = Math.ceil(most / lines);
      const [wide, high] = [(width - left) / across, (height - top) / (group.heads.length * lines)];
      const numbered = high > 3.3 * em && wide > 2 * em; // else a bar tells the entropy
      const below = (numbered ? 1.1 * em : 5) + 6;
      const scale = Math.max(Math.min((wide - 6) / columns, (high - below) / rows), 0);
      const close = Math.min(high, scale * rows + below + em); // what is left over stays at the end
      return { left, top, wide, high: close, lines, columns: across, scale, numbered };
    });
    const best = plans.reduce((one, other) => (other.scale > one.scale ? other : one));
    return best.scale > 1.3 * plans[0].scale ? best : plans[0];
  }

  // The numbers of the heads, as many as there is room for.
  drawNumbers(pen) {
    const { left, wide, columns } = this.area;
    const every = Math.ceil((pen.measureText(columns).width + 0.3 * this.em) / wide);
    for (let head = 0; head < columns; head += every) {
      pen.fillText(head, left + (head + 0.5) * wide, 1.6 * this.em);
    }
  }

  // The layer before its line; before each of several also the first head.
  drawLine(pen, layer, head, y, colours) {
    pen.fillStyle = colours.soft;
    if (head === 0) pen.fillText(layer, 1.2 * this.em, y);
    if (this.area.lines > 1) pen.fillText(head, 3 * this.em, y);
  }

  drawOne(pen, layer, head, x, y, [width, height], colours) {
    const { rows, columns } = this.painted;
    pen.imageSmoothingEnabled = columns > width; // shrunk: smooth; enlarged: squares
    pen.drawImage(this.pictures, head * columns, layer * rows, columns, rows, x, y, width, height);
    if (layer === this.layer && head === this.head) outline(pen, x - 1, y - 1, width + 2, height + 2, colours);
    const entropy = this.entropy[headAt(this.group, layer, head)];
    pen.fillStyle = colours.ink;
    if (this.area.numbered) return pen.fillText(show(entropy, 2), x + width / 2, y + height + 0.75 * this.em);
    pen.fillRect(x, y + height + 3, width * (entropy / Math.log(Math.max(this.group.shape[2], 2)) || 0), 3);
  }

  // All maps in one image, made anew only when another group is shown.
  paintPictures() {
    const { group, stretch } = this;
    if (this.painted?.group === group && this.painted.stretch === stretch) return;
    const step = Math.ceil(Math.max(group.shape[1], group.shape[2]) / FINEST);
    const [rows, columns] = group.shape.slice(1).map((count) => Math.ceil(count / step));
    this.painted = { group, stretch, rows, columns };
    const wide = Math.max(...group.heads) * columns;
    const image = new ImageData(wide, group.heads.length * rows);
    const pixels = new Uint32Array(image.data.buffer);
    const { tops } = mapsOf(group);
    group.heads.forEach((count, layer) => {
      for (let head = 0; head < count; head++) {
        const at = headAt(group, layer, head);
        const colours = palette(stretch ? tops[at] : 1);
        shrunk(group, at, step, columns).forEach((code, k) => {
          const row = layer * rows + Math.floor(k / columns);
          pixels[row * wide + head * columns + (k % columns)] = colours[code];
        });
      }
    });
    this.pictures = canvasOf(image);
  }
}

const FINEST = 48; // points along a side of a thumbnail

// The largest of every few cells, so that a thumbnail keeps single bright ones.
function shrunk(group, at, step, wide) {
  const [, rows, columns] = group.shape;
  const { codes } = mapsOf(group);
  const small = new Uint8Array(Math.ceil(rows / step) * wide);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const code = codes[(at * rows + i) * columns + j];
      const k = Math.floor(i / step) * wide + Math.floor(j / step);
      if (code > small[k]) small[k] = code;
    }
  }
  return small;
}

// The colour of each code, as a pixel.
const palette = (top) =>
  WEIGHTS.map((weight, code) => (code === NAN ? pixelOf([179, 38, 30]) : ramp().pixels[stepOf(weight, [0, top || 1])]));

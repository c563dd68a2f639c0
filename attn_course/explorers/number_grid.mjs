// Numbers in a table that one moves in with the arrow keys, picks from and edits in place.

import { make, show } from "./core.mjs";

/** A computed number, in a width that changes little. */
export function fixed(x) {
  if (!Number.isFinite(x) || Math.abs(x) >= 1000) return show(x, 4);
  return x.toFixed(2).replace(/^-(0\.00)$/, "$1").replace("-", "−");
}

/** A given number, as it was typed. */
export const typed = (x) => show(x, 4);

/** What a person types as a number: a comma counts as a point, ∞ and inf as infinite. */
export function parsed(text) {
  const plain = text.trim().toLowerCase().replace("−", "-").replace(",", ".");
  return plain === "" ? NaN : Number(plain.replace(/(∞|inf|infinity)$/, "Infinity"));
}

const GRID_STYLE = `
.attn-ex .grid-frame { max-width: 100%; overflow-x: auto; padding: 3px; }
.attn-ex [role=grid] { font-size: .85em; font-variant-numeric: tabular-nums; }
.attn-ex [role=grid] td, .attn-ex [role=grid] th { padding: .1em .3em; border: 1px solid var(--faint); }
.attn-ex [role=grid] td { min-width: 3.2em; height: 1.9em; cursor: pointer; }
.attn-ex [role=grid] th, .attn-ex [role=grid] .corner { font-weight: 400; border: 0; min-width: 0; max-width: 6em;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.attn-ex [role=grid] caption { white-space: nowrap; }
.attn-ex [role=grid] td[data-part=from] { outline: 2px dashed var(--accent); outline-offset: -2px; }
.attn-ex [role=grid] td[data-part=to] { outline: 3px solid var(--ink); outline-offset: -2px;
  -webkit-text-stroke: .04em currentColor; } /* bold letters are wider: the tables would move */
.attn-ex [role=grid] td[data-later] { color: var(--soft); font-style: italic; }
.attn-ex [role=grid] td:focus-visible { outline: 3px solid var(--accent); outline-offset: 0; }
.attn-ex [role=grid] td input { width: 100%; min-height: 0; padding: 0 .2em; text-align: right; }
`;

export class NumberGrid {
  /** pick(i, j): clicked, or Enter. edit(i, j, text) instead: a number was typed. */
  constructor(ui, title, { pick, edit }) {
    ui.style(GRID_STYLE, "number-grid");
    Object.assign(this, { ui, title, pick, edit, cursor: [0, 0], cells: [] });
    this.table = make("table", { role: "grid" });
    this.table.setAttribute("aria-label", title);
    this.element = make("div", { className: "grid-frame" });
    this.element.append(this.table);
    ui.keys(this.table, (event) => this.key(event));
    ui.listen(this.table, "click", ({ target }) => this.clicked(target.closest("td")));
  }

  /**
   * rows, columns: names. text(i, j): what stands in a cell. part(i, j): "from" or "to"
   * lights it as taking part or as the result. later(i, j): not reached yet.
   */
  show({ rows, columns, text, part, later }) {
    const built = JSON.stringify([rows, columns]);
    if (built !== this.built) this.build(rows, columns);
    this.built = built;
    this.cells.forEach((row, i) => row.forEach((cell, j) => {
      if (!cell.querySelector("input") && cell.textContent !== text(i, j)) cell.textContent = text(i, j);
      cell.dataset.part = part(i, j);
      cell.toggleAttribute("data-later", Boolean(later(i, j)));
      cell.setAttribute("aria-selected", String(part(i, j) === "to"));
    }));
  }

  build(rows, columns) {
    this.cursor = [0, 0];
    this.table.replaceChildren(make("caption", { textContent: this.title }));
    const head = this.table.createTHead().insertRow();
    head.append(make("td", { className: "corner", ariaHidden: "true" }));
    head.append(...columns.map((column) => make("th", { scope: "col", textContent: column })));
    const body = this.table.createTBody();
    this.cells = rows.map((name, i) => {
      const row = body.insertRow();
      row.append(make("th", { scope: "row", textContent: name }));
      return columns.map((_, j) => Object.assign(row.insertCell(), { tabIndex: i || j ? -1 : 0 }));
    });
  }

  move(i, j) {
    const [rows, columns] = [this.cells.length, this.cells[0].length];
    this.cells[this.cursor[0]][this.cursor[1]].tabIndex = -1;
    this.cursor = [Math.min(Math.max(i, 0), rows - 1), Math.min(Math.max(j, 0), columns - 1)];
    const cell = this.cells[this.cursor[0]][this.cursor[1]];
    cell.tabIndex = 0;
    cell.focus();
  }

  key(event) {
    if (event.target.tagName === "INPUT") return;
    const [i, j] = this.cursor;
    const moves = {
      ArrowUp: [i - 1, j], ArrowDown: [i + 1, j], ArrowLeft: [i, j - 1], ArrowRight: [i, j + 1],
      Home: [i, 0], End: [i, Infinity],
    };
    if (moves[event.key]) this.move(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " " || event.key === "F2") this.act(i, j);
    else if (this.edit && /^[-−\d.,]$/.test(event.key)) this.write(i, j, event.key);
    else return;
    event.preventDefault();
  }

  clicked(cell) {
    const i = this.cells.findIndex((row) => row.includes(cell));
    if (i < 0 || cell.querySelector("input")) return;
    const j = this.cells[i].indexOf(cell);
    this.move(i, j);
    this.act(i, j);
  }

  act(i, j) {
    if (this.edit) this.write(i, j);
    else this.pick(i, j);
  }

  /** Edit a number where it stands: Enter takes it, Escape leaves it as it was. */
  write(i, j, text = null) {
    const cell = this.cells[i][j];
    const before = cell.textContent; // rounded: taken back as it stands it would change the number
    const input = make("input", { type: "text", inputMode: "decimal", value: text ?? before });
    input.setAttribute("aria-label", `${this.title} ${i}, ${j}`);
    let open = true;
    const leave = (take, stay) => {
      if (!open) return;
      open = false;
      const typedText = input.value;
      cell.replaceChildren();
      cell.style.minWidth = "";
      if (stay) cell.focus();
      if (take && typedText !== before) this.edit(i, j, typedText);
      this.ui.redraw();
    };
    this.ui.keys(input, (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      leave(event.key === "Enter", true);
    });
    this.ui.listen(input, "blur", () => leave(true, false));
    cell.style.minWidth = `${cell.offsetWidth}px`;
    cell.replaceChildren(input);
    input.focus();
    if (text === null) input.select();
  }
}

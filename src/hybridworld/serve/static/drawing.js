// Drawing an initial state with the brushes of its system: by pointer, or with the arrow keys and Enter.

import { slider } from "./controls.js";

const STEP = 0.04; // of the shorter side of the panel, per key press

export class Drawing {
  constructor(model, view, canvas, { apply, redraw, elements }) {
    Object.assign(this, { model, view, canvas, apply, redraw, elements });
    this.brush = null;
    this.values = {};
    this.overlay = null;
    this.cursor = null; // of the keyboard, in pixels
    this.line = null;
    this.busy = false;
    this.pending = [];
    Drawing.current?.abort();
    Drawing.current = new AbortController();
    this.show();
    this.listen(Drawing.current.signal);
  }

  /** A choice of the brushes, and of the hand without one. */
  show() {
    const { section, brushes } = this.elements, all = this.model.brushes.length ? [null, ...this.model.brushes] : [];
    section.hidden = !all.length && !this.view.moved;
    brushes.replaceChildren(...all.map((brush) => {
      const label = document.createElement("label"), input = document.createElement("input");
      label.className = "choice";
      Object.assign(input, { type: "radio", name: "brush", checked: !brush });
      input.addEventListener("change", () => this.choose(brush));
      label.append(input, brush?.name ?? "off");
      return label;
    }));
    this.choose(null);
  }

  choose(brush) {
    this.brush = brush;
    this.overlay = this.cursor = this.line = null;
    const hint = this.view.moved ? MOVE : "Choose a brush to draw into the input.";
    this.elements.meaning.textContent = brush ? `${brush.meaning} ${HOW[brush.gesture]}` : hint;
    this.values = Object.fromEntries((brush?.settings ?? []).map(({ name, value }) => [name, value]));
    this.elements.settings.replaceChildren(...(brush?.settings ?? []).map((setting) => slider(setting, (value) => (this.values[setting.name] = value))));
    if (brush && this.model.position) {
      const [low, high] = [this.model.axes[2].low, this.model.axes[2].high];
      this.elements.settings.append(slider({ name: "start height", unit: "", low, high, value: this.view.height }, (value) => (this.view.height = value)));
    }
    this.canvas.classList.toggle("draws", Boolean(brush));
    this.canvas.classList.toggle("turns", Boolean(this.view.turnBy) && !brush);
    this.redraw();
  }

  listen(signal) {
    const { canvas } = this, on = (name, action) => canvas.addEventListener(name, action, { signal });
    let down = false;
    on("pointerdown", (event) => {
      if (!this.brush) return;
      event.preventDefault();
      canvas.setPointerCapture(event.pointerId);
      down = true;
      this.start(event.offsetX, event.offsetY);
    });
    on("pointermove", (event) => {
      if (!this.brush) return;
      if (down) this.move(event.offsetX, event.offsetY);
      else this.hover(event.offsetX, event.offsetY);
    });
    on("pointerup", (event) => {
      if (!this.brush || !down) return;
      down = false;
      this.end(event.offsetX, event.offsetY);
    });
    on("pointercancel", () => (down = false));
    on("pointerleave", () => {
      if (down || !this.brush) return;
      this.overlay = null;
      this.redraw();
    });
    on("keydown", (event) => this.key(event));
    on("blur", () => {
      this.overlay = this.cursor = null;
      if (this.brush) this.redraw();
    });
  }

  hover(x, y) {
    this.overlay = { cursor: this.view.place(this.canvas, x, y), radius: this.values.radius, line: this.line };
    this.redraw();
  }

  start(x, y) {
    const point = this.view.place(this.canvas, x, y);
    this.line = [point];
    if (this.brush.gesture === "point") this.send([point]);
    if (this.brush.gesture === "stroke") this.send([point]);
    this.hover(x, y);
  }

  move(x, y) {
    if (!this.line) return;
    if (this.brush.gesture === "arrow") this.line = [this.line[0], this.view.place(this.canvas, x, y, this.line[0])];
    if (this.brush.gesture === "stroke") {
      const point = this.view.place(this.canvas, x, y);
      this.send([this.line.at(-1), point]);
      this.line.push(point);
    }
    this.overlay = { cursor: this.brush.gesture === "arrow" ? this.line[0] : this.view.place(this.canvas, x, y), radius: this.values.radius, line: this.line };
    this.redraw();
  }

  end(x, y) {
    if (this.brush.gesture === "arrow" && this.line) this.send([this.line[0], this.view.place(this.canvas, x, y, this.line[0])]);
    this.line = this.overlay = null;
    this.redraw();
  }

  /** Strokes are sent as they grow; while one is on its way the next points gather. */
  async send(points) {
    this.pending.push(points);
    if (this.busy) return;
    this.busy = true;
    while (this.pending.length) {
      const many = this.brush?.gesture === "stroke" ? this.pending.splice(0).flat() : this.pending.shift();
      if (this.brush) await this.apply(this.brush.name, many, this.values);
    }
    this.busy = false;
  }

  key(event) {
    if (!this.brush) return;
    const { clientWidth: width, clientHeight: height } = this.canvas, step = STEP * Math.min(width, height);
    const way = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[event.key];
    const draws = event.key === "Enter" || event.key === " ";
    if (!way && !draws) return;
    event.preventDefault();
    this.cursor ??= [width / 2, height / 2];
    if (way) this.cursor = [Math.min(width - 1, Math.max(1, this.cursor[0] + way[0])), Math.min(height - 1, Math.max(1, this.cursor[1] + way[1]))];
    const [x, y] = this.cursor;
    if (this.brush.gesture === "arrow") {
      if (draws && this.line) {
        this.end(x, y);
        this.cursor = null;
        return;
      }
      if (draws) this.line = [this.view.place(this.canvas, x, y)];
      else if (this.line) this.line = [this.line[0], this.view.place(this.canvas, x, y, this.line[0])];
    } else if (draws) this.send([this.view.place(this.canvas, x, y)]);
    this.overlay = { cursor: this.line?.[0] ?? this.view.place(this.canvas, x, y), radius: this.values.radius, line: this.line };
    this.redraw();
  }
}

export const MOVE = "Drag an object of the input to another place; by keys: Enter takes the next one, the arrow keys move it.";
const HOW = {
  stroke: "Drag over the input, or move with the arrow keys and press Enter.",
  point: "Click into the input, or move with the arrow keys and press Enter.",
  arrow: "Drag from where it starts to where it heads; by keys: Enter, arrow keys, Enter.",
};

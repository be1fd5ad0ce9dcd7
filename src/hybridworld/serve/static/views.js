// The five panels of a model, by the shape of its states: images, curves, a scene of objects, a ball in its box, or dots.
//
// A view draws {input, truth, prediction, map, error, path, truePath} into the panels and tells where a pointer is in space.

import { FONT, colourOf, css, drawBar, errorScale, fresh, imageOf, short, stateScale } from "./colour.js";

const NAMES = ["input", "truth", "prediction", "map", "error"];
const WAITING = { truth: "ask the solver", error: "needs the true future", prediction: "…", map: "…" };

export function viewOf(model) {
  if (model.bodies) return new SceneView(model);
  if (model.position) return new BoxView(model);
  if (model.grid.length === 0) return new DotsView(model);
  return model.grid.length === 1 ? new LinesView(model) : new ImagesView(model);
}

/** What an empty panel says. */
function say(canvas, text) {
  const { context, width, height } = fresh(canvas);
  context.fillStyle = css("--wall");
  context.fillRect(0, 0, width, height);
  context.fillStyle = css("--muted");
  context.font = FONT;
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, width / 2, height / 2);
}

class View {
  constructor(model) {
    this.model = model;
    this.field = model.draw;
    this.size = model.grid.reduce((product, cells) => product * cells, 1);
  }

  /** The number by which a field is drawn: a scalar as it is, a vector by its magnitude. */
  drawn(state) {
    const { channels } = this.model.fields[this.field], n = this.size;
    if (channels.length === 1) return state.subarray(channels[0] * n, (channels[0] + 1) * n);
    const values = new Float64Array(n);
    for (let i = 0; i < n; i++) values[i] = Math.hypot(...channels.map((channel) => state[channel * n + i]));
    return values;
  }

  get label() {
    const { name, unit, channels } = this.model.fields[this.field];
    const shown = channels.length === 1 ? name : `|${name}|`;
    return unit && unit !== "1" ? `${shown} (${unit})` : shown;
  }

  scales(data) {
    const states = [data.input, data.truth, data.prediction].filter(Boolean).map((state) => this.drawn(state));
    const errors = [data.map, data.error].filter(Boolean);
    return { states: stateScale(states), errors: errors.length ? errorScale(errors) : null };
  }

  draw(panels, bars, data, overlay) {
    const scales = this.scales(data);
    for (const name of NAMES) {
      if (data[name]) this.panel(panels[name], name, data, scales);
      else say(panels[name], this.model.model || name === "truth" ? WAITING[name] : "no model");
    }
    if (overlay) this.overlay(panels.input, overlay);
    bars.states.hidden = !this.coloured.states;
    bars.errors.hidden = !this.coloured.errors;
    if (this.coloured.states) drawBar(bars.states, scales.states, this.label);
    if (this.coloured.errors) drawBar(bars.errors, scales.errors, "error, in deviations of the training data");
  }

  overlay() {}

  /** Which groups of panels show numbers as colours. */
  get coloured() { return { states: false, errors: false }; }
  get ratio() { return 1; }
}

// Fields on a plane; of a volume, the middle slice.

class ImagesView extends View {
  get coloured() { return { states: true, errors: true }; }

  get ratio() {
    const [x, y] = this.model.axes;
    return Math.min(2, Math.max(0.5, (x.high - x.low) / (y.high - y.low)));
  }

  slice(values) {
    const [nx, ny, ...more] = this.model.grid;
    if (!more.length) return values;
    const depth = more.reduce((product, cells) => product * cells, 1), cut = new Float64Array(nx * ny);
    let middle = 0;
    for (const cells of more) middle = middle * cells + Math.floor(cells / 2);
    for (let i = 0; i < nx * ny; i++) cut[i] = values[i * depth + middle];
    return cut;
  }

  panel(canvas, name, data, scales) {
    if (name === "map" || name === "error") this.errors(canvas, data[name], scales.errors);
    else this.image(canvas, this.drawn(data[name]), scales.states);
  }

  errors(canvas, values, scale) { this.image(canvas, values, scale); }

  image(canvas, values, scale) {
    const [nx, ny] = this.model.grid, { context, width, height } = fresh(canvas);
    context.imageSmoothingEnabled = width < nx;
    context.drawImage(imageOf(this.slice(values), nx, ny, scale), 0, 0, width, height);
  }

  overlay(canvas, { cursor, radius, line }) {
    const { context, width, height } = pen(canvas), [x, y] = this.model.axes;
    const place = ([a, b]) => [((a - x.low) / (x.high - x.low)) * width, (1 - (b - y.low) / (y.high - y.low)) * height];
    outlined(context, () => {
      if (line?.length > 1) line.forEach((point, k) => context[k ? "lineTo" : "moveTo"](...place(point)));
      if (cursor) {
        const [cx, cy] = place(cursor), r = Math.max(5, ((radius ?? 0) / (x.high - x.low)) * width);
        context.moveTo(cx + r, cy);
        context.arc(cx, cy, r, 0, 7);
      }
    });
  }

  place(canvas, px, py) {
    const [x, y] = this.model.axes, inside = (share) => Math.min(1 - 1e-9, Math.max(0, share));
    const point = [
      x.low + inside(px / canvas.clientWidth) * (x.high - x.low),
      y.low + inside(1 - py / canvas.clientHeight) * (y.high - y.low),
    ];
    for (const axis of this.model.axes.slice(2)) point.push((axis.low + axis.high) / 2);
    return point;
  }
}

// Fields on a line.

class LinesView extends View {
  get ratio() { return 1.25; }

  panel(canvas, name, data, scales) {
    const isError = name === "map" || name === "error", { context, width, height } = fresh(canvas);
    const scale = isError ? scales.errors : scales.states, room = 0.08 * (scale.high - scale.low);
    const low = isError ? 0 : scale.low - room, high = scale.high + room;
    const at = (values, i) => [((i + 0.5) / values.length) * width, (1 - (values[i] - low) / (high - low)) * height];
    const trace = (values) => {
      context.beginPath();
      for (let i = 0; i < values.length; i++) context[i ? "lineTo" : "moveTo"](...at(values, i));
    };
    context.fillStyle = css("--wall");
    context.fillRect(0, 0, width, height);
    context.lineWidth = 1.8;
    if (isError) {
      trace(data[name]);
      context.strokeStyle = css("--line2");
      context.stroke();
      context.lineTo(width, height);
      context.lineTo(0, height);
      context.globalAlpha = 0.25;
      context.fillStyle = css("--line2");
      context.fill();
      context.globalAlpha = 1;
    } else {
      if (name === "prediction" && data.truth) {
        trace(this.drawn(data.truth));
        context.strokeStyle = css("--muted");
        context.setLineDash([4, 3]);
        context.stroke();
        context.setLineDash([]);
      }
      trace(this.drawn(data[name]));
      context.strokeStyle = css("--line1");
      context.stroke();
    }
    ends(context, width, height, short(low), short(high));
  }

  overlay(canvas, { cursor, radius }) {
    if (!cursor) return;
    const { context, width, height } = pen(canvas), [x] = this.model.axes;
    const centre = ((cursor[0] - x.low) / (x.high - x.low)) * width, r = ((radius ?? 0) / (x.high - x.low)) * width;
    outlined(context, () => context.rect(centre - r, 1, 2 * r || 1, height - 2));
  }

  place(canvas, px) {
    const [x] = this.model.axes, share = Math.min(1 - 1e-9, Math.max(0, px / canvas.clientWidth));
    return [x.low + share * (x.high - x.low)];
  }
}

// A set of objects in a box, from above, each with its number. In the error panels a colour is the error of an object.

class SceneView extends View {
  constructor(model) {
    super(model);
    this.chosen = null; // the number of the object that the keyboard moves
  }

  get coloured() { return { states: false, errors: true }; }

  get ratio() {
    const [x, y] = this.model.axes;
    return Math.min(2, Math.max(0.5, (x.high - x.low) / (y.high - y.low)));
  }

  /** Space -> page, and back; a margin is left for the walls. */
  projection(width, height) {
    const [x, y] = this.model.axes, unit = 0.94 * Math.min(width / (x.high - x.low), height / (y.high - y.low));
    const middle = [(x.low + x.high) / 2, (y.low + y.high) / 2];
    return {
      unit,
      to: ([a, b]) => [width / 2 + unit * (a - middle[0]), height / 2 - unit * (b - middle[1])],
      from: (px, py) => [middle[0] + (px - width / 2) / unit, middle[1] + (height / 2 - py) / unit],
    };
  }

  /** Of each object: place, half extents, its three directions (none if it is round), and whether an action drives it. */
  bodies(state) {
    const { position, extent, pointing, driven } = this.model.bodies, n = this.size, { axes } = this.model;
    const small = 0.02 * Math.min(...axes.map((axis) => axis.high - axis.low));
    return Array.from({ length: n }, (_, number) => {
      const of = (channels) => channels.map((channel) => state[channel * n + number]), [front, side] = pointing.map(of);
      const turned = front && Math.min(Math.hypot(...front), Math.hypot(...side)) > 0.1; // a network's zero is not quite zero
      return {
        number, place: of(position), extent: extent.length ? of(extent).map(Math.abs) : [small, small, small],
        turn: turned ? frameOf(front, side) : null,
        driven: Boolean(driven) && Math.abs(state[driven.channel * n + number] - driven.value) < 0.5,
      };
    });
  }

  panel(canvas, name, data, scales) {
    if (name === "map" || name === "error") {
      this.errors(canvas, data[name], scales.errors, data.prediction);
      return;
    }
    const { context, view } = this.scene(canvas, data[name], ({ driven }) => css(driven ? "--defer" : "--line1"));
    if (name === "prediction" && data.truth) {
      context.setLineDash([3, 2]);
      for (const body of this.bodies(data.truth)) this.stroke(context, this.outline(body, view), 1);
      context.setLineDash([]);
    }
    if (name === "input") this.arrows(context, view, data);
  }

  errors(canvas, values, scale, state) { this.scene(canvas, state, ({ number }) => colourOf(scale, values[number])); }

  /** The table, and on it the objects, the lower ones first. */
  scene(canvas, state, colour) {
    const { context, width, height } = fresh(canvas), view = this.projection(width, height), [x, y] = this.model.axes;
    const [left, top] = view.to([x.low, y.high]), [right, bottom] = view.to([x.high, y.low]);
    context.fillStyle = css("--wall");
    context.fillRect(left, top, right - left, bottom - top);
    context.strokeStyle = css("--muted");
    for (const [axis, sides] of [[x, [[left, top, left, bottom], [right, top, right, bottom]]], [y, [[left, top, right, top], [left, bottom, right, bottom]]]]) {
      context.lineWidth = axis.boundary === "wall" ? 3 : 0.5;
      for (const [ax, ay, bx, by] of sides) {
        context.beginPath();
        context.moveTo(ax, ay);
        context.lineTo(bx, by);
        context.stroke();
      }
    }
    context.font = "600 10px system-ui, sans-serif";
    context.lineJoin = "round";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const upper = ({ place, extent }) => place[2] + extent[2];
    for (const body of this.bodies(state).sort((a, b) => upper(a) - upper(b))) {
      const outline = this.outline(body, view), [px, py] = view.to(body.place);
      context.fillStyle = colour(body);
      context.fill(outline);
      this.stroke(context, outline, body.driven ? 2 : 0.8);
      context.strokeStyle = "rgb(255 255 255 / .8)";
      context.lineWidth = 2;
      context.strokeText(String(body.number), px, py + 0.5);
      context.fillStyle = "rgb(20 24 30)";
      context.fillText(String(body.number), px, py + 0.5);
    }
    return { context, view };
  }

  /** A circle, or those faces of a box that look up. */
  outline({ place, extent, turn }, view) {
    const outline = new Path2D();
    if (!turn) {
      outline.arc(...view.to(place), extent[0] * view.unit, 0, 7);
      return outline;
    }
    for (const k of [0, 1, 2]) {
      if (Math.abs(turn[k][2]) < 1e-3) continue; // seen from its edge
      const i = (k + 1) % 3, j = (k + 2) % 3, up = Math.sign(turn[k][2]);
      [[1, 1], [1, -1], [-1, -1], [-1, 1]].forEach(([a, b], corner) => {
        const point = place.map((value, d) => value + up * extent[k] * turn[k][d] + a * extent[i] * turn[i][d] + b * extent[j] * turn[j][d]);
        outline[corner ? "lineTo" : "moveTo"](...view.to(point));
      });
      outline.closePath();
    }
    return outline;
  }

  stroke(context, outline, width) {
    context.strokeStyle = css("--ink");
    context.lineWidth = width;
    context.stroke(outline);
  }

  /** Where objects head within ten frames; those that an action drives, as it says. */
  arrows(context, view, { input, params }) {
    const { position, velocity } = this.model.bodies, n = this.size;
    for (const { number, place, driven } of this.bodies(input)) {
      const speed = position.map((_, k) => {
        const action = driven ? this.model.params.findIndex(({ sets }) => sets !== null && sets === velocity[k]) : -1;
        return action >= 0 ? params[action] : velocity.length ? input[velocity[k] * n + number] : 0;
      });
      arrow(context, view.to(place), view.to(place.map((value, k) => value + 10 * this.model.frame_step * speed[k])));
    }
    if (this.chosen === null) return;
    const body = this.bodies(input)[this.chosen], [px, py] = view.to(body.place);
    outlined(context, () => context.arc(px, py, Math.hypot(...body.extent.slice(0, 2)) * view.unit + 3, 0, 7));
  }

  /** The number of the object under the pointer, or null; small ones are easier to hit than to see. */
  under(canvas, state, px, py) {
    const view = this.projection(canvas.clientWidth, canvas.clientHeight), [x, y] = view.from(px, py);
    const far = ({ place }) => Math.hypot(place[0] - x, place[1] - y);
    const near = this.bodies(state).filter((body) => far(body) <= Math.max(body.extent[0], body.extent[1], 14 / view.unit));
    return near.sort((a, b) => far(a) - far(b))[0]?.number ?? null;
  }

  /** The state in which an object is carried so far, though not through the sides of the box. */
  moved(state, number, dx, dy) {
    const next = state.slice(), { extent } = this.bodies(state)[number], n = this.size;
    [dx, dy].forEach((step, k) => {
      const { low, high } = this.model.axes[k], at = this.model.bodies.position[k] * n + number;
      next[at] = Math.min(high - extent[k], Math.max(low + extent[k], state[at] + step));
    });
    return next;
  }
}

/** Three directions at right angles, the first two of them as nearly as possible those given. */
function frameOf(front, side) {
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2], unit = (a) => a.map((value) => value / (Math.hypot(...a) || 1));
  const first = unit(front), along = dot(first, side), second = unit(side.map((value, k) => value - along * first[k]));
  return [first, second, [1, 2, 0].map((k, i) => first[k] * second[[2, 0, 1][i]] - first[[2, 0, 1][i]] * second[k])];
}

// A ball in its box. Orthographic; the view turns. The error map is a colour along the path: one number per horizon.

class BoxView extends View {
  constructor(model) {
    super(model);
    this.turn = 0.62;
    this.tilt = 0.42;
    this.height = (model.axes[2].low + model.axes[2].high) / 2;
  }

  get coloured() { return { states: false, errors: true }; }

  scales(data) {
    const until = (values) => values?.subarray(0, data.horizon);
    const errors = [until(data.path?.scores), until(data.truePath?.errors), data.map, data.error].filter(Boolean);
    return { states: null, errors: errors.length ? errorScale(errors) : null };
  }

  /** Space -> page: right, up, and towards the eye. */
  projection(width, height) {
    const { axes } = this.model, middle = axes.map((axis) => (axis.low + axis.high) / 2), size = axes.map((axis) => axis.high - axis.low);
    const [s, c, st, ct] = [Math.sin(this.turn), Math.cos(this.turn), Math.sin(this.tilt), Math.cos(this.tilt)];
    const across = Math.hypot(size[0], size[1]), unit = Math.min(width / across, height / (size[2] * ct + across * st)) / 1.06;
    const right = [c, s, 0], up = [-s * st, c * st, ct], eye = [s * ct, -c * ct, st];
    const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const to = (point) => {
      const from = point.map((value, k) => value - middle[k]);
      return [width / 2 + unit * dot(from, right), height / 2 - unit * dot(from, up), dot(from, eye)];
    };
    return { to, unit, right, up, eye, middle };
  }

  panel(canvas, name, data, scales) {
    const { context, width, height } = fresh(canvas), view = this.projection(width, height);
    this.box(context, view);
    const state = name === "input" ? data.input : name === "truth" ? data.truth : (data.prediction ?? data.truth);
    const isError = name === "map" || name === "error";
    const path = name === "truth" ? data.truePath : name === "input" ? null : data.path;
    if (path && path.points.length > data.horizon) { // a shorter one would not lead to the ball
      const numbers = name === "map" ? path.scores : name === "error" ? data.truePath?.errors : null;
      this.path(context, view, path.points, data.horizon, numbers?.length >= data.horizon && scales.errors ? (k) => colourOf(scales.errors, numbers[k]) : null);
    }
    if (!state) return;
    const place = this.position(state);
    let colour = css("--line1");
    if (isError) colour = colourOf(scales.errors, (name === "map" ? data.map : data.error)[0]);
    if (name === "prediction" && data.truth) this.ghost(context, view, place, this.position(data.truth));
    this.ball(context, view, place, colour);
    const heads = this.velocityEnd(data.input);
    if (name === "input" && heads) arrow(context, view.to(place), view.to(heads));
  }

  position(state) { return this.model.position.map((channel) => state[channel]); }

  /** Where the ball heads, if there is a second vector: its velocity over a tenth of a second. */
  velocityEnd(state) {
    const velocity = this.model.fields.find((field) => field.channels.length === 3 && field.channels[0] !== this.model.position[0]);
    if (!velocity) return null;
    const place = this.position(state);
    return place.map((value, k) => value + 0.1 * state[velocity.channels[k]]);
  }

  box(context, view) {
    const { axes } = this.model, ends = axes.map((axis) => [axis.low, axis.high]);
    const wall = (points, fill) => {
      context.beginPath();
      points.forEach((point, k) => context[k ? "lineTo" : "moveTo"](...view.to(point)));
      context.closePath();
      context.fillStyle = fill;
      context.fill();
      context.strokeStyle = css("--muted");
      context.globalAlpha = 0.5;
      context.lineWidth = 1;
      context.stroke();
      context.globalAlpha = 1;
    };
    const [x, y, z] = ends, back = [view.eye[0] > 0 ? x[0] : x[1], view.eye[1] > 0 ? y[0] : y[1]];
    wall([[x[0], y[0], z[0]], [x[1], y[0], z[0]], [x[1], y[1], z[0]], [x[0], y[1], z[0]]], css("--wall"));
    wall([[back[0], y[0], z[0]], [back[0], y[1], z[0]], [back[0], y[1], z[1]], [back[0], y[0], z[1]]], "transparent");
    wall([[x[0], back[1], z[0]], [x[1], back[1], z[0]], [x[1], back[1], z[1]], [x[0], back[1], z[1]]], "transparent");
  }

  path(context, view, points, horizon, colour) {
    const floor = this.model.axes[2].low, many = Math.min(points.length - 1, horizon);
    context.lineCap = "round";
    const line = (width, stroke, place = (point) => point) => {
      context.lineWidth = width;
      for (let k = 1; k <= many; k++) {
        context.beginPath();
        for (const point of [points[k - 1], points[k]]) context.lineTo(...view.to(place(point)).slice(0, 2));
        context.strokeStyle = stroke(k - 1);
        context.stroke();
      }
    };
    line(1.5, () => css("--faint"), ([x, y]) => [x, y, floor]);
    if (colour) line(6, () => css("--muted"));
    line(colour ? 4 : 2, colour ?? (() => css("--line1")));
  }

  ball(context, view, place, colour) {
    const { axes } = this.model, radius = 0.05 * Math.min(...axes.map((axis) => axis.high - axis.low)) * view.unit;
    const [x, y] = view.to(place), [fx, fy] = view.to([place[0], place[1], axes[2].low]);
    context.strokeStyle = css("--muted");
    context.lineWidth = 0.6;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(fx, fy);
    context.stroke();
    context.fillStyle = css("--faint");
    context.beginPath();
    context.ellipse(fx, fy, radius, radius * Math.max(0.15, Math.sin(this.tilt)), 0, 0, 7);
    context.fill();
    context.beginPath();
    context.arc(x, y, radius, 0, 7);
    context.fillStyle = colour;
    context.fill();
    const shade = context.createRadialGradient(x - radius / 3, y - radius / 3, radius / 8, x, y, radius);
    shade.addColorStop(0, "rgb(255 255 255 / .55)");
    shade.addColorStop(0.6, "rgb(255 255 255 / 0)");
    shade.addColorStop(1, "rgb(0 0 0 / .25)");
    context.fillStyle = shade;
    context.fill();
    context.strokeStyle = css("--ink");
    context.lineWidth = 0.8;
    context.stroke();
  }

  /** The truth beside the prediction: a small open circle, and a line to it. */
  ghost(context, view, from, to) {
    const [x, y] = view.to(from), [tx, ty] = view.to(to);
    context.strokeStyle = css("--ink");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(tx, ty);
    context.stroke();
    context.beginPath();
    context.arc(tx, ty, 3.5, 0, 7);
    context.fillStyle = css("--card");
    context.fill();
    context.stroke();
  }

  overlay(canvas, { cursor, line }) {
    const { context, width, height } = pen(canvas), view = this.projection(width, height);
    if (line?.length === 2) arrow(context, ...line.map(view.to));
    if (!cursor) return;
    const [x, y] = view.to(cursor), [fx, fy] = view.to([cursor[0], cursor[1], this.model.axes[2].low]);
    outlined(context, () => {
      context.moveTo(x + 5, y);
      context.arc(x, y, 5, 0, 7);
      context.moveTo(x, y);
      context.lineTo(fx, fy);
    });
  }

  /** The point of the horizontal plane at `height` under the pointer; with `from`, how far the pointer went right and up. */
  place(canvas, px, py, from) {
    const view = this.projection(canvas.clientWidth, canvas.clientHeight), { axes } = this.model;
    const a = (px - canvas.clientWidth / 2) / view.unit, b = (canvas.clientHeight / 2 - py) / view.unit;
    if (from) {
      const start = view.to(from), right = (px - start[0]) / view.unit, up = (start[1] - py) / view.unit;
      return from.map((value, k) => value + right * view.right[k] + (k === 2 ? up : 0));
    }
    const lift = this.height - view.middle[2], [c, s, st, ct] = [Math.cos(this.turn), Math.sin(this.turn), Math.sin(this.tilt), Math.cos(this.tilt)];
    const depth = (b - lift * ct) / st; // along (-s, c) in the plane
    const point = [view.middle[0] + a * c - depth * s, view.middle[1] + a * s + depth * c, this.height];
    return point.map((value, k) => Math.min(axes[k].high, Math.max(axes[k].low, value)));
  }

  turnBy(dx, dy) {
    this.turn += dx;
    this.tilt = Math.min(1.4, Math.max(0.08, this.tilt + dy));
  }
}

// Any other state vector: a row of dots per channel, and the errors over the horizon.

class DotsView extends View {
  drawn(state) { return state; }

  scales(data) {
    const errors = [data.path?.scores, data.truePath?.errors, data.map, data.error].filter(Boolean);
    const states = [data.input, data.truth, data.prediction].filter(Boolean);
    return { states: stateScale(states), errors: errors.length ? errorScale(errors) : null };
  }

  panel(canvas, name, data, scales) {
    const { context, width, height } = fresh(canvas);
    context.fillStyle = css("--wall");
    context.fillRect(0, 0, width, height);
    if (name === "map" || name === "error") {
      const values = name === "map" ? data.path?.scores : data.truePath?.errors;
      if (values) this.curve(context, width, height, values, scales.errors.high, data.horizon);
      ends(context, width, height, "0", short(scales.errors.high));
      return;
    }
    const state = data[name], { channels } = this.model, { low, high } = scales.states, left = 8;
    channels.forEach((channel, k) => {
      const y = ((k + 0.6) / channels.length) * height, x = (value) => left + ((value - low) / (high - low)) * (width - 2 * left);
      context.strokeStyle = css("--faint");
      context.beginPath();
      context.moveTo(0, y);
      context.lineTo(width, y);
      context.stroke();
      context.fillStyle = css("--muted");
      context.font = "11px system-ui, sans-serif";
      context.textAlign = "left";
      context.fillText(channel, 4, y - 4);
      if (name === "prediction" && data.truth) {
        context.strokeStyle = css("--ink");
        context.beginPath();
        context.moveTo(x(state[k]), y);
        context.lineTo(x(data.truth[k]), y);
        context.stroke();
      }
      context.fillStyle = css("--line1");
      context.beginPath();
      context.arc(x(state[k]), y, 4.5, 0, 7);
      context.fill();
    });
  }

  curve(context, width, height, values, most, horizon) {
    const at = (k) => [((k + 0.5) / values.length) * width, (1 - values[k] / (1.1 * most)) * height];
    context.beginPath();
    for (let k = 0; k < values.length; k++) context[k ? "lineTo" : "moveTo"](...at(k));
    context.strokeStyle = css("--line2");
    context.lineWidth = 1.8;
    context.stroke();
    if (horizon > values.length) return;
    context.beginPath();
    context.arc(...at(horizon - 1), 4.5, 0, 7);
    context.fillStyle = css("--line2");
    context.fill();
  }

}

function pen(canvas) {
  return { context: canvas.getContext("2d"), width: canvas.clientWidth, height: canvas.clientHeight };
}

/** From a place on the page to another one. */
function arrow(context, [x, y], [tx, ty]) {
  const length = Math.hypot(tx - x, ty - y);
  if (length < 3) return;
  const angle = Math.atan2(ty - y, tx - x), head = Math.min(8, length / 2);
  context.strokeStyle = css("--defer");
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(tx, ty);
  for (const side of [-0.45, 0.45]) {
    context.moveTo(tx, ty);
    context.lineTo(tx - head * Math.cos(angle + side), ty - head * Math.sin(angle + side));
  }
  context.stroke();
}

/** A thin line that is seen on light and on dark. */
function outlined(context, trace) {
  for (const [colour, width] of [["rgb(0 0 0 / .75)", 3.5], ["rgb(255 255 255 / .95)", 1.5]]) {
    context.beginPath();
    trace();
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.stroke();
  }
}

function ends(context, width, height, low, high) {
  context.fillStyle = css("--muted");
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "left";
  context.lineJoin = "round";
  for (const [text, y, baseline] of [[low, height - 3, "bottom"], [high, 3, "top"]]) {
    context.textBaseline = baseline;
    context.strokeStyle = css("--wall"); // a curve behind a number must not make it illegible
    context.lineWidth = 4;
    context.strokeText(text, 4, y);
    context.fillText(text, 4, y);
  }
  context.textBaseline = "alphabetic";
}

// The page: what is chosen, what is asked, what is shown.

import { at, getJson, getTensors, inferAt, plainRequest, post, postForFile } from "./api.js";
import { auroc, curvesOf, deferredBy, drawBars, drawCurve, lineOf, summary, swatch } from "./batch.js";
import { errorScale, short } from "./colour.js";
import { slider } from "./controls.js";
import { Drawing, MOVE } from "./drawing.js";
import { viewOf } from "./views.js";

const $ = (id) => document.getElementById(id);
const PANELS = Object.fromEntries(["input", "truth", "prediction", "map", "error"].map((name) => [name, $(`panel-${name}`)]));
const BARS = { states: $("bar-states"), errors: $("bar-errors") };
const LARGEST = 24e6; // bytes of a whole true trajectory
const FRAME = 70; // milliseconds between two frames of a played trajectory, at least
const LOOK = 30_000; // milliseconds between two looks at the list of models

let catalogue, model, view, drawing;
let state, params, origin = {};
let forecast = null; // {horizon, state, map, score, bound, seconds, notes}
let path = null; // of state vectors: prediction and score at every horizon
let truths = new Map(); // horizon -> {state, seconds}
let trueStates = null; // of state vectors: the truth at every horizon
let past = []; // states before each stroke
let batch = null, signals = [], chosen = null, bars = [], playing = null;
let made = 0; // counts the states: an answer about an earlier one is thrown away
let loads = 0; // counts the states that were asked for

// Telling.

function tell(text, isError = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", isError);
}

/** Run something that may fail; its sentence is shown, unless another model has been chosen meanwhile. */
async function attempt(what, action) {
  const about = model;
  try {
    if (what) tell(what);
    const answer = await action();
    if (what && $("status").textContent === what) tell("");
    return answer;
  } catch (error) {
    if (about === model) tell(error.message, true);
    return undefined;
  }
}

/** Ask again and again while something new is wanted, but only one request at a time: a dragged slider skips what it passed. */
function latest(action) {
  let running = null, again = false;
  return async function ask() {
    again = true;
    running ??= (async () => {
      while (again) {
        again = false;
        await attempt("", action);
      }
      running = null;
    })();
    return running;
  };
}

// Choosing.

async function begin() {
  try {
    catalogue = await getJson("/page/models");
  } catch (error) {
    tell(error.message, error.status !== 503); // 503: it is starting
    setTimeout(begin, 2000);
    return;
  }
  tell("");
  document.querySelector("main").hidden = false;
  list();
  for (const id of ["split", "batch-split"]) fill($(id), catalogue.splits.map((name) => [name, name]));
  $("split").value = $("batch-split").value = "test";
  await choose(catalogue.models[0].name);
  tellProblems();
  setInterval(() => document.visibilityState === "visible" && look(), LOOK);
}

function list() {
  fill($("model"), catalogue.models.map(({ name, title, model: known }) => [name, known ? `${name} – ${title}` : `${title} (solver alone)`]));
}

function tellProblems() {
  const problems = Object.entries(catalogue.problems);
  if (problems.length) tell(problems.map(([name, why]) => `${name} is not served: ${why}`).join(" "), true);
}

/** Models appear and change while the page is open. */
async function look() {
  const found = await getJson("/page/models").catch(() => catalogue); // whoever wants an answer is told that there is none
  if (!model || JSON.stringify(found) === JSON.stringify(catalogue)) return;
  catalogue = found;
  list();
  const same = found.models.find(({ name }) => name === model.name);
  if (JSON.stringify(same) === JSON.stringify(model)) $("model").value = model.name;
  else await choose((same ?? found.models[0]).name);
  tellProblems();
}

function fill(select, options) {
  select.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
}

async function choose(name) {
  stop();
  model = catalogue.models.find((each) => each.name === name);
  view = viewOf(model);
  state = null;
  made += 1;
  forget();
  for (const canvas of Object.values(PANELS)) canvas.setAttribute("aria-label", "Not there yet.");
  $("model").value = name;
  $("about").textContent = aboutOf(model);
  fill($("field"), model.fields.map((field, k) => [k, field.name]));
  $("field").value = model.draw;
  $("field-choice").hidden = model.grid.length === 0 || Boolean(model.bodies) || model.fields.length < 2;
  for (const canvas of Object.values(PANELS)) canvas.style.aspectRatio = String(view.ratio);
  const most = model.longest;
  Object.assign($("horizon"), { max: most, value: Math.min(16, most) });
  Object.assign($("horizon-number"), { max: catalogue.limits.horizon, value: Math.min(16, most) });
  $("frame").max = model.frames - 1;
  $("frame").value = 0;
  $("truth").checked = !model.model;
  $("truth").disabled = !model.solver || !model.model;
  $("batch-count").value = model.grid.length && !model.objects ? 8 : 64;
  $("batch-count").max = catalogue.limits.count;
  $("batch-section").hidden = !model.model;
  $("save-forecast").hidden = !model.model;
  $("batch").hidden = true;
  batch = chosen = null;
  showParams();
  showNumbers();
  drawing = new Drawing(model, view, PANELS.input, { apply: brushed, redraw: show, elements: { section: $("draw"), brushes: $("brushes"), meaning: $("meaning"), settings: $("settings") } });
  for (const canvas of Object.values(PANELS)) {
    canvas.classList.toggle("turns", Boolean(view.turnBy) && !(canvas === PANELS.input && drawing.brush));
  }
  PANELS.input.classList.toggle("moves", Boolean(view.moved));
  await load();
}

function aboutOf({ title, grid, channels, objects, model: known, longest }) {
  const what = objects ? `${grid[0]} objects` : `${channels.length} channel${channels.length === 1 ? "" : "s"}${grid.length ? ` on ${grid.join(" × ")} cells` : ""}`;
  if (!known) return `${title}: ${what}. There is no model of it yet, so you see the solver alone.`;
  const calibrated = known.trajectories ? `thresholds and bounds from ${known.trajectories.toLocaleString("en")} validation trajectories` : "not calibrated";
  return `${title}: ${what}, trained up to ${longest} frames${known.guided ? ", guided by a coarse solver" : ""}; ${calibrated}.`;
}

/** The state of the chosen split and seed. */
async function load() {
  const about = (loads += 1);
  const query = new URLSearchParams({ split: $("split").value, seed: $("seed").value || 0, frame: $("frame").value || 0, count: 1 });
  const found = await attempt("Making the initial state …", () => getTensors(at(model.name, `start?${query}`)));
  if (!found || about !== loads) return;
  past = [];
  setParams(found.tensors.params.values);
  setState(found.tensors.state.values, found.json.origins[0]);
}

async function blank() {
  const about = (loads += 1);
  const found = await attempt("", () => getTensors(at(model.name, "start?split=blank")));
  if (!found || about !== loads) return;
  remember();
  setState(found.tensors.state.values, { kind: "blank" });
}

function setState(values, how) {
  state = values;
  origin = how ?? origin;
  made += 1;
  forget();
  $("undo").disabled = past.length === 0;
  $("origin").textContent = Object.entries(origin).map(([name, value]) => `${name} ${typeof value === "number" ? short(value) : value}`).join(", ");
  for (const [k, input] of [...$("numbers").querySelectorAll("input")].entries()) input.value = Number(state[k].toPrecision(6));
  refresh();
}

function setParams(values) {
  params = values;
  for (const [k, setting] of [...$("params").querySelectorAll(".setting")].entries()) {
    setting.querySelector("input").value = params[k];
    setting.querySelector("output").textContent = short(params[k]);
  }
}

/** The state, for Undo. */
function remember() {
  past = [...past.slice(-30), state];
}

/** Answers that belong to another state. */
function forget() {
  forecast = path = trueStates = null;
  truths = new Map();
}

function showParams() {
  $("params-section").hidden = model.params.length === 0;
  $("params").replaceChildren(...model.params.map(({ name, unit, meaning, low, high }, k) => slider({ name, unit, low, high, title: meaning }, (value) => {
    params[k] = value;
    made += 1;
    forget();
    refresh();
  })));
}

/** State vectors can be typed in: the way without a pointer. */
function showNumbers() {
  $("numbers-section").hidden = model.grid.length > 0;
  $("numbers").replaceChildren(...(model.grid.length ? [] : model.channels.map((name, k) => {
    const label = document.createElement("label"), input = document.createElement("input");
    Object.assign(input, { type: "number", step: "any" });
    input.addEventListener("change", () => {
      if (!Number.isFinite(input.valueAsNumber)) return;
      remember();
      const next = state.slice();
      next[k] = input.valueAsNumber;
      setState(next, { kind: "by numbers" });
    });
    label.append(name, input);
    return label;
  })));
}

/** A stroke of a brush: the server draws, since it knows the physics. */
async function brushed(brush, points, settings) {
  const about = made;
  const found = await attempt("", () => post(at(model.name, "draw"), { brush, points, settings }, { state: one(state) }));
  if (!found || about !== made) return;
  remember();
  lookAtChange(state, found.tensors.state.values);
  setState(found.tensors.state.values, { kind: "drawn" });
}

/** A blast at rest is seen in the energy, not in the density: show a field that changed. */
function lookAtChange(before, after) {
  const n = view.size, changed = ({ channels }) => channels.some((channel) => after.subarray(channel * n, (channel + 1) * n).some((value, i) => value !== before[channel * n + i]));
  const found = model.fields.findIndex(changed);
  if (!model.grid.length || found < 0 || changed(model.fields[view.field])) return;
  view.field = found;
  $("field").value = found;
}

// Asking.

const one = (values) => ({ shape: [1, model.channels.length, ...model.grid], values });
const here = () => inputs(model, state, [horizon()], params);
const horizon = () => Number($("horizon-number").value) || 1;

function inputs(of, states, horizons, rows) {
  const count = horizons.length, given = { state: { shape: [count, of.channels.length, ...of.grid], values: states }, horizon: { shape: [count, 1], values: Float64Array.from(horizons) } };
  if (of.params.length) given.params = { shape: [count, of.params.length], values: rows };
  return given;
}

const asked = (more = {}) => ({ parameters: { mode: 2, q: 1, binary_data_output: true, ...more } });

const ask = latest(async () => {
  if (!state) return;
  if (!model.model) {
    show();
    return;
  }
  const about = made, frames = horizon(), began = performance.now();
  const { json, tensors } = await post(inferAt(model.name), asked(), inputs(model, state, [frames], params));
  if (about !== made) return;
  forecast = {
    horizon: frames, state: tensors.state.values, map: tensors.error_map.values, score: tensors.score.values[0],
    bound: tensors.bound?.values[0], seconds: json.parameters.seconds_surrogate, trip: performance.now() - began, notes: json.parameters.notes ?? "",
  };
  show();
});

/** Prediction and score at every horizon, for state vectors: the path through the box. */
const askPath = latest(async () => {
  const many = model.longest < horizon() && horizon() <= catalogue.limits.count ? horizon() : model.longest;
  if (!state || !model.model || model.grid.length || path?.states.length >= many) return;
  const about = made, n = model.channels.length, rows = model.params.length;
  const states = new Float64Array(many * n), given = new Float64Array(many * rows);
  for (let k = 0; k < many; k++) {
    states.set(state, k * n);
    given.set(params, k * rows);
  }
  const horizons = Array.from({ length: many }, (_, k) => k + 1);
  const { tensors } = await post(inferAt(model.name), asked(), inputs(model, states, horizons, given));
  if (about !== made) return;
  const all = Array.from({ length: many }, (_, k) => tensors.state.values.subarray(k * n, (k + 1) * n));
  path = { states: all, scores: tensors.score.values, points: [state, ...all].map((each) => position(each)) };
  show();
});

const position = (values) => (model.position ? model.position.map((channel) => values[channel]) : []);

/** The true future at the chosen horizon; for state vectors also at every other. */
const askTruth = latest(async () => {
  if (!state || !$("truth").checked) return;
  const about = made, frames = horizon();
  if (!truths.has(frames)) {
    tell("The solver works …");
    const { json, tensors } = await future(frames, frames);
    if (about !== made) return;
    truths.set(frames, { state: last(tensors.state), seconds: json.parameters.seconds_solver });
  }
  if (!model.grid.length && !(trueStates?.length >= Math.max(model.longest, frames))) {
    const { tensors } = await future(Math.max(model.longest, frames), 1);
    if (about !== made) return;
    trueStates = rowsOf(tensors.state).slice(1);
  }
  tell("");
  show();
});

function future(frames, every) {
  const given = { state: one(state) };
  if (model.params.length) given.params = { shape: [1, model.params.length], values: params };
  return post(at(model.name, "future"), { frames, every }, given);
}

function rowsOf({ shape, values }) {
  const size = values.length / shape[0];
  return Array.from({ length: shape[0] }, (_, k) => values.subarray(k * size, (k + 1) * size));
}

const last = (tensor) => rowsOf(tensor).at(-1);

let rest = 0;

function refresh() {
  show();
  ask();
  askPath();
  clearTimeout(rest);
  rest = setTimeout(askTruth, playing ? 0 : 200);
  clearTimeout(later);
  if (batch) later = setTimeout(askBatch, 400);
}

let later = 0;

// Showing.

/** The distance of two states in deviations of the training data, per cell. */
function distance(of, a, b) {
  const { std } = of.model, n = a.length / std.length, values = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let sum = 0;
    for (let k = 0; k < std.length; k++) sum += ((a[k * n + i] - b[k * n + i]) / std[k]) ** 2;
    values[i] = Math.sqrt(sum);
  }
  return values;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

function show() {
  if (!state) return;
  const frames = horizon();
  const truth = truths.get(frames)?.state ?? (trueStates && frames <= trueStates.length ? trueStates[frames - 1] : null);
  const data = { input: state, params, horizon: frames, truth, prediction: forecast?.state, map: forecast?.map, path };
  if (truth && forecast?.horizon === frames) data.error = distance(model, forecast.state, truth);
  if (trueStates) {
    data.truePath = { points: [state, ...trueStates].map(position), errors: path ? Float64Array.from(path.states.slice(0, trueStates.length), (each, k) => distance(model, each, trueStates[k])[0]) : null };
  }
  view.draw(PANELS, BARS, data, drawing?.overlay);
  describe(data);
  facts(data);
  $("clock").textContent = `t = ${short(frames * model.frame_step)}${model.time_unit === "1" ? "" : ` ${model.time_unit}`}`;
}

function describe({ truth, prediction, error }) {
  const many = `${horizon()} frames later`;
  const labels = {
    input: "The initial state." + (drawing?.brush ? " Arrow keys move the brush, Enter draws." : view.moved ? ` ${MOVE}` : ""),
    truth: truth ? `The true state ${many}.` : "The true state: not asked for.",
    prediction: prediction ? `The predicted state ${many}.` : "No prediction.",
    map: forecast ? `The error map, mean ${short(forecast.score)} deviations.` : "No error map.",
    error: error ? `The true error, mean ${short(mean(error))} deviations.` : "The true error: not known.",
  };
  for (const [name, text] of Object.entries(labels)) PANELS[name].setAttribute("aria-label", text);
}

function facts({ error }) {
  const rows = [], ms = (seconds) => `${short(1e3 * seconds)} ms`, solver = truths.get(horizon())?.seconds;
  if (forecast) rows.push(["Surrogate and error map", ms(forecast.seconds), "on the server"]);
  if (solver !== undefined) rows.push(["Solver", ms(solver), forecast ? (solver > forecast.seconds ? `${short(solver / forecast.seconds)} times slower` : `${short(forecast.seconds / solver)} times faster`) : ""]);
  if (forecast) {
    rows.push(["Score", short(forecast.score), "mean of the error map"]);
    rows.push(["Error bound", forecast.bound === undefined ? "–" : short(forecast.bound), forecast.bound === undefined ? "none at this horizon" : "holds for 90 % of answers"]);
  }
  if (error) {
    const size = mean(error), within = forecast.bound === undefined ? "" : size <= forecast.bound ? "below its bound" : "above its bound";
    rows.push(["True error", short(size), within]);
  }
  $("facts").replaceChildren(...rows.map(([name, value, note]) => {
    const box = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd"), small = document.createElement("small");
    [dt.textContent, dd.textContent, small.textContent] = [name, value, note];
    dd.append(small);
    box.append(dt, dd);
    return box;
  }));
  $("notes").textContent = forecast?.notes ?? "";
}

// Time.

function setHorizon(frames) {
  const most = catalogue.limits.horizon, whole = Math.min(most, Math.max(1, Math.round(frames) || 1));
  $("horizon-number").value = whole;
  $("horizon").value = whole;
  refresh();
}

async function play() {
  if (playing) {
    stop();
    return;
  }
  const mine = (playing = {});
  $("play").textContent = "Pause";
  $("play").setAttribute("aria-pressed", "true");
  let step = 1;
  if ($("truth").checked && model.grid.length) step = (await trajectory()) ?? 1;
  let frames = horizon() >= model.longest ? step : horizon() - (horizon() % step) + step;
  while (playing === mine && frames <= model.longest) {
    const began = performance.now();
    $("horizon-number").value = $("horizon").value = frames;
    await ask();
    show();
    await new Promise((done) => setTimeout(done, Math.max(0, FRAME - (performance.now() - began))));
    frames += step;
  }
  if (playing !== mine) return;
  stop();
  refresh();
}

function stop() {
  playing = null;
  $("play").textContent = "Play";
  $("play").setAttribute("aria-pressed", "false");
}

/** The whole true trajectory, at every `step` frames so that it is not too large. */
async function trajectory() {
  const about = made, frames = model.longest, size = 8 * state.length;
  let step = 1;
  while (frames % step || (frames / step + 1) * size > LARGEST) step += 1;
  const found = await attempt("The solver computes the whole trajectory …", () => future(frames, step));
  if (!found || about !== made) return undefined;
  rowsOf(found.tensors.state).forEach((each, k) => {
    if (k && !truths.has(k * step)) truths.set(k * step, { state: each });
  });
  return step;
}

// The batch.

const askBatch = latest(async () => {
  const of = model, frames = horizon(), split = $("batch-split").value, seed = Number($("batch-seed").value || 0), coverage = Number($("coverage").value);
  const query = `${of.name} ${new URLSearchParams({ split, seed, count: $("batch-count").value || 8 })}`;
  tell("Forecasting the batch …");
  let next = batch;
  if (next?.query !== query) {
    const { tensors } = await getTensors(at(of.name, `start?${query.slice(of.name.length + 1)}`));
    next = { query, split, seed, states: tensors.state.values, params: tensors.params.values, count: tensors.state.shape[0] };
  }
  if (of !== model) return;
  const given = inputs(of, next.states, Array(next.count).fill(frames), next.params);
  const [answer, thresholds] = await Promise.all([
    post(inferAt(of.name), asked(coverage === 0.9 ? {} : { coverage }), given), getJson(at(of.name, `thresholds?horizon=${frames}`)),
  ]);
  if (of !== model) return;
  const { state: predicted, score, bound } = answer.tensors;
  next = { ...next, scores: Array.from(score.values), bounds: bound ? Array.from(bound.values) : null, seconds: answer.json.parameters.seconds_surrogate, thresholds, horizon: frames, errors: null, solverSeconds: undefined };
  if ($("batch-truth").checked) {
    tell("The solver works on the batch …");
    const solved = await post(inferAt(of.name), asked({ q: 0 }), given), truths = rowsOf(solved.tensors.state);
    if (of !== model) return;
    next.errors = rowsOf(predicted).map((each, k) => mean(distance(of, each, truths[k])));
    next.solverSeconds = solved.json.parameters.seconds_solver;
  }
  tell("");
  batch = next;
  signals = [{ ...of.model.signals[0], scores: batch.scores }];
  $("signals").replaceChildren();
  showGate();
  $("batch").hidden = false;
  showBatch();
});

const calibrated = () => batch.thresholds.q.length > 0;

/** What the batch can be gated by: nothing without a calibration, q alone without bounds. */
function showGate() {
  const [byShare, byError] = document.querySelectorAll('input[name="gate"]');
  for (const control of [byShare, $("q"), $("coverage")]) control.disabled = !calibrated();
  byError.disabled = !batch.bounds;
  if (byError.disabled) byShare.checked = true;
  $("ungated").hidden = calibrated();
  if (!batch.bounds) return;
  const finite = batch.bounds.filter((value) => value > 0 && Number.isFinite(value));
  Object.assign($("tolerance"), { min: Math.log10(Math.min(...finite)) - 0.1, max: Math.log10(Math.max(...finite)) + 0.1 });
}

function gate() {
  const kind = calibrated() ? document.querySelector('input[name="gate"]:checked').value : "none";
  return { kind, q: Number($("q").value), tolerance: 10 ** Number($("tolerance").value) };
}

function showBatch() {
  if (!batch) return;
  const now = gate(), deferred = deferredBy(batch, now), curves = curvesOf(batch, signals);
  $("q-label").hidden = now.kind === "tolerance";
  $("tolerance-label").hidden = now.kind !== "tolerance";
  $("q-out").textContent = now.kind === "none" ? "–" : now.q.toFixed(2);
  $("tolerance-out").textContent = short(now.tolerance);
  $("summary").innerHTML = summary(batch, deferred, now);
  bars = drawBars($("bars"), batch, deferred, now, chosen);
  drawCurve($("curve"), batch, deferred, curves);
  $("legend").replaceChildren(...curves.map((curve) => named(swatch(curve), curve.name)), ...(curves.length ? [named(swatch({ colour: "--defer", look: "dot" }), "this gate")] : []));
  const many = deferred.filter(Boolean).length;
  $("bars").setAttribute("aria-label", `${many} of ${batch.count} trajectories go to the solver. Arrow keys choose one.`);
  $("curve").setAttribute("aria-label", batch.errors ? "Mean error of the kept answers over the share that is kept." : "Needs true errors.");
  const head = `<tr><th>trajectory</th><th>answered by</th><th>score</th><th>bound</th>${batch.errors ? "<th>true error</th>" : ""}</tr>`;
  const rows = batch.scores.map((score, row) => `<tr><td>${batch.split} ${batch.seed + row}</td><td class="${deferred[row] ? "defer" : "keep"}">${deferred[row] ? "solver" : "surrogate"}</td><td>${short(score)}</td><td>${batch.bounds ? short(batch.bounds[row]) : "–"}</td>${batch.errors ? `<td>${short(batch.errors[row])}</td>` : ""}</tr>`);
  $("table").innerHTML = `<table>${head}${rows.join("")}</table>`;
}

function named(mark, name) {
  const item = document.createElement("li");
  item.append(mark, name);
  return item;
}

/** Show one trajectory of the batch in the panels. */
function pick(row) {
  if (row === undefined || !batch) return;
  chosen = row;
  const n = model.channels.length * view.size;
  Object.assign($("split"), { value: batch.split });
  $("seed").value = batch.seed + row;
  $("frame").value = 0;
  past = [];
  setParams(batch.params.slice(row * model.params.length, (row + 1) * model.params.length));
  setState(batch.states.slice(row * n, (row + 1) * n), { split: batch.split, seed: String(batch.seed + row) });
  showBatch();
}

/** Every signal on the batch and on the state above: its map, how well it ranks the errors, what it costs. */
async function compare() {
  const of = model, about = batch, above = here(), given = inputs(of, about.states, Array(about.count).fill(about.horizon), about.params);
  const found = [], maps = [];
  $("compare").disabled = true;
  for (const { name, passes } of of.model.signals) {
    await attempt(`Signal: ${name} …`, async () => {
      const all = await post(inferAt(of.name), asked({ signal: name }), given);
      found.push({ name, passes, scores: Array.from(all.tensors.score.values), seconds: all.json.parameters.seconds_surrogate });
      if (!view.errors || of !== model) return;
      const { state: predicted, error_map: map } = (await post(inferAt(of.name), asked({ signal: name }), above)).tensors;
      if (map.values.length === view.size) maps.push({ name, values: map.values, state: predicted.values });
    });
    if (about !== batch) break;
  }
  $("compare").disabled = false;
  if (about !== batch) return;
  signals = found;
  showSignals(maps);
  showBatch();
}

function showSignals(maps) {
  const head = `<tr><th>signal</th><th>passes</th><th>ms for the batch</th>${batch.errors ? "<th>AUROC</th>" : ""}</tr>`;
  const rows = signals.map(({ name, passes, scores, seconds }) => `<tr><td>${name}</td><td>${passes}</td><td>${short(1e3 * seconds)}</td>${batch.errors ? `<td>${short(auroc(scores, batch.errors))}</td>` : ""}</tr>`);
  $("signals").innerHTML = `<table>${head}${rows.join("")}</table>${batch.errors ? '<p class="quiet">AUROC: how often an answer of the worst quarter has the higher score.</p>' : ""}`;
  if (batch.errors) [...$("signals").querySelectorAll("td:first-child")].forEach((cell, k) => cell.prepend(swatch(lineOf(k))));
  if (!maps.length) return;
  const grid = document.createElement("div");
  grid.className = "maps";
  grid.append(...maps.map(({ name, values, state: predicted }) => {
    const figure = document.createElement("figure"), caption = document.createElement("figcaption"), canvas = document.createElement("canvas");
    caption.textContent = name;
    canvas.style.aspectRatio = String(view.ratio);
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `The error map of ${name}.`);
    figure.append(caption, canvas);
    requestAnimationFrame(() => canvas.isConnected && view.errors(canvas, values, errorScale([values]), predicted));
    return figure;
  }));
  $("signals").append(grid);
}

// Files.

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 5000);
}

async function saveFile(what) {
  const name = `${model.name}-${what}${what === "forecast" ? `-h${horizon()}` : ""}.hdf5`;
  const blob = await attempt("Writing the file …", () => postForFile(at(model.name, `download?what=${what}`), asked(), here()));
  if (blob) save(blob, name);
}

// Events.

function listen() {
  $("model").addEventListener("change", () => choose($("model").value));
  for (const opened of ["pointerdown", "focus"]) $("model").addEventListener(opened, look);
  for (const id of ["split", "seed", "frame"]) $(id).addEventListener("change", load);
  $("next").addEventListener("click", () => {
    $("seed").value = Number($("seed").value) + 1;
    load();
  });
  $("blank").addEventListener("click", blank);
  $("undo").addEventListener("click", () => setState(past.pop(), { kind: "drawn" }));
  $("field").addEventListener("change", () => {
    view.field = Number($("field").value);
    show();
  });
  $("horizon").addEventListener("input", () => setHorizon(Number($("horizon").value)));
  $("horizon-number").addEventListener("change", () => setHorizon(Number($("horizon-number").value)));
  $("play").addEventListener("click", play);
  $("truth").addEventListener("change", refresh);
  $("batch-ask").addEventListener("click", askBatch);
  for (const id of ["batch-truth", "coverage"]) $(id).addEventListener("change", () => batch && askBatch());
  for (const id of ["q", "tolerance"]) $(id).addEventListener("input", showBatch);
  for (const radio of document.querySelectorAll('input[name="gate"]')) radio.addEventListener("change", showBatch);
  $("bars").addEventListener("click", (event) => pick(bars.find(({ from, to }) => event.offsetX >= from && event.offsetX < to)?.row));
  $("bars").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !bars.length) return;
    event.preventDefault();
    const now = bars.findIndex(({ row }) => row === chosen);
    pick(bars[Math.min(bars.length - 1, Math.max(0, now + step))].row);
  });
  $("compare").addEventListener("click", compare);
  $("save-state").addEventListener("click", () => saveFile("state"));
  $("save-forecast").addEventListener("click", () => saveFile("forecast"));
  $("save-request").addEventListener("click", () => save(new Blob([plainRequest(asked({ binary_data_output: false }), here())], { type: "application/json" }), `${model.name}-request.json`));
  for (const canvas of Object.values(PANELS)) turning(canvas);
  moving(PANELS.input);
  new ResizeObserver(() => {
    if (!state) return;
    show();
    showBatch();
  }).observe($("panels"));
}

/** Panels of a box turn with the pointer and with the arrow keys, unless a brush is in hand. */
function turning(canvas) {
  const free = () => view?.turnBy && !(canvas === PANELS.input && drawing?.brush);
  let from = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (!free()) return;
    from = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    view.turnBy((event.clientX - from[0]) / 150, (event.clientY - from[1]) / 150);
    from = [event.clientX, event.clientY];
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
  canvas.addEventListener("keydown", (event) => {
    const turn = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
    if (!turn || !free()) return;
    event.preventDefault();
    view.turnBy(...turn);
    show();
  });
}

/** Objects of the input are carried with the pointer; by keys, Enter takes the next one and the arrow keys move it. */
function moving(canvas) {
  let from = null;
  const carry = (dx, dy) => setState(view.moved(state, view.chosen, dx, dy), { kind: "moved" });
  const place = (event) => view.projection(canvas.clientWidth, canvas.clientHeight).from(event.offsetX, event.offsetY);
  canvas.addEventListener("pointerdown", (event) => {
    if (!view?.moved || !state) return;
    view.chosen = view.under(canvas, state, event.offsetX, event.offsetY);
    show();
    if (view.chosen === null) return;
    remember();
    from = place(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("touchstart", (event) => from && event.preventDefault(), { passive: false }); // or the page scrolls
  canvas.addEventListener("pointermove", (event) => {
    if (!from) return;
    const to = place(event);
    carry(to[0] - from[0], to[1] - from[1]);
    from = to;
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (from = null));
  canvas.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!view?.moved || !state || !(way || event.key === "Enter")) return;
    event.preventDefault();
    if (event.key === "Enter") {
      view.chosen = ((view.chosen ?? -1) + 1) % view.size;
      show();
    } else if (view.chosen !== null) {
      if (!event.repeat) remember();
      const [x] = model.axes, step = 0.02 * (x.high - x.low);
      carry(way[0] * step, way[1] * step);
    }
  });
}

function dress() {
  const wish = localStorage.getItem("theme"), dark = wish ? wish === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  $("theme").setAttribute("aria-pressed", String(dark));
  $("theme").textContent = dark ? "Light" : "Dark";
  if (state) {
    show();
    showBatch();
  }
}

$("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  dress();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
dress();
listen();
begin();

// Which trajectories of a batch go to the solver: bars, the risk-coverage curve, and what it costs and saves.

import { FONT, css, fresh, short } from "./colour.js";

const LINES = 9; // colours

/** How the line of the k-th signal looks. */
export const lineOf = (k) => ({ colour: `--line${1 + (k % LINES)}`, look: k < LINES ? "solid" : "dashed" });

/** What stands for a line or a dot in a legend or a table. */
export function swatch({ colour, look }) {
  const mark = document.createElement("span");
  mark.className = `swatch ${look}`;
  mark.style.color = `var(${colour})`;
  return mark;
}

/** Rows, the lowest number first; what is no number is the worst. */
export const order = (numbers) => [...numbers.keys()].sort((a, b) => (numbers[a] ?? Infinity) - (numbers[b] ?? Infinity) || a - b);

/** The mean error of the k best rows, for k = 1 ... n. */
export function riskCurve(numbers, errors) {
  let sum = 0;
  return order(numbers).map((row, k) => (sum += errors[row]) / (k + 1));
}

/** How often a bad answer (in the worst quarter of the errors) has a higher score than a good one. */
export function auroc(scores, errors) {
  const sorted = [...errors].sort((a, b) => a - b), limit = sorted[Math.floor(0.75 * (sorted.length - 1))];
  let wins = 0, pairs = 0;
  for (let i = 0; i < errors.length; i++) {
    for (let j = 0; j < errors.length; j++) {
      if (!(errors[i] > limit && errors[j] <= limit)) continue;
      pairs += 1;
      wins += scores[i] > scores[j] ? 1 : scores[i] === scores[j] ? 0.5 : 0;
    }
  }
  return pairs ? wins / pairs : NaN;
}

/** true where the gate defers: a score above the threshold of q, or a bound above the tolerance. */
export function deferredBy(batch, gate) {
  if (gate.kind === "none") return batch.scores.map(() => false);
  if (gate.kind === "tolerance") return Array.from(batch.bounds ?? [], (bound) => !(bound <= gate.tolerance));
  const threshold = thresholdOf(batch, gate.q);
  return Array.from(batch.scores, (score) => gate.q === 0 || !(score <= threshold));
}

export function thresholdOf(batch, q) {
  const level = batch.thresholds.q.findIndex((known) => Math.abs(known - q) < 1e-6);
  return batch.thresholds.threshold[level] ?? Infinity;
}

/** One sentence about the cost and one about the error. */
export function summary(batch, deferred, gate) {
  const n = deferred.length, many = deferred.filter(Boolean).length;
  const parts = [gate.kind === "none" ? `All ${n} answers are the surrogate's.` : `<b>${many}</b> of ${n} go to the solver (<b>${Math.round((100 * many) / n)} %</b>).`];
  if (batch.solverSeconds !== undefined) {
    const ms = (seconds) => `${short(1e3 * seconds)} ms`, all = batch.solverSeconds, part = (many / n) * all;
    parts.push(`Time: ${ms(batch.seconds)} for surrogate and error map, ${ms(part)} for the solver, <b>${ms(batch.seconds + part)}</b> together; the solver alone takes <b>${ms(all)}</b>.`);
  }
  if (batch.errors) {
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / n;
    const before = mean(batch.errors), after = mean(batch.errors.map((error, row) => (deferred[row] ? 0 : error)));
    parts.push(`Mean error <b>${short(after)}</b>, all on the surrogate <b>${short(before)}</b>.`);
  }
  return parts.join(" ");
}

export function drawBars(canvas, batch, deferred, gate, chosen) {
  const { context, width, height } = fresh(canvas), numbers = gate.kind === "tolerance" ? batch.bounds : batch.scores;
  if (!numbers) return [];
  const rows = order(numbers), left = 44, bottom = height - 22, top = 8, room = (width - left - 6) / rows.length;
  const limit = gate.kind === "tolerance" ? gate.tolerance : thresholdOf(batch, gate.q); // no line without a calibration
  const finite = [...numbers, ...(batch.errors ?? [])].filter(Number.isFinite);
  const [low, high] = decades(Math.min(...finite.filter((value) => value > 0)), Math.max(...finite));
  const y = (value) => bottom - Math.min(1, Math.max(0, (Math.log10(value) - low) / (high - low))) * (bottom - top);
  axes(context, width, left, top, bottom, low, high, y);
  rows.forEach((row, k) => {
    const x = left + k * room, bar = Math.max(1, room * 0.76);
    context.fillStyle = css(deferred[row] ? "--defer" : "--keep");
    context.fillRect(x, y(numbers[row]), bar, bottom - y(numbers[row]));
    if (row === chosen) {
      context.strokeStyle = css("--ink");
      context.lineWidth = 2;
      context.strokeRect(x - 1, y(numbers[row]) - 1, bar + 2, bottom - y(numbers[row]) + 2);
    }
    if (batch.errors) {
      context.beginPath();
      context.arc(x + bar / 2, y(batch.errors[row]), Math.min(3.5, Math.max(1.5, room / 3)), 0, 7);
      context.fillStyle = css("--ink");
      context.fill();
    }
  });
  if (Number.isFinite(limit) && limit > 0) {
    context.strokeStyle = css("--ink");
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(left, y(limit));
    context.lineTo(width, y(limit));
    context.stroke();
    context.setLineDash([]);
  }
  legend(context, left, height - 4, [["--keep", "surrogate"], ["--defer", "solver"], ...(batch.errors ? [["--ink", "true error"]] : [])]);
  return rows.map((row, k) => ({ row, from: left + k * room, to: left + (k + 1) * room }));
}

/** The risk-coverage curves of the signals and of the errors themselves; none without errors. */
export function curvesOf({ errors }, signals) {
  if (!errors) return [];
  const oracle = { name: "oracle", colour: "--muted", look: "dotted", curve: riskCurve(errors, errors) };
  return [...signals.map(({ name, scores }, k) => ({ name, ...lineOf(k), curve: riskCurve(scores, errors) })), oracle];
}

const DASHES = { solid: [], dashed: [7, 3], dotted: [2, 3] };

export function drawCurve(canvas, batch, deferred, curves) {
  const { context, width, height } = fresh(canvas), left = 52, bottom = height - 20, top = 8;
  context.font = FONT;
  context.fillStyle = css("--muted");
  if (!batch.errors) {
    context.textAlign = "center";
    context.fillText("needs true errors: tick “with true errors”", width / 2, height / 2);
    return;
  }
  const n = batch.errors.length, few = Math.floor(n / 20); // the mean of one or two errors is noise
  const most = 1.08 * Math.max(...curves.flatMap(({ curve }) => curve.slice(few)));
  const x = (share) => left + share * (width - left - 22), y = (value) => bottom - (value / most) * (bottom - top);
  context.strokeStyle = css("--faint");
  context.textAlign = "right";
  for (const share of [0, 0.5, 1]) {
    context.beginPath();
    context.moveTo(left, y(share * most));
    context.lineTo(width - 22, y(share * most));
    context.stroke();
    context.fillText(short(share * most), left - 5, y(share * most) + 4);
  }
  context.textAlign = "center";
  for (const share of [0, 0.25, 0.5, 0.75, 1]) context.fillText(`${100 * share} %`, x(share), bottom + 14);
  for (const { colour, look, curve } of curves) {
    context.strokeStyle = css(colour);
    context.lineWidth = 1.8;
    context.setLineDash(DASHES[look]);
    context.beginPath();
    curve.forEach((value, k) => k >= few && context.lineTo(x((k + 1) / n), y(value)));
    context.stroke();
  }
  context.setLineDash([]);
  const kept = deferred.filter((each) => !each).length;
  if (kept) {
    const risk = batch.errors.reduce((sum, error, row) => sum + (deferred[row] ? 0 : error), 0) / kept;
    context.beginPath();
    context.arc(x(kept / n), y(risk), 6, 0, 7);
    context.fillStyle = css("--defer");
    context.fill();
  }
}

function decades(low, high) {
  const bottom = Math.floor(Math.log10(Math.max(low, high / 1e4)) * 2) / 2, top = Math.ceil(Math.log10(high) * 4) / 4;
  return [Number.isFinite(bottom) ? bottom : -2, Number.isFinite(top) && top > bottom ? top : (bottom || 0) + 1];
}

function axes(context, width, left, top, bottom, low, high, y) {
  context.font = FONT;
  context.textAlign = "right";
  context.fillStyle = css("--muted");
  context.strokeStyle = css("--faint");
  const steps = high - low > 1.5 ? [1] : [1, 2, 5];
  for (let decade = Math.floor(low); decade <= high; decade++) {
    for (const step of steps) {
      const value = step * 10 ** decade;
      if (Math.log10(value) < low || Math.log10(value) > high) continue;
      context.beginPath();
      context.moveTo(left, y(value));
      context.lineTo(width, y(value));
      context.stroke();
      context.fillText(short(value), left - 5, y(value) + 4);
    }
  }
}

function legend(context, left, y, entries) {
  context.font = FONT;
  context.textAlign = "left";
  for (const [colour, name] of entries) {
    context.fillStyle = css(colour);
    context.fillRect(left, y - 9, 9, 9);
    context.fillStyle = css("--muted");
    context.fillText(name, left + 13, y);
    left += context.measureText(name).width + 26;
  }
}

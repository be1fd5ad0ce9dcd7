// Values as colours, in the way of the figures of the package: one scale per group of panels.

const ANCHORS = {
  magma: "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779 d0416f e75263 f56b5c fc8961 fea772 fec488 fde2a3 fcfdbf",
  heat: "ffffcc fff6b6 ffeda0 fee38b fed976 fec561 feb24c fd9f44 fd8c3c fc6c33 fc4d2a ef3323 e2191c cf0c21 bb0026 9d0026 800026",
  diverging: "053061 175290 2a71b2 3f8ec0 6bacd1 9bc9e0 c2ddec e0ecf3 f7f6f6 fbe5d8 fbccb4 f5aa89 e48066 d05548 ba2832 930e26 67001f",
};

const TABLES = Object.fromEntries(Object.entries(ANCHORS).map(([name, text]) => {
  const anchors = text.split(" ").map((hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)));
  const table = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (anchors.length - 1), below = Math.min(Math.floor(place), anchors.length - 2);
    for (let k = 0; k < 3; k++) table[3 * i + k] = anchors[below][k] + (place - below) * (anchors[below + 1][k] - anchors[below][k]);
  }
  return [name, table];
}));

/** The values at these shares of the sorted finite values; of large arrays, of an even sample. */
export function quantiles(arrays, shares) {
  const total = arrays.reduce((sum, each) => sum + each.length, 0), step = Math.max(1, Math.floor(total / 40000));
  const sample = [];
  let low = Infinity, high = -Infinity;
  for (const values of arrays) {
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
      if (i % step === 0) sample.push(value);
    }
  }
  if (!sample.length) return shares.map(() => 0);
  sample.sort((a, b) => a - b);
  return shares.map((share) => (share === 0 ? low : share === 1 ? high : sample[Math.round(share * (sample.length - 1))]));
}

/** Colours for states: extremes far beyond the rest are cut, values of both signs diverge around 0. */
export function stateScale(arrays) {
  let [bottom, low, high, top] = quantiles(arrays, [0, 0.001, 0.999, 1]);
  const reach = 0.5 * (high - low), cutHigh = top > high + reach;
  if (bottom >= low - reach) low = bottom;
  if (!cutHigh) high = top;
  if (Math.min(-low, high) > 0.1 * Math.max(-low, high)) {
    const most = Math.max(-low, high);
    return { low: -most, high: most, table: TABLES.diverging, power: 1 };
  }
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return { low, high, table: TABLES.magma, power: cutHigh && bottom >= 0 ? 0.5 : 1 };
}

/** Colours for errors: from 0, the same for the map and for the true error. */
export function errorScale(arrays) {
  const [high, top] = quantiles(arrays, [0.999, 1]);
  const most = top > 1.5 * high && high > 0 ? high : top;
  return { low: 0, high: most > 0 ? most : 1, table: TABLES.heat, power: 1 };
}

export function shareOf(scale, value) {
  const share = Math.min(1, Math.max(0, (value - scale.low) / (scale.high - scale.low)));
  return scale.power === 1 ? share : share ** scale.power;
}

export function colourOf(scale, value) {
  if (!Number.isFinite(value)) return "rgb(128 128 128)";
  const i = 3 * Math.round(255 * shareOf(scale, value));
  return `rgb(${scale.table[i]} ${scale.table[i + 1]} ${scale.table[i + 2]})`;
}

/** An offscreen image of values (nx, ny), x to the right and y upwards. */
export function imageOf(values, nx, ny, scale) {
  const canvas = document.createElement("canvas");
  canvas.width = nx;
  canvas.height = ny;
  const context = canvas.getContext("2d"), image = context.createImageData(nx, ny), pixels = image.data;
  for (let x = 0; x < nx; x++) {
    for (let y = 0; y < ny; y++) {
      const value = values[x * ny + y], at = 4 * ((ny - 1 - y) * nx + x);
      pixels[at + 3] = 255;
      if (!Number.isFinite(value)) {
        pixels[at] = pixels[at + 1] = pixels[at + 2] = 128;
        continue;
      }
      const i = 3 * Math.round(255 * shareOf(scale, value));
      pixels[at] = scale.table[i];
      pixels[at + 1] = scale.table[i + 1];
      pixels[at + 2] = scale.table[i + 2];
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** A horizontal colour bar with its ends, its middle and a label. */
export function drawBar(canvas, scale, label) {
  const { context, width, height } = fresh(canvas);
  if (!scale) return;
  canvas.setAttribute("aria-label", `Colours: ${label}, from ${short(scale.low)} to ${short(scale.high)}.`);
  const edge = 2, top = 4, thick = Math.max(8, height - 26);
  for (let x = 0; x < width - 2 * edge; x++) {
    const i = 3 * Math.round((255 * x) / (width - 2 * edge));
    context.fillStyle = `rgb(${scale.table[i]} ${scale.table[i + 1]} ${scale.table[i + 2]})`;
    context.fillRect(edge + x, top, 1.5, thick);
  }
  const value = (share) => scale.low + (scale.high - scale.low) * share ** (1 / scale.power);
  context.fillStyle = css("--muted");
  context.font = FONT;
  context.textBaseline = "top";
  for (const [share, align] of [[0, "left"], [1, "right"]]) {
    context.textAlign = align;
    context.fillText(short(value(share)), edge + share * (width - 2 * edge), top + thick + 4);
  }
  context.textAlign = "center";
  context.fillText(label, width / 2, top + thick + 4);
}

export const FONT = "12px system-ui, sans-serif";

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Few digits, as people write them. */
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}

/** A cleared canvas at the resolution of the screen; lengths are CSS pixels. */
export function fresh(canvas) {
  const width = Math.max(1, Math.round(canvas.clientWidth)), height = Math.max(1, Math.round(canvas.clientHeight));
  const ratio = Math.min(2, window.devicePixelRatio || 1);
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

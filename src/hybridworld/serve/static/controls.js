// A slider with its name and its value.

import { short } from "./colour.js";

let made = 0; // for ids

export function slider({ name, unit, low, high, value, title }, changed) {
  const box = document.createElement("div"), label = document.createElement("label"), input = document.createElement("input"), output = document.createElement("output");
  Object.assign(box, { className: "setting", title: title ?? "" });
  made += 1;
  Object.assign(input, { type: "range", id: `slider-${made}`, min: low, max: high, step: (high - low) / 200, value: value ?? low, name });
  Object.assign(label, { htmlFor: input.id, textContent: unit && unit !== "1" ? `${name} (${unit})` : name });
  const tell = () => (output.textContent = short(Number(input.value)));
  tell();
  input.addEventListener("input", () => {
    tell();
    changed(Number(input.value));
  });
  box.append(label, output, input);
  return box;
}

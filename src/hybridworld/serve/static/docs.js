// The OpenAPI document, readable.

import { getJson } from "./api.js";

document.documentElement.dataset.theme = localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");

function element(tag, text, ...children) {
  const made = document.createElement(tag);
  made.textContent = text;
  made.append(...children);
  return made;
}

/** A schema with what it refers to, one level deep. */
function schemaOf(openapi, content) {
  const name = Object.values(content ?? {})[0]?.schema?.$ref?.split("/").at(-1);
  return name ? [name, openapi.components.schemas[name]] : null;
}

function operation(openapi, path, verb, told) {
  const section = document.createElement("section"), title = element("h2", "");
  const mark = element("span", verb.toUpperCase());
  mark.className = "verb";
  title.append(mark, element("code", path));
  section.append(title, element("p", told.summary));
  const list = document.createElement("ul");
  for (const { name, in: where, description } of told.parameters ?? []) list.append(element("li", `${name} (${where})${description ? `: ${description}` : ""}`));
  for (const [code, { description }] of Object.entries(told.responses)) list.append(element("li", `${code}: ${description}`));
  section.append(list);
  for (const [what, content] of [["Request", told.requestBody?.content], ["Answer", told.responses["200"]?.content]]) {
    const found = schemaOf(openapi, content);
    if (found) section.append(element("details", "", element("summary", `${what}: ${found[0]}`), element("pre", JSON.stringify(found[1], null, 2))));
  }
  return section;
}

const openapi = await getJson("/openapi.json");
document.getElementById("about").textContent = openapi.info.description;
for (const [path, verbs] of Object.entries(openapi.paths)) {
  for (const [verb, told] of Object.entries(verbs)) document.getElementById("paths").append(operation(openapi, path, verb, told));
}

// The server, as functions. Tensors travel as bytes behind JSON: the protocol's binary-data extension.

const TYPES = { FP64: Float64Array, FP32: Float32Array, INT64: BigInt64Array, INT32: Int32Array, BOOL: Uint8Array };
const HEADER = "Inference-Header-Content-Length";

function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem("token");
}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  const known = token();
  if (known) headers.Authorization = `Bearer ${known}`;
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  let sentence = `The server answered ${response.status}.`;
  try {
    sentence = (await response.json()).error ?? sentence;
  } catch { /* no JSON: the status has to do */ }
  throw Object.assign(new Error(sentence), { status: response.status });
}

export async function getJson(path) {
  return (await ask(path)).json();
}

/** {json, tensors: name -> {shape, values}} of a response. */
async function tensorsOf(response) {
  const bytes = await response.arrayBuffer();
  const length = Number(response.headers.get(HEADER) ?? bytes.byteLength);
  const json = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 0, length)));
  const tensors = {};
  let start = length;
  for (const { name, shape, datatype, parameters, data } of json.outputs) {
    if (parameters?.binary_data_size === undefined) {
      tensors[name] = { shape, values: TYPES[datatype].from(data, (value) => value ?? NaN) };
    } else {
      const end = start + parameters.binary_data_size;
      tensors[name] = { shape, values: new TYPES[datatype](bytes.slice(start, end)) };
      start = end;
    }
  }
  return { json, tensors };
}

export async function getTensors(path) {
  return tensorsOf(await ask(path));
}

/** A request with the inputs {name: {shape, values: Float64Array}} as bytes. */
function packed(content, inputs) {
  const described = Object.entries(inputs).map(([name, { shape, values }]) => ({
    name, shape, datatype: "FP64", parameters: { binary_data_size: values.byteLength },
  }));
  const text = new TextEncoder().encode(JSON.stringify({ ...content, inputs: described }));
  return {
    method: "POST",
    headers: { [HEADER]: String(text.length), "Content-Type": "application/octet-stream" },
    body: new Blob([text, ...Object.values(inputs).map(({ values }) => values)]),
  };
}

export async function post(path, content, inputs) {
  return tensorsOf(await ask(path, packed(content, inputs)));
}

export async function postForFile(path, content, inputs) {
  return (await ask(path, packed(content, inputs))).blob();
}

/** The same request with plain numbers, for people and programs that read JSON. */
export function plainRequest(content, inputs) {
  const described = Object.entries(inputs).map(([name, { shape, values }]) => ({
    name, shape, datatype: "FP64", data: Array.from(values),
  }));
  return JSON.stringify({ ...content, inputs: described });
}

export const at = (model, what) => `/page/models/${encodeURIComponent(model)}/${what}`;
export const inferAt = (model) => `/v2/models/${encodeURIComponent(model)}/infer`;

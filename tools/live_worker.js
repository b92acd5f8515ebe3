// Python in a thread of its own, so that the page can always be read, and stopped. Speaks with live.js.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = (name) => new URL(name, self.location).href;
let loaded = 0;
let python;
let cells;

// Count what arrives. The largest file lies there packed (see tools/live.py).
const ask = self.fetch.bind(self);
self.fetch = async (what, how) => {
  const packed = String(what.url ?? what).endsWith(".wasm");
  const answer = await ask(packed ? here("pyodide/pyodide.asm.wasm.packed") : what, how);
  if (!answer.ok) throw new Error(`${String(what.url ?? what).split("/").pop()} could not be loaded`);
  const counted = answer.body.pipeThrough(new TransformStream({
    transform(chunk, to) {
      loaded += chunk.length;
      postMessage({ kind: "loading", loaded });
      to.enqueue(chunk);
    },
  }));
  if (!packed) return new Response(counted, { headers: answer.headers });
  return new Response(counted.pipeThrough(new DecompressionStream("gzip")), { headers: { "content-type": "application/wasm" } });
};

const bytes = async (name) => (await fetch(here(name))).arrayBuffer();

const start = async ({ packages, modules, files, scripts }) => {
  loaded = scripts; // which the browser loads by itself
  const ours = Promise.all([...modules, ...files].map(bytes));
  python = await loadPyodide({ indexURL: here("pyodide/"), packages });
  (await ours).forEach((content, i) => {
    if (i < modules.length) python.FS.writeFile(modules[i], new Uint8Array(content));
    else python.unpackArchive(content, "wheel");
  });
  cells = python.pyimport("live_run");
  postMessage({ kind: "ready" });
};

const work = {
  start,
  run: ({ cell, source }) => {
    const well = cells.run(cell + 1, source, (kind, said) => postMessage({ kind, said, cell }));
    postMessage({ kind: "done", cell, well });
  },
  plan: ({ cell, sources, changed }) => {
    const order = cells.runs.plan(python.toPy(sources), python.toPy(changed), cell);
    postMessage({ kind: "plan", order: order.toJs() });
    order.destroy();
  },
  move: ({ key, positions }) => cells.move(key, positions, (kind, said) => postMessage({ kind, said, key })),
};

self.onmessage = async ({ data }) => {
  try {
    await work[data.kind](data);
  } catch (error) {
    postMessage({ kind: "broken", said: String(error.message ?? error).trim().split("\n").pop() }); // not a cell's error: Python itself
  }
};

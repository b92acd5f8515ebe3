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

const start = async ({ packages, files, scripts }) => {
  loaded = scripts; // which the browser loads by itself
  const ours = Promise.all([bytes("live_run.py"), ...files.map(bytes)]);
  python = await loadPyodide({ indexURL: here("pyodide/"), packages });
  const [run, ...archives] = await ours;
  archives.forEach((archive) => python.unpackArchive(archive, "wheel"));
  python.FS.writeFile("live_run.py", new Uint8Array(run));
  cells = python.pyimport("live_run");
  postMessage({ kind: "ready" });
};

const work = {
  start,
  run: ({ cell, source }) => {
    const well = cells.run(cell + 1, source, (kind, said) => postMessage({ kind, said, cell }));
    postMessage({ kind: "done", cell, well });
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

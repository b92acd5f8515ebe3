// Cells that run on the page. Asked for by the first click on "Run here"; Python itself lives in live_worker.js.
import { alive, all, faces, make } from "./live_show.js";

const base = new URL(".", import.meta.url).href;
const page = location.pathname.split("/").pop().replace(/\.html$/, "");
const button = (text, onclick, title = "") => make("button", { type: "button", className: "live-button", textContent: text, onclick, title });
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

// What Python does stands in a bar at the bottom of the window.
const said = make("span", { role: "status" });
const progress = make("progress", { hidden: true, "aria-label": "Loading Python" });
const amount = make("span", {});
const stop = button("Stop", () => begin("Stopped. Python starts afresh: every name that the cells had made is gone, and comes back when you run them."));
const choices = make("span", {});
const bar = make("section", { className: "live-bar d-print-none", "aria-label": "Python on this page" }, said, progress, amount, choices, stop);
const say = (text) => (said.textContent = text);

let plan; // what tools/live.py wrote about this page
let cells;
let worker;
let ready; // resolves once Python can run
let done = () => {}; // ends the wait for what Python does

const end = () => {
  worker?.terminate();
  worker = null;
  done();
  all(".live-waiting").forEach((box) => box.classList.remove("live-waiting"));
  all("figure[data-live]").forEach((figure) => figure.removeAttribute("data-live"));
  stop.hidden = true;
};
const begin = (why) => {
  end();
  choices.replaceChildren();
  progress.hidden = amount.hidden = false;
  say(why);
  worker = new Worker(base + "live_worker.js", { type: "module" });
  progress.max = plan.bytes;
  ready = new Promise((resolve) => {
    const broken = (text) => {
      end();
      resolve(false);
      progress.hidden = amount.hidden = true;
      say(`Python has stopped: ${text}. Every name that the cells had made is gone.`);
      choices.replaceChildren(button("Start again", () => begin("Starting Python.")));
    };
    worker.onerror = (event) => broken(event.message || "its files could not be loaded");
    worker.onmessage = ({ data }) => {
      if (data.kind === "loading") {
        progress.value = data.loaded;
        amount.textContent = `${megabytes(Math.min(data.loaded, plan.bytes))} of ${megabytes(plan.bytes)} MB`;
      } else if (data.kind === "ready") {
        progress.hidden = amount.hidden = true;
        say(why.startsWith("Stopped") ? why : "Python is ready. Change a cell and run it.");
        resolve(true);
      } else if (data.kind === "broken") broken(data.said);
      else if (data.kind === "frame") frame(data);
      else if (data.kind === "plan") done(data.order);
      else if (data.kind === "done") done(data.well);
      else cells[data.cell].show(data.kind, data.said);
    };
  });
  worker.postMessage({ kind: "start", ...plan, cells: null });
};

const asked = (what) => new Promise((resolve) => {
  done = resolve;
  worker.postMessage(what);
});

// Run a cell. Those above that it needs go first, if they have not run as they stand now (see live_needs.py).
let turn = Promise.resolve();
const run = (cell, again = false) => {
  const mine = worker; // what waits behind a cell that is stopped does not run
  turn = turn.then(() => runNow(cell, again, mine)).catch((error) => say(`This did not work: ${error.message}`));
};
const runNow = async (cell, again, mine) => {
  if (!(await ready) || worker !== mine) return;
  const sources = cells.map((one) => one.code());
  const above = [...sources.keys()].slice(0, cell.index);
  const changed = above.filter((i) => sources[i] !== cells[i].original);
  const order = again ? above : await asked({ kind: "plan", cell: cell.index, sources, changed });
  if (worker !== mine) return; // stopped
  for (const one of order.map((i) => cells[i]).filter((each) => each === cell || sources[each.index])) {
    say(`Running cell ${one.index + 1}.`);
    stop.hidden = false;
    one.clear(one === cell || again);
    const well = await asked({ kind: "run", cell: one.index, source: sources[one.index] });
    if (worker !== mine) return; // stopped
    await one.settle();
    stop.hidden = true;
    if (!well && (again || one === cell)) return say(`Cell ${one.index + 1} ended with an error.`);
  }
  say(again ? `The cells above cell ${cell.index + 1} have run.` : `Cell ${cell.index + 1} has run.`);
};

// Explorers: true if Python will answer.
const ask = (key, positions, figure) => {
  if (!figure.dataset.live) return say("Run this cell again: Python has forgotten it.") === null;
  worker.postMessage({ kind: "move", key, positions });
  return true;
};
const frame = ({ key, said }) => {
  const [texts, ...html] = said.split("\n\n");
  document.querySelector(`figure[data-live="${key}"]`)?.drawn(texts.split("\n"), html.join("\n\n"));
};

// A cell: its text to change, its buttons, and its output below.
const prepare = (box, index) => {
  const { source, needsTorch, rest } = plan.cells[index];
  const input = box.querySelector(".cell_input");
  const built = box.querySelector(".cell_output") ?? box.appendChild(make("div", {}));
  const out = make("div", { className: "cell_output live-output docutils container" });
  const cell = { index, original: needsTorch ? rest : source, clear: () => {}, settle: async () => {}, show: () => {} };
  if (needsTorch) {
    const colab = document.querySelector('a[href^="https://colab"]');
    const link = colab ? make("a", { href: colab.href, textContent: "open this page in Colab" }) : "open this page in Colab";
    box.append(make("p", { className: "live-note d-print-none" }, "This cell needs PyTorch, which does not run in a browser: ", link, "."));
    return { ...cell, code: () => rest };
  }
  const area = make("textarea", { className: "live-code", value: source, spellcheck: false, autocapitalize: "off", autocomplete: "off", wrap: "off" });
  area.setAttribute("aria-label", `Code of cell ${index + 1}`);
  const fit = () => (area.rows = area.value.split("\n").length);
  area.oninput = fit;
  fit();
  area.onkeydown = (event) => {
    if (event.key !== "Enter" || !event.shiftKey) return;
    event.preventDefault();
    run(cell);
  };
  const reset = () => {
    area.value = source;
    fit();
    out.replaceWith(built);
  };
  cell.run = button("Run", () => run(cell), "Shift+Enter");
  const tools = make("div", { className: "live-tools" }, cell.run, button("Run all above", () => run(cell, true)), button("Reset", reset));
  const editor = make("div", { className: "live-editor d-print-none" }, area, tools);
  if (input) {
    input.classList.add("live-replaced");
    input.after(editor);
  } else box.append(make("details", { className: "live-hidden d-print-none" }, make("summary", { textContent: "In Python" }), editor));
  return Object.assign(cell, {
    code: () => area.value,
    clear: (asked) => {
      cell.fresh = true; // the old output stays until the new one comes, so that nothing jumps
      box.classList.add("live-waiting");
      if (asked) box.querySelector("details.below-input")?.setAttribute("open", "");
    },
    show: (kind, text) => {
      if (cell.fresh) cell.empty();
      faces[kind](out, text, built);
      all("figure[data-live]", out).forEach((figure) => figure.drawn || alive(figure, ask));
    },
    empty: () => {
      cell.fresh = false;
      box.classList.remove("live-waiting");
      out.replaceChildren();
      built.replaceWith(out);
    },
    settle: async () => {
      if (cell.fresh) cell.empty();
      if (out.querySelector(".math")) await window.MathJax?.typesetPromise?.([out]);
      dispatchEvent(new Event("resize")); // book.js makes wide formulas fit
    },
  });
};

const closed = () => {
  bar.remove();
  choices.replaceChildren();
};
export const open = async (pressed) => {
  const box = pressed.closest("div.cell");
  if (bar.isConnected) return;
  document.head.append(make("link", { rel: "stylesheet", href: base + "live.css" }));
  document.body.append(bar);
  stop.hidden = true;
  const boxes = all("div.cell");
  plan = await fetch(`${base}${page}.json`).then((answer) => answer.json()).catch(() => null);
  if (plan?.cells.length !== boxes.length) { // nobody answers, or this page is older than what lies beside it
    say("Python could not be loaded. Reload the page, and see whether this device is online.");
    return choices.append(button("Try again", () => { closed(); open(pressed); }));
  }
  const go = () => {
    choices.replaceChildren();
    const chosen = boxes.indexOf(box);
    cells = boxes.map(prepare);
    const [top, ...others] = all("button.run-here");
    const note = make("p", { className: "live-note d-print-none", tabIndex: -1, textContent: "The cells of this page run here now. Change one, and press Run or Shift+Enter." });
    top.replaceWith(note);
    others.forEach((one) => one.remove());
    begin("Starting Python.");
    (cells[chosen]?.run ?? note).focus({ preventScroll: true });
    if (chosen >= 0) run(cells[chosen]);
  };
  if (!navigator.connection?.saveData) return go();
  say(`Python for this page is ${megabytes(plan.bytes)} MB, and your device asks to save data.`);
  choices.append(button("Load it", go), button("Not now", closed));
  choices.firstElementChild.focus();
};

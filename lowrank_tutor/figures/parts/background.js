// Heavy work runs in a worker, so that no drag waits; only what was asked for last is answered.
//
//   const decompose = background((input, linalg) => linalg.layers(input.rows));
//   decompose({ rows }).then(draw);
//
// The function is sent as text: it sees its input, `lowrankLinalg` and nothing around it. What is asked while the
// worker is busy waits; of several that wait, the last is computed, and all their promises get its answer. A browser
// that allows no worker computes on the page, a moment later.
const REST = 30000; // milliseconds: a worker that stayed for ever would keep a figure that a notebook has thrown away
const background = (task) => {
  const code =
    "const linalg = " +
    lowrankLinalg.source() +
    ";\nconst task = " +
    task.toString() +
    ";\n" +
    "onmessage = (event) => { try { postMessage({ answer: task(event.data, linalg) }); }" +
    " catch (error) { postMessage({ error: String(error) }); } };";
  let worker = null,
    busy = null,
    next = null,
    refused = false,
    rest = 0;

  const hire = () => {
    const address = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
    try {
      worker = new Worker(address);
      worker.onmessage = ({ data }) => {
        URL.revokeObjectURL(address);
        finish(data);
      };
      worker.onerror = (event) => {
        // it was never started: a page may forbid workers
        event.preventDefault();
        refused = true;
        if (busy) here(busy.input);
      };
    } catch (_) {
      refused = true;
    }
  };
  const here = (input) =>
    setTimeout(() => {
      try {
        finish({ answer: task(input, lowrankLinalg) });
      } catch (error) {
        finish({ error: String(error) });
      }
    });
  const finish = ({ answer, error }) => {
    const done = busy;
    busy = null;
    if (next) begin(next);
    else rest = setTimeout(dismiss, REST);
    next = null;
    done.waiting.forEach(([resolve, reject]) =>
      error ? reject(new Error(error)) : resolve(answer),
    );
  };
  const dismiss = () => {
    if (worker) worker.terminate();
    worker = null;
  };
  const begin = (job) => {
    clearTimeout(rest);
    busy = job;
    if (!worker && !refused) hire();
    if (refused) here(job.input);
    else worker.postMessage(job.input);
  };
  return (input) =>
    new Promise((resolve, reject) => {
      const waiting = [...(next ? next.waiting : []), [resolve, reject]];
      if (busy) next = { input, waiting };
      else begin({ input, waiting });
    });
};

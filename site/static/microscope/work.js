// The worker, one run of tasks at a time, and how far it is.
{
  const { plain, make, button, time } = window.microscopeWords;
  // The worker: hired with the files it needs, dismissed by the stop button.
  let files = [],
    opened = "", // and what was found in them
    worker = undefined,
    address = "",
    speed = 5e8,
    run = 0;
  const code = () => `const tasks = ${window.lowrankLinalg.source(...window.microscopeParts)};
    onmessage = async ({ data: [task, given] }) => {
      let last = 0;
      const tick = (part) => { if (Date.now() - last > 150) { last = Date.now(); postMessage({ part }); } };
      try { postMessage({ answer: await tasks[task](given, tick) }); } catch (error) { postMessage({ error: error.message }); }
    };`;
  const dismiss = () => (worker = worker?.terminate());
  const ask = (task, given, tick) =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) =>
        "part" in data
          ? tick?.(data.part)
          : "error" in data
            ? reject(new Error(data.error))
            : resolve(data.answer);
      worker.onerror = () =>
        reject(
          new Error("This browser lets no page compute in the background, which this page needs."),
        );
      worker.postMessage([task, given]);
    });
  const call = (task, given, tick) => {
    worker ??= new Worker(
      (address ||= URL.createObjectURL(new Blob([code()], { type: "text/javascript" }))),
    );
    return ask(task, given, tick);
  };
  const output = make("output", { "aria-live": "polite" }),
    bar = make("progress", { max: 1, value: 0, "aria-label": "progress", hidden: true });
  const stop = button("Stop", () => {
    dismiss(++run);
    say("Stopped. What was measured stays.");
  });
  const say = (words, part) => {
    output.textContent = plain(words);
    bar.hidden = stop.hidden = part === undefined;
    bar.value = part ?? 0;
  };
  /** Do a task for one item after another, and hand each answer to `done`; a later run ends this one, and it is false. */
  const work = async (task, items, done, times = 1) => {
    const mine = ++run,
      whole = items.reduce((sum, { cost }) => sum + times * cost, 0);
    let ready = 0,
      failed = 0;
    dismiss();
    say("Reading the headers.", 0);
    const again = JSON.stringify(await call("open", files).catch(() => ""));
    if (mine !== run) return false;
    if (again !== opened) {
      say("A file has changed since it was opened. Choose it again.");
      return false;
    }
    for (const [i, item] of items.entries()) {
      const start = Date.now(),
        words = `${item.name}: ${i + 1} of ${items.length}, ${time((whole - ready) / speed)} left`,
        cost = times * item.cost;
      say(words, ready / whole);
      const [answer, error] = await call(
        task,
        item.given,
        (part) => mine === run && say(words, (ready + part * cost) / whole),
      ).then(
        (told) => [told, ""],
        ({ message }) => [null, message],
      );
      if (mine !== run) return false;
      done(item, answer, error);
      [failed, ready] = [failed + (error ? 1 : 0), ready + cost];
      if (Date.now() - start > 100) speed = (speed + (cost / (Date.now() - start)) * 1000) / 2;
    }
    say(
      failed
        ? `Done, but ${failed} of ${items.length} could not be measured: press a name to read why.`
        : "Done.",
    );
    return true;
  };
  /** Read the headers of files, and end what runs. */
  const open = async (chosen) => {
    dismiss(++run);
    files = chosen;
    say("Reading the headers.", 0);
    const told = (await call("open", files).catch(({ message }) => say(message))) ?? {};
    if (told.weights) opened = JSON.stringify(told);
    return told;
  };
  const seconds = (cost) => cost / speed;
  window.microscopeWork = { open, work, say, seconds, progress: [output, bar, stop] };
}

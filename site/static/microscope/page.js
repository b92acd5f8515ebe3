// The page "A microscope": files come in, a worker measures, and each number gets its sentence. Names of files and of
// weights are written as text, never as markup.
(() => {
  const place = document.getElementById("microscope"),
    ROOM = 200,
    SOON = 6,
    SHARES = ["90%", "95%", "99%"]; // rows at a time; seconds that need no question
  /** Text in which no name turns its neighbors around: marks of direction are shown as such, quotes stand apart. */
  const plain = (part) =>
    typeof part === "string"
      ? part
          .replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd")
          .replace(/“.*”/s, "\u2068$&\u2069")
      : part;
  const make = (tag, properties = {}, ...children) => {
    const drawn = tag.startsWith("svg:"),
      made = drawn
        ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
        : document.createElement(tag);
    Object.entries(properties).forEach(([name, value]) =>
      name in made && !drawn ? (made[name] = value) : made.setAttribute(name, value),
    );
    return made.append(...children.map(plain)) ?? made;
  };
  const button = (words, onclick, className = "") =>
    make("button", { type: "button", onclick, className }, words);
  const number = (x) =>
    x === null
      ? ""
      : x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e5)
        ? x.toExponential(3).replace("-", "\u2212")
        : String(Number(x.toPrecision(4)));
  const percent = (x) => (Number.isFinite(x) ? `${Number((100 * x).toPrecision(3))}%` : "\u2013");
  const several = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;
  const time = (seconds) =>
    seconds < 2
      ? "a moment"
      : seconds < 90
        ? `about ${Math.round(seconds)} seconds`
        : `about ${Math.round(seconds / 60)} minutes`;
  /** A sentence, with the way into the book that the list below the microscope has for it. */
  const says = (name, words) =>
    make(
      "p",
      {},
      `${words} `,
      document.querySelector(`[data-says="${name}"]`)?.cloneNode(true) ?? "",
    );
  // The worker: hired with the files it needs, dismissed by the stop button.
  let dropped = [],
    worker = undefined,
    address = "",
    speed = 5e8,
    run = 0,
    opened = "";
  const code =
    () => `const numbers = (${window.microscopeNumbers})((${window.lowrankLinalg.source})());
    const files = (${window.microscopeFiles})(), tasks = (${window.microscopeTasks})(files, numbers);
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
  const WIDTH = 336,
    HIGH = 190,
    LEFT = 38,
    BASE = 158,
    TOP = 16;
  const panel = (title, label, count, parts, ticks) => {
    const x = (k) => LEFT + (k / count) * (WIDTH - LEFT - 8),
      y = (part) => BASE - part * (BASE - TOP);
    const text = (a, b, words, look) => make("svg:text", { x: a, y: b, class: look }, words);
    const grid = make(
      "svg:g",
      { class: "grid" },
      make("svg:path", { d: ticks.map(([part]) => `M${LEFT} ${y(part)}H${WIDTH - 8}`).join("") }),
    );
    const axes = [
      ...ticks.map(([part, words]) => text(LEFT - 5, y(part) + 4, words, "end")),
      ...[...new Set([0, Math.round(count / 2), count])].map((k) =>
        text(x(k), BASE + 14, k, "middle"),
      ),
    ];
    return make(
      "div",
      {},
      make("p", {}, title),
      make(
        "svg:svg",
        { viewBox: `0 0 ${WIDTH} ${HIGH}`, role: "img", "aria-label": label },
        grid,
        ...parts(x, y, text),
        ...axes,
        text((LEFT + WIDTH) / 2, HIGH - 2, "sheets", "middle"),
      ),
    );
  };
  const draw = ({ s, errors, ranks: [, k], edge, floor, even, rank = "break-even" }) => {
    const count = s.length,
      most = s[0] || 1,
      path = (d, look) => make("svg:path", { d, class: look });
    const bars = (x, y, from, to) =>
      Array.from(
        s.subarray(from, to),
        (value, i) =>
          `M${x(from + i + 0.1).toFixed(1)} ${y(0)}V${y(value / most).toFixed(1)}H${x(from + i + (count > 160 ? 1 : 0.9)).toFixed(1)}V${y(0)}Z`,
      ).join("");
    const line = (x, y) =>
      Array.from(
        errors,
        (error, i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(error).toFixed(1)}`,
      ).join("");
    const first = panel(
      "Singular values: teal holds 95% of the energy",
      `${count} singular values, falling from ${number(s[0])} to ${number(s[count - 1])}. The first ${k} hold 95% of the energy.`,
      count,
      (x, y, text) => [
        path(bars(x, y, 0, k), "area teal solid"),
        path(bars(x, y, k, count), "area gray solid"),
        ...(edge > floor && edge < most
          ? [
              path(`M${x(0)} ${y(edge / most)}H${x(count)}`, "line thin dashed ink"),
              text(x(count), y(edge / most) - 5, "noise edge", "word ink end"),
            ]
          : []),
      ],
      [
        [0, "0"],
        [0.5, "0.5"],
        [1, "1"],
      ],
    );
    const second = panel(
      "Relative error of each cut",
      `The error falls from 100% without a sheet to ${percent(errors[k])} with ${k} and 0% with ${count}.`,
      count,
      (x, y, text) => [
        path(line(x, y), "line orange"),
        ...(even < count
          ? [
              path(`M${x(even)} ${y(0)}V${y(1)}`, "line thin dashed ink"),
              text(
                x(even) + (even > count / 2 ? -5 : 5),
                y(1) + 12,
                rank,
                `word ink${even > count / 2 ? " end" : ""}`,
              ),
            ]
          : []),
      ],
      [
        [0, "0%"],
        [0.5, "50%"],
        [1, "100%"],
      ],
    );
    return make("div", { className: "panels" }, first, second);
  };
  const energy = ({ ranks, s }) =>
    says(
      "energy",
      `Of its ${s.length} sheets, the first ${ranks[0]}, ${ranks[1]}, and ${ranks[2]} keep 90%, 95%, and 99% of its energy.`,
    );
  const stable = (told) =>
    says(
      "stable",
      `Its stable rank is ${number(told.stable)}: that many directions as strong as its first, ${number(told.s[0])}, would have the same energy.`,
    );
  const needed = ({ errors }, most) => errors.findIndex((error) => error <= most);
  const tellWeight = (told) => [
    draw(told),
    stable(told),
    energy(told),
    says(
      "even",
      `Two factors hold fewer numbers than the weight below rank ${number(told.even)} (break-even). A cut that keeps 99% takes ${percent(told.ranks[2] / told.even)} of its numbers${told.ranks[2] < told.even ? "." : ", so it saves nothing."}`,
    ),
    says(
      "noise",
      told.edge > told.floor
        ? `Noise of one variance with the same median would reach ${number(told.edge)} (the noise edge); ${several(told.above, "value stands", "values stand")} above.`
        : `More than half of its values are rounding, below ${number(told.floor)}, so it has no noise edge; ${several(told.above, "value stands", "values stand")} above.`,
    ),
    says("inputs", "What a cut does to the outputs depends on the inputs, which no weight tells."),
  ];
  const table = (heads, body, caption) =>
    make(
      "div",
      {},
      make(
        "table",
        { className: "table", tabIndex: 0 },
        make("caption", { className: "visually-hidden" }, caption),
        make(
          "thead",
          {},
          make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head))),
        ),
        body,
      ),
    );
  const tellHeads = ({ rows, shared }) => [
    table(
      [
        "head",
        "W_Q W_Kᵀ: stable rank",
        "90%",
        "95%",
        "99%",
        "W_V W_O: stable rank",
        "90%",
        "95%",
        "99%",
      ],
      make(
        "tbody",
        {},
        ...rows.map(({ head, qk, vo }) =>
          make(
            "tr",
            {},
            ...[
              head + 1,
              ...[qk, vo].flatMap(({ stable, ranks }) => [number(stable), ...ranks]),
            ].map((cell) => make("td", {}, cell)),
          ),
        ),
      ),
      "Heads, and how many sheets keep 90%, 95%, and 99% of the energy",
    ),
    says(
      "heads",
      `Each product has rank ${rows[0].width} at most, the width of a head. W_Q W_Kᵀ says whom a head listens to, and W_V W_O what it passes on.`,
    ),
    make(
      "p",
      {},
      `Rotations by position and the gains of norms come between and aren't counted.${shared ? ` ${shared} heads share each key and value.` : ""}`,
    ),
  ];
  const tellUpdate = (told) => [
    draw({ ...told, edge: 0, even: told.s.length }),
    energy(told),
    says(
      "shrink",
      `For an error of at most 10%, 5%, and 1%, the update needs rank ${needed(told, 0.1)}, ${needed(told, 0.05)}, and ${needed(told, 0.01)} of ${told.r}.`,
    ),
    stable(told),
    says(
      "strength",
      `With the factor ${number(told.factor)}, its size is ${number(told.size)}${told.strength === null ? ". Drop the base weights to see its share of theirs." : `, ${percent(told.strength)} of the weight it changes.`}`,
    ),
    ...(told.all === undefined
      ? []
      : [
          says(
            "merge",
            `Merged in bfloat16, the update that arrives is off by ${percent(told.all)}, and by ${percent(told.read)} on the inputs that A reads.`,
          ),
        ]),
  ];
  // Lists: a row for each weight, a column for each number; pressing a name measures it and tells
  const output = make("output", { ariaLive: "polite" }),
    bar = make("progress", { max: 1, value: 0, ariaLabel: "progress", hidden: true });
  const stop = button("Stop", () => dismiss(++run) ?? say("Stopped. What was measured stays."));
  const say = (words, part) =>
    ([output.textContent, bar.hidden, stop.hidden, bar.value] = [
      plain(words),
      part === undefined,
      part === undefined,
      part ?? 0,
    ]);
  /** Do a task for one item after another, and hand each answer to `done`; a later run ends this one, and it is false. */
  const work = async (task, items, done, times = 1) => {
    const mine = ++run,
      whole = items.reduce((sum, { cost }) => sum + times * cost, 0);
    let ready = 0,
      failed = 0;
    dismiss();
    say("Reading the headers.", 0);
    const again = JSON.stringify(await call("open", dropped).catch(() => ""));
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
  const list = ({ title, head, items, task, columns, tell, extra = [] }) => {
    const detail = make("div", { className: "detail" }),
      body = make("tbody"),
      more = make("p"),
      filter = make("input", { type: "text", oninput: () => show(ROOM) }),
      start = button("", () => begin());
    let open = null;
    const named = () => items.filter(({ name }) => name.includes(filter.value)),
      chosen = () => named().filter(({ flaw }) => !flaw);
    const seconds = (times = 1) =>
      (times * chosen().reduce((sum, { cost }) => sum + cost, 0)) / speed;
    const tellOf = (item) => {
      open = item;
      detail.replaceChildren(
        make("h3", {}, item.name),
        make("p", {}, item.about),
        ...(item.flaw || item.error ? [make("p", {}, item.flaw || item.error)] : []),
        ...(item.told ? tell(item.told) : []),
      );
    };
    const write = (item) =>
      columns.forEach(
        ([, cell], i) =>
          item.cells &&
          (item.cells[i].textContent = item.told
            ? (cell(item.told) ?? "")
            : item.flaw || item.error
              ? "\u2013"
              : ""),
      );
    const begin = (some = chosen(), other = task, times = 1) =>
      work(
        other,
        some,
        (item, told, error) => {
          Object.assign(item, { error, told: told ? { ...item.told, ...told } : item.told });
          write(item);
          if (!open || open === item) tellOf(item);
        },
        times,
      );
    const show = (count) => {
      body.replaceChildren(
        ...named()
          .slice(0, count)
          .map((item) => {
            item.cells = columns.map(() => make("td"));
            write(item);
            const look = () => tellOf(item) ?? (item.told || item.flaw || begin([item]));
            return make("tr", {}, make("td", {}, button(item.name, look, "name")), ...item.cells);
          }),
      );
      more.replaceChildren(
        ...(named().length > count
          ? [button(`Show more of ${named().length}`, () => show(count + ROOM))]
          : []),
      );
      [start.textContent, start.hidden] = [
        `Measure ${chosen().length === 1 ? "this one" : `these ${chosen().length}`} (${time(seconds())})`,
        !chosen().length,
      ];
    };
    show(ROOM);
    const others = extra.map(({ words, other, fits, times }) => [
      times,
      () => begin(chosen().filter(fits), other, times),
      words,
    ]);
    const section = make(
      "section",
      {},
      make("h2", {}, title),
      make(
        "div",
        { className: "control" },
        ...(items.length > 3 ? [make("label", {}, "Only names with ", filter)] : []),
        start,
        ...others.map(([, act, words]) => button(words, act)),
      ),
      table([head, ...columns.map(([words]) => words)], body, title),
      more,
      detail,
    );
    return {
      section,
      steps: [[1, begin], ...others].map(([times, act]) => [seconds(times), () => act()]),
    };
  };
  const listWeights = ({ weights }) => {
    const items = weights
      .filter(({ thin }) => !thin)
      .map(({ name, shape, dtype, flaw, latent, work: cost }) => ({
        name,
        flaw,
        cost,
        given: name,
        about: `${shape.join(" \u00d7 ")} numbers in ${dtype}${latent ? ` (MLA, ${latent})` : ""}.`,
      }));
    return items.length
      ? [
          list({
            title: "Weights",
            head: `${several(items.length, "weight")}${weights.length > items.length ? ` (${several(weights.length - items.length, "vector or the like", "vectors and the like")} left out)` : ""}`,
            items,
            task: "weigh",
            tell: tellWeight,
            columns: [
              ["shape", ({ m, n }) => `${m} \u00d7 ${n}`],
              ["stable rank", ({ stable: x }) => number(x)],
              ...SHARES.map((share, i) => [`${share} at`, ({ ranks }) => ranks[i]]),
              ["above noise", ({ above }) => above],
              ["break-even", ({ even }) => number(even)],
            ],
          }),
        ]
      : [];
  };
  const listHeads = ({ groups, heads, weights }) => {
    const field = make("input", {
      type: "number",
      min: 1,
      value: heads ?? "",
      oninput: () => items.forEach((item) => (item.given.count = field.value)),
    });
    const items = groups.map(({ name, size }) => ({
      name: name.replace(/\.$/, "") || "attention",
      given: { name, count: heads },
      about: "",
      cost: 1e3 * size,
    }));
    const range = (rows, pick) => {
      const values = rows.map((row) => row[pick].ranks[1]);
      return [...new Set([Math.min(...values), Math.max(...values)])].join(" to ");
    };
    if (!items.length)
      return weights.length > 3
        ? [
            {
              section: make(
                "p",
                {},
                weights.some(({ latent }) => latent)
                  ? "Its attention is latent (MLA): nothing is said of heads."
                  : "No attention is known by these names.",
              ),
              steps: [],
            },
          ]
        : [];
    const made = list({
      title: "Attention, head by head",
      head: "attention",
      items,
      task: "heads",
      tell: tellHeads,
      columns: [
        ["heads", ({ rows }) => rows.length],
        ["rank at most", ({ rows }) => rows[0].width],
        ["W_Q W_K\u1d40: 95% at", ({ rows }) => range(rows, "qk")],
        ["W_V W_O: 95% at", ({ rows }) => range(rows, "vo")],
      ],
    });
    if (!heads)
      made.section.children[1].prepend(
        make("label", {}, "Number of heads (or drop config.json) ", field),
      );
    return [heads ? made : { ...made, steps: [] }];
  };
  const listAdapter = ({ adapter }) => {
    if (!adapter) return [];
    const { pairs, config } = adapter,
      dora = pairs.some((pair) => pair.dora);
    const items = pairs.map(({ path, m, n, r, dtype, base }) => ({
      name: path || "(no name)",
      base,
      given: path,
      cost: 10 * (m + n) * r * r,
      about: `${m} \u00d7 ${r} times ${r} \u00d7 ${n} numbers in ${dtype}.`,
      full: 4 * m * n * r,
    }));
    const heavy =
      items.reduce((sum, { full }) => sum + full, 0) /
      items.reduce((sum, { cost }) => sum + cost, 0);
    const made = list({
      title: "Adapter",
      head: several(items.length, "update"),
      items,
      task: "update",
      tell: tellUpdate,
      columns: [
        ["rank", ({ r }) => r],
        ["stable rank", ({ stable: x }) => number(x)],
        ...SHARES.map((share, i) => [`${share} at`, ({ ranks }) => ranks[i]]),
        ["5% error at", (told) => needed(told, 0.05)],
        ["size", ({ size }) => number(size)],
        ...(items.some(({ base }) => base)
          ? [
              ["share of the weight", ({ strength }) => strength && percent(strength)],
              ["lost in bfloat16", ({ all }) => all && percent(all)],
              ["on inputs it reads", ({ read }) => read && percent(read)],
            ]
          : []),
      ],
      extra:
        items.some(({ base }) => base) && !dora
          ? [{ words: "Merge in bfloat16", other: "merge", fits: ({ base }) => base, times: heavy }]
          : [],
    });
    const before = (words) => made.section.children[1].before(make("p", {}, words));
    if (!config)
      before(
        "Without adapter_config.json, alpha is the rank unless the file says otherwise. Drop it, too.",
      );
    if (dora)
      before("Its learned lengths (DoRA) are not measured, and a smaller adapter keeps them.");
    return made.section.append(smaller(pairs)) ?? [made];
  };
  /** Choose a rank or an error, and save an adapter of that kind. */
  const smaller = (pairs) => {
    const rule = make(
      "select",
      { onchange: () => (amount.value = rule.value === "rank" ? Math.ceil(pairs[0].r / 2) : 10) },
      make("option", { value: "error" }, "an error of at most, in percent,"),
      make("option", { value: "rank" }, "the rank"),
    );
    const amount = make("input", { type: "number", min: 0, value: 10, step: "any" }),
      result = make("div", { ariaLive: "polite" }),
      cost = pairs.reduce((sum, { m, n, r }) => sum + 60 * (m + n) * r * r, 0);
    const save = (name, parts) =>
      make(
        "a",
        { download: name, href: URL.createObjectURL(new Blob(parts)), className: "file" },
        `Save ${name}`,
      );
    const fits = () =>
      amount.value !== "" &&
      (rule.value === "rank"
        ? Number.isInteger(Number(amount.value)) && amount.value >= 1
        : amount.value >= 0 && amount.value <= 100);
    const act = button("Make it smaller", () =>
      !fits()
        ? result.replaceChildren(
            make("p", {}, "Type an error from 0 to 100, or a whole rank of at least 1."),
          )
        : work(
            "shrink",
            [
              {
                name: "a smaller adapter",
                cost,
                given: { [rule.value]: amount.value / (rule.value === "rank" ? 1 : 100) },
              },
            ],
            (_, told, error) => {
              if (error) return result.replaceChildren(make("p", {}, error));
              const { rows, saved, config } = told,
                all = (key) => Math.hypot(...rows.map((each) => each[key])),
                numbers = (key) =>
                  rows
                    .reduce((sum, each, i) => sum + each[key] * (pairs[i].m + pairs[i].n), 0)
                    .toLocaleString("en");
              const ranks = rows.map(({ k }) => k),
                low = Math.min(...ranks),
                high = Math.max(...ranks),
                most = Math.max(...rows.map(({ missed, whole }) => missed / (whole || 1)));
              if (numbers("k") === numbers("r"))
                return result.replaceChildren(
                  make("p", {}, "Nothing was cut: that takes the full rank of every update."),
                );
              result.replaceChildren(
                says(
                  "shrink",
                  `The smaller adapter has ${low === high ? `rank ${low}` : `ranks ${low} to ${high}`} and ${numbers("k")} numbers in place of ${numbers("r")}. Its updates are off by ${percent(all("missed") / all("whole"))} in all, and by ${percent(most)} at most, rounding included.${rule.value === "error" && most > 1e-9 + amount.value / 100 ? ` Rounding to ${pairs[0].dtype} costs that much, whatever the rank.` : ""} For inputs without a favorite direction, what an update adds to the output is off by as much. Over many layers errors add up: test the smaller adapter before you use it.`,
                ),
                make(
                  "p",
                  { className: "control" },
                  save("adapter_model.safetensors", [saved]),
                  ...(config
                    ? [save("adapter_config.json", [JSON.stringify(config, null, 2)])]
                    : []),
                ),
              );
            },
          ),
    );
    return make(
      "div",
      {},
      make("h3", {}, "A smaller adapter"),
      make(
        "div",
        { className: "control" },
        make("label", {}, "Keep ", rule),
        make("label", {}, make("span", { className: "visually-hidden" }, "how much "), amount),
        act,
      ),
      result,
    );
  };
  // Files come in
  const results = make("div"),
    notes = make("ul"),
    what = make("p");
  const show = async () => {
    dismiss(++run);
    say("Reading the headers.", 0);
    const told = (await call("open", dropped).catch(({ message }) => say(message) && null)) ?? {},
      { weights, adapter } = told;
    if (!weights) return;
    opened = JSON.stringify(told);
    what.textContent = dropped.length
      ? [
          weights.length && `${several(weights.length, "tensor")} of a model`,
          adapter && "an adapter",
          adapter?.config && "its configuration",
        ]
          .filter(Boolean)
          .join(", ") || "Nothing in these files can be measured."
      : "";
    const unread = [...new Set(weights.map(({ flaw }) => flaw))].filter(Boolean).map((flaw) => {
      const [{ name }, ...others] = weights.filter((weight) => weight.flaw === flaw);
      return [others.length ? `${name} and ${others.length} more` : name, flaw];
    });
    notes.replaceChildren(
      ...[...told.notes, ...unread]
        .slice(0, 20)
        .map(([name, words]) => make("li", {}, make("bdi", {}, name), `: ${words}`)),
    );
    const lists = [...listAdapter(told), ...listWeights(told), ...listHeads(told)];
    results.replaceChildren(...lists.map(({ section }) => section));
    say(lists.some(({ steps }) => steps.length) ? "Choose what to measure." : "");
    for (const [, act] of lists.flatMap(({ steps }) => steps).filter(([seconds]) => seconds < SOON))
      if (!(await act())) return;
  };
  const add = (files, before = dropped) =>
    show(
      (dropped = [
        ...new Map([...before, ...files].map((file) => [file.name, file])).values(),
      ].filter(
        ({ name }) =>
          !/\.(md|txt|py|jinja|model|pdf|png)$|^(tokenizer|generation_config|special_tokens|vocab|added_tokens)/.test(
            name,
          ),
      )),
    );
  const sample = (names) =>
    Promise.all(
      names.map(
        (name) =>
          new Promise((onload, onerror) => {
            document.head.append(
              make("script", { src: `../_static/microscope/${name}.js`, onload, onerror }),
            );
          }),
      ),
    ).then(
      () =>
        add(
          names
            .flatMap((name) => window.lowrankSamples[name])
            .map(
              ([name, text]) =>
                new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name),
            ),
          [],
        ),
      () => say("The sample could not be loaded."),
    );
  const picker = make("input", {
    type: "file",
    multiple: true,
    onchange: () => add(picker.files) && (picker.value = ""),
  }); // the same file may be chosen again
  place.ondragover = (event) => event.preventDefault();
  place.ondrop = (event) => event.preventDefault() ?? add(event.dataTransfer.files);
  say("");
  place.classList.add("live");
  place.replaceChildren(
    make(
      "div",
      { className: "control drop" },
      make("label", { className: "file" }, "Choose files", picker),
      "or drop them here: .safetensors, .npy, and the config.json or adapter_config.json beside them.",
    ),
    make(
      "div",
      { className: "control" },
      button("Try a small model", () => sample(["model"])),
      button("Try a small adapter", () => sample(["model", "adapter"])),
      button("Start over", () => add([], [])),
    ),
    what,
    notes,
    make("div", { className: "control" }, output, bar, stop),
    results,
  );
})();

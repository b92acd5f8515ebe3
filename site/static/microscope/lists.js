// Lists of weights, of heads, and of updates.
{
  const { make, button, number, percent, several, time, says, table, SHARES } =
    window.microscopeWords;
  const { needed, tellWeight, tellHeads, tellUpdate } = window.microscopeSentences;
  const { work, seconds } = window.microscopeWork;
  const ROOM = 200; // rows at a time
  const SPREAD = [
    ["stable rank", ({ stable }) => number(stable)],
    ...SHARES.map((share, i) => [`${share} at`, ({ ranks }) => ranks[i]]),
  ];
  // Lists: a row for each weight, a column for each number; pressing a name measures it and tells
  const list = ({ title, head, items, task, columns, tell, extra = [] }) => {
    const detail = make("div", { class: "detail" }),
      body = make("tbody"),
      more = make("p"),
      filter = make("input", { type: "text", oninput: () => show(ROOM) }),
      start = button("", () => begin());
    let open = null;
    const named = () => items.filter(({ name }) => name.includes(filter.value)),
      chosen = () => named().filter(({ flaw }) => !flaw);
    const lasts = (times = 1) => seconds(times * chosen().reduce((sum, { cost }) => sum + cost, 0));
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
        `Measure ${chosen().length === 1 ? "this one" : `these ${chosen().length}`} (${time(lasts())})`,
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
        { class: "control" },
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
      steps: [[1, begin], ...others].map(([times, act]) => [lasts(times), () => act()]),
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
              ...SPREAD,
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
      dora = pairs.some((pair) => pair.dora),
      based = pairs.some(({ base }) => base);
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
        ...SPREAD,
        ["5% error at", (told) => needed(told, 0.05)],
        ["size", ({ size }) => number(size)],
        ...(based
          ? [
              ["share of the weight", ({ strength }) => strength && percent(strength)],
              ["lost in bfloat16", ({ all }) => all && percent(all)],
              ["on inputs it reads", ({ read }) => read && percent(read)],
            ]
          : []),
      ],
      extra:
        based && !dora
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
  const save = (name, parts) =>
    make(
      "a",
      { download: name, href: URL.createObjectURL(new Blob(parts)), class: "file" },
      `Save ${name}`,
    );
  /** What a smaller adapter is like, and its files; `wanted` is the largest error that was asked for, if one was. */
  const tellSmaller = ({ rows, saved, config }, pairs, wanted) => {
    const all = (key) => Math.hypot(...rows.map((each) => each[key])),
      numbers = (key) =>
        rows
          .reduce((sum, each, i) => sum + each[key] * (pairs[i].m + pairs[i].n), 0)
          .toLocaleString("en");
    if (numbers("k") === numbers("r"))
      return [make("p", {}, "Nothing was cut: that takes the full rank of every update.")];
    const ranks = rows.map(({ k }) => k),
      low = Math.min(...ranks),
      high = Math.max(...ranks),
      most = Math.max(...rows.map(({ missed, whole }) => missed / (whole || 1)));
    const rounding =
      most > 1e-9 + wanted
        ? ` Rounding to ${pairs[0].dtype} costs that much, whatever the rank.`
        : "";
    return [
      says(
        "shrink",
        `The smaller adapter has ${low === high ? `rank ${low}` : `ranks ${low} to ${high}`} and ${numbers("k")} numbers in place of ${numbers("r")}. Its updates are off by ${percent(all("missed") / all("whole"))} in all, and by ${percent(most)} at most, rounding included.${rounding} For inputs without a favorite direction, what an update adds to the output is off by as much. Over many layers errors add up: test the smaller adapter before you use it.`,
      ),
      make(
        "p",
        { class: "control" },
        save("adapter_model.safetensors", [saved]),
        config ? save("adapter_config.json", [JSON.stringify(config, null, 2)]) : "",
      ),
    ];
  };
  /** Choose a rank or an error, and save an adapter of that kind. */
  const smaller = (pairs) => {
    const rule = make(
      "select",
      { onchange: () => (amount.value = isRank() ? Math.ceil(pairs[0].r / 2) : 10) },
      make("option", { value: "error" }, "an error of at most, in percent,"),
      make("option", { value: "rank" }, "the rank"),
    );
    const amount = make("input", { type: "number", min: 0, value: 10, step: "any" }),
      result = make("div", { "aria-live": "polite" }),
      cost = pairs.reduce((sum, { m, n, r }) => sum + 60 * (m + n) * r * r, 0);
    const isRank = () => rule.value === "rank";
    const fits = (value) =>
      isRank() ? Number.isInteger(value) && value >= 1 : value >= 0 && value <= 100;
    const act = button("Make it smaller", () => {
      const value = amount.valueAsNumber,
        given = isRank() ? { rank: value } : { error: value / 100 };
      if (!fits(value))
        return result.replaceChildren(
          make("p", {}, "Type an error from 0 to 100, or a whole rank of at least 1."),
        );
      return work("shrink", [{ name: "a smaller adapter", cost, given }], (_, told, error) =>
        result.replaceChildren(
          ...(error ? [make("p", {}, error)] : tellSmaller(told, pairs, given.error)),
        ),
      );
    });
    return make(
      "div",
      {},
      make("h3", {}, "A smaller adapter"),
      make(
        "div",
        { class: "control" },
        make("label", {}, "Keep ", rule),
        make("label", {}, make("span", { class: "visually-hidden" }, "how much "), amount),
        act,
      ),
      result,
    );
  };
  window.microscopeLists = (told) => [
    ...listAdapter(told),
    ...listWeights(told),
    ...listHeads(told),
  ];
}

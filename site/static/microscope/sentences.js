// What was measured, as two panels and sentences.
{
  const { make, number, percent, several, says, table, SHARES } = window.microscopeWords;
  const WIDTH = 336,
    HIGH = 190,
    LEFT = 38,
    BASE = 158,
    TOP = 16,
    TICKS = [0, 0.5, 1];
  const panel = (title, label, count, parts, format) => {
    const x = (k) => LEFT + (k / count) * (WIDTH - LEFT - 8),
      y = (part) => BASE - part * (BASE - TOP);
    const text = (a, b, words, look) => make("svg:text", { x: a, y: b, class: look }, words);
    const grid = make(
      "svg:g",
      { class: "grid" },
      make("svg:path", { d: TICKS.map((part) => `M${LEFT} ${y(part)}H${WIDTH - 8}`).join("") }),
    );
    const axes = [
      ...TICKS.map((part) => text(LEFT - 5, y(part) + 4, format(part), "end")),
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
      String,
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
      percent,
    );
    return make("div", { class: "panels" }, first, second);
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
  const tellHeads = ({ rows, shared }) => [
    table(
      ["head", ...["W_Q W_Kᵀ", "W_V W_O"].flatMap((pair) => [`${pair}: stable rank`, ...SHARES])],
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
  window.microscopeSentences = { needed, tellWeight, tellHeads, tellUpdate };
}

// How is a guess made, and how does the truth unfold over it? Four ways: a number, a mark on a line, a word, a curve.
//
// guesses.make(asked, holder, data, commit) returns {read, clear, draw}: read() is the guess that stands there, or null
// if there is none yet; clear() takes it away; draw({guess, shown}) shows it, and the truth once that is `shown`.
const guesses = (() => {
  const isPercent = (spec) => spec.endsWith("%");
  const written = (value, { spec, unit }) => format(value, spec) + unit;
  const tick = (spec) => (value) =>
    isPercent(spec) ? Number((100 * value).toPrecision(6)) + "%" : value.toLocaleString("en");

  /** Five or so round numbers between two; on a logarithmic line powers of ten, or also 2 and 5 times these. */
  const ticks = ([low, high], log) => {
    const within = (values) => values.filter((value) => value >= low - 1e-9 * Math.abs(low) && value <= high);
    if (log) {
      const tens = Array.from({ length: 80 }, (_, i) => Number("1e" + (i - 40)));
      return within(high < 30 * low ? tens.flatMap((ten) => [ten, 2 * ten, 5 * ten]) : tens);
    }
    const rough = (high - low) / 5, ten = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * ten).find((size) => size >= rough * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    return within(Array.from({ length: 12 }, (_, i) => Number(((first + i) * step).toPrecision(12))));
  };
  const share = (value, [low, high], log) =>
    log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const between = (part, [low, high], log) => log ? low * (high / low) ** part : low + part * (high - low);

  /** A line on which guess and truth can be marked. */
  const ruler = (holder, data) => {
    const { question, truth, answer, log, spec, titles, words } = data;
    const size = { width: 336, height: 112, margin: [40, 18, 34, 18] };
    const panel = stage.panel(holder, { label: question, xLog: log, ...size });
    let limits = null;
    const self = {
      panel,
      limit: (wished) => {
        limits = wished;
        panel.resize({ x: limits });
        const round = ticks(limits, log), last = share(round[round.length - 1], limits, log);
        const far = data.limits && last < 0.85; // from the end of the line, which is then written, too
        panel.axes({ x: far ? [...round, limits[1]] : round, xTitle: titles[0], format: tick(spec) });
      },
      mark: (name, value, height, text, color) => {
        const part = share(value, limits, log);
        panel.line(name, [[value, 0], [value, height]], color);
        panel.text(name + " words", [value, height], text, color + (part < 0.3 ? "" : part > 0.7 ? " end" : " middle"));
      },
      reveal: ({ guess, shown }) => {
        if (shown) self.mark("truth", truth, 1.05, words.truth + answer, "orange");
        if (guess !== null) {
          self.mark("guess", guess, 1.52, words.guess + written(guess, data), "teal");
          panel.line("gap", [[guess, 0.5], [truth, 0.5]], "orange unfold").setAttribute("pathLength", 1);
        }
        ["truth", "truth words"].forEach((one) => panel.hide(one, !shown));
        ["guess", "guess words", "gap"].forEach((one) => panel.hide(one, guess === null));
      },
    };
    return self;
  };
  const hideHandles = (panel, hide) =>
    panel.svg.querySelectorAll(".handle").forEach((grip) => grip.toggleAttribute("hidden", hide));

  const number = (asked, holder, data, commit) => {
    const { truth, spec, unit, words } = data, line = ruler(holder, data);
    const field = controls.element("input", { type: "text", inputmode: "decimal", autocomplete: "off", size: 12 });
    asked.append(controls.element("label", { class: "control" }, words.field, field, isPercent(spec) ? "%" : unit));
    // A press that is not stopped here would go on to the button that gets the focus.
    field.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), commit()));
    return {
      read: () => {
        const text = field.value.replace(/[\s,%]/g, "").replace("\u2212", "-"); // 1,000 and 5 % are numbers, too
        return text === "" || !isFinite(text) ? null : Number(text) / (isPercent(spec) ? 100 : 1);
      },
      clear: () => (field.value = ""),
      draw: ({ guess, shown }) => {
        field.disabled = shown;
        holder.hidden = !shown;
        if (!shown) return;
        if (guess !== null) field.value = Number((guess * (isPercent(spec) ? 100 : 1)).toPrecision(12));
        const all = [0, truth, ...(guess === null ? [] : [guess])];
        const [low, high] = [1.15 * Math.min(...all), 1.15 * Math.max(...all)];
        line.limit([low, high > low ? high : 1]);
        line.reveal({ guess, shown });
      },
    };
  };

  const choice = (asked, holder, { truth, choices, words }) => {
    let chosen = null;
    const named = Object.fromEntries(choices.map((word, i) => ["choice " + i, word]));
    const input = (at) => (chosen = named[at]);
    const options = controls.choice(asked, { label: words.choose, options: named, input });
    return {
      read: () => chosen,
      clear: () => (chosen = null),
      draw: ({ guess, shown }) => {
        options.show("choice " + choices.indexOf(shown ? guess : chosen));
        asked.querySelectorAll("label").forEach((label, i) => {
          label.firstChild.disabled = shown;
          label.querySelectorAll("b").forEach((mark) => mark.remove());
          if (shown && choices[i] === truth) label.append(controls.element("b", {}, words.right_one));
        });
      },
    };
  };

  const mark = (asked, holder, data) => {
    const { limits, log, whole, words } = data, line = ruler(holder, data);
    const at = (part) => {
      const value = between(part, limits, log);
      return clamp(whole ? Math.round(value) : Number(value.toPrecision(3)), ...limits);
    };
    let draft = at(0.5), touched = false;
    const put = (value) => {
      [draft, touched] = [value, true];
      show();
    };
    const step = (by) => { // so far that the number changes
      let part = share(draft, limits, log), next = draft;
      for (; next === draft && (by < 0 ? part > 0 : part < 1); next = at(part)) part = clamp(part + by / 100, 0, 1);
      put(next);
    };
    const show = () => {
      const text = written(draft, data);
      line.panel.place("mark", [draft, 0], { value: draft, min: limits[0], max: limits[1], text });
      line.panel.text("draft", [limits[0], 1.1], touched ? words.guess + text : words.drag, "teal");
    };
    line.panel.handle("mark", {
      label: words.mark, color: "teal", axis: "x", drag: ([value]) => put(at(clamp(share(value, limits, log), 0, 1))),
      step: (dx, dy) => step(dx + dy), end: (which) => put(limits[which < 0 ? 0 : 1]),
    });
    line.panel.grab("mark");
    return {
      read: () => (touched ? draft : null),
      clear: () => ([draft, touched] = [at(0.5), false]),
      draw: (state) => {
        line.limit(limits);
        show();
        hideHandles(line.panel, state.shown);
        line.panel.hide("draft", state.shown);
        line.reveal(state);
      },
    };
  };

  const curve = (asked, holder, data) => {
    const { question, truth, x, limits, log, spec, titles, words } = data, [low, high] = limits;
    const across = [x[0], x[x.length - 1]], size = (high - low) / 100;
    const panel = stage.panel(holder, {
      label: question, width: 336, height: 230, margin: [16, 18, 34, 50], x: across, xLog: log, y: limits,
    });
    const middle = x.map(() => (low + high) / 2), over = (values) => values.map((value, i) => [x[i], value]);
    let draft = middle, touched = false;
    const put = (i, value) => {
      const rounded = Number((low + Math.round((value - low) / size) * size).toPrecision(12));
      [draft, touched] = [draft.map((old, j) => (j === i ? clamp(rounded, low, high) : old)), true];
      show();
    };
    const show = () => {
      panel.line("guess", over(draft), "teal");
      draft.forEach((value, i) =>
        panel.place("at " + i, [x[i], value], { value, min: low, max: high, text: written(value, data) }));
    };
    const parts = x.map((one) => share(one, across, log));
    const xs = parts.some((one, i) => one - parts[i - 1] < 0.09) ? ticks(across, log) : x;
    const paint = ([value, height]) => {
      const part = share(Math.max(value, log ? 1e-300 : value), across, log);
      put(parts.reduce((best, one, i) => (Math.abs(one - part) < Math.abs(parts[best] - part) ? i : best), 0), height);
    };
    panel.paint((point) => panel.svg.querySelector(".handle[hidden]") || paint(point));
    x.forEach((one, i) => panel.handle("at " + i, {
      label: words.at + tick("g")(one), color: "teal", drag: paint,
      step: (dx, dy) => put(i, draft[i] + (dx + dy) * size), end: (which) => put(i, which < 0 ? low : high),
    }));
    return {
      read: () => (touched ? draft : null),
      clear: () => ([draft, touched] = [middle, false]),
      draw: ({ guess, shown }) => {
        draft = guess || draft;
        const format = (value, axis) => tick(axis === "y" ? spec : "g")(value), [xTitle, yTitle] = titles;
        panel.axes({ x: xs, y: ticks(limits), xTitle, yTitle, format });
        show();
        hideHandles(panel, shown);
        panel.line("truth", over(truth), "orange unfold").setAttribute("pathLength", 1);
        const apart = draft.map((value, i) => Math.abs(value - truth[i])), most = apart.indexOf(Math.max(...apart));
        const name = (one, values, text, color) =>
          panel.text(one, [x[most], values[most] + 3 * size], text, color + (most > x.length / 2 ? " end" : ""));
        name("truth words", truth, words.truth.slice(0, -2), "orange");
        name("guess words", draft, words.guess.slice(0, -2), "teal");
        const hidden = { truth: !shown, guess: shown && !guess, "truth words": !shown, "guess words": !guess };
        Object.entries(hidden).forEach(([one, hidden]) => panel.hide(one, hidden));
        if (guess) panel.line("guess", over(guess), "teal dashed");
      },
    };
  };

  return {
    make: (asked, holder, data, commit) => ({ number, mark, choice, curve })[data.kind](asked, holder, data, commit),
    written, isPercent,
  };
})();

/** Bring the <form> of a kind of problem to life: it draws from the bank of the page, and checks each blank. */
const KEPT = "lowrank-practice",
  DAY = 864e5,
  WAITS = [1, 7, 30]; // days
const LEVELS = ["all but the last", "every other one", "none"]; // steps that are given
/** What the reader's browser holds of practice: for each kind the days of right answers to the question alone. */
const practiced = () => {
  const record = (value) =>
    value && typeof value === "object" && !Array.isArray(value) ? value : {};
  try {
    return Object.fromEntries(
      Object.entries(record(JSON.parse(localStorage.getItem(KEPT)))).map(([kind, value]) => {
        const { days, last, missed, level } = record(value);
        return [
          kind,
          {
            days: Array.isArray(days) ? days : [],
            /* a clock that ran ahead is as good as none */
            last: Number(last <= Date.now() && last),
            missed: missed === true,
            level: LEVELS[level - 1] ? level : 1,
          },
        ];
      }),
    );
  } catch {
    return {}; // nothing is kept, or garbage
  }
};
const remember = (kind, right, level, deeper = right ? 1 : -1) => {
  const all = practiced(),
    { days = [] } = all[kind] ?? {},
    today = new Date().toLocaleDateString("sv");
  const added = right && level === 3 && !days.includes(today) ? [...days, today] : days;
  all[kind] = {
    days: added,
    last: Date.now(),
    missed: !right,
    level: Math.max(1, Math.min(3, level + deeper)),
  };
  try {
    localStorage.setItem(KEPT, JSON.stringify(all));
  } catch {
    /* the browser keeps nothing, or is full */
  }
  document.dispatchEvent(new Event("practiced"));
};
/** How long a kind has rested, as a share of its wait. */
const waited = ({ last, days }) =>
  (Date.now() - last) / DAY / WAITS[Math.max(0, Math.min(2, days.length - 1))];
const isDue = (all, kind) => kind in all && waited(all[kind]) >= 1;
/** Three kinds of earlier chapters: what was missed, then what is due, then what the chapter needs. */
const fromBefore = (needs, earlier) => {
  const all = practiced(),
    known = earlier.filter((kind) => kind in all),
    due = (kind) => waited(all[kind]);
  const missed = known
    .filter((kind) => all[kind].missed)
    .sort((one, other) => all[other].last - all[one].last);
  const ripe = known.filter((kind) => isDue(all, kind)).sort((one, other) => due(other) - due(one));
  return [...new Set([...missed, ...ripe, ...needs])].slice(0, 3);
};
const banks = {};
/** The problems of a kind, from a script beside the page: a page opened from a file may not fetch. */
const bankOf = (kind) =>
  (banks[kind] ??= new Promise((resolve, reject) => {
    const script = document.createElement("script"),
      root = document.documentElement.dataset.content_root ?? "";
    const unpack = ({ words, problems }) =>
      problems.map(([question, steps, slips]) => ({
        question: words[question],
        steps: steps.map(([ask, rule, work, names, values]) => [
          words[ask],
          words[rule],
          words[work],
          names.map((i) => words[i]),
          values,
        ]),
        slips: slips.map(([wrong, hint]) => [wrong, words[hint]]),
      }));
    Object.assign(script, {
      src: `${root}_static/practice/${kind}.js`,
      onerror: reject,
      onload: () => resolve(unpack(window.lowrankPractice[kind])),
    });
    document.head.append(script);
  }));
const story = (problem) => problem?.question.split("?")[0];
const isSame = (given, wanted) => given.every((one, i) => near(one, wanted[i]));
/** A sentence whose matrices, [1 2; 3 4], become tables. */
const sentence = (text) =>
  text.split(/(\[[^\]]*\])/).map((part) => {
    if (part[0] !== "[") return part;
    const rows = part
      .slice(1, -1)
      .split("; ")
      .map((row) => row.split(" "));
    const table = element("span", {
      class: "matrix",
      role: "img",
      "aria-label": `the matrix with the rows ${rows.map((row) => row.join(", ")).join("; ")}`,
    });
    table.style.gridTemplateColumns = `repeat(${rows[0].length}, auto)`;
    table.append(...rows.flat().map((one) => element("span", {}, one)));
    return table;
  });

/** Give a form of "Three from before" the kind that its place there has, and say which. */
const takeKind = (form, section) => {
  const kinds = window.lowrankKinds,
    all = practiced(),
    place = [...section.querySelectorAll("form")].indexOf(form);
  const kind = fromBefore(
    section.dataset.needs.split(" "),
    Object.keys(kinds).filter((one) => kinds[one][0] < section.dataset.chapter),
  )[place];
  const [chapter, promise] = kinds[kind];
  const why = all[kind]?.missed ? ", you missed it" : isDue(all, kind) ? ", due" : "",
    summary = form.closest("details").querySelector("summary");
  summary.textContent = `Can you still ${promise}? (Chapter ${chapter}${why})`;
  form.setAttribute("aria-label", `Practice: ${promise}`);
  form.dataset.kind = kind;
};
const say = (output, isRight, words) => {
  const [mark, look] = isRight ? ["\u2713 ", "check-right"] : ["\u25cb ", "check-open"];
  output.replaceChildren(
    element(
      "span",
      { class: look },
      element("span", { "aria-hidden": "true" }, mark),
      ...sentence(words),
    ),
  );
};
/** A step to fill in: its fields, what will be said of them, and both as they are drawn. */
const blankOf = (id, level, step, place) => {
  const output = element("output", { id: `${id}-said-${place}`, "aria-live": "polite" });
  const inputs = step[3].map((name, i) =>
    element("input", {
      id: `${id}-${place}-${i}`,
      type: "text",
      maxlength: 64,
      spellcheck: "false",
      autocomplete: "off",
      "aria-describedby": (level < 3 ? `${id}-ask-${place} ` : "") + output.id,
    }),
  );
  const fields = step[3].map((name, i) =>
    element("span", {}, element("label", { for: inputs[i].id }, name), inputs[i]),
  );
  const drawn = [element("div", {}, ...fields), output];
  return { step, place, inputs, output, drawn, shown: [], tries: 0, before: "", done: "" };
};
/** The steps of a problem as a list; level 1 leaves the last one blank, and level 2 every other one. */
const stepsOf = (id, { steps }, blanks) =>
  element(
    "ol",
    {},
    ...steps.map((step, i) =>
      element(
        "li",
        {},
        element("p", { id: `${id}-ask-${i}` }, ...sentence(step[0])),
        ...(blanks.find(({ place }) => place === i)?.drawn ?? [
          element("p", { class: "given" }, ...sentence(step[2])),
        ]),
      ),
    ),
  );
/** What can be said to a wrong answer, the most telling first. */
const hints = (problem, level, { step, place }, given) => {
  const [, rule, , names, right] = step,
    slips = place === problem.steps.length - 1 ? problem.slips : [];
  const made = ([wrong]) => wrong.every((one, i) => near(given[i], one) || near(one, right[i]));
  const told = slips.find(([wrong]) => isSame(given, wrong)) ?? slips.find(made);
  const good = names.filter((_, i) => near(given[i], right[i])),
    credit = good.length ? `Right so far: ${good.join(", ")}. ` : "";
  const plan =
    level === 3 && place ? [`In steps: ${problem.steps.map(([ask]) => ask).join(" ")}`] : [];
  const sizes = names.map((name, i) =>
    near(given[i], right[i])
      ? ""
      : `${given[i]} is too ${given[i] < right[i] ? "small" : "large"} for “${name}”. `,
  );
  const close = right.every(
    (r, i) =>
      near(given[i], r) || (!Number.isInteger(r) && Math.abs(given[i] - r) <= 0.05 * Math.abs(r)),
  );
  if (close && !told)
    return [credit + "You are near: give three digits, and round only at the end."];
  return [...(told?.slice(1) ?? []), credit + rule, ...plan, sizes.join("")];
};
const practice = (form) => {
  const content = form.querySelector('script[type="application/json"]').textContent;
  const { promise, problem: alone } = JSON.parse(content);
  const section = form.closest("[data-name=three-before]"),
    id = `practice-${Math.random().toString(36).slice(2)}`;
  if (section) takeKind(form, section);
  const { kind } = form.dataset;
  let level = section ? 3 : (practiced()[kind]?.level ?? Number(form.dataset.level)),
    problem,
    blanks,
    closed,
    waiting = [];
  const body = element("div", {
      class: "practice-body",
      role: "group",
      "aria-labelledby": `${id}-question`,
    }),
    end = element("output", { "aria-live": "polite" });
  const depth = element(
    "select",
    { id: `${id}-level`, onchange: () => choose(depth.selectedIndex + 1) },
    ...LEVELS.map((one) => element("option", {}, one)),
  );
  const menu = element(
    "span",
    { class: "steps-given" },
    element("label", { for: depth.id }, "Steps given:"),
    depth,
  );
  const next = element(
    "button",
    { type: "button", onclick: () => draw().then(() => blanks.at(0).inputs[0].focus()) },
    "Another one",
  );

  const draw = async (wanted) => {
    if (alone) return show(alone);
    if (!waiting.length)
      waiting = (await bankOf(kind))
        .map((one) => [Math.random(), one])
        .sort(([one], [other]) => one - other);
    level = wanted ?? (problem && closed ? practiced()[kind]?.level : null) ?? level;
    // The same story does not come twice in a row.
    const other = waiting.findIndex(([, one]) => story(one) !== story(problem));
    show(waiting.splice(Math.max(0, other), 1)[0][1]);
  };
  const show = (drawn) => {
    problem = drawn;
    closed = false;
    const last = problem.steps.length - 1;
    menu.hidden = !last; // there is no step to give
    form.dataset.level = level = last ? level : 3;
    depth.selectedIndex = level - 1;
    blanks = problem.steps.flatMap((step, i) =>
      i === last || (level === 2 && (last - i) % 2 === 0) ? blankOf(id, level, step, i) : [],
    );
    end.textContent = "";
    const isWhole = blanks.every(({ step }) => step[4].every(Number.isInteger));
    body.replaceChildren(
      element("p", { class: "question", id: `${id}-question` }, ...sentence(problem.question)),
      ...(level === 3 ? blanks[0].drawn : [stepsOf(id, problem, blanks)]),
      isWhole
        ? ""
        : element("p", {}, "Where a number is not whole, give a fraction, or three digits."),
    );
  };
  /** Give more steps of the same problem, or fewer of a new one: what was seen is no answer. */
  const choose = (wanted) => {
    if (closed || wanted > level) return draw(wanted);
    level = wanted;
    show(problem);
  };
  const finish = (right) => {
    if (closed) return;
    closed = true;
    remember(kind, right, level);
  };
  const judge = (one) => {
    const {
        step: [, , work, , right],
        inputs,
        output,
      } = one,
      texts = inputs.map((input) => input.value.trim());
    if (one.done || texts.every((text) => !text)) return;
    const given = texts.map((text, i) => {
      const all = readings(text);
      return all.find((value) => near(value, right[i])) ?? all[0] ?? NaN;
    });
    inputs.forEach(
      (input, i) =>
        texts[i] && input.setAttribute("aria-invalid", String(!near(given[i], right[i]))),
    );
    if (given.some(Number.isNaN))
      return say(output, false, "Write one number in each field, such as 5, 0.5, or 1/2.");
    if (isSame(given, right)) {
      one.done = "right";
      return say(output, true, `Right. ${work}`);
    }
    if (texts.join() === one.before)
      return say(output, false, `That is the same answer. ${one.shown.at(-1)}`);
    one.before = texts.join();
    if (!one.tries++ && !closed) remember(kind, false, level, 0); // missed, unless it comes right
    if (one.tries < 3) {
      const all = hints(problem, level, one, given),
        hint = all.find((words) => !one.shown.includes(words)) ?? all[0];
      one.shown.push(hint);
      return say(output, false, `Not yet. ${hint}`);
    }
    one.done = "shown";
    const steps =
      level === 3
        ? problem.steps.map(([ask, , each], i) => `${i + 1}. ${ask} ${each}`).join("; ")
        : work;
    say(output, false, `This is how it goes. ${steps}`);
    finish(false);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!blanks) return;
    blanks.forEach(judge);
    if (blanks.every(({ done }) => done === "right")) {
      finish(true);
      say(
        end,
        true,
        level < 3 ? "All right. The next one gives fewer steps." : "All right, without a step.",
      );
    } else if (blanks.every(({ done }) => done)) say(end, false, "Try another one.");
    else if (blanks.every(({ inputs }) => inputs.every(({ value }) => !value.trim())))
      say(end, false, "Fill in a blank first.");
    else end.textContent = "";
  });
  form.problem = () => problem;
  form.append(
    body,
    element(
      "p",
      { class: "practice-buttons" },
      element("button", { type: "submit" }, "Check"),
      " ",
      ...(alone ? [] : [next, " ", menu]),
    ),
    end,
  );
  if (alone)
    form.prepend(element("p", { class: "eyebrow" }, promise[0].toUpperCase() + promise.slice(1)));
  draw().catch(() => say(end, false, "The problems of this page could not be loaded."));
};

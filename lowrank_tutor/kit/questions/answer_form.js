/** Bring the <form> of an exercise to life: it judges as judge.py does. */
const answerForm = (form) => {
  const data = JSON.parse(form.querySelector('script[type="application/json"]').textContent);
  const inputs = [...form.querySelectorAll("input")];
  const output = form.querySelector("output");
  const accepts = (value, { right, slack }) => near(value, right, slack);
  /** The number that a text means: of two ways to read its comma the right one, or else the likelier. */
  const number = (text, wanted) => {
    const all = readings(text);
    const nearer = (best, one) =>
      apart(one, wanted.right) < apart(best, wanted.right) ? one : best;
    return all.find((one) => accepts(one, wanted)) ?? all.reduce(nearer, all[0]) ?? NaN;
  };
  const rising = (one, other) => one - other;
  const isRounded = (given, { right, whole, fewer, nearly }) =>
    whole
      ? broken(given) && apart(given, right) < nearly
      : apart(given, right) <= nearly || fewer.includes(given);
  /** Whether two vectors point along the same line; one with fractions may be rounded. */
  const isMultiple = (given, known) => {
    const slack = given.some(broken) ? 0.003 : 1e-9,
      sizes = known.map(Math.abs);
    const largest = sizes.indexOf(Math.max(...sizes));
    const scaled = (vector) => vector.map((one) => one / (vector[largest] || 1));
    const wanted = scaled(known);
    return scaled(given).every((one, i) => Math.abs(one - wanted[i]) <= slack);
  };
  const cut = (list, [, from, to]) => list.slice(from, to);
  const hint = (given, part) => {
    const values = cut(given, part),
      numbers = cut(data.numbers, part);
    if (values.includes(null)) return values.every((one) => one === null) ? "" : data.missing;
    const allAccept = (answer) => answer.every((one, i) => accepts(one, numbers[i]));
    if (allAccept(values)) return null;
    /** Whether a part is that of a known answer, of which each number comes with its slack. */
    const matches = (answer, each) => {
      const mine = cut(given, each),
        known = cut(answer, each);
      if (mine.includes(null)) return false;
      return mine.length > 1
        ? isMultiple(
            mine,
            known.map(([one]) => one),
          )
        : near(mine[0], ...known[0]);
    };
    const relative = (sum, [one], i) => sum + apart(values[i], one) / (Math.abs(one) || 1);
    const far = ([wrong]) => cut(wrong, part).reduce(relative, 0);
    const nearest = (fitting) =>
      fitting.reduce((best, one) => (far(best) <= far(one) ? best : one))[1];
    const known = data.hints.filter(([wrong]) => !allAccept(cut(wrong, part).map(([one]) => one)));
    const whole = known.filter(([wrong]) => data.parts.every((each) => matches(wrong, each)));
    if (whole.length) return nearest(whole);
    const right = data.numbers.map((one) => [one.right, one.common]);
    if (!given.includes(null) && !matches(right, part)) {
      const wanted = [...right].sort(([one], [other]) => rising(one, other));
      if ([...given].sort(rising).every((one, i) => near(one, ...wanted[i]))) return data.order;
    }
    const own = known.filter(([wrong]) => matches(wrong, part));
    if (own.length) return nearest(own);
    const rounded = values.every(
      (one, i) => accepts(one, numbers[i]) || isRounded(one, numbers[i]),
    );
    return rounded ? numbers[0].rounded : data.otherwise;
  };
  const verdict = (said) => {
    if (said.every((words) => words === null)) return [[true, "Right."]];
    if (said.includes(data.order)) return [[false, `Not yet. ${data.order}`]];
    if (said.length === 1) return [[false, `Not yet. ${said[0]}`]];
    return said.map((words, i) => {
      const [name] = data.parts[i];
      if (words === null) return [true, `${name}: right.`];
      if (words === "") return [false, `${name}: still empty.`];
      return [false, `${name}: not yet.${said.indexOf(words) < i ? "" : ` ${words}`}`];
    });
  };
  const show = (lines) =>
    lines.forEach(([isRight, words]) => output.append(marked(isRight, words)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = inputs.map((input, i) =>
      input.value.trim() ? number(input.value, data.numbers[i]) : null,
    );
    output.textContent = ""; // the same words again are said again
    const unread = given.findIndex((value) => Number.isNaN(value));
    const said = data.parts.map((part) => hint(given, part));
    data.parts.forEach((part, i) =>
      cut(inputs, part).forEach((input) =>
        input.setAttribute("aria-invalid", String(said[i] !== null)),
      ),
    );
    if (unread >= 0 || given.every((value) => value === null)) {
      const where =
        inputs.length > 1 && unread >= 0 ? `${data.numbers[unread].name}: write` : "Write";
      show([[false, `${where} one number, such as 0.5, 1/2 or 3.2e5, and work out roots: 0.707.`]]);
    } else {
      show(verdict(said));
    }
  });
};

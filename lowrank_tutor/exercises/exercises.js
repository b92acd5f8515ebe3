/** Bring the <form> of an exercise to life: it judges as answers.py does. */
const answerForm = (form) => {
  const data = JSON.parse(form.querySelector('script[type="application/json"]').textContent);
  const inputs = [...form.querySelectorAll("input")];
  const output = form.querySelector("output");
  // Whole numbers beyond 2**53 come as digits, and are compared as integers; see near() in questions.py.
  const exactly = (one) => (typeof one === "string" ? BigInt(one) : one);
  data.numbers.forEach((number) => (number.right = exactly(number.right)));
  data.hints.forEach(([wrong]) => wrong.forEach((pair) => (pair[0] = exactly(pair[0]))));
  const apart = (one, other) => Math.abs(Number(one) - Number(other));
  const broken = (value) => typeof value !== "bigint" && value !== Math.floor(value);
  const near = (given, wanted, slack) => {
    if (given === null || slack) return given !== null && apart(given, wanted) <= slack * (1 + 1e-9);
    return broken(given) ? apart(given, wanted) <= 1e-9 : given == wanted; // across types, 4 == 4n
  };
  /** The number that a text means: of two ways to read its comma the right one, or else the likelier. */
  const number = (text, { right, slack }) => {
    const all = readings(text);
    const likely = all.reduce((best, one) => (apart(one, right) < apart(best, right) ? one : best), all[0]);
    return all.find((one) => near(one, right, slack)) ?? likely ?? NaN;
  };
  const sorted = (values) => [...values].sort((a, b) => Number(a) - Number(b));
  const isRounded = (given, { right, whole, fewer, nearly }) =>
    whole
      ? broken(given) && apart(given, right) < nearly
      : apart(given, right) <= nearly || fewer.includes(given);
  /** The hint of the nearest of several wrong answers. */
  const nearest = (explained, far) =>
    explained.reduce((best, one) => (best && far(best[0]) <= far(one[0]) ? best : one), null)?.[1];
  const hint = (given, i) => {
    const value = given[i];
    if (value === null) return "";
    const { right, slack, common } = data.numbers[i];
    const explained = data.hints.filter(([wrong]) => !near(wrong[i][0], right, slack));
    const whole = explained.filter(([wrong]) => wrong.every((one, j) => near(given[j], ...one)));
    const relative = (sum, [one], j) => sum + apart(given[j], one) / (Math.abs(Number(one)) || 1);
    if (whole.length) return nearest(whole, (wrong) => wrong.reduce(relative, 0));
    if (!given.includes(null) && !near(value, right, common)) {
      const wanted = [...data.numbers].sort((a, b) => Number(a.right) - Number(b.right));
      if (sorted(given).every((one, j) => near(one, wanted[j].right, wanted[j].common))) return data.order;
    }
    const own = explained.filter(([wrong]) => near(value, ...wrong[i]));
    if (own.length) return nearest(own, (wrong) => apart(value, wrong[i][0]));
    return isRounded(value, data.numbers[i]) ? data.numbers[i].rounded : data.otherwise;
  };
  const verdict = (said) => {
    if (said.every((words) => words === null)) return [[true, "Right."]];
    if (said.includes(data.order)) return [[false, `Not yet. ${data.order}`]];
    if (said.length === 1) return [[false, `Not yet. ${said[0]}`]];
    return said.map((words, i) => {
      const { name } = data.numbers[i];
      if (words === null) return [true, `${name}: right.`];
      if (words === "") return [false, `${name}: still empty.`];
      return [false, `${name}: not yet.${said.indexOf(words) < i ? "" : ` ${words}`}`];
    });
  };
  const show = (lines) =>
    lines.forEach(([isRight, words]) => {
      const line = document.createElement("span");
      line.className = isRight ? "check-right" : "check-open";
      const mark = document.createElement("span");
      mark.setAttribute("aria-hidden", "true"); // the words say it, too
      mark.textContent = isRight ? "\u2713 " : "\u25cb ";
      line.append(mark, words);
      output.append(line);
    });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = inputs.map((input, i) => (input.value.trim() ? number(input.value, data.numbers[i]) : null));
    output.textContent = ""; // the same words again are said again
    const unread = given.findIndex((value) => Number.isNaN(value));
    const said = given.map((value, i) =>
      value !== null && near(value, data.numbers[i].right, data.numbers[i].slack) ? null : unread < 0 ? hint(given, i) : "");
    inputs.forEach((input, i) => input.setAttribute("aria-invalid", String(said[i] !== null)));
    if (unread >= 0 || given.every((value) => value === null)) {
      const where = inputs.length > 1 && unread >= 0 ? `${data.numbers[unread].name}: write` : "Write";
      show([[false, `${where} one number, such as 0.5, 1/2 or 3.2e5, and work out roots: 0.707.`]]);
    } else {
      show(verdict(said));
    }
  });
};

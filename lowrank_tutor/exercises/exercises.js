(() => {
  const form = document.currentScript.closest("form");
  const data = JSON.parse(form.querySelector('script[type="application/json"]').textContent);
  const inputs = [...form.querySelectorAll("input")];
  const output = form.querySelector("output");
  // "35,598" and "35 598" have thousands, "0,5" a decimal comma.
  const comma = (text) => (/^[+-]?[1-9]\d{0,2}([,\s]\d{3})+(\.\d*)?$/.test(text) ? text.replace(/[,\s]/g, "") : text.replace(",", "."));
  // "1/2", "24%", "7.7*10^8" and the typographic minus are numbers, too.
  const number = (text) => {
    const plain = comma(text.trim().replace(/^[([]\s*|\s*[)\]]$/g, "").replace(/\u2212/g, "-"))
      .replace(/(\d)\s*[x\u00b7\u00d7]\s*(?=10)/i, "$1*")
      .replace(/\s*([/%^*])\s*/g, "$1")
      .replace(/^([+-]?)10(?:\^|\*\*)/, (_, sign) => `${sign}1*10^`)
      .replace(/\*10(?:\^|\*\*)\(?([+-]?\d+)\)?/, (_, power) => `e${power}`);
    const [, top, bottom, percent] = plain.match(/^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?:\/(\d+\.?\d*|\.\d+))?(%?)$/i) || [];
    return Number(top) / (bottom ? Number(bottom) : 1) / (percent ? 100 : 1);
  };
  const near = (given, wanted, slack) => given !== null && Math.abs(given - wanted) <= slack + 1e-9;
  const sorted = (values) => [...values].sort((a, b) => a - b);
  const isRounded = (given, { right, whole, fewer, nearly }) =>
    whole
      ? given !== Math.floor(given) && Math.abs(given - right) < nearly
      : Math.abs(given - right) <= nearly || fewer.includes(given);
  const hint = (given, i) => {
    const value = given[i];
    if (value === null) return "";
    const { right, slack, common } = data.numbers[i];
    const explained = data.hints.filter(([wrong]) => !near(wrong[i][0], right, slack));
    const whole = explained.find(([wrong]) => wrong.every((one, j) => near(given[j], ...one)));
    if (whole) return whole[1];
    if (!given.includes(null) && !near(value, right, common)) {
      const wanted = [...data.numbers].sort((a, b) => a.right - b.right);
      if (sorted(given).every((one, j) => near(one, wanted[j].right, wanted[j].common))) return data.order;
    }
    const own = explained.find(([wrong]) => near(value, ...wrong[i]));
    return own ? own[1] : isRounded(value, data.numbers[i]) ? data.numbers[i].rounded : data.otherwise;
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
    const given = inputs.map((input) => (input.value.trim() ? number(input.value) : null));
    output.textContent = ""; // the same words again are said again
    const unread = given.findIndex((value) => value !== null && !Number.isFinite(value));
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
})();

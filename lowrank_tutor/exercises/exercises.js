(() => {
  const form = document.currentScript.closest("form");
  const data = JSON.parse(form.querySelector('script[type="application/json"]').textContent);
  const input = form.querySelector("input");
  const output = form.querySelector("output");
  // "1/2", "24%" and the typographic minus are numbers, too.
  const number = (text) => {
    const [, top, bottom, percent] = text.match(/^([+-]?[\d.]+(?:e[+-]?\d+)?)(?:\/([\d.]+))?(%?)$/i) || [];
    return Number(top) / (bottom ? Number(bottom) : 1) / (percent ? 100 : 1);
  };
  const comma = (text) => // "35,598" and "35 598" have thousands, "0,5" a decimal comma
    /^[+-]?[1-9]\d{0,2}([,\s]\d{3})+$/.test(text.trim()) ? text.replace(/[,\s]/g, "") : text.replace(",", ".");
  const numbers = (text) => {
    let plain = text.trim().replace(/\u2212/g, "-").replace(/\s*\/\s*/g, "/").replace(/\s+%/g, "%");
    if (data.right.length === 1 || plain.includes(";")) plain = plain.split(";").map(comma).join(" ");
    return plain.split(/[\s,()[\]]+/).filter(Boolean).map(number);
  };
  const sorted = (values) => [...values].sort((a, b) => a - b);
  const near = (given, wanted) =>
    given.length === wanted.length &&
    given.every((value, i) => Math.abs(value - wanted[i]) <= data.within * Math.abs(wanted[i]) + 1e-9);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = numbers(input.value);
    const { right, wrong, count, order } = data.words;
    const isRight = near(given, data.right);
    input.setAttribute("aria-invalid", String(!isRight));
    output.textContent = ""; // the same words again are said again
    if (!given.length || !given.every(Number.isFinite)) {
      output.textContent = "Write numbers, such as 0.5 or 1/2, and work out roots: 0.707.";
    } else if (given.length !== data.right.length) {
      output.textContent = `${wrong} ${count}${/\d,\d/.test(input.value) ? " Write 0.5, not 0,5." : ""}`;
    } else if (isRight) {
      output.textContent = right;
    } else {
      const found = data.hints.find(([answer]) => near(given, answer));
      const swapped = near(sorted(given), sorted(data.right));
      output.textContent = `${wrong} ${found ? found[1] : swapped ? order : data.otherwise}`;
    }
  });
})();

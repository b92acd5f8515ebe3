// What the three ways to guess share (guess_mark.js, guess_choice.js, guess_curve.js): how a guess is made and judged, and
// how the truth unfolds over it.
//
// predictions.ways[kind](asked, holder, data, commit) puts what is asked into one place and what is drawn into the other:
//   read, clear      read() is the guess that stands there, or null if there is none yet; clear() takes it away
//   draw             draw({guess, shown}) shows it, and the truth once that is `shown`
//   rule             rule(guess) returns a guess that may be, or throws an Error that says the rule
//   gap, far         gap(guess) is the number that says how far off it is; far(gap) writes that in words
//   grade            grade(guess) is 1 if it is right, 1/2 if it is near, and 0 if not
//   write, said      write(guess) in words; said(guess) names the sentence that answers it
const NEAR = 0.1; // of the line, or of the axis of a curve
const predictions = (() => {
  const isPercent = (spec) => spec.endsWith("%");
  const written = (value, { spec, unit }) => format(value, spec) + unit;
  const tick = (spec) => (value) =>
    isPercent(spec)
      ? Number((100 * value).toPrecision(6)) + "%"
      : value.toLocaleString("en", { maximumSignificantDigits: 12 });

  /** Five or so round numbers between two; on a logarithmic line powers of ten, or also 2 and 5 times these. */
  const ticks = ([low, high], log) => {
    const within = (values) =>
      values.filter((value) => value >= low - 1e-9 * Math.abs(low) && value <= high);
    const tens = Array.from({ length: 80 }, (_, i) => Number("1e" + (i - 40)));
    const powers = within(
      log && high >= 30 * low ? tens : tens.flatMap((ten) => [ten, 2 * ten, 5 * ten]),
    );
    if (log && powers.length > 1) return powers; // between 1,100 and 1,900 there is none
    const rough = (high - low) / 5,
      ten = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((times) => times * ten).find((size) => size >= rough * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    return within(
      Array.from({ length: 12 }, (_, i) => Number(((first + i) * step).toPrecision(12))),
    );
  };

  /** A number with so many digits that it does not look like another: a guess that is wrong is never 0 too high. */
  const unlike = (value, other, first) =>
    value === Number(other)
      ? first
      : ([first, ...[3, 6, 9, 12].map((digits) => format(value, "." + digits + "g"))].find(
          (text) => Number(text.replace(/[^-.\d]/g, "")) !== other,
        ) ?? String(value));
  /** A difference in words: that of two percentages is in points. */
  const apart = (data) => (gap) =>
    isPercent(data.spec)
      ? format(100 * gap, ".3g") + data.words.points
      : unlike(gap, 0, format(gap, data.spec)) + data.unit;
  /** How a mark is judged: on a logarithmic line by the factor between it and the truth. */
  const judge = (data) => {
    const { truth, log, limits, words } = data;
    const right = (guess) => written(guess, data) === written(truth, data);
    const off = (guess) => stage.part(guess, limits, log) - stage.part(truth, limits, log);
    return {
      gap: (guess) => (log ? Math.max(guess / truth, truth / guess) : Math.abs(guess - truth)),
      far: log ? (gap) => words.factor + unlike(gap, 1, format(gap, ".3g")) : apart(data),
      grade: (guess) => (right(guess) ? 1 : Number(Math.abs(off(guess)) <= NEAR) / 2),
      write: (guess) => written(guess, data),
      // Right is what is written alike.
      said: (guess) => (right(guess) ? "correct" : guess < truth ? "low" : "high"),
    };
  };

  const hideHandles = (panel, hide) =>
    panel.svg.querySelectorAll(".handle").forEach((grip) => grip.toggleAttribute("hidden", hide));

  return { ways: {}, written, tick, ticks, apart, judge, hideHandles };
})();

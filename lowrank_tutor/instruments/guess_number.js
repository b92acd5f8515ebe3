// A number is typed; the truth then stands beside it on a line (ruler.js). guesses.js says what is returned.
guesses.ways.number = (asked, holder, data, commit) => {
  const { truth, spec, unit, words } = data, line = ruler(holder, data);
  const isPercent = guesses.isPercent(spec), times = isPercent ? 100 : 1;
  const field = controls.element("input", { type: "text", inputmode: "decimal", autocomplete: "off", size: 12 });
  asked.append(controls.element("label", { class: "control" }, words.field, field, isPercent ? "%" : unit));
  // A press that is not stopped here would go on to the button that gets the focus.
  field.addEventListener("keydown", (event) => event.key === "Enter" && (event.preventDefault(), commit()));
  return {
    ...guesses.judge(data),
    rule: (guess) => check.number("guess", guess, -1e15, 1e15),
    read: () => {
      const text = field.value.replace(/[\s,%]/g, "").replace("\u2212", "-"); // 1,000 and 5 % are numbers, too
      return text === "" || !isFinite(text) ? null : Number(text) / times;
    },
    clear: () => (field.value = ""),
    draw: ({ guess, shown }) => {
      field.disabled = shown;
      holder.hidden = !shown;
      if (!shown) return;
      if (guess !== null) field.value = Number((guess * times).toPrecision(12));
      const all = [0, truth, ...(guess === null ? [] : [guess])];
      const [low, high] = [1.15 * Math.min(...all), 1.15 * Math.max(...all)];
      line.limit([low, high > low ? high : 1]);
      line.reveal({ guess, shown });
    },
  };
};

// A mark is dragged along a line, where the truth then stands, too (ruler.js). predictions.js says what is returned.
predictions.ways.mark = (asked, holder, data) => {
  const { limits, log, whole, words } = data,
    line = ruler(holder, data);
  const share = (value) => stage.part(value, limits, log);
  const digits = Math.max(
    3,
    2 + Math.ceil(Math.log10(Math.max(...limits.map(Math.abs)) / (limits[1] - limits[0]))),
  );
  const at = (part) => {
    const value = stage.whole(part, limits, log);
    return clamp(whole ? Math.round(value) : Number(value.toPrecision(digits)), ...limits);
  };
  let draft = at(0.5),
    touched = false;
  const put = (value) => {
    [draft, touched] = [value, true];
    show();
  };
  const step = (by) => {
    // so far that the number changes
    let part = share(draft),
      next = draft;
    for (; next === draft && (by < 0 ? part > 0 : part < 1); next = at(part))
      part = clamp(part + by / 100, 0, 1);
    put(next);
  };
  const show = () => {
    const text = predictions.written(draft, data);
    line.panel.place("mark", [draft, 0], { value: draft, min: limits[0], max: limits[1], text });
    line.panel.text("draft", [limits[0], 1.1], touched ? words.guess + text : words.drag, "teal");
  };
  line.panel.handle("mark", {
    label: words.mark,
    color: "teal",
    axis: "x",
    drag: ([value]) => put(at(clamp(share(value), 0, 1))),
    step: (dx, dy) => step(dx + dy),
    end: (which) => put(limits[which < 0 ? 0 : 1]),
  });
  line.panel.grab("mark");
  return {
    ...predictions.judge(data),
    rule: (guess) => check.number("guess", guess, ...limits),
    read: () => (touched ? draft : null),
    clear: () => ([draft, touched] = [at(0.5), false]),
    draw: (state) => {
      line.limit(limits);
      show();
      predictions.hideHandles(line.panel, state.shown);
      line.panel.hide("draft", state.shown);
      line.reveal(state);
    },
  };
};

// A button for each head of the storyteller, and a bar for each job.
const headButtons = (place, face, press) => {
  const heads = controls.box(place, "heads");
  return Array.from({ length: LAYERS * HEADS }, (_, h) => {
    const label = fill("layer {layer}, head {head}", {
      layer: 1 + Math.floor(h / HEADS),
      head: 1 + (h % HEADS),
    });
    const button = controls.button(heads, face(h), () => press(h));
    stage.write(button, { "aria-label": label, title: label });
    return button;
  });
};
/** Bars under the names "job_..."; show(shares, job) draws the shares of right answers, and marks the job. */
const jobBars = (place, names) => {
  const tally = controls.box(place, "tally");
  const rows = names.map((name) => {
    const spelled = name.slice(4).replaceAll("_", " "),
      [bar, share] = [element("b"), element("small")];
    const row = element("p", {}, element("span", {}, spelled), element("i", {}, bar), share);
    tally.append(row);
    return (shares, job) => {
      row.classList.toggle("asked", spelled === job);
      bar.style.width = 100 * shares[name] + "%";
      stage.say(share, Math.round(100 * shares[name]) + "%");
    };
  });
  return { tally, show: (shares, job) => rows.forEach((show) => show(shares, job)) };
};

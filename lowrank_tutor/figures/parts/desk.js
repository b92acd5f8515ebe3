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
const jobName = (job) => "job_" + job.replaceAll(" ", "_");
/** A bar for each job; show(shares, asked) draws the shares of right answers, and marks the job that is asked. */
const jobBars = (place, jobs) => {
  const tally = controls.box(place, "tally");
  const rows = jobs.map((job) => {
    const [bar, share] = [element("b"), element("small")];
    const row = element("p", {}, element("span", {}, job), element("i", {}, bar), share);
    tally.append(row);
    return (shares, asked) => {
      const percent = 100 * shares[jobName(job)];
      row.classList.toggle("asked", job === asked);
      bar.style.width = percent + "%";
      stage.say(share, Math.round(percent) + "%");
    };
  });
  return { tally, show: (shares, asked) => rows.forEach((show) => show(shares, asked)) };
};

// The page "A microscope": files come in, a worker measures, and each number gets its sentence.
{
  const { make, button, several } = window.microscopeWords;
  const { open, say, progress } = window.microscopeWork;
  const listsOf = window.microscopeLists;
  const place = document.getElementById("microscope"),
    SOON = 6; // seconds that need no question
  let dropped = [];
  const results = make("div"),
    notes = make("ul"),
    what = make("p");
  const show = async () => {
    const told = await open(dropped),
      { weights, adapter } = told;
    if (!weights) return;
    what.textContent = dropped.length
      ? [
          weights.length && `${several(weights.length, "tensor")} of a model`,
          adapter && "an adapter",
          adapter?.config && "its configuration",
        ]
          .filter(Boolean)
          .join(", ") || "Nothing in these files can be measured."
      : "";
    const unread = [...new Set(weights.map(({ flaw }) => flaw))].filter(Boolean).map((flaw) => {
      const [{ name }, ...others] = weights.filter((weight) => weight.flaw === flaw);
      return [others.length ? `${name} and ${others.length} more` : name, flaw];
    });
    notes.replaceChildren(
      ...[...told.notes, ...unread]
        .slice(0, 20)
        .map(([name, words]) => make("li", {}, make("bdi", {}, name), `: ${words}`)),
    );
    const lists = listsOf(told);
    results.replaceChildren(...lists.map(({ section }) => section));
    say(lists.some(({ steps }) => steps.length) ? "Choose what to measure." : "");
    for (const [, act] of lists.flatMap(({ steps }) => steps).filter(([seconds]) => seconds < SOON))
      if (!(await act())) return;
  };
  const add = (files, before = dropped) =>
    show(
      (dropped = [
        ...new Map([...before, ...files].map((file) => [file.name, file])).values(),
      ].filter(
        ({ name }) =>
          !/\.(md|txt|py|jinja|model|pdf|png)$|^(tokenizer|generation_config|special_tokens|vocab|added_tokens)/.test(
            name,
          ),
      )),
    );
  const sample = (names) =>
    Promise.all(
      names.map(
        (name) =>
          new Promise((onload, onerror) => {
            document.head.append(
              make("script", { src: `../_static/microscope/${name}.js`, onload, onerror }),
            );
          }),
      ),
    ).then(
      () =>
        add(
          names
            .flatMap((name) => window.lowrankSamples[name])
            .map(
              ([name, text]) =>
                new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name),
            ),
          [],
        ),
      () => say("The sample could not be loaded."),
    );
  const picker = make("input", {
    type: "file",
    multiple: true,
    onchange: () => add(picker.files) && (picker.value = ""),
  }); // the same file may be chosen again
  place.ondragover = (event) => event.preventDefault();
  place.ondrop = (event) => event.preventDefault() ?? add(event.dataTransfer.files);
  say("");
  place.classList.add("live");
  place.replaceChildren(
    make(
      "div",
      { class: "control drop" },
      make("label", { class: "file" }, "Choose files", picker),
      "or drop them here: .safetensors, .npy, and the config.json or adapter_config.json beside them.",
    ),
    make(
      "div",
      { class: "control" },
      button("Try a small model", () => sample(["model"])),
      button("Try a small adapter", () => sample(["model", "adapter"])),
      button("Start over", () => add([], [])),
    ),
    what,
    notes,
    make("div", { class: "control" }, ...progress),
    results,
  );
}

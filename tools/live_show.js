// What a cell has shown, as the page would show it; and explorers, whose pictures Python draws when they are asked for.
export const all = (css, of = document) => [...of.querySelectorAll(css)];
export const make = (tag, attributes, ...inside) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    name in element ? (element[name] = value) : element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
};

const escaped = (text) => text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt()};`);
// Code and formulas keep their backslashes; elsewhere one takes its meaning from the mark that follows.
const inline = (text) => text.replace(/<\/?span>/g, "") // tables.py has them around dollars, for JupyterLab
  .replace(/(`.+?`|\$(?:\\.|[^\\$])+\$)|\\([!-/:-@[-`{-~])|[&<>]/g,
    (all, kept, mark) => kept ? escaped(kept) : `&#${(mark ?? all).charCodeAt()};`)
  .replace(/\*\*(.+?)\*\*/g, "<strong>$1</strong>")
  .replace(/`(.+?)`/g, "<code>$1</code>")
  .replace(/\$(.+?)\$/g, '<span class="math notranslate nohighlight">\\($1\\)</span>');
const table = (lines) => {
  const [head, rule, ...rows] = lines.map((line) => line.replace(/^\| ?| ?\|$/g, "").split(" | "));
  const right = rule.map((cell) => (cell.trim().endsWith(":") ? "right" : "left"));
  const row = (tag) => (words) => `<tr>${words.map((word, i) => `<${tag} class="text-${right[i]}">${inline(word.trim())}</${tag}>`).join("")}</tr>`;
  return `<table class="table" tabindex="0"><thead>${row("th")(head)}</thead><tbody>${rows.map(row("td")).join("")}</tbody></table>`;
};
const markdown = (text) => text.split("\n\n").map((block) => {
  if (block.startsWith("|")) return table(block.trim().split("\n"));
  if (block.startsWith("$$")) return `<div class="math notranslate nohighlight">\\[${escaped(block.slice(2, -2))}\\]</div>`;
  return `<p>${inline(block)}</p>`;
}).join("");
export const faces = {
  text: (out, text) => {
    const last = out.lastElementChild;
    if (last?.matches(".stream")) last.querySelector("pre").append(text);
    else out.append(make("div", { className: "output stream highlight-myst-ansi notranslate" }, make("div", { className: "highlight" }, make("pre", { textContent: text }))));
  },
  error: (out, text) => out.append(make("pre", { className: "live-error", textContent: text })),
  markdown: (out, text) => out.insertAdjacentHTML("beforeend", markdown(text)),
  image: (out, text, built) => {
    const [width, src] = text.split(" ");
    const like = all(":scope > img", built)[all(":scope > img", out).length];
    const image = make("img", { src, alt: like?.alt ?? "The figure that this cell has drawn.", className: like?.className ?? "" });
    image.style.width = `${width}px`;
    out.append(image);
  },
  html: (out, text) => {
    const box = make("div", { className: "output text_html", innerHTML: text });
    out.append(box);
    all("script", box).forEach((old) => { // scripts in a string do not run
      const script = make("script", { textContent: old.textContent });
      for (const { name, value } of old.attributes) script.setAttribute(name, value);
      old.replaceWith(script);
    });
  },
};

// An explorer asks Python for each picture; positions that the hand has passed meanwhile are left out.
export const alive = (figure, ask) => {
  const controls = all("[data-slider]", figure);
  const at = (control) => control.matches("fieldset")
    ? all("input", control).findIndex((choice) => choice.checked)
    : Math.round((control.value - control.min) / (control.step || 1));
  let busy = false;
  let late = false;
  const move = () => {
    late = busy;
    if (!busy) busy = ask(Number(figure.dataset.live), controls.map(at), figure);
  };
  figure.drawn = (texts, html) => {
    figure.querySelector(".live-frame").innerHTML = html;
    controls.forEach((control, i) => {
      if (control.matches("fieldset")) return;
      figure.querySelector(`output[name="${control.name}"]`).textContent = texts[i];
      if (control.hasAttribute("aria-valuetext")) control.setAttribute("aria-valuetext", texts[i]);
    });
    figure.querySelector("[role=status]").textContent = figure.querySelector("img")?.alt ?? "";
    busy = false;
    if (late) move();
  };
  figure.addEventListener("input", move);
};

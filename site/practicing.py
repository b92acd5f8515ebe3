"""Put practice on the pages.

Problems stand before exercises, three from before at the head, and promises at the front.
"""

import html
import json
import re
from pathlib import Path

from docutils import nodes

from lowrank_tutor.course.practice.problem import ALL, bank, form

HOME = "book/index"
# What each chapter needs from earlier ones, for readers of whom nothing is known yet.
NEEDS = {
    2: ("rank-rows", "storage", "project-line"),
    3: ("svd-2x2", "spectrum-error", "center-project"),
    4: ("center-project", "spectrum-error", "project-line"),
    5: ("storage", "svd-2x2", "spectrum-error"),
    6: ("factor-score", "spectrum-error", "svd-2x2"),
    7: ("attention-three", "spectrum-error", "factor-score"),
    8: ("factor-score", "storage", "attention-three"),
    9: ("factor-score", "storage", "spectrum-error"),
    10: ("attention-three", "masked-mixtures", "latent-score"),
}
RULE = (
    "First comes what you missed, then what is due (a day after the first right answer, a week "
    "after the second, and a month after any later one), and then what this chapter needs. "
    "What you answer stays in this browser "
    '(<a href="guesses.html">see, export, or delete it</a>).'
)


def chapters(app):
    """Map the number of each chapter to its page."""
    names = sorted(doc for doc in app.env.found_docs if re.match(r"book/\d\d-", doc))
    return {int(name[5:7]): name for name in names}


def kinds_of(chapter):
    return [name for name, kind in ALL.items() if kind.chapter == chapter]


def fold(name, summary, level=1):
    """Return a form in a fold, which opens where an address names it."""
    inside = form(name, level, {}).to_html(linked=True)
    return (
        f'<details class="practice" id="practice-{name}">'
        f"<summary>{html.escape(summary)}</summary>{inside}</details>"
    )


def before(number, needs):
    """Return three problems of earlier chapters.

    The script chooses others for readers whom it knows.
    """
    folds = "".join(
        fold(name, ALL[name].promise, 3).replace(' id="practice-', ' data-place="')
        for name in needs
    )
    data = f'data-name="three-before" data-chapter="{number}" data-needs="{" ".join(needs)}"'
    head = f'<h2 id="before">Three from before</h2><p>{RULE}</p>'
    return f'<section {data} aria-labelledby="before">{head}{folds}</section>'


def fill(app, doctree, docname):
    if app.builder.name != "html":
        return
    pages = chapters(app)
    number = next((number for number, name in pages.items() if name == docname), None)
    for comment in list(doctree.findall(nodes.comment)) if number or docname == HOME else ():
        if comment.astext().strip() == "the promises":
            comment.replace_self(nodes.raw("", promises(app, pages), format="html"))
        elif task := re.fullmatch(
            r"found: (?P<figure>\S+) (?P<rule>.+?)(?P<hides> hides)?", comment.astext()
        ):
            data = " ".join(
                f'data-{name}="{html.escape(value or "").strip()}"'
                for name, value in task.groupdict().items()
            )
            words = (
                '<output aria-live="polite"></output>'
                '<button type="button" hidden>Show the answer</button>'
            )
            comment.replace_self(
                nodes.raw("", f'<div class="found" {data}>{words}</div>', format="html")
            )
    if number is None:
        return
    top = next(doctree.findall(nodes.section))
    if number > 1:
        need = next(
            p for p in top.children if isinstance(p, nodes.paragraph) and "You need" in p.astext()
        )
        top.insert(top.index(need) + 1, nodes.raw("", before(number, NEEDS[number]), format="html"))
    exercises = next(
        section for section in top.findall(nodes.section) if section[0].astext() == "Exercises"
    )
    folds = "".join(
        fold(name, ALL[name].promise[0].upper() + ALL[name].promise[1:])
        for name in kinds_of(number)
    )
    words = (
        "<p>Practice with fresh numbers first. After each right answer, "
        "the next problem gives you fewer steps.</p>"
    )
    exercises.insert(1, nodes.raw("", words + folds, format="html"))


def promises(app, pages):
    """Return the map of what a reader will be able to do."""
    parts = []
    for number, name in pages.items():
        topic = html.escape(app.env.titles[name].astext().partition(": ")[0])
        page = app.builder.get_relative_uri(HOME, name)
        items = "".join(
            f'<li data-kind="{kind}"><a '
            f'href="{page}#practice-{kind}">{html.escape(ALL[kind].promise)}</a></li>'
            for kind in kinds_of(number)
        )
        parts.append(f"<li><strong>{number}. {topic}</strong><ul>{items}</ul></li>")
    return f'<ol class="promises">{"".join(parts)}</ol>'


def tell_kinds(app):
    """Name the kinds on every page.

    The rings beside the chapters and the choice of three from before need them.
    """
    pages = {
        int(path.name[:2]): path.stem
        for path in sorted(Path(app.srcdir, "book").glob("[0-9][0-9]-*.md"))
    }
    kinds = {
        name: [kind.chapter, kind.promise, pages[kind.chapter]]
        for name, kind in ALL.items()
        if kind.chapter in pages
    }
    app.add_js_file(
        None, body=f"window.lowrankKinds = {json.dumps(kinds, separators=(',', ':'))};", priority=1
    )


def write_banks(app, problem):
    if problem is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "_static" / "practice"
    folder.mkdir(exist_ok=True)
    for name in ALL:
        data = json.dumps(bank(name), separators=(",", ":"), ensure_ascii=False)
        (folder / f"{name}.js").write_text(
            f'(window.lowrankPractice ??= {{}})["{name}"] = {data};\n', encoding="utf-8"
        )


def setup(app):
    app.connect("builder-inited", tell_kinds)
    app.connect("doctree-resolved", fill)
    app.connect("build-finished", write_banks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

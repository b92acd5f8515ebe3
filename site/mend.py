"""Theme fixes, each for a defect that a reader would meet. Any of them may go when its cause goes."""

import base64
import datetime
import html
import itertools
import re
import shutil
from pathlib import Path
from urllib.parse import quote

import numpy as np
from docutils import nodes
from fontTools import subset
from landing import meta, minutes
from myst_nb.core import render
from myst_nb.core.utils import coalesce_streams
from myst_nb.sphinx_ import HideCodeCellNode
from PIL import Image
from sphinx.transforms.post_transforms import SphinxPostTransform

from lowrank_tutor import __version__
from lowrank_tutor.kit import palette
from lowrank_tutor.kit.charts.style import PHOTOGRAPH
from lowrank_tutor.kit.images import COLORS, has_few_colors

INCH = 104  # pixels of a page for an inch of a figure; the package draws twice as many for sharp screens

COLAB = "https://colab.research.google.com/github"

# What MathJax loads for "TeX in, HTML out": the rest of the 24 MB that its package brings is never
# asked for.
MATHJAX_KEPT = (
    "tex-chtml.js",
    "output/chtml",
    "input/tex/extensions",
    "a11y",
    "sre/mathmaps/en",
    "sre/mathmaps/base",
)


def site(config):
    # The address of the built book: as configured, or where GitHub puts a repository's pages.
    owner, name = config.html_theme_options["repository_url"].rstrip("/").split("/")[-2:]
    return (config.html_baseurl or f"https://{owner.lower()}.github.io/{name}").rstrip("/") + "/"


def formulas_in_docstrings(app, what, name, obj, options, lines):
    # Docstrings write $...$ and $$...$$, which people and notebooks read; Sphinx wants a role and a
    # directive.
    text = "\n".join(lines)
    text = re.sub(r"\$\$([^$]+?)\$\$", lambda m: f"\n.. math:: {' '.join(m[1].split())}\n", text)
    text = re.sub(r"\$([^$]+?)\$", lambda m: f":math:`{' '.join(m[1].split())}`", text)
    lines[:] = text.split("\n")


def skip_tuple_fields(app, what, name, obj, skip, options):
    # A NamedTuple's docstring describes its fields; "Alias for field number 0" adds nothing.
    return True if type(obj).__name__ == "_tuplegetter" else None


def name_the_edition(app, config):
    # Below every page: which edition this is, and what has been mended since.
    options, day = config.html_theme_options, datetime.datetime.now(datetime.UTC)
    changes = f"{options['repository_url']}/blob/{options['repository_branch']}/CHANGELOG.md"
    options["extra_footer"] += (
        f' Version {__version__}, {day:%B} {day.day}, {day.year}; <a href="{changes}">changes</a>.'
    )


def default_to_auto_theme(app, config):
    # The theme's script complains of an invalid mode when no default is set.
    config.html_context = {"default_mode": "auto", **config.html_context}


def fill_in_repository(app, docname, source):
    # The address stands once, in _config.yml; pages write |repository|, |branch| and |colab|.
    options = app.config.html_theme_options
    address, branch = options["repository_url"], options["repository_branch"]
    in_colab = f"{address.replace('https://github.com', COLAB)}/blob/{branch}/book"
    for word, written in (("repository", address), ("branch", branch), ("colab", in_colab)):
        source[0] = source[0].replace(f"|{word}|", written)


def set_figure(name, rawtext, text, lineno, inliner, options=None, content=None):
    # {set}`38 degrees <tilt=tilt:38>` is a link that sets the figure "tilt" of its page, and does
    # not leave it.
    words, state = re.fullmatch(r"(.+) <([\w-]+=.+)>", text, re.S).groups()
    return [nodes.reference(rawtext, words, refuri=f"#{state}", classes=["sets"])], []


def title_folded_proofs(app, doctree):
    # A folded {prf:proof} has no title element, on which the folding script stops, and with it
    # every later fold. And all proofs share one identifier, so that every button would fold the
    # first.
    for proof in doctree.findall(nodes.admonition):
        if {"proof", "dropdown"} <= set(proof["classes"]):
            text = next(t for t in proof.findall(nodes.Text) if t.startswith("Proof"))
            text.parent.replace(text, nodes.Text(re.sub(r"^Proof\.? ?", "", text)))
            proof.insert(0, nodes.title("", "Proof"))
            proof["ids"] = []


def mark_claims(app, doctree):
    # On the page of corrections a paragraph says by its first, bold word which of the two it is:
    # book.css colors it.
    for paragraph in doctree.findall(nodes.paragraph):
        first = next(
            (child for child in paragraph if child.astext()), None
        )  # MyST begins with an empty text
        if isinstance(first, nodes.strong) and first.astext() in ("Claim.", "Right."):
            paragraph["classes"].append("claimed" if first.astext() == "Claim." else "holds")


def join_streams(outputs):
    # A busy kernel sends a line in two pieces, and MyST-NB would end each of them with a line
    # break.
    first = {}
    for output in outputs:
        if (
            output["output_type"] == "stream"
            and first.setdefault(output["name"], output) is not output
        ):
            first[output["name"]]["text"] += output["text"]
    return coalesce_streams(
        [o for o in outputs if o["output_type"] != "stream" or o is first[o["name"]]]
    )


class FigureWidthFromDpi(SphinxPostTransform):
    """Set a figure's width on the page from its resolution, and mark photographs.

    Of several panels of one cell, the first says in words what all of them show.
    """

    default_priority = 100  # MyST-NB chooses between the formats of an output at 4
    formats = ("html",)

    def run(self, **kwargs):
        for output in self.document.findall(nodes.container):
            images = [node for node in output.children if isinstance(node, nodes.image)]
            for i, image in enumerate(images if _element(output) == "cell_code_output" else []):
                path = Path(self.app.srcdir, image["uri"])
                picture = Image.open(path)
                if "dpi" in picture.info and "width" not in image:
                    if _is_photograph(picture):
                        image["classes"].append(PHOTOGRAPH)
                    _keep_few_colors(path, picture, Path(self.app.outdir).parent / ".pictures")
                    image["width"] = f"{round(INCH * picture.width / picture.info['dpi'][0])}px"
                    image["classes"].append("no-scaled-link")
                if i > 0:
                    image["alt"] = ""


def _is_photograph(picture):
    """Whether a figure has no paper (``charts.photograph``), in either of the forms in which it is saved."""
    return picture.mode in ("RGBA", "LA") and picture.getextrema()[-1][0] < 255


def _keep_few_colors(path, picture, folder):
    """Rewrite a figure with the colors that it needs, which halves its bytes: some dozens for lines and letters.

    MyST-NB names a picture by its content, so a later build finds the result in the folder.
    """
    lean = folder / path.name
    if lean.exists():
        shutil.copy(lean, path)
        return
    if _is_photograph(picture):
        picture.convert("LA").save(path, dpi=picture.info["dpi"], optimize=True)
    elif picture.mode not in ("P", "LA"):
        solid = picture.convert("RGB")
        colors = COLORS if has_few_colors(np.asarray(solid)) else 256
        solid.quantize(colors).save(path, dpi=picture.info["dpi"], optimize=True)
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, lean)


class MoveCodeBelowFigure(SphinxPostTransform):
    """Move the folded code of a figure or a table below it, for the eye and for the Tab key."""

    default_priority = 200  # MyST-NB makes the folds at 199
    formats = ("html",)

    def run(self, **kwargs):
        for cell in self.document.findall(nodes.container):
            fold, *shown = cell.children or [None]
            if _element(cell) != "cell_code" or not isinstance(fold, HideCodeCellNode):
                continue
            kind = (
                "figure"
                if any(map(_has_figure, shown))
                else "table"
                if any(map(_has_table, shown))
                else ""
            )
            if kind:
                fold["prompt_show"] = f"Code of this {kind}"
                fold["classes"].append("code-of-figure")
                cell.children = [*shown, fold]


class JoinAnswerToQuestion(SphinxPostTransform):
    """Make one box of a question (``draw_first``), the cells that follow it, and the fold that ends them.

    ``remember.js`` unfolds the answer. The fold itself is then one too many: its content takes its
    place.
    """

    default_priority = 201  # after the code has moved
    formats = ("html",)

    def run(self, **kwargs):
        cells = [
            node for node in self.document.findall(nodes.container) if _element(node) == "cell_code"
        ]
        questions = [
            cell
            for cell in cells
            if any('data-name="draw_first"' in raw.astext() for raw in cell.findall(nodes.raw))
        ]
        for number, cell in enumerate(questions, start=1):
            parent, at = cell.parent, cell.parent.index(cell)
            after = itertools.dropwhile(
                lambda node: _element(node) == "cell_code", parent.children[at + 1 :]
            )
            answer = next(after, None)
            if not (isinstance(answer, nodes.admonition) and "dropdown" in answer["classes"]):
                continue
            for fold in cell.findall(HideCodeCellNode):
                fold["prompt_show"] = "Code of this question"
            end = parent.index(answer)
            opened = nodes.container(
                "", *parent.children[at + 1 : end], *answer.children[1:], classes=["answer"]
            )
            parent[at : end + 1] = [
                nodes.container("", cell, opened, classes=["predict"], ids=[f"predict-{number}"])
            ]


def _element(node):
    return node.get("nb_element") if isinstance(node, nodes.Element) else None


def _has_figure(node):
    if any(node.findall(nodes.image)):
        return True
    return any(
        re.search('<figure class="(explorer|instrument)"', raw.astext())
        for raw in node.findall(nodes.raw)
    )


def _has_table(node):
    return any(node.findall(nodes.table)) or any(
        "<table" in raw.astext() for raw in node.findall(nodes.raw)
    )


# MathJax's menu can switch on a speech explorer whose files the site does not carry (and file://
# would refuse), and remembers that for every page; without the menu formulas are no stops of the
# Tab key either. What a screen reader reads is in the page: the assistive MathML. Letters of
# formulas are as high as those of the book's serif (book.css), whose height MathJax would otherwise
# measure, perhaps before the font has come. A few formulas are typeset at a time, those in sight
# first, so that a touch need not wait; each keeps its TeX, which book.js copies.
MATHJAX = """window.MathJax = {
  options: { processHtmlClass: "tex2jax_process|mathjax_process|math|output_area", enableMenu: false },
  chtml: { matchFontHeight: false, scale: 1.06 },
  startup: { typeset: false, ready() {
    const { Menu } = MathJax._.ui.menu.Menu;
    Menu.prototype.mergeUserSettings = Menu.prototype.saveUserSettings = () => {};
    MathJax.startup.defaultReady();
    MathJax.startup.promise = MathJax.startup.promise.then(async () => {
      const boxes = [...document.querySelectorAll(".math")].map((box) => [box, box.getBoundingClientRect()]);
      const seen = ([, { top, bottom }]) => bottom > 0 && top < innerHeight;
      const order = [...boxes.filter(seen), ...boxes.filter((one) => !seen(one))].map(([box]) => box);
      while (order.length) {
        await MathJax.typesetPromise(order.splice(0, 10));
        await new Promise((done) => setTimeout(done));
      }
      for (const { math, display, typesetRoot } of MathJax.startup.document.math) {
        typesetRoot.dataset.tex = display ? "$$" + math.trim() + "$$" : "$" + math.trim() + "$";
      }
    });
  } },
};"""


# A page may load what lies in this site, and nothing else. Not every browser counts the folder of a
# page as "self", hence "file:", which a page from a server could not read anyway.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' file:; style-src 'self' 'unsafe-inline' file:; "
    "img-src 'self' data: file:; font-src 'self' data: file:; worker-src blob:; form-action 'self' file:; "
    "base-uri 'none'"
)

# Where the browser stores nothing for a site, a mere look at its storage throws, and would end the
# theme's script. Where the storage is full, each attempt to keep something would.
STORAGE = """<script>for (const name of ["localStorage", "sessionStorage"]) try { window[name] } catch {
  const kept = {}, getItem = (key) => kept[key] ?? null, setItem = (key, value) => (kept[key] = String(value));
  Object.defineProperty(window, name, { value: { getItem, setItem, removeItem: (key) => delete kept[key] } });
}
{
  const { setItem } = Storage.prototype;
  Storage.prototype.setItem = function (...pair) { try { setItem.apply(this, pair) } catch { /* it is full */ } };
}</script>"""


# Without a choice of the reader's the theme waits for its last script to see whether the browser
# asks for a dark page.
MODE = """if (document.documentElement.dataset.theme === "auto")
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
{ // The letters come with book.css; until they are unpacked, some milliseconds, no line in other letters is shown.
  const { classList } = document.documentElement, show = () => classList.remove("unpacking");
  classList.add("unpacking");
  document.fonts.load('1em "Source Serif 4"').finally(show);
  setTimeout(show, 500);
}"""


def drop_raw_nodes(app, pagename, templatename, context, doctree):
    # The theme looks for the first words of a page in all that its sections hold, megabytes of
    # pictures among them. By now the page is written.
    for picture in list(doctree.findall(nodes.raw)) if doctree else []:
        picture.parent.remove(picture)


def fix_page(app, pagename, templatename, context, doctree):
    # Thebe would run cells on a foreign server; the book does not use it, and its scripts throw an
    # error.
    for kind in ("script_files", "css_files"):
        context[kind] = [f for f in context.get(kind, []) if "thebe" not in _written(f)]
    for file in context["script_files"]:
        if "window.mathjax" in _written(file):
            file.attributes["body"] = MATHJAX
    context["author"] = re.sub("^The ", "the ", app.config.author)  # it stands after "By"
    body = context.get("body", "")
    first = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n{STORAGE}'
    first += f"<style>{palette.css()}</style>"
    context["metatags"] = (
        first + context.get("metatags", "") + meta(app, pagename, site(app.config))
    )
    if 'class="math' not in body:  # 300 kB that a page without a formula can do without
        context["script_files"] = [
            f for f in context["script_files"] if "mathjax" not in _written(f)
        ]
    # No line begins with the comma after a formula.
    body = re.sub(
        r'(<span class="math [^>]*>[^<]*</span>)(-\w+|[-,.;:!?)\]\u2019\u201d]+)',
        r'<span class="kept">\1\2</span>',
        body,
    )
    # A link to a chapter names its topic, unless the text gives it words of its own.
    titles = {html.escape(title.astext(), quote=False) for title in app.env.titles.values()}
    body = re.sub(
        r'(?<=doc">)([^<:]*): [^<]*(?=</span>)',
        lambda named: named[1] if named[0] in titles else named[0],
        body,
    )
    # Roles that assistive technology no longer knows, and identifiers that several items share.
    body = body.replace(' role="doc-biblioentry"', "").replace(' role="list"', "")
    body = re.sub(r' id="(proof|solution|exercise)-content"', "", body)
    # A click on a folded solution's title unfolds it; a link there would lead away instead.
    body = re.sub(r'(<p class="admonition-title">Solution to)<a [^>]*>(.*?)</a>', r"\1\2", body)
    # A table wider than a phone scrolls in its own box: a keyboard must reach it.
    body = body.replace('<table class="table">', '<table class="table" tabindex="0">')
    # Statements, exercises and solutions can be reached heading by heading; a fold is called by its
    # own words.
    before, section, after = body.partition("<h2")
    title = '<p class="admonition-title" role="heading" aria-level="{}">'
    before, after = (
        part.replace('<p class="admonition-title">', title.format(level))
        for part, level in ((before, 2), (after, 3))
    )
    body = before + section + after
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    if (
        pagename in app.env.titles and pagename != app.config.root_doc
    ):  # the cover page says how to cite the book
        body += _citation(app, pagename)
    context["body"] = (
        move_buttons(app, pagename, context, _subtitle(body))
        if app.builder.name == "html"
        else body
    )
    name_by_topic(context)


def _subtitle(body):
    # "Matrix rank: count the directions" names the topic, and below it what the reader does.
    return re.sub(
        r"<h1>((?:(?!</h1>|: ).)*): (.*?)</h1>",
        r'<h1>\1<span class="colon">:</span> <span class="subtitle">\2</span></h1>',
        body,
        count=1,
        flags=re.DOTALL,
    )


def _topic(title):
    return title.partition(": ")[0]


def name_by_topic(context):
    # Links from page to page name the topic alone, which stays on one line.
    for way in ("prev", "next"):
        if context.get(way):
            context[way] = {**context[way], "title": _topic(context[way]["title"])}
    if make := context.get("generate_toctree_html"):
        context["generate_toctree_html"] = lambda *args, **options: re.sub(
            r'(<a class="[^"]*reference internal"[^>]*>[^<:]*): [^<]*',
            r"\1",
            str(make(*args, **options)),
        )


def move_buttons(app, pagename, context, body):
    # What the toolbar would hold in three menus stands as words where readers look for it: how to
    # run a page below its title, and the rest at its end.
    urls = {}
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            urls[button.get("label") or button["text"]] = button.get("url", "")
    if asked := urls.get("source-issues-button"):
        report = (
            f"Page: {site(app.config)}{pagename}.html\nVersion: {__version__}\n\nWhat is wrong?\n"
        )
        urls["source-issues-button"] = re.sub("body=.*", f"body={quote(report)}", asked)
    context["header_buttons"] = []
    run = {"Colab": "Run it in Colab", "download-notebook-button": "Download the notebook"}
    about = {
        "download-source-button": "Source of this page",
        "source-repository-button": "Repository",
        "source-issues-button": "Report a mistake",
    }
    first, last = (
        " ".join(
            f'<a class="btn-{label.lower()}" href="{html.escape(urls[label])}">{words}</a>'
            for label, words in names.items()
            if label in urls
        )
        for names in (run, about)
    )
    if first and "Colab" in urls:
        time = f"<span>{minutes(app.env.get_doctree(pagename))} minutes</span>"
        body = body.replace("</h1>", f'</h1>\n<p class="page-links">{time} {first}</p>', 1)
    return body + (f'<p class="page-links">{last}</p>' if last else "")


def _citation(app, pagename):
    address = f"{site(app.config)}{pagename}.html"
    title = html.escape(app.env.titles[pagename].astext())
    return (
        '<details class="cite"><summary>Cite this page</summary>'
        f"<p>{app.config.author} ({app.config.copyright}). {title}. In <em>{app.config.html_title}: "
        f"an interactive book</em>. {address}</p></details>"
    )


def _written(file):
    attributes = getattr(file, "attributes", {})
    return f"{getattr(file, 'filename', file)} {attributes.get('body', '')}".lower()


def finish(app, exception):
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    (out / ".buildinfo").unlink(missing_ok=True)  # it names the folder of this environment
    _copy_notebooks(Path(app.srcdir), out)
    for page in [*out.glob("*.html"), *out.glob("book/*.html")]:
        text = _mark_landing(_paint_early(_hide_icons(page.read_text(encoding="utf-8"))))
        page.write_text(text, encoding="utf-8")
    _trim_mathjax(out)
    _trim_icons(out)
    _fix_marks(out)
    _bring_letters(out / "_static")
    _lead_on(app, out)


def _copy_notebooks(source, out):
    # The download button serves a conversion full of raw directives; give it the notebook that
    # Colab opens.
    for notebook in (source / "book").glob("*.ipynb"):
        shutil.copy(notebook, out / "_sources" / "book" / notebook.name)


def _mark_landing(page):
    # With html:has(meta[name=landing]) a browser looks at the whole page again whenever a number in
    # a figure changes.
    return (
        page.replace("<html ", '<html class="landing" ', 1)
        if '<meta name="landing"' in page
        else page
    )


def _hide_icons(page):
    # An icon is a letter of a private font, which would be read as a part of the name beside it.
    return re.sub(
        r'<(i|span) class="(fa[a-z]? fa-[^"]*)"(?! aria-hidden)',
        r'<\1 aria-hidden="true" class="\2"',
        page,
    )


def _paint_early(page):
    # A script in the head that does not wait for the page keeps all of it from being shown; only
    # this one has to run at once, for the lines after it. And only the page of results searches,
    # with the book's own scripts (search.py).
    head, end, body = page.partition("</head>")
    head = re.sub(
        r'<script src="[^"]*(searchtools|language_data|searchindex)\.js[^"]*"></script>\s*',
        "",
        head,
    )
    if 'id="search-results"' in body:
        head += "".join(
            f'<script src="_static/search{part}.js"></script>\n' for part in ("-data", "")
        )
    head = re.sub(
        r"<script (?=[^>]*src=)(?![^>]*(?:defer|documentation_options))", "<script defer ", head
    )
    return head + end + body


# A page that only leads to another, with the section and the states of figures that its address
# names.
LEADING = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title><script>location.replace("{there}" + location.hash);</script>
<noscript><meta http-equiv="refresh" content="0; url={there}"></noscript></head>
<body><a href="{there}">{title}</a></body></html>
"""


# Pages by their old names; book.js knows the sections that left a page.
MOVED = {"book/09-states": "10-states", "book/teach": "index"}


def _lead_on(app, out):
    for page, there in {"index": app.config.root_doc, **MOVED}.items():
        text = LEADING.format(
            policy=POLICY, title=html.escape(app.config.html_title), there=f"{there}.html"
        )
        (out / f"{page}.html").write_text(text, encoding="utf-8")


# Sphinx marks the words of a search on the page that is opened from its results, and would mark
# them inside of style and script elements, too, which breaks the figures. It walks the whole page
# for each word, so an address with thousands of words, or with words of one letter, would stop it.
MARKS = {
    '"button, select, textarea"': '"button, select, textarea, script, style, svg, figure"',
    r"\.filter\(\(?x\)? => x\)": ".filter((x, i, all) => x.length > 1 && all.indexOf(x) === i).slice(0, 8)",
}


def _fix_marks(out):
    path = out / "_static/sphinx_highlight.js"
    text = path.read_text(encoding="utf-8")
    for old, new in MARKS.items():
        text, times = re.subn(old, new, text)
        if times != 1:
            raise ValueError(f"{path.name} must contain {old} once, got {times} times: see MARKS")
    path.write_text(text, encoding="utf-8")


def _bring_letters(static):
    # With its letters inside the style sheet, text never stands in others first, whose lines would
    # break elsewhere.
    styles, font = static / "book.css", "fonts/source-serif-4.woff2"
    letters = "data:font/woff2;base64," + base64.b64encode((static / font).read_bytes()).decode()
    styles.write_text(styles.read_text(encoding="utf-8").replace(font, letters), encoding="utf-8")
    (static / font).unlink()


def _trim_mathjax(out):
    for root in out.rglob("tex-chtml.js"):
        for path in sorted(root.parent.rglob("*"), reverse=True):
            relative = path.relative_to(root.parent).as_posix()
            if path.is_file() and not relative.startswith(MATHJAX_KEPT):
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                path.rmdir()


def _trim_icons(out):
    # 820 kB of icon fonts and their script for a dozen icons: keep the icons that the pages name.
    (out / "_static/scripts/fontawesome.js").write_text("")
    for dead in [*out.rglob("*.map"), *out.rglob("fa-*.ttf")]:
        dead.unlink()
    styles = next((out / "_static/styles").glob("pydata-sphinx-theme.css"))
    css = styles.read_text(encoding="utf-8")
    sources = [
        p for kind in ("html", "js") for p in out.rglob(f"*.{kind}") if "mathjax" not in p.parts
    ]
    named = {
        name
        for p in sources
        for name in re.findall(r"\bfa-([a-z0-9-]+)", p.read_text(encoding="utf-8"))
    }
    # Font Awesome 6 writes .fa-rocket:before{content:"\f135"}, and 7 .fa-rocket{--fa:"\f135"}.
    rule = r'((?:\.fa-[a-z0-9-]+(?::before)?,?)+)\{(?:content|--fa):"\\([0-9a-f]+)"\}'
    codes = {
        code
        for names, code in re.findall(rule, css)
        if named & set(re.findall(r"\.fa-([a-z0-9-]+)", names))
    }
    for font in (out / "_static/vendor/fontawesome/webfonts").glob("*.woff2"):
        subset.main(
            [
                str(font),
                f"--unicodes={','.join(sorted(codes))}",
                "--flavor=woff2",
                f"--output-file={font}.new",
            ]
        )
        Path(f"{font}.new").replace(font)


def one_page_for_print(app):
    # sphinx-exercise registers visitors for the one-page builder, which hides every other
    # extension's.
    handlers = app.registry.translation_handlers
    for name, visitors in handlers.get("html", {}).items():
        handlers.setdefault("singlehtml", {}).setdefault(name, visitors)


def setup(app):
    render.coalesce_streams = join_streams
    app.add_js_file(None, body=MODE, priority=0)
    app.add_role("set", set_figure)
    app.connect("config-inited", default_to_auto_theme)
    app.connect("config-inited", name_the_edition)
    app.connect("builder-inited", one_page_for_print)
    app.connect("autodoc-process-docstring", formulas_in_docstrings)
    app.connect("autodoc-skip-member", skip_tuple_fields)
    app.connect("source-read", fill_in_repository)
    app.connect("doctree-read", title_folded_proofs)
    app.connect("doctree-read", mark_claims)
    app.add_post_transform(FigureWidthFromDpi)
    app.add_post_transform(MoveCodeBelowFigure)
    app.add_post_transform(JoinAnswerToQuestion)
    app.connect("html-page-context", drop_raw_nodes, priority=400)  # before the theme
    app.connect("html-page-context", fix_page, priority=900)  # after the theme has added its own
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

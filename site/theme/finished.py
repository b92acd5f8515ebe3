"""Runs last, on the files of the finished site: lighter libraries, old addresses, notebooks."""

import base64
import html
import re
import shutil
from pathlib import Path

from fontTools import subset

from theme.head import POLICY

# Docutils and the theme repeat what the first line of the layout says, 1.0.
VIEWPORTS = re.compile('<meta name="viewport" content="width=device-width, initial-scale=1" ?/>')


def finish(app, exception):
    if exception is not None or app.builder.name != "html":
        return
    out = Path(app.outdir)
    (out / ".buildinfo").unlink(missing_ok=True)  # it names the folder of this environment
    _copy_notebooks(Path(app.srcdir), out)
    for page in [*out.glob("*.html"), *out.glob("book/*.html")]:
        text = VIEWPORTS.sub("", page.read_text(encoding="utf-8"))
        text = _mark_landing(_paint_early(_hide_icons(text)))
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
<html lang="en"><head><meta charset="utf-8">\
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title><script>location.replace("{there}" + location.hash);</script>
<noscript><meta http-equiv="refresh" content="0; url={there}"></noscript></head>
<body><a href="{there}">{title}</a></body></html>
"""


# Pages by their old names; book.js knows the sections that left a page.
MOVED = {
    "book/09-states": "10-states",
    "book/api": "cheat-sheet",
    "book/gpu": "measured",
    "book/notation": "glossary",
    "book/packages": "measured",
    "book/teach": "index",
}


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
    r"\.filter\(\(?x\)? => x\)": ".filter((x, i, all) => x.length > 1 && all.indexOf(x) === "
    "i).slice(0, 8)",
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


def setup(app):
    app.connect("build-finished", finish)

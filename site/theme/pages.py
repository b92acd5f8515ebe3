"""Runs as each page is written: what its head holds, its body, its links and buttons."""

import html
import re
from urllib.parse import quote

from docutils import nodes
from landing import meta, minutes

from lowrank_tutor import __version__
from lowrank_tutor.kit import palette
from theme import book_address
from theme.head import MATHJAX, MODE, POLICY, STORAGE


def drop_raw_nodes(app, pagename, templatename, context, doctree):
    # The theme looks for the first words of a page in all that its sections hold, megabytes of
    # pictures among them. By now the page is written.
    for picture in list(doctree.findall(nodes.raw)) if doctree else []:
        picture.parent.remove(picture)


def fix_page(app, pagename, templatename, context, doctree):
    fix_head(app, pagename, context)
    body = fix_body(app, context.get("body", ""))
    # The cover page says how to cite the book.
    if pagename in app.env.titles and pagename != app.config.root_doc:
        body += _citation(app, pagename)
    if app.builder.name == "html":
        body = move_buttons(app, pagename, context, _subtitle(body))
    context["body"] = body
    name_by_topic(context)


def fix_head(app, pagename, context):
    # Thebe would run cells on a foreign server; the book does not use it, and its scripts throw an
    # error. MathJax is 300 kB that a page without a formula can do without.
    unused = ["thebe"] if 'class="math' in context.get("body", "") else ["thebe", "mathjax"]
    for kind in ("script_files", "css_files"):
        context[kind] = [
            file
            for file in context.get(kind, [])
            if not any(name in _written(file) for name in unused)
        ]
    for file in context["script_files"]:
        if "window.mathjax" in _written(file):
            file.attributes["body"] = MATHJAX
    context["author"] = re.sub("^The ", "the ", app.config.author)  # it stands after "By"
    context["metatags"] = (
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n{STORAGE}'
        f"<style>{palette.css()}</style>"
        + context.get("metatags", "")
        + meta(app, pagename, book_address(app.config))
    )


def fix_body(app, body):
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
    return body.replace('<summary aria-label="Toggle hidden content">', "<summary>")


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
        page = f"{book_address(app.config)}{pagename}.html"
        report = f"Page: {page}\nVersion: {__version__}\n\nWhat is wrong?\n"
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
    page = f"{book_address(app.config)}{pagename}.html"
    title = html.escape(app.env.titles[pagename].astext())
    return (
        '<details class="cite"><summary>Cite this page</summary>'
        f"<p>{app.config.author} ({app.config.copyright}). {title}. "
        f"In <em>{app.config.html_title}: an interactive book</em>. {page}</p></details>"
    )


def _written(file):
    attributes = getattr(file, "attributes", {})
    return f"{getattr(file, 'filename', file)} {attributes.get('body', '')}".lower()


def setup(app):
    app.add_js_file(None, body=MODE, priority=0)
    app.connect("html-page-context", drop_raw_nodes, priority=400)  # before the theme
    app.connect("html-page-context", fix_page, priority=900)  # after the theme has added its own

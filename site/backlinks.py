"""On the page of the package, say below each function which chapters use it."""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PACKAGE = "lowrank_tutor"
REFERENCE = "book/cheat-sheet"
IMPORT = re.compile(rf"^from ({PACKAGE}(?:\.\w+)?) import (\([^)]*\)|.*)$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", remember)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", lambda app, env: [REFERENCE] if REFERENCE in env.found_docs else [])
    app.connect("doctree-resolved", link_back)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def users(env: BuildEnvironment) -> dict[str, set[str]]:
    """Which objects of the package each page uses."""
    if not hasattr(env, "lowrank_users"):
        env.lowrank_users = {}
    return env.lowrank_users


def remember(app: Sphinx, doctree: nodes.document) -> None:
    if app.env.docname != REFERENCE:
        users(app.env)[app.env.docname] = set(used_by(doctree))


def used_by(doctree: nodes.document) -> Iterator[str]:
    """Full names that a page links to, imports, or reaches through an imported module."""
    for link in doctree.findall(addnodes.pending_xref):
        if link.get("refdomain") == "py":
            yield link["reftarget"]
    code = "\n".join(block.astext() for block in doctree.findall(nodes.literal_block))
    for module, names in IMPORT.findall(code):
        for name in re.findall(r"\w+", names):
            yield f"{module}.{name}"
            if module == PACKAGE:
                yield from (
                    f"{module}.{name}.{part}" for part in re.findall(rf"\b{name}\.(\w+)", code)
                )


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    users(env).pop(docname, None)


def merge(app: Sphinx, env: BuildEnvironment, docnames: list[str], other: BuildEnvironment) -> None:
    users(env).update({doc: users(other)[doc] for doc in docnames if doc in users(other)})


def link_back(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if docname != REFERENCE:
        return
    listed = app.env.toctree_includes.get(app.config.root_doc, [])
    in_order = sorted(
        users(app.env), key=lambda doc: (listed.index(doc) if doc in listed else len(listed), doc)
    )
    for described in doctree.findall(addnodes.desc):
        if described.get("domain") == "py" and described.get("objtype") in {"function", "class"}:
            name = described[0]["ids"][0]
            pages = [doc for doc in in_order if name in users(app.env)[doc]]
            if pages:
                described[-1].append(in_the_book(app, pages))


def in_the_book(app: Sphinx, pages: list[str]) -> nodes.paragraph:
    """Return the line "In the book: ..." with a link to each page."""
    line = nodes.paragraph("", "In the book: ", classes=["in-the-book"])
    for i, doc in enumerate(pages):
        line += nodes.Text(", " if i else "")
        title = nodes.Text(app.env.titles[doc].astext())
        line += make_refnode(app.builder, REFERENCE, doc, None, title)
    return line

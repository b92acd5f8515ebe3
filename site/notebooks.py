"""The Sphinx builder ``ipynb``: each page that runs code, as a notebook in plain Markdown.

By the time a builder sees a page, Sphinx has resolved every role, number, name and link. What is
left is to say each node in Markdown, one short method a node. A node without a method is refused
with file and line: the methods are the closed set of what a page may hold.
"""

import hashlib
import re
from pathlib import Path
from urllib.parse import quote

import nbformat
from docutils import nodes
from plain import code, details, escape, hung, join, quoted, run_in, safe_lines
from sphinx.builders import Builder
from sphinx.util import logging
from theme import book_address

logger = logging.getLogger(__name__)

FOLDING_TAGS = {"hide-input", "hide-cell"}
# "remove-input" hides code that the site has no use for and the notebook has: an answer is typed
# into it. Without raises-exception, at which "Run all" would stop. "side-by-side" sets the steps of
# a worked example in two columns on a wide page (book.css).
TAGS = FOLDING_TAGS | {
    "remove-input",
    "hide-output",
    "remove-output",
    "skip-execution",
    "remove-cell",
    "side-by-side",
}
ALIGNED = {"text-left": ":---", "text-center": ":---:", "text-right": "---:"}


def setup(app):
    app.add_builder(Notebooks)
    app.connect("source-read", keep_code)
    # Sphinx keeps what it has read until a page changes; it must read again when these rules do.
    here = Path(__file__).parent
    rules = [
        *sorted(here.glob("*.py")),
        here.parent / "_config.yml",
        here.parent / "requirements.txt",
    ]
    version = hashlib.sha256(b"\0".join(path.read_bytes() for path in rules)).hexdigest()
    return {"env_version": version, "parallel_read_safe": True, "parallel_write_safe": True}


def keep_code(app, docname, source):
    # MyST-NB drops the code of a cell with this tag as it reads the page.
    if app.builder.name == Notebooks.name:
        source[0] = re.sub(r"^(:?tags: \[)remove-input\]", r"\1]", source[0], flags=re.MULTILINE)


class Notebooks(Builder):
    """Writes the pages that have a kernel.

    All links are absolute, because a notebook is opened elsewhere.
    """

    name = format = "ipynb"
    supported_remote_images = True  # or Sphinx would fetch a picture before it is refused

    def get_outdated_docs(self):
        return self.env.found_docs

    def get_target_uri(self, docname, typ=None):
        return f"{book_address(self.config)}{docname}.html"

    def get_relative_uri(self, from_, to, typ=None):
        return "" if from_ == to else self.get_target_uri(to)

    def has_kernel(self, docname):
        return "kernelspec" in self.env.metadata[docname]

    def write(self, build_docnames, updated_docnames, method="update"):
        # Always the same pages; the others are not worth the time to resolve them.
        super().write(filter(self.has_kernel, self.env.found_docs), [], "specific")

    def prepare_writing(self, docnames):
        cited = self.env.get_domain("cite").citations
        uris = [f"{self.get_target_uri(c.bibliography_key.docname)}#{c.citation_id}" for c in cited]
        self.works = {
            uri: address(c.entry.fields) or uri for uri, c in zip(uris, cited, strict=True)
        }

    def write_doc(self, docname, doctree):
        if self.has_kernel(docname):
            metadata = {
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
            }
            if "accelerator" in self.env.metadata[docname]:
                metadata["accelerator"] = self.env.metadata[docname]["accelerator"]
            cells = Page(self, docname).read(doctree)
            notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}
            out = Path(self.outdir, f"{docname}.ipynb")
            out.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(nbformat.from_dict(notebook), out)


def address(fields):
    """Where a work can be read, or nothing: DOI before arXiv before any other address."""
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    if fields.get("archiveprefix", fields.get("eprinttype", "")).lower() == "arxiv":
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return fields.get("url", "")


class Page:
    """One page on its way into cells.

    ``add_...`` takes what may hold code cells, ``say_...`` says all else.
    """

    def __init__(self, builder, docname):
        self.builder, self.env, self.docname = builder, builder.env, docname
        self.cells = []
        self.text = []  # finished blocks of the cell at hand
        self.fold, self.folded = (
            "",
            [],
        )  # the title that hides what follows, and the blocks under it

    def read(self, doctree):
        self.add_children(doctree)
        self.close_cell()
        return self.cells

    # Cells

    def add(self, node):
        getattr(self, f"add_{type(node).__name__}", self.add_text)(node)

    def add_text(self, node):
        (self.folded if self.fold else self.text).append(self.say(node))

    def add_children(self, node):
        for child in untitled(node):
            self.add(child)

    def add_section(self, node):
        if isinstance(node[0], nodes.title):  # else it is the content of an exercise or a solution
            self.close_cell()
            self.text.append(self.heading(node))
        self.add_children(node)

    def heading(self, node):
        level, above = 1, node.parent
        while isinstance(above, nodes.section):
            level, above = level + 1, above.parent
        numbers = self.env.toc_secnumbers.get(self.docname, {})
        number = dotted(numbers.get("" if level == 1 else f"#{node['ids'][0]}"))
        title = f"{'#' * level} {number + '. ' if number else ''}{self.inline(node[0])}"
        if level > 1:
            return title
        book, here = book_address(self.builder.config), self.builder.get_target_uri(self.docname)
        return f"{title}\n\n*A chapter of [an interactive book]({book}); [read it there]({here}).*"

    def add_exercise_enumerable_node(self, node):
        self.text.append(
            f"**Exercise {self.number('exercise', node['label'])}**{self.inline(node[0])}"
        )
        self.add_children(node)

    def add_solution_node(self, node):
        self.fold = self.words(node[0])
        self.add_children(node)
        self.close_fold()
        self.fold = ""

    def add_container(self, node):
        if node.get("nb_element") != "cell_code":
            self.refuse(node)
            return
        tags = set(node["cell_metadata"].get("tags") or ())
        if tags - TAGS or not node.children:
            self.refuse(
                node,
                f"cell tags must be among {sorted(TAGS)}, and remove-input alone, "
                f"got {sorted(tags)}",
            )
            return
        prompt = node["prompt_show"] if tags & FOLDING_TAGS else ""
        self.add_code(node[0].astext().strip("\n"), self.fold or prompt)

    def add_code(self, source, title):
        self.close_cell()
        cell = {
            "cell_type": "code",
            "metadata": {},
            "source": source,
            "outputs": [],
            "execution_count": None,
        }
        if self.fold:  # a solution shows that it is right, where the book's tests ask that it be
            cell["source"] = source = re.sub(
                r"^assert check\(", "check(", source, flags=re.MULTILINE
            )
        if title:  # Colab folds by "# @title" and "cellView", JupyterLab by "source_hidden"
            cell["source"] = f"# @title {title}\n{source}"
            cell["metadata"] = {"cellView": "form", "jupyter": {"source_hidden": True}}
        self.add_cell(cell)

    def add_cell(self, cell):
        # The same text keeps its id, so that a change shows as what it is.
        twins = sum(other["source"] == cell["source"] for other in self.cells)
        cell["id"] = hashlib.sha256(f"{cell['source']}{twins or ''}".encode()).hexdigest()[:8]
        self.cells.append(cell)

    def close_fold(self):  # it cannot reach across a code cell
        if body := join(self.folded):
            self.text.append(details(self.fold, body))
        self.folded = []

    def close_cell(self):
        self.close_fold()
        if text := join(self.text):
            self.add_cell({"cell_type": "markdown", "metadata": {}, "source": text})
        self.text = []

    # Markdown

    def say(self, node):
        return getattr(self, f"say_{type(node).__name__}", self.refuse)(node)

    def refuse(self, node, why=""):
        why, block = why or f"{type(node).__name__} is outside the closed set of MyST", node
        while isinstance(block.parent, nodes.TextElement):  # some roles forget where they stand
            block = block.parent
        logger.warning(why, location=block)
        return ""

    def inline(self, node):
        return "".join(map(self.say, node.children))

    def body(self, node):
        return join(map(self.say, untitled(node)))

    def words(self, title):
        """Return a title for where formulas are read but Markdown is not."""
        texts = title.findall(nodes.Text)
        return "".join(
            self.say(text.parent) if isinstance(text.parent, nodes.math) else text for text in texts
        )

    def number(self, kind, label):
        return dotted(self.env.toc_fignumbers.get(self.docname, {}).get(kind, {}).get(label))

    # Blocks

    def say_nothing(self, node):
        return ""

    say_comment = say_target = say_nothing

    def say_raw(self, node):
        # At the end of each page stand scripts of another extension.
        return "" if isinstance(node.parent, nodes.document) else self.refuse(node)

    def say_paragraph(self, node):
        return safe_lines(self.inline(node))

    def say_section(self, node):  # the content of a theorem
        return self.body(node)

    def say_bullet_list(self, node):
        return "\n".join(hung("- ", self.body(item)) for item in node.children)

    def say_enumerated_list(self, node):
        items = enumerate(node.children, start=node.get("start", 1))
        return "\n".join(hung(f"{number}. ", self.body(item)) for number, item in items)

    def say_literal_block(self, node):
        language = node.get("language", "default").replace("default", "")
        return f"```{language}\n{node.astext().rstrip()}\n```"

    def say_table(self, node):
        if isinstance(node[0], nodes.title):
            return self.refuse(node, "a table must have no title")
        head, *rows = node.findall(nodes.row)
        rule = "".join(f"{ALIGNED.get(' '.join(entry['classes']), '---')}|" for entry in head)
        return "\n".join([self.row(head), f"|{rule}", *map(self.row, rows)])

    def row(self, node):
        texts = [self.body(entry).replace("\n", " ").replace("|", r"\|") for entry in node]
        return "|" + "".join(f" {text} |" if text else " |" for text in texts)

    def say_math_block(self, node):
        if node["nowrap"]:
            return self.refuse(node, "an environment of TeX must stand between $$")
        tex = node.astext().strip()
        if node["number"]:
            tex += f" \\tag{{{self.number('displaymath', node['ids'][0])}}}"
        tex = re.sub(
            r"\n[ \t]*([=-]+)[ \t]*\n[ \t]*", r"\n\1 ", tex
        )  # alone on a line it would underline a heading
        return f"$$\n{tex}\n$$"

    def say_admonition(self, node):
        if "margin" in node["classes"] and not node[0].astext():
            return quoted(self.body(node))
        name = "Aside" if isinstance(node, nodes.sidebar) else node.tagname.title()
        given = next(
            (c for c in node.children if isinstance(c, nodes.title) and c.children),
            nodes.title("", name),
        )
        if "dropdown" in node["classes"]:
            return details(self.words(given), self.body(node))
        return quoted(f"**{self.inline(given)}**\n\n{self.body(node)}")

    say_note = say_tip = say_hint = say_important = say_warning = say_sidebar = say_admonition

    def say_theorem_node(self, node):
        name = f"{node['realtype'].title()} {self.number(node['countertype'], node['label'])}"
        return quoted(run_in(f"**{name}**{self.inline(node[0])}.", self.body(node)))

    say_definition_node = say_example_node = say_theorem_node

    def say_proof_node(self, node):
        (proof,) = node.children
        return (
            self.say(proof)
            if "dropdown" in proof["classes"]
            else self.body(proof).replace("Proof.", "*Proof.*", 1)
        )

    # In a sentence

    def say_Text(self, node):
        return escape(node.astext())

    def say_math(self, node):
        return f"${node.astext()}$"

    def say_literal(self, node):
        return code(node.astext())

    def say_strong(self, node):
        return f"**{self.inline(node)}**"

    def say_emphasis(self, node):
        text = self.inline(node)
        return text if text == "et al." else f"*{text}*"  # upright, as is usual today

    def say_reference(self, node):
        text, uri = self.inline(node), node.get("refuri", "#")
        if uri.startswith("#"):  # what stands in this very notebook is only named
            return text
        return f"[{text}]({quote(self.builder.works.get(uri, uri), safe=':/?&=#%~+')})"

    say_number_reference = say_reference

    def say_inline(self, node):
        told = isinstance(node.parent, nodes.reference) or "bibtex-citation" in node["classes"]
        return self.inline(node) if told else self.refuse(node)


def untitled(node):
    return [child for child in node.children if not isinstance(child, nodes.title)]


def dotted(number):
    return ".".join(map(str, number or ()))

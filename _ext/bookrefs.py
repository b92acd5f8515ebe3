"""Write down what the book calls its parts, so that the notebooks can say the same.

After a build, ``refs.json`` stands beside the output folder. It holds the address of the site, the numbers, titles and
addresses of pages, sections, equations, theorems, exercises and solutions, the author-year names of the sources, and
where each Python object is documented and each word explained. ``tools/export_notebooks.py`` reads it, so that nobody
counts again.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinxcontrib.bibtex.style.referencing import format_references
from sphinxcontrib.bibtex.style.template import SphinxReferenceInfo

Named = Iterator[tuple[str, dict[str, str]]]
BUILDERS = {"html", "dummy"}  # dummy: every page is read and numbered, none is written


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_refs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_refs(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name in BUILDERS:
        text = json.dumps(collect(app.env), indent=1, sort_keys=True, ensure_ascii=False)
        Path(app.outdir).with_name("refs.json").write_text(text + "\n", encoding="utf-8")


def collect(env: BuildEnvironment) -> dict[str, dict]:
    """Everything that can be referred to, by the name that the sources use."""
    refs = {
        "site": site(env.config),
        "docs": {},
        "labels": {},
        "items": {},
        "equations": {},
        "citations": {},
        "objects": {},
        "terms": {},
    }
    for doc in sorted(env.found_docs):
        doctree = env.get_doctree(doc)
        first, *rest = [{"title": title, "number": number} for title, number, _ in sections(env, doc, doctree)]
        refs["docs"][doc] = {**first, "page": page(doc), "sections": rest}
        refs["labels"].update(labels(env, doc, doctree))
        refs["items"].update(items(env, doc, doctree))
    refs["equations"].update(equations(env))
    refs["citations"].update(citations(env))
    for name, entry in env.get_domain("py").objects.items():
        refs["objects"][name] = f"{page(entry.docname)}#{entry.node_id}"
    for name, _, kind, doc, anchor, _ in env.get_domain("std").get_objects():
        if kind == "term":
            refs["terms"][name.lower()] = {"page": page(doc), "anchor": anchor}
    return refs


def site(config: Config) -> str:
    """Return the address of the built book: as configured, or where GitHub puts a repository's pages."""
    owner, name = config.html_theme_options["repository_url"].rstrip("/").split("/")[-2:]
    return (config.html_baseurl or f"https://{owner.lower()}.github.io/{name}").rstrip("/") + "/"


def page(doc: str) -> str:
    return f"{doc}.html"


def dotted(number: tuple[int, ...] | None) -> str:
    return ".".join(map(str, number or ()))


def counted(env: BuildEnvironment, doc: str, kind: str, anchor: str) -> str:
    return dotted(env.toc_fignumbers.get(doc, {}).get(kind, {}).get(anchor))


def sections(env: BuildEnvironment, doc: str, doctree: nodes.document) -> Iterator[tuple[str, str, list[str]]]:
    """Title, number and ids of each section, in reading order; the first is the page's own title."""
    numbers = env.toc_secnumbers.get(doc, {})
    for i, section in enumerate(s for s in doctree.findall(nodes.section) if isinstance(s[0], nodes.title)):
        key = f"#{section['ids'][0]}" if i else ""
        yield section[0].astext(), dotted(numbers.get(key)), section["ids"]


def labels(env: BuildEnvironment, doc: str, doctree: nodes.document) -> Named:
    """Yield the labels ``(x)=`` that stand before a section."""
    of_id = {anchor: (title, number) for title, number, ids in sections(env, doc, doctree) for anchor in ids}
    for label, (where, anchor, _) in env.get_domain("std").labels.items():
        if where == doc and anchor in of_id:
            title, number = of_id[anchor]
            yield label, {"title": title, "number": number, "page": page(doc), "anchor": anchor}


def items(env: BuildEnvironment, doc: str, doctree: nodes.document) -> Named:
    """Yield theorems and their kin, exercises, solutions: the nodes of sphinx-proof and sphinx-exercise."""
    for node in doctree.findall(nodes.Element):
        label = node.get("label")
        if label is None or label not in node["ids"]:
            continue
        kind = node.get("realtype") or node["type"].removesuffix("-start")
        where, counter, anchor = doc, node.get("countertype", kind), label
        if kind == "solution":  # it has the number of its exercise
            anchor, counter = node["target_label"], "exercise"
            where = env.sphinx_exercise_registry[anchor]["docname"]
        number = counted(env, where, counter, anchor)
        yield label, {"kind": kind, "number": number, "title": subtitle(node), "page": page(doc), "anchor": label}


def subtitle(node: nodes.Element) -> str:
    """Find the author's own title: sphinx-proof writes " (title)", sphinx-exercise a node of its own."""
    if "realtype" in node:
        return node["title"].strip().removeprefix("(").removesuffix(")")
    return next((n.astext() for n in node.findall(nodes.Element) if type(n).__name__ == "exercise_subtitle"), "")


def equations(env: BuildEnvironment) -> Named:
    with_section = env.config.numfig and env.config.math_numfig
    for label, (doc, number) in env.get_domain("math").equations.items():
        anchor = nodes.make_id(f"equation-{label}")
        shown = counted(env, doc, "displaymath", anchor) if with_section else str(number)
        yield label, {"number": shown, "page": page(doc), "anchor": anchor}


def citations(env: BuildEnvironment) -> Named:
    """Yield author and year as the book's own reference style writes them, and the address of the work itself."""
    domain = env.get_domain("cite")
    for cited in domain.citations:
        doc = cited.bibliography_key.docname
        info = SphinxReferenceInfo(env.app.builder, doc, doc, cited.citation_id, None, "", "")
        text = format_references(domain.reference_style, "t", [(cited.entry, cited.formatted_entry, info)])
        label = "".join(node.astext() for node in text.render(domain.backend))
        year = cited.entry.fields.get("year", "")
        author = label.removesuffix(f" [{year}]")
        entry = f"{page(doc)}#{cited.citation_id}"
        url = source(cited.entry.fields)
        yield cited.key, {"label": label, "author": author, "year": year, "url": url, "entry": entry}


def source(fields: dict[str, str]) -> str:
    """Where the work can be read, or nothing: DOI before arXiv before any other address."""
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    if fields.get("archiveprefix", fields.get("eprinttype", "")).lower() == "arxiv":
        return f"https://arxiv.org/abs/{fields['eprint']}"
    return fields.get("url", "")

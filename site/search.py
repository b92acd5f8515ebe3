"""Write down what each section, term, and function says, for ``_static/search.js``."""

import json
import re
from html.entities import html5
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

UNREAD = (nodes.raw, nodes.comment, nodes.literal_block, addnodes.desc, addnodes.glossary)
LABEL = re.compile("(def|eq|ex|thm)-.*")  # its number stands only on the finished page
TEX = {  # what of a formula is read as what; other commands that no letter is named after go
    r"\\[td]?frac(\d)(\d)": r"\1/\2",
    r"\\[td]?frac\{([^{}]*)\}\{([^{}]*)\}": r"\1/\2",
    r"\\(ln|log|exp|max|min|sin|cos|arctan|dim)\b": r"\1",
    r"\\sqrt": "√",
    r"\\(begin|end)\{\w+\*?\}(\[\w+\])?": "",
}


def words(node, titles):
    """Return what stands in a part of a page, formulas without the marks of TeX."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if (
        isinstance(node, UNREAD)
        or node.get("refdomain") == "cite"
        or LABEL.fullmatch(node.get("reftarget", ""))
    ):
        return ""
    if node.get("reftype") in ("doc", "ref") and not node["refexplicit"]:
        return next(
            (title for name, title in titles.items() if name.endswith(node["reftarget"])), ""
        )
    if isinstance(node, nodes.math | nodes.math_block):
        text = node.astext()
        for tex, read in TEX.items():
            text = re.sub(tex, read, text)
        return re.sub(r"\\([A-Za-z]*)|[{}$&]", lambda mark: html5.get(f"{mark[1]};", ""), text)
    joint = "" if isinstance(node, nodes.TextElement) else " "
    return joint.join(words(child, titles) for child in node.children)


def places(app):
    """Return the address, page, title, and text of each place that a search can find."""
    env, found = app.env, []
    titles = {label: title for label, (_, _, title) in env.get_domain("std").labels.items()}
    titles |= {name: title.astext().partition(": ")[0] for name, title in env.titles.items()}
    for name in sorted(env.found_docs):
        page, numbers = titles[name], env.toc_secnumbers.get(name, {})
        for part in env.get_doctree(name).findall(nodes.Element):
            rest = part.children[1:]
            if isinstance(part, nodes.section) and isinstance(
                part.parent, nodes.section | nodes.document
            ):
                ids, title = part["ids"], part[0].astext()
                rest = [child for child in rest if not isinstance(child, nodes.section)]
            elif isinstance(part, addnodes.desc) or isinstance(
                getattr(part.parent, "parent", None), addnodes.glossary
            ):
                ids = part[0]["ids"]
                title = ids[0] if ids and isinstance(part, addnodes.desc) else part[0].astext()
            else:
                continue
            top = isinstance(part.parent, nodes.document)
            anchor = "" if top or not ids else f"#{ids[0]}"
            number = ".".join(map(str, numbers.get(anchor, ()))) + "." * top
            text = " ".join(" ".join(words(one, titles) for one in rest).split())
            text = re.sub(
                r" \([;, ]*(by hand in|try)?\)", "", re.sub(r"(?<=\()[;,] | (?=[),.;])", "", text)
            )  # for numbers
            found.append(
                [
                    app.builder.get_target_uri(name) + anchor,
                    page,
                    f"{number} {title}".strip(" ."),
                    text,
                ]
            )
    return found


def write_places(app, problem):
    """Write them beside the scripts; Sphinx's own index, which knows pages alone, goes."""
    if problem is not None or app.builder.name != "html":
        return
    static = Path(app.outdir) / "_static"
    data = json.dumps(places(app), ensure_ascii=False, separators=(",", ":"))
    synonyms = Path(__file__).with_name("synonyms.json").read_text(encoding="utf-8")
    text = f"window.places = {data};\nwindow.synonyms = {synonyms.strip()};\n"
    (static / "search-data.js").write_text(text, encoding="utf-8")
    for unused in (
        static.parent / "searchindex.js",
        static / "searchtools.js",
        static / "language_data.js",
    ):
        unused.unlink(missing_ok=True)


def setup(app):
    app.connect("build-finished", write_places)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

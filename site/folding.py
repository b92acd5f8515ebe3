"""Fold *Asked elsewhere* by chapter; progress.js opens what a link names."""

from docutils import nodes

PAGE = "book/asked"


def fold(app, doctree, docname):
    if docname != PAGE or app.builder.name != "html":
        return
    for part in next(doctree.findall(nodes.section)).children:
        answers = [child for child in part if isinstance(child, nodes.section)]
        if answers:
            start = part.index(answers[0])
            words = f"<details><summary>{len(answers)} questions</summary>"
            part.insert(start, nodes.raw("", words, format="html"))
            part.append(nodes.raw("", "</details>", format="html"))


def setup(app):
    app.connect("doctree-resolved", fold)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

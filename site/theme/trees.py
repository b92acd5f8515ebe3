"""Runs when a page is a tree, parsed but not yet written: folds, figures, boxes."""

import itertools
import os
import re
import shutil
from pathlib import Path

import numpy as np
from docutils import nodes
from myst_nb.core import render
from myst_nb.core.utils import coalesce_streams
from myst_nb.sphinx_ import HideCodeCellNode
from PIL import Image
from sphinx.transforms.post_transforms import SphinxPostTransform

from lowrank_tutor.kit.charts.style import PHOTOGRAPH

COLORS = 64  # of lines and letters
FAITHFUL = 2.0  # root mean square, of 255, that the reduction to COLORS may change


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


# Pixels of a page for an inch of a figure; the package draws twice as many for sharp screens.
INCH = 104


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
                    read = path.stat()
                    _keep_few_colors(path, picture, Path(self.app.outdir).parent / ".pictures")
                    # A build for print would read each page again whose pictures are newer.
                    os.utime(path, (read.st_atime, read.st_mtime))
                    image["width"] = f"{round(INCH * picture.width / picture.info['dpi'][0])}px"
                    image["classes"].append("no-scaled-link")
                if i > 0:
                    image["alt"] = ""


def _is_photograph(picture):
    """Whether a figure has no paper (``charts.photograph``), in either form it is saved in."""
    return picture.mode in ("RGBA", "LA") and picture.getextrema()[-1][0] < 255


def _keep_few_colors(path, picture, folder):
    """Rewrite a figure with the colors that it needs, which halves its bytes.

    Lines and letters need some dozens. MyST-NB names a picture by its content, so a later build
    finds the result in the folder.
    """
    lean = folder / path.name
    if lean.exists():
        shutil.copy(lean, path)
        return
    if _is_photograph(picture):
        picture.convert("LA").save(path, dpi=picture.info["dpi"], optimize=True)
    elif picture.mode not in ("P", "LA"):
        solid = picture.convert("RGB")
        few = solid.quantize(COLORS)
        change = np.asarray(few.convert("RGB"), dtype=float) - solid
        kept = few if np.sqrt(np.mean(change**2)) <= FAITHFUL else solid.quantize(256)
        kept.save(path, dpi=picture.info["dpi"], optimize=True)
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
    """Make one box of a question (``draw_first``), the cells after it, and its fold.

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


def setup(app):
    render.coalesce_streams = join_streams
    app.connect("doctree-read", title_folded_proofs)
    app.connect("doctree-read", mark_claims)
    app.add_post_transform(FigureWidthFromDpi)
    app.add_post_transform(MoveCodeBelowFigure)
    app.add_post_transform(JoinAnswerToQuestion)

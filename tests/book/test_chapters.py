"""Every chapter, found by its name: its cells run, its sliders are right, and it has the parts that
readers expect.
"""

import ast
import itertools
import re
import sys

import pytest
import yaml
from chapters import (
    CELL_LINES,
    CHAPTERS,
    ROOT,
    WITH_EXPLORERS,
    code_cells,
    each_chapter,
    explorers,
    judged,
    judges,
    run,
)
from looks import check_fit, check_look
from looks import figures as figures_of

from lowrank_tutor import figures

SHOWN_WIDTH, FOLDED_WIDTH = 76, 120  # characters a line of code; a laptop cuts off more than 76
FOLDED_LINES = 64  # a fold may hold data, pictures and words
WORDS = range(1500, 3200)  # one sitting
LAST = ["Exercises", "Remember", "In practice", "Sources"]
FIGURES = "|".join(
    ["explore", *(name for name in figures.__all__ if name[0].islower() and name != "draw_first")]
)
ANSWER = "```{admonition} The answer\n:class: dropdown\n"


def read(path):
    return path.read_text(encoding="utf-8")


def prose(path):
    """What a reader reads: no code, no settings; a formula counts as one word."""
    text = read(path).split("\n---\n", 1)[1]
    text = re.sub(r"^```\{code-cell\}.*?^```$", " ", text, flags=re.M | re.S)
    text = re.sub(r"\$\$.*?\$\$(?: \([\w-]+\))?", " formula ", text, flags=re.S)
    text = re.sub(r"\$[^$]+\$", "formula", text)
    text = re.sub(r"^(```|:::|% ).*$|^:\w[\w-]*:.*$|^\|[-|: ]+\|$", " ", text, flags=re.M)
    return re.sub(r"\{[\w:]+\}`([^`]*)`", r"\1", text)


@each_chapter
def test_cells_run(path):
    run(path)


@pytest.mark.parametrize("path", WITH_EXPLORERS, ids=lambda path: path.stem)
def test_explorers_match_judges(path):
    assert sorted(run(path).explorers) == sorted(judges(path))
    for name in judges(path):
        for values, expected, own in judged(name).positions:
            assert own == pytest.approx(expected, rel=1e-6, abs=1e-6), (name, values)


def test_explorer_names_are_unique():
    assert len(explorers()) == sum(len(judges(path)) for path in WITH_EXPLORERS)


def drawn_by(path):
    """The figures that cells show, and those of explorers at both ends."""
    ran = run(path)
    ends = [(e.draw, e.positions()[at]) for e in ran.explorers.values() for at in (0, -1)]
    return [*map(figures_of, ran.shown), *(figures_of(draw(**place)) for draw, place in ends)]


@pytest.mark.parametrize("path", WITH_EXPLORERS, ids=lambda path: path.stem)
def test_figures_fit_a_phone(path):
    for panels in drawn_by(path):
        check_fit(panels)


@each_chapter
def test_figures_share_a_look(path):
    for figure in itertools.chain(*drawn_by(path)):
        check_look(figure)


@each_chapter
def test_length(path):
    words = len(re.findall(r"\S*[A-Za-z0-9]\S*", prose(path)))
    assert words in WORDS, (
        f"{path.name} has {words} words, a chapter {WORDS.start} to {WORDS.stop - 1}"
    )


@each_chapter
def test_outline(path):
    text = read(path)
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["kernelspec"]["name"] == "python3"
    assert front["jupytext"]["text_representation"]["format_name"] == "myst"
    (title,) = re.findall("^# (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    assert re.fullmatch(r"[A-Z].+: [a-z]+ .+", title), (
        "the title is a topic, a colon, and what the reader does"
    )
    assert re.findall("^## (.*)$", text, re.M)[-4:] == LAST
    goals = text.find("\n**You will be able to** ")
    assert 0 < goals < text.find("\n**You need** ") < text.index("\n## "), (
        "goals and needs stand before the sections"
    )
    opening = re.search(rf"^({FIGURES})\(", text[:goals], re.M)
    assert opening, "the chapter opens with something to drag"
    assert re.search(r"\{py:(func|class|mod)\}`", text), (
        "the text links what it uses of the package"
    )


@pytest.mark.parametrize(
    "path", [*CHAPTERS, ROOT / "book" / "use-linformer.md"], ids=lambda path: path.stem
)
def test_predictions(path):
    _, *asked = read(path).split("\ndraw_first(")
    assert asked
    for text in asked:
        before, fold, _ = text.partition(ANSWER)
        assert fold, f"a fold 'The answer' ends what belongs to the question: {text[:80]}"
        choice = text.split("\n```")[0]
        assert ('kind="choice"' in choice) == ("replies=" in choice), (
            "each wrong choice has a reply of its own"
        )
        _, *between = re.split(
            r"^```\{code-cell\}.*?^```$", "```{code-cell}\n" + before, flags=re.M | re.S
        )
        assert not "".join(between).strip(), (
            f"text stays out of the answer, so that all can read it: {text[:80]}"
        )
        assert not re.search(rf"^({FIGURES})\(", before, re.M), (
            f"what follows stays out of the answer: {text[:80]}"
        )


@each_chapter
def test_exercises(path):
    text = read(path)
    asked = re.findall(r"^```\{exercise\}.*\n:label: (\S+)", text, re.M)
    assert len(asked) >= 3, "beside those to practice (lowrank_tutor/course/practice)"
    order = (
        r"^```\{exercise\}.*\n:label: (\S+)"
        r'|^check\("(\S+)", \.\.\.\)$'
        r"|^```\{solution-start\} (\S+)\n:class: dropdown$"
    )
    found = ["".join(names) for names in re.findall(order, text, re.M)]
    assert found == [name for name in asked for _ in range(3)], (
        "each has its field, then its folded solution"
    )
    levels = [
        ["Easy", "Medium", "Hard"].index(level)
        for level in re.findall(r"^\*(Easy|Medium|Hard)\b", text, re.M)
    ]
    assert len(levels) == len(asked)
    assert levels == sorted(levels), "the easy ones come first"
    assert levels[-1] > 0
    for solution in re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", text, re.M | re.S):
        assert re.search(r'^assert check\("\S+", .+\)$', solution, re.M), (
            f"a solution passes its check: {solution}"
        )
        for source in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", solution, re.M | re.S):
            code = re.sub(r"^:tags:.*\n", "", source, flags=re.M)
            assert isinstance(ast.parse(code).body[-1], ast.Assert), code


@each_chapter
def test_statements(path):
    assert read(path).count("In words") >= read(path).count("```{prf:theorem}"), "one for each"
    options = {
        "prf:proof": ":class: dropdown",
        "prf:theorem": ":label:",
        "prf:definition": ":label:",
    }
    for directive, option in options.items():
        for found in re.findall(rf"^```\{{{directive}\}}.*\n(.*)$", read(path), re.M):
            assert found.startswith(option), f"{directive} begins with {option}, got {found}"


PAGES = sorted((ROOT / "book").glob("*.md"))
# Of the standard library, pages use what returns the same in every version: no texts of its own, no
# names of versions.
SAME_EVERYWHERE = {
    "functools",
    "html",
    "importlib",
    "io",
    "itertools",
    "json",
    "math",
    "re",
    "statistics",
    "time",
}
SAME_EVERYWHERE |= {"warnings"}  # to silence one


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_cells_ignore_python_versions(path):
    for cell in code_cells(path):
        for node in ast.walk(ast.parse(cell.source)):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            foreign = {
                name.partition(".")[0] for name in names
            } & sys.stdlib_module_names - SAME_EVERYWHERE
            assert not foreign, cell.source
            assert not (isinstance(node, ast.Name) and node.id == "hash"), cell.source
            assert not (isinstance(node, ast.Attribute) and node.attr == "__doc__"), cell.source


@each_chapter
def test_cells_are_short(path):
    for cell in code_cells(path):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        most = FOLDED_LINES if "hide-input" in cell.metadata.get("tags", []) else CELL_LINES
        assert len(lines) <= most, f"a cell of {len(lines)} lines, at most {most}:\n{cell.source}"
        assert not re.search(r"^\s*[%!]", cell.source, re.M), cell.source


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_code_fits_its_column(path):
    for info, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", read(path), re.M | re.S):
        if info.split(" ")[0] in ("{code-cell}", "python", "text", ""):
            options = re.match(r"(?:---\n.*?\n---\n)?(?::[^\n]*\n)*", body, re.S)[0]
            width = (
                FOLDED_WIDTH if re.search(r"(hide|remove)-(input|cell)", options) else SHOWN_WIDTH
            )
            assert [line for line in body[len(options) :].splitlines() if len(line) > width] == []

"""Every chapter, found by its name: its cells run, its answers hold, and it has the parts that readers expect."""

import ast
import re

import pytest
import yaml
from chapters import CELL_LINES, CHAPTERS, ROOT, WITH_EXPLORERS, code_cells, explorers, judged, judges, run
from figures import check_fit, figures

each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


SHOWN_WIDTH, FOLDED_WIDTH = 76, 120  # characters a line of code
FOLDED_LINES = 64  # the one fold below an explorer, a figure or a table: data, pictures, words


def prose(path):
    """What a reader reads: no code, no settings, a formula counts as one word."""
    text = path.read_text(encoding="utf-8").split("\n---\n", 1)[1]
    text = re.sub(r"^```\{code-cell\}.*?^```$", " ", text, flags=re.M | re.S)
    text = re.sub(r"\$\$.*?\$\$(?: \([\w-]+\))?", " formula ", text, flags=re.S)
    text = re.sub(r"\$[^$]+\$", "formula", text)
    text = re.sub(r"^(```|:::).*$|^:\w[\w-]*:.*$|^\|[-|: ]+\|$", " ", text, flags=re.M)
    return re.sub(r"\{[\w:]+\}`([^`]*)`", r"\1", text)


def test_the_chapters_stand_in_the_table_of_contents_in_their_order():
    listed = re.findall(r"file: book/(\d\d-\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert listed == [path.stem for path in CHAPTERS]


@each_chapter
def test_the_cells_run_in_order_and_the_answers_hold(path):
    run(path)


@pytest.mark.parametrize("path", WITH_EXPLORERS, ids=lambda path: path.stem)
def test_every_chapter_can_be_dragged_and_has_a_judge_for_each_explorer_and_for_no_other(path):
    assert judges(path)
    assert sorted(run(path).explorers) == sorted(judges(path))


def test_no_two_pages_name_an_explorer_alike():
    assert len(explorers()) == sum(len(judges(path)) for path in WITH_EXPLORERS)


@pytest.mark.parametrize("name", explorers())
def test_every_readout_equals_numpys(name):
    for values, expected, own in judged(name).positions:
        assert own == pytest.approx(expected, rel=1e-6, abs=1e-6), values


@pytest.mark.parametrize("path", WITH_EXPLORERS, ids=lambda path: path.stem)
def test_figures_fit_a_phone(path):
    """Those that cells show, and those of explorers at both ends."""
    ran = run(path)
    for drawn in ran.shown:
        check_fit(figures(drawn))
    for explorer in ran.explorers.values():
        for place in (explorer.positions()[0], explorer.positions()[-1]):
            check_fit(figures(explorer.draw(**place)))


@each_chapter
def test_the_kernel_is_named(path):
    front = yaml.safe_load(path.read_text(encoding="utf-8").split("---\n")[1])
    assert front["kernelspec"]["name"] == "python3"
    assert front["jupytext"]["text_representation"]["format_name"] == "myst"


@each_chapter
def test_a_reader_learns_at_once_what_the_chapter_gives_and_takes(path):
    text = path.read_text(encoding="utf-8")
    assert "\n**You will be able to** " in text
    assert "\n**You need** " in text
    goals = text.index("**You will be able to**")
    assert goals < text.index("\n## "), "the goals stand before the first section"
    assert "{code-cell}" in text[:goals], "something to drag stands before the goals"
    assert re.search(r"^(explore|tilt)\(", text[:goals], re.M)


@pytest.mark.parametrize("path", [*CHAPTERS, ROOT / "book" / "use-linformer.md"], ids=lambda path: path.stem)
def test_a_reader_makes_every_prediction_before_the_answer(path):
    _, *asked = path.read_text(encoding="utf-8").split("\n**Predict.** ")
    assert asked
    for text in asked:
        before, _, _ = text.partition("```{admonition} Compare with your guess\n:class: dropdown\n")
        assert before != text
        assert before.count("\ndraw_first(") == 1, text[:80]
        assert "\n## " not in before


@each_chapter
def test_the_sections_that_every_chapter_has_stand_in_order_at_its_end(path):
    text = path.read_text(encoding="utf-8")
    assert len(re.findall("^# ", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)) == 1
    sections = re.findall("^## (.*)$", text, re.M)
    assert sections[-4:] == ["Exercises", "Remember", "In practice", "Sources"]


@each_chapter
def test_exercises_have_folded_solutions_whose_cells_end_in_an_assert(path):
    text = path.read_text(encoding="utf-8")
    exercises = re.findall(r"^```\{exercise\}.*\n:label: (\S+)", text, re.M)
    assert exercises
    starts = re.findall(r"^```\{solution(?:-start)?\} (\S+)\n:class: dropdown$", text, re.M)
    assert starts == exercises
    for solution in re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", text, re.M | re.S):
        for source in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", solution, re.M | re.S):
            code = re.sub(r"^:tags:.*\n", "", source, flags=re.M)
            assert isinstance(ast.parse(code).body[-1], ast.Assert), code


@each_chapter
def test_exercises_are_graded_and_can_be_checked(path):
    text = path.read_text(encoding="utf-8")
    asked = re.findall(r"^```\{exercise\}.*\n:label: (\S+)", text, re.M)
    order = r'^```\{exercise\}.*\n:label: (\S+)|^check\("(\S+)", \.\.\.\)$|^```\{solution-start\} (\S+)$'
    found = ["".join(names) for names in re.findall(order, text, re.M)]
    assert found == [name for name in asked for _ in range(3)], "each has its field, then its solution"
    assert len(asked) >= 4
    levels = [["Easy", "Medium", "Hard"].index(level) for level in re.findall(r"^\*(Easy|Medium|Hard)\b", text, re.M)]
    assert len(levels) == len(asked)
    assert levels == sorted(levels), "the easy ones come first"
    assert levels[0] == 0 < levels[-1]
    for solution in re.findall(r"^```\{solution-start\}.*?^```\{solution-end\}", text, re.M | re.S):
        assert re.search(r'^assert check\("\S+", .+\)$', solution, re.M), "the solution passes its own check"


@each_chapter
def test_proofs_are_folded_and_statements_have_labels(path):
    text = path.read_text(encoding="utf-8")
    for directive, option in (
        ("prf:proof", ":class: dropdown"),
        ("prf:theorem", ":label:"),
        ("prf:definition", ":label:"),
    ):
        for options in re.findall(rf"^```\{{{directive}\}}.*\n(.*)$", text, re.M):
            assert options.startswith(option), f"{directive}: {options}"


@each_chapter
def test_the_package_is_linked(path):
    assert re.search(r"\{py:(func|class|mod)\}`", path.read_text(encoding="utf-8"))


@each_chapter
def test_cells_are_short_and_hold_no_magic(path):
    for cell in code_cells(path):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        folded = "hide-input" in cell.metadata.get("tags", [])
        assert len(lines) <= (FOLDED_LINES if folded else CELL_LINES), f"{len(lines)} lines:\n{cell.source}"
        assert not re.search(r"^\s*[%!]", cell.source, re.M), cell.source


@pytest.mark.parametrize("path", sorted((ROOT / "book").glob("*.md")), ids=lambda path: path.stem)
def test_shown_code_fits_its_column(path):
    """On a laptop a line of 76 characters is not cut; folded code, which few unfold, may be wider."""
    shown, folded = [], []
    for info, body in re.findall(r"^```([^\n]*)\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S):
        options = re.match(r"(?:---\n.*?\n---\n)?(?::[^\n]*\n)*", body, re.S)[0]
        if info.split(" ")[0] in ("{code-cell}", "python", "text", ""):
            kept = folded if re.search(r"(hide|remove)-(input|cell)", options) else shown
            kept += body[len(options) :].splitlines()
    assert [line for line in shown if len(line) > SHOWN_WIDTH] == []
    assert [line for line in folded if len(line) > FOLDED_WIDTH] == []


@each_chapter
def test_a_chapter_says_its_topic_before_its_verb(path):
    (title,) = re.findall(
        "^# (.*)$", re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S), re.M
    )
    assert re.fullmatch(r"[A-Z].+: [a-z]+ .+", title)


@each_chapter
def test_a_chapter_can_be_read_in_one_sitting(path):
    words = len(re.findall(r"\S*[A-Za-z0-9]\S*", prose(path)))
    assert 1500 <= words < 3200

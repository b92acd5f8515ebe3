"""What no page may use is refused with file and line, and any text stays text.

What becomes of all that pages do use stands in their notebooks, which ``make check`` compares.
"""

import re
import shutil
import subprocess
import sys

import nbformat
import pytest
import yaml
from chapters import ROOT
from export_notebooks import set_up
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from nbclient import NotebookClient
from plain import code, escape, safe_lines

KERNEL = (
    "jupytext: {text_representation: {extension: .md, format_name: myst}}\n"
    "kernelspec: {name: python3}"
)


REFUSED = {
    "unknown directive": ("a\n\n```{nonesuch} x\n```", 3, "Unknown directive type"),
    "unknown role": ("a {nonesuch}`x`", 1, "nonesuch"),
    "a role that is not in the set": ("a\n\nb {sub}`x`", 3, "subscript is outside"),
    "unknown tag": (
        "```{code-cell}\n:tags: [raises-exception]\nx\n```",
        3,
        "got ['raises-exception']",
    ),
    "two tags, code lost": (
        "```{code-cell}\n:tags: [hide-output, remove-input]\nx\n```",
        3,
        "remove-input alone",
    ),
    "cell inside a directive": ("````{note}\n```{code-cell}\nx\n```\n````", 2, "code-cell"),
    "picture": ("a\n\n![x](https://a.org/x.png)", 3, "image is outside"),
    "footnote": ("a[^1]\n\n[^1]: b", 1, "footnote_reference is outside"),
    "raw HTML": ("<details>\nx\n</details>", 1, "raw is outside"),
    "bare environment": ("\\begin{align}\nx\n\\end{align}", 1, "must stand between $$"),
    "equation that is not there": ("a\n\nb {eq}`none`", 3, "none"),
    "file": ("[x](data.csv)", 1, "data.csv"),
}


@pytest.mark.parametrize("line", ["import torch", "from lowrank_tutor.attention import x", "x = 1"])
def test_setup_finds_torch(line):
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line)])
    setup = set_up(page, "https://github.com/Owner/name", "main").cells[0].source
    assert ("torch.cuda.is_available()" in setup) == (line != "x = 1")


def test_exercise_after_restart():
    """An answer needs the set-up cell alone, and a cell that needs others says so."""
    cells = [
        nbformat.v4.new_code_cell(line)
        for line in ('check("ex-rank-tenth", np.array(...))', "found_above")
    ]
    page = set_up(nbformat.v4.new_notebook(cells=cells), "https://github.com/Owner/name", "main")
    NotebookClient(page, timeout=120, allow_errors=True, kernel_name="python3").execute()
    *_, answer, other = (str(cell.get("outputs")) for cell in page.cells)
    assert "Put your answer in place of the dots" in answer
    assert "A cell above has not run yet. After a restart" in other


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """What is said of each construct that is refused, all on one page of a small book under the
    settings of the real one, without the place that it is said of.
    """
    root = tmp_path_factory.mktemp("book")
    for name in ("_config.yml", "requirements.txt", "lowrank_tutor/kit/element.js"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    shutil.copytree(ROOT / "site", root / "site", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "book").mkdir()
    (root / "book/references.bib").touch()
    (root / "book/index.md").write_text("# Book\n")
    chapters = [{"file": "book/wrong"}]
    toc = {"format": "jb-book", "root": "book/index", "chapters": chapters}
    (root / "_toc.yml").write_text(yaml.safe_dump(toc))
    text, begins = f"---\n{KERNEL}\n---\n\n# Wrong\n\n", {}
    for name, (myst, _, _) in REFUSED.items():
        begins[name] = text.count("\n")
        text += f"{myst}\n\n"
    (root / "book/wrong.md").write_text(text)
    command = [sys.executable, root / "site/export_notebooks.py"]
    first, again = (subprocess.run(command, capture_output=True, text=True) for _ in range(2))
    assert first.returncode == 1
    assert "No notebook was written" in first.stderr
    assert again.stderr == first.stderr, "a warning is not given again"
    said = re.findall(rf"{root}/book/wrong\.md:(\d+): WARNING: (.*)", first.stderr)
    return {
        name: "\n".join(f"{int(line) - begin}: {why}" for line, why in said)
        for name, begin in begins.items()
    }


@pytest.mark.parametrize("name", REFUSED)
def test_rest_is_refused(name, refusals):
    _, line, why = REFUSED[name]
    assert re.search(rf"^{line}: .*{re.escape(why)}", refusals[name], re.MULTILINE), refusals[name]


READ = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKS = r"""a b 1 (a) ␣ ¶ \ \¶a ` ``a` * *a* ** _ _a_ __a__ a_b $ $a$ ! <b> </b> <!--␣a␣-->
<a@b.org> a␣<␣b &amp; &#42; &␣a [a] [a](b) ![a](b) [a]:␣b ~~a~~ #␣a ######␣a #######␣a >␣a -␣a - --
+␣a *␣a 1.␣a 12)␣a 1.5 a¶=== a¶--- *** -␣-␣- ```¶a
~~~¶a |␣a␣|¶|---| a␣|␣b¶---␣|␣--- |¶:- a:¶:-:| | : = # ."""
PIECES = [piece.replace("␣", " ").replace("¶", "\n") for piece in MARKS.split()]


def reads_as(text):
    """What a paragraph with this text reads as, if it is a paragraph and all of it text."""
    opened, inline, closed = READ.parse(safe_lines(escape(text)))
    assert (opened.type, closed.type) == ("paragraph_open", "paragraph_close")
    assert {t.type for t in inline.children} <= {"text", "text_special", "softbreak"}
    return "".join("\n" if t.type == "softbreak" else t.content for t in inline.children)


@settings(max_examples=500)
@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_escaped_text(text):
    text = "\n".join(line.strip() for line in text.splitlines() if line.strip()) or "a"
    assert reads_as(text) == text
    assert not re.search(r"(?<!\\)(\\\\)*\$", escape(text)), "a dollar would open a formula"


@given(st.text("a` ", min_size=1).filter(str.strip))
def test_code_spans(text):
    _, inline, _ = READ.parse(f"x {code(text)}")
    assert inline.children[1].content == text

"""What becomes of each construct that a page may use, and that everything else is refused with file
and line.

A small book is built with the settings of the real one, once: a page with everything that is
allowed, a heading before each construct. Then a page with everything that is not is added to it.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from chapters import ROOT
from export_notebooks import set_up
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from nbclient import NotebookClient
from plain import code, escape, safe_lines

SITE = "https://owner.github.io/name/"
MACROS = {"R": r"\mathbb{R}", "norm": [r"\|#1\|", 1], "Rn": r"\R^n"}
KERNEL = (
    "jupytext: {text_representation: {extension: .md, format_name: myst}}\n"
    "kernelspec: {name: python3}"
)
NAMED = """
$$
0
$$ (eq)

```{prf:theorem} First
:label: thm
x
```

```{exercise} Try
:label: ex
x
```
"""
PAGES = {
    "index": "# Book",
    "01-there": """# There

$$
0
$$ (eq-new)

$$
1
$$ (eq-far)

(sec-far)=
## Far

```{prf:theorem}
:label: thm-far
x
```""",
    "02-here": "",
    "03-plain": f"---\n{KERNEL}\n---\n\n# Plain\n\n```{{code-cell}}\nimport numpy\n\nx = 3\n```",
    "words": "# Words\n\n```{glossary}\nstable rank\n  x\n```",
    "api": "# API\n\n```{py:module} pkg.svd\n```\n\n```{py:function} cut(a)\n```",
    "bibliography": "# Bibliography\n\n```{bibliography}\n```",
}
WORKS = """
@article{ey, author={C. Eckart and G. Young}, title={T}, journal={J}, year={1936}, doi={10.1/(a)}}
@article{jl, author={W. Johnson}, title={T}, journal={J}, year={1984}}
@article{four, author={A. A and B. B and C. C and D. D}, title={T}, journal={J}, year={2020},
         eprint={1.2}, archiveprefix={arXiv}}
"""

INLINE = {
    "equation here": ("by {eq}`eq`", "by (2.1)"),
    "equation elsewhere": ("{eq}`eq-far`", f"[(1.2)]({SITE}book/01-there.html#equation-eq-far)"),
    "citation in the text": (
        "{cite:t}`ey` say",
        "Eckart and Young [[1936](https://doi.org/10.1/%28a%29)] say",
    ),
    "two citations": (
        "{cite:p}`ey, four`",
        "[[A et al., 2020](https://arxiv.org/abs/1.2), [Eckart and Young, "
        "1936](https://doi.org/10.1/%28a%29)]",
    ),
    "source without an address": (
        "{cite}`jl`",
        f"[[Johnson, 1984]({SITE}book/bibliography.html#id3)]",
    ),
    "page": ("{doc}`01-there`", f"[There]({SITE}book/01-there.html)"),
    "theorem here": ("{prf:ref}`thm`", "Theorem 2.1"),
    "theorem elsewhere": ("{prf:ref}`thm-far`", f"[Theorem 1.1]({SITE}book/01-there.html#thm-far)"),
    "exercise": ("{ref}`ex`", "Exercise 2.1"),
    "section": ("{ref}`sec-far`", f"[Far]({SITE}book/01-there.html#sec-far)"),
    "section by number": ("{numref}`sec-far`", f"[Section 1.1]({SITE}book/01-there.html#sec-far)"),
    "function": ("{py:func}`pkg.svd.cut`", f"[`pkg.svd.cut()`]({SITE}book/api.html#pkg.svd.cut)"),
    "term": ("{term}`stable rank`", f"[stable rank]({SITE}book/words.html#term-stable-rank)"),
    "link to a page": ("[x *y*](01-there.md)", f"[x *y*]({SITE}book/01-there.html)"),
    "link within the page": ("[above](#sec-here)", "above"),
    "foreign link": ("[x](https://a.org/b?c=d#e)", "[x](https://a.org/b?c=d#e)"),
    "emphasis": ("*a* **b** and **c *d***", "*a* **b** and **c *d***"),
    "code": ("``{eq}`eq` `` and `$x$`", "``{eq}`eq` `` and `$x$`"),
    "marks without a meaning": (
        r"5 \$ for a\_b\_ and \*c\* \[d\](e) \<f>",
        r"5 \$ for a_b\_ and \*c\* [d\](e) \<f>",
    ),
    "what makes no link a picture": (r"so\![x](https://a.org)", r"so\![x](https://a.org)"),
    "maths": (r"$x \in \R^n$", r"$x \in \mathbb{R}^n$"),
    "maths with arguments": (r"$\norm{x_{i}}$ in $\Rn$", r"$\|x_{i}\|$ in $\mathbb{R}^n$"),
    "the address of the repository": ("|repository|", "https://github.com/Owner/name"),
    "a longer name than a macro": (r"$\Rightarrow$", r"$\Rightarrow$"),
}
BLOCKS = {
    "formula": ("$$\nx\n$$", "$$\nx\n$$"),
    "numbered formula": ("$$\nx\n$$ (eq-2)", "$$\nx \\tag{2.2}\n$$"),
    "numbered formula as a directive": ("```{math}\n:label: eq-4\nx\n```", "$$\nx \\tag{2.3}\n$$"),
    "rows that Sphinx aligns": (
        "$$\na &= b \\\\\nc &= d\n$$",
        "$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$",
    ),
    "rows of a matrix": (
        "$$\n\\begin{pmatrix} \\begin{matrix} 1 & 2 \\end{matrix} \\\\ 3 \\end{pmatrix}\n$$",
        "$$\n\\begin{pmatrix} \\begin{matrix} 1 & 2 \\end{matrix} \\\\ 3 \\end{pmatrix}\n$$",
    ),
    "underlining line": ("$$\na\n=\nb\n$$", "$$\na\n= b\n$$"),
    "numbered list": ("3. a\n4. b\n   c", "3. a\n4. b\n   c"),
    "quotation": ("> a\n> b", "> a\n> b"),
    "label and comment": (
        "(sec)=\n\none\n\n% hidden\n\ntwo\n\n+++\n\nthree",
        "one\n\ntwo\n\nthree",
    ),
    "table": (
        "| a | b | c |\n|---|--:|:-:|\n| {eq}`eq` | | `x` |",
        "| a | b | c |\n|---|---:|:---:|\n| (2.1) | | `x` |",
    ),
    "literal code": ("```python\n{eq}`eq` $\\R$\n```", "```python\n{eq}`eq` $\\R$\n```"),
    "note": ("```{note}\nx\n\n- y\n```", "> **Note**\n>\n> x\n>\n> - y"),
    "titled admonition": ("```{admonition} On $\\R$\nx\n```", "> **On $\\mathbb{R}$**\n>\n> x"),
    "margin": ("```{margin}\nx $\\R$\n\n- y\n```", "> x $\\mathbb{R}$\n>\n> - y"),
    "sidebar": ("```{sidebar} S\nx\n```", "> **S**\n>\n> x"),
    "folded admonition": (
        "```{admonition} A < B in $\\R$\n:class: dropdown\nx\n```",
        "<details>\n<summary><b>A &lt; B in $\\mathbb{R}$</b></summary>\n\nx\n\n</details>",
    ),
    "theorem": (
        "```{prf:theorem} Best\n:label: thm-2\nLet $x$.\n\n$$\ny\n$$ (eq-5)\n```",
        "> **Theorem 2.2** (Best). Let $x$.\n>\n> $$ y \\tag{2.4} $$",
    ),
    "folded theorem": (
        "```{prf:theorem} Best\n:label: thm-4\n:class: dropdown\nx\n```",
        "<details>\n<summary><b>Theorem 2.3 (Best)</b></summary>\n\nx\n\n</details>",
    ),
    "proof": ("```{prf:proof}\nBy {eq}`eq`.\n```", "*Proof.* By (2.1)."),
    "exercise of its own": (
        "```{exercise} On *it*\n:label: ex-2\nx\n```",
        "**Exercise 2.2** (On *it*)\n\nx",
    ),
    "solution": (
        "```{solution} ex-2\n:class: dropdown\nBy {eq}`eq`.\n```",
        "<details>\n<summary><b>Solution to Exercise 2.2 (On it)</b></summary>\n\nBy "
        "(2.1).\n\n</details>",
    ),
}
FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}
CELLS = {
    "exercise and solution with code": (
        """```{exercise-start}
:label: ex-3
```

Run:

```{code-cell}
1
```

```{exercise-end}
```

```{solution-start} ex-3
:class: dropdown
```

First.

```{code-cell} ipython3
:tags: [hide-input]

assert True
```

```{code-cell} ipython3
2
```

Last.

```{solution-end}
```

After.
""",
        [
            ("**Exercise 2.3**\n\nRun:", {}),
            ("1", {}),
            (
                "<details>\n<summary><b>Solution to Exercise "
                "2.3</b></summary>\n\nFirst.\n\n</details>",
                {},
            ),
            ("# @title Solution to Exercise 2.3\nassert True", FOLDED),
            ("# @title Solution to Exercise 2.3\n2", FOLDED),
            (
                "<details>\n<summary><b>Solution to Exercise "
                "2.3</b></summary>\n\nLast.\n\n</details>\n\nAfter.",
                {},
            ),
        ],
    ),
    "plain cell": (
        "```{code-cell} ipython3\nimport numpy\n\nx = 3\n```",
        [("import numpy\n\nx = 3", {})],
    ),
    "cell to answer in": ("```{code-cell}\n:tags: [remove-input]\nx = 6\n```", [("x = 6", {})]),
    "folded cell": (
        "```{code-cell}\n:tags: [hide-input]\nx = 7\n```",
        [("# @title Show the code\nx = 7", FOLDED)],
    ),
    "folded cell with a prompt": (
        "```{code-cell}\n---\ntags: [hide-cell]\nmystnb: {code_prompt_show: Draw}\n---\nx = 8\n```",
        [("# @title Draw\nx = 8", FOLDED)],
    ),
    "cell for the site alone": (
        "a\n\n```{code-cell}\n:tags: [remove-cell]\nx\n```\n\nb",
        [("a\n\nb", {})],
    ),
    "twins": (
        "```{code-cell}\nx = 9\n```\n\n```{code-cell}\nx = 9\n```",
        [("x = 9", {}), ("x = 9", {})],
    ),
}
CONSTRUCTS = {
    name: (myst, [(text, {})]) for name, (myst, text) in (INLINE | BLOCKS).items()
} | CELLS

REFUSED = {
    "unknown directive": ("a\n\n```{nonesuch} x\n```", 3, "Unknown directive type"),
    "unknown role": ("a {nonesuch}`x`", 1, "nonesuch"),
    "a role that is not in the set": ("a\n\nb {sub}`x`", 3, "subscript is outside"),
    "table with a title": (
        "```{table} T\n| a |\n|---|\n| b |\n```",
        2,
        "a table must have no title",
    ),
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


class Book:
    """A book in a folder of its own, under the settings of the real one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
        config["repository"]["url"] = "https://github.com/Owner/name"
        config["sphinx"]["config"]["mathjax3_config"] = {"tex": {"macros": MACROS}}
        (root / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
        shutil.copytree(ROOT / "site", root / "site", ignore=shutil.ignore_patterns("__pycache__"))
        element = Path("lowrank_tutor", "kit", "element.js")
        (root / element).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / element, root / element)
        shutil.copy(ROOT / "requirements.txt", root)
        (root / "book").mkdir()
        (root / "book" / "references.bib").write_text(WORKS, encoding="utf-8")
        self.pages: list[str] = []

    def add(self, pages: dict[str, str]) -> None:
        for name, text in pages.items():
            self.write(name, text)
        self.pages += pages
        first, *chapters = [{"file": f"book/{name}"} for name in self.pages]
        toc = {
            "format": "jb-book",
            "root": first["file"],
            "parts": [{"numbered": True, "chapters": chapters}],
        }
        (self.root / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        (self.root / "book" / f"{name}.md").write_text(text + "\n", encoding="utf-8")

    def export(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, self.root / "site/export_notebooks.py"], capture_output=True, text=True
        )

    def notebook(self, name: str) -> nbformat.NotebookNode:
        return nbformat.read(self.root / "book" / f"{name}.ipynb", as_version=4)


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Book:
    """A book with everything that is allowed, on its second chapter, and its notebooks."""
    book = Book(tmp_path_factory.mktemp("book"))
    sections = "".join(f"\n\n## {name}\n\n{myst}" for name, (myst, _) in CONSTRUCTS.items())
    here = (
        f"---\n{KERNEL}\naccelerator: GPU\n---\n\n"
        f"# Here $\\R$\n\nx\n\n(sec-here)=\n## Named\n{NAMED}{sections}"
    )
    book.add(PAGES | {"02-here": here})
    # First without an equation: what is kept of that run must not keep the numbers of the second
    # from changing.
    for chapter in (PAGES["01-there"].replace("$$\n0\n$$ (eq-new)", ""), PAGES["01-there"]):
        book.write("01-there", chapter)
        done = book.export()
        assert done.returncode == 0, done.stderr
    return book


@pytest.fixture(scope="module")
def sections(book) -> dict[str, list[nbformat.NotebookNode]]:
    """The cells under each heading of the second chapter, without the heading."""
    found: dict[str, list[nbformat.NotebookNode]] = {}
    for cell in book.notebook("02-here").cells[2:]:
        if heading := re.match(r"## 2\.\d+\. (.+)(?:\n\n|\Z)", cell.source):
            under = found.setdefault(heading[1], [])
            cell.source = cell.source[heading.end() :]
        elif not found:
            under = found.setdefault("top", [])
        if cell.source:
            under.append(cell)
    return found


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_constructs(name, sections):
    assert [(cell.source, dict(cell.metadata)) for cell in sections[name]] == CONSTRUCTS[name][1]


def test_headings(sections):
    (title,) = [cell.source for cell in sections["top"]]
    assert title == (
        f"# 2. Here $\\mathbb{{R}}$\n\n*A chapter of [an interactive book]({SITE}); "
        f"[read it there]({SITE}book/02-here.html).*\n\nx"
    )
    assert list(sections) == ["top", "Named", *CONSTRUCTS]


def test_first_cells(book):
    assert {path.stem for path in (book.root / "book").glob("*.ipynb")} == {"02-here", "03-plain"}
    assert "torch" not in book.notebook("03-plain").cells[0].source
    assert book.notebook("02-here").metadata["accelerator"] == "GPU"
    assert "accelerator" not in book.notebook("03-plain").metadata
    assert book.notebook("03-plain").metadata["language_info"] == {"name": "python"}
    for line in ("import torch", "from torch import nn", "from lowrank_tutor.attention import x"):
        page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(line)])
        setup = set_up(page, "https://github.com/Owner/name", "main").cells[0].source
        assert "\nimport torch\n" in setup, line
        assert "torch.cuda.is_available()" in setup, line


def test_exercise_after_restart():
    """An answer needs the set-up cell alone, and a cell that needs others says so."""
    cells = [
        nbformat.v4.new_code_cell(line)
        for line in ('check("ex-rank-tenth", np.array(...))', "found_above")
    ]
    page = set_up(nbformat.v4.new_notebook(cells=cells), "https://github.com/Owner/name", "main")
    assert page.cells[1].source.startswith("After a restart, run this cell")
    NotebookClient(page, timeout=120, allow_errors=True, kernel_name="python3").execute()
    _, _, answer, other = (str(cell.get("outputs")) for cell in page.cells)
    assert "Put your answer in place of the dots" in answer
    assert "name 'found_above' is not defined" in other
    assert "A cell above has not run yet. After a restart" in other


@pytest.fixture(scope="module")
def refusals(book) -> dict[str, str]:
    """What is said of each construct that is refused, all on one page, without the place that it is
    said of.
    """
    text, begins = f"---\n{KERNEL}\n---\n\n# Wrong\n\n", {}
    for name, (myst, _, _) in REFUSED.items():
        begins[name] = text.count("\n")
        text += f"{myst}\n\n"
    book.add({"wrong": text})
    done = book.export()
    assert done.returncode == 1
    assert "No notebook was written" in done.stderr
    assert book.export().stderr == done.stderr, "a warning is not given again"
    said = re.findall(rf"{book.root}/book/wrong\.md:(\d+): WARNING: (.*)", done.stderr)
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
<a@b.org> a␣<␣b &amp; &#42; &␣a [a] [a](b) ![a](b) [a]:␣b ~~a~~ #␣a ###␣a #######␣a >␣a -␣a - --
+␣a *␣a 1.␣a 12)␣a 1.5 a¶=== a¶--- *** -␣-␣- ```¶a
~~~¶a |␣a␣|¶|---| a␣|␣b¶---␣|␣--- |¶:- a:¶:-:| | : = # ."""
PIECES = [piece.replace("␣", " ").replace("¶", "\n") for piece in MARKS.split()]


def reads_as(text: str) -> str:
    """What a paragraph with this text reads as, if it is a paragraph and all of it text."""
    opened, inline, closed = READ.parse(safe_lines(escape(text)))
    assert (opened.type, closed.type) == ("paragraph_open", "paragraph_close")
    assert {t.type for t in inline.children} <= {"text", "text_special", "softbreak"}
    return "".join("\n" if t.type == "softbreak" else t.content for t in inline.children)


@pytest.mark.parametrize("piece", [piece for piece in PIECES if piece.strip()])
def test_escaped_text(piece):
    for text in (piece, f"a {piece}", f"{piece} a", f"a\n{piece}"):
        assert reads_as(text.strip()) == text.strip()
    assert not re.search(r"(?<!\\)(\\\\)*\$", escape(piece)), "a dollar would open a formula"


@given(st.lists(st.sampled_from(PIECES), max_size=6).map("".join))
def test_escaped_mix(text):
    text = "\n".join(line.strip() for line in text.splitlines() if line.strip()) or "a"
    assert reads_as(text) == text


@given(st.text("a` ", min_size=1).filter(str.strip))
def test_code_spans(text):
    _, inline, _ = READ.parse(f"x {code(text)}")
    assert inline.children[1].content == text

"""What becomes of each construct that a chapter may use, and that everything else is refused with file and line."""

import pytest
from export_notebooks import notebook
from plain_inline import Book, UnsupportedError

SITE = "https://owner.github.io/name/"
HERE, THERE = {"page": "book/02-here.html"}, {"page": "book/01-there.html"}
REFS = {
    "docs": {
        "book/02-here": {
            **HERE,
            "title": "Here",
            "number": "2",
            "sections": [{"title": "One", "number": "2.1"}, {"title": "Two", "number": "2.2"}],
        },
        "book/01-there": {**THERE, "title": "There", "number": "1", "sections": []},
        "book/notes": {
            "page": "book/notes.html",
            "title": "Notes",
            "number": "",
            "sections": [{"title": "A", "number": ""}],
        },
    },
    "labels": {
        "sec-one": {**HERE, "anchor": "sec-one", "title": "One", "number": "2.1"},
        "sec-far": {**THERE, "anchor": "sec-far", "title": "Far", "number": "1.3"},
    },
    "items": {
        "thm": {**HERE, "anchor": "thm", "kind": "theorem", "title": "Best", "number": "2.1"},
        "thm-far": {**THERE, "anchor": "thm-far", "kind": "theorem", "title": "", "number": "1.2"},
        "ex": {**HERE, "anchor": "ex", "kind": "exercise", "title": "Try", "number": "2.1"},
        "ex-bare": {**HERE, "anchor": "ex-bare", "kind": "exercise", "title": "", "number": "2.2"},
    },
    "equations": {
        "eq": {**HERE, "anchor": "equation-eq", "number": "2.3"},
        "eq-far": {**THERE, "anchor": "equation-eq-far", "number": "1.1"},
    },
    "citations": {
        "ey": {
            "author": "Eckart and Young",
            "year": "1936",
            "url": "https://doi.org/10.1/(a)",
            "entry": "book/b.html#id1",
        },
        "jl": {"author": "Johnson", "year": "1984", "url": "", "entry": "book/b.html#id2"},
    },
    "objects": {"pkg.svd": "book/api.html#module-pkg.svd", "pkg.svd.cut": "book/api.html#pkg.svd.cut"},
    "terms": {"stable rank": {"page": "book/words.html", "anchor": "term-stable-rank"}},
}
MACROS = {"R": r"\mathbb{R}", "norm": [r"\|#1\|", 1], "Rn": r"\R^n"}
BOOK = Book("https://github.com/Owner/name", "main", SITE, MACROS, REFS)


def cells(source: str, name: str = "book/02-here.md") -> list[tuple[str, str]]:
    """The cells after the one that sets up."""
    made = notebook(source, name, BOOK).cells[1:]
    return [(cell.cell_type, cell.source) for cell in made]


def plain(source: str) -> str:
    """The text of a chapter that makes one text cell."""
    ((kind, text),) = cells(source)
    assert kind == "markdown"
    return text


INLINE = {
    "equation here": ("by {eq}`eq`", "by (2.3)"),
    "equation elsewhere": ("{eq}`eq-far`", f"[(1.1)]({SITE}book/01-there.html#equation-eq-far)"),
    "citation": ("so {cite}`ey`.", "so [[Eckart and Young, 1936](https://doi.org/10.1/%28a%29)]."),
    "citation in the text": ("{cite:t}`ey` say", "Eckart and Young [[1936](https://doi.org/10.1/%28a%29)] say"),
    "two citations, one without an address": (
        "{cite:p}`ey, jl`",
        f"[[Eckart and Young, 1936](https://doi.org/10.1/%28a%29), [Johnson, 1984]({SITE}book/b.html#id2)]",
    ),
    "page": ("{doc}`01-there`", f"[There]({SITE}book/01-there.html)"),
    "page with a text": ("{doc}`the *first* <01-there>`", f"[the *first*]({SITE}book/01-there.html)"),
    "page from the root": ("{doc}`../book/notes`", f"[Notes]({SITE}book/notes.html)"),
    "theorem here": ("{prf:ref}`thm`", "Theorem 2.1"),
    "theorem elsewhere": ("{prf:ref}`thm-far`", f"[Theorem 1.2]({SITE}book/01-there.html#thm-far)"),
    "exercise": ("{ref}`ex`", "Exercise 2.1"),
    "section": ("{ref}`sec-far`", f"[Far]({SITE}book/01-there.html#sec-far)"),
    "section with a text": ("{ref}`so far <sec-far>`", f"[so far]({SITE}book/01-there.html#sec-far)"),
    "section by number": ("{numref}`sec-one`", "Section 2.1"),
    "section by number with a text": ("{numref}`part %s <sec-one>`", "part 2.1"),
    "function": ("{py:func}`pkg.svd.cut`", f"[`pkg.svd.cut()`]({SITE}book/api.html#pkg.svd.cut)"),
    "function, shortened": ("{py:func}`~pkg.svd.cut`", f"[`cut()`]({SITE}book/api.html#pkg.svd.cut)"),
    "function with a text": ("{func}`a cut <pkg.svd.cut>`", f"[`a cut`]({SITE}book/api.html#pkg.svd.cut)"),
    "module": ("{py:mod}`pkg.svd`", f"[`pkg.svd`]({SITE}book/api.html#module-pkg.svd)"),
    "link to a page": ("[x *y*](01-there.md)", f"[x *y*]({SITE}book/01-there.html)"),
    "link to a part of a page": ("[x](01-there.md#sec-far)", f"[x]({SITE}book/01-there.html#sec-far)"),
    "link without a text": ("[](01-there.md)", f"[There]({SITE}book/01-there.html)"),
    "link to a label": ("[see](#thm-far)", f"[see]({SITE}book/01-there.html#thm-far)"),
    "link within the page": ("[above](#sec-one)", "above"),
    "link to an equation": ("[](#eq)", "(2.3)"),
    "link with code": ("[`a[0]`](01-there.md)", f"[`a[0]`]({SITE}book/01-there.html)"),
    "link with a role": ("[by {eq}`eq`](01-there.md)", f"[by (2.3)]({SITE}book/01-there.html)"),
    "foreign link": ("[x](https://a.org/b#c)", "[x](https://a.org/b#c)"),
    "picture on the web": ("![x](https://a.org/b.png)", "![x](https://a.org/b.png)"),
    "code": ("``{eq}`eq` `` and `$x$`", "``{eq}`eq` `` and `$x$`"),
    "dollar": (r"5 \$ and \{x}", r"5 \$ and \{x}"),
    "maths": (r"$x \in \R^n$", r"$x \in \mathbb{R}^n$"),
    "maths with arguments": (r"$\norm{x_{i}}$ in $\Rn$", r"$\|x_{i}\|$ in $\mathbb{R}^n$"),
    "a longer name than a macro": (r"$\Rightarrow$", r"$\Rightarrow$"),
    "term": ("{term}`stable rank`", f"[stable rank]({SITE}book/words.html#term-stable-rank)"),
    "term by another word": ("{term}`it <Stable rank>`", f"[it]({SITE}book/words.html#term-stable-rank)"),
    "role over two lines": ("{py:func}`a\ncut <pkg.svd.cut>`", f"[`a cut`]({SITE}book/api.html#pkg.svd.cut)"),
}
BLOCKS = {
    "formula": ("$$\nx\n$$", "$$\nx\n$$"),
    "numbered formula": ("$$\nx\n$$ (eq)", "$$\nx \\tag{2.3}\n$$"),
    "numbered formula on a line": ("$$ x $$ (eq)", "$$\nx \\tag{2.3}\n$$"),
    "numbered formula as a directive": ("```{math}\n:label: eq\nx\n```", "$$\nx \\tag{2.3}\n$$"),
    "rows that Sphinx aligns": (
        "$$\na &= b \\\\\nc &= d\n$$",
        "$$\n\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}\n$$",
    ),
    "rows of a matrix": (
        "$$\n\\begin{pmatrix} \\begin{matrix} 1 & 2 \\end{matrix} \\\\ 3 \\end{pmatrix}\n$$",
        "$$\n\\begin{pmatrix} \\begin{matrix} 1 & 2 \\end{matrix} \\\\ 3 \\end{pmatrix}\n$$",
    ),
    "underlining line": ("$$\na\n=\nb\n$$", "$$\na\n= b\n$$"),
    "formula in a list": ("- so\n\n  $$\n  \\R\n  $$\n", "- so\n\n  $$\n  \\mathbb{R}\n  $$"),
    "formula in a sentence": ("so $$ x $$ then", "so $$ x $$ then"),
    "label and comment": ("(sec)=\n\none\n\n% hidden\n\ntwo\n\n+++\n\nthree", "one\n\ntwo\n\nthree"),
    "table": ("| a |\n|---|\n| {eq}`eq` |", "| a |\n|---|\n| (2.3) |"),
    "literal code": ("```python\n{eq}`eq` $\\R$\n```", "```python\n{eq}`eq` $\\R$\n```"),
    "note": ("```{note}\nx\n\n- y\n```", "> **Note**\n>\n> x\n>\n> - y"),
    "colons": (":::{seealso}\nx\n:::", "> **See also**\n>\n> x"),
    "titled admonition": ("```{admonition} On $\\R$\nx\n```", "> **On $\\mathbb{R}$**\n>\n> x"),
    "margin": ("```{margin}\nx\n```", "> **Aside**\n>\n> x"),
    "nested": ("````{note}\n```{tip}\nx\n```\n````", "> **Note**\n>\n> > **Tip**\n> >\n> > x"),
    "folded admonition": (
        "```{admonition} A < B\n:class: dropdown\nx\n```",
        "<details>\n<summary><b>A &lt; B</b></summary>\n\nx\n\n</details>",
    ),
    "theorem": (
        "```{prf:theorem} Best\n:label: thm\nLet $x$.\n\n$$\ny\n$$ (eq)\n```",
        "> **Theorem 2.1** (Best). Let $x$.\n>\n> $$ y \\tag{2.3} $$",
    ),
    "theorem that starts with a list": ("```{prf:theorem}\n:label: thm\n- x\n```", "> **Theorem 2.1**.\n>\n> - x"),
    "unnumbered theorem": ("```{prf:lemma}\n:nonumber:\nx\n```", "> **Lemma**. x"),
    "proof": ("```{prf:proof}\nBy {eq}`eq`.\n```", "*Proof.* By (2.3)."),
    "folded proof": (
        "```{prf:proof}\n:class: dropdown\nx\n```",
        "<details>\n<summary><b>Proof</b></summary>\n\nx\n\n</details>",
    ),
    "exercise": ("```{exercise} Try\n:label: ex\nx\n```", "**Exercise 2.1** (Try)\n\nx"),
    "solution": (
        "```{solution} ex\n:class: dropdown\nBy {eq}`eq`.\n```",
        "<details>\n<summary><b>Solution to Exercise 2.1 (Try)</b></summary>\n\nBy (2.3).\n\n</details>",
    ),
}


@pytest.mark.parametrize(("myst", "markdown"), (INLINE | BLOCKS).values(), ids=INLINE | BLOCKS)
def test_construct_becomes_plain_markdown(myst, markdown):
    assert plain(myst) == markdown


def test_headings_open_cells_and_carry_the_numbers_of_the_site():
    title, one, two = (text for _, text in cells("# Here\n\nx\n\n## One\n\ny\n\n(sec)=\n### Two `k` {eq}`eq`"))
    assert title == (
        f"# 2. Here\n\n*A chapter of [an interactive book]({SITE}); [read it there]({SITE}book/02-here.html).*\n\nx"
    )
    assert (one, two) == ("## 2.1. One\n\ny", "### 2.2. Two `k` (2.3)")


def test_pages_without_numbers_stay_without():
    assert [text.splitlines()[0] for _, text in cells("# Notes\n\n## A\n", "book/notes.md")] == ["# Notes", "## A"]


def test_a_solution_with_code_is_folded_around_it():
    source = """```{solution-start} ex-bare
:class: dropdown
```

First.

```{code-cell} ipython3
assert True
```

```{code-cell} ipython3
1
```

Last.

```{solution-end}
```

After.
"""
    title = "Solution to Exercise 2.2"
    made = notebook(source, "book/02-here.md", BOOK).cells[1:]
    assert [cell.source for cell in made] == [
        f"<details>\n<summary><b>{title}</b></summary>\n\nFirst.\n\n</details>",
        f"# @title {title}\nassert True",
        f"# @title {title}\n1",
        f"<details>\n<summary><b>{title}</b></summary>\n\nLast.\n\n</details>\n\nAfter.",
    ]
    assert made[1].metadata == {"cellView": "form", "jupyter": {"source_hidden": True}}


def test_an_exercise_may_hold_code():
    source = "```{exercise-start} Try\n:label: ex\n```\n\nRun:\n\n```{code-cell}\n1\n```\n\n```{exercise-end}\n```\n"
    assert cells(source) == [("markdown", "**Exercise 2.1** (Try)\n\nRun:"), ("code", "1")]


@pytest.mark.parametrize(
    ("options", "source", "metadata"),
    [
        ("", "x", {}),
        (":tags: [hide-output]\n", "x", {}),
        ("---\nmystnb:\n  image:\n    alt: A line\n---\n", "x", {}),
        (
            ":tags: [hide-input]\n",
            "# @title Show the code\nx",
            {"cellView": "form", "jupyter": {"source_hidden": True}},
        ),
        (
            "---\ntags: [hide-cell]\nmystnb: {code_prompt_show: Draw}\n---\n",
            "# @title Draw\nx",
            {"cellView": "form", "jupyter": {"source_hidden": True}},
        ),
    ],
)
def test_a_code_cell_keeps_only_its_folding(options, source, metadata):
    (cell,) = notebook(f"```{{code-cell}} ipython3\n{options}x\n```", "book/02-here.md", BOOK).cells[1:]
    assert (cell.source, cell.metadata) == (source, metadata)
    assert (cell.outputs, cell.execution_count) == ([], None)


def test_a_cell_for_the_site_alone_is_left_out():
    assert cells("a\n\n```{code-cell}\n:tags: [remove-cell]\nx\n```\n\nb") == [("markdown", "a\n\nb")]


def test_the_first_cell_installs_from_the_repository_and_leaves_torch_alone():
    (setup,) = notebook("", "book/02-here.md", BOOK).cells
    assert '    %pip install -q --no-deps "git+https://github.com/Owner/name@main"\n' in setup.source
    assert "torch" not in setup.source


@pytest.mark.parametrize("line", ["import torch", "from torch import nn", "from lowrank_tutor.attention import x"])
def test_the_first_cell_names_the_device_when_the_chapter_needs_torch(line):
    setup = notebook(f"```{{code-cell}}\n{line}\n```", "book/02-here.md", BOOK).cells[0]
    assert "\nimport torch\n" in setup.source
    assert "torch.cuda.is_available()" in setup.source


def test_frontmatter_can_ask_for_a_gpu():
    assert "accelerator" not in notebook("x", "book/02-here.md", BOOK).metadata
    assert notebook("---\naccelerator: GPU\n---\nx", "book/02-here.md", BOOK).metadata["accelerator"] == "GPU"


def test_ids_are_unique_repeatable_and_stay_when_other_cells_change():
    twice = "```{code-cell}\nx\n```\n\n```{code-cell}\nx\n```\n"
    ids = [cell.id for cell in notebook(twice, "book/02-here.md", BOOK).cells]
    later = [cell.id for cell in notebook("new\n\n" + twice, "book/02-here.md", BOOK).cells]
    assert len(set(ids)) == 3
    assert set(ids) < set(later)


REFUSED = {
    "unknown directive": ("a\n\n```{figure} x.png\n```", 3, "the directive {figure}"),
    "unknown directive in colons": (":::{grid}\n:::", 1, "the directive {grid}"),
    "unknown directive inside another": ("````{note}\nx\n\n```{figure} x.png\n```\n````", 4, "the directive {figure}"),
    "unknown role": ("a\nb {kbd}`x`", 2, "the role {kbd}"),
    "unknown role inside a theorem": ("```{prf:theorem}\n:label: thm\n\na {abbr}`x`\n```", 4, "the role {abbr}"),
    "unknown option": ("```{note}\n:width: 3\nx\n```", 2, "['width']"),
    "unknown tag": ("```{code-cell}\n:tags: [raises-exception]\nx\n```", 1, "raises-exception"),
    "directive in a list": ("- a\n\n  ```{note}\n  x\n  ```", 3, "left margin"),
    "cell inside a directive": ("````{note}\n```{code-cell}\nx\n```\n````", 1, "holds a cell or heading"),
    "heading inside a directive": ("```{note}\n## One\n```", 1, "holds a cell or heading"),
    "theorem without a label": ("```{prf:theorem}\nx\n```", 1, "needs a :label:"),
    "equation that is not there": ("a\n\nb {eq}`none`", 3, "'none' is not among the book's equations"),
    "formula with a label of nothing": ("$$\nx\n$$ (none)", 1, "'none' is not among the book's equations"),
    "source that is not there": ("{cite}`none`", 1, "'none' is not among the book's citations"),
    "page that is not there": ("[x](none.md)", 1, "'book/none' is not among the book's docs"),
    "place that is not there": ("[x](01-there.md#none)", 1, "'none' is not among the book's labels"),
    "file": ("[x](data.csv)", 1, "'data.csv' is not among the book's labels"),
    "function that is not there": ("{py:func}`pkg.none`", 1, "'pkg.none' is not among the book's objects"),
    "local picture": ("a\n\n![x](x.png)", 3, "image is outside"),
    "bare environment": ("\\begin{align}\nx\n\\end{align}", 1, "amsmath is outside"),
    "definition list": ("a\n: b", 1, "dl is outside"),
    "substitution": ("{{ x }}", 1, "substitution"),
    "footnote": ("a[^1]\n\n[^1]: b", 1, "footnote"),
    "underlined heading": ("One\n===", 1, "must start with #"),
    "raw HTML": ("<details>\nx\n</details>", 1, "html_block is outside"),
}


@pytest.mark.parametrize(("source", "line", "why"), REFUSED.values(), ids=REFUSED)
def test_everything_else_is_refused_with_file_and_line(source, line, why):
    with pytest.raises(UnsupportedError) as refusal:
        notebook(source, "book/02-here.md", BOOK)
    assert str(refusal.value).startswith(f"book/02-here.md:{line}: ")
    assert why in str(refusal.value)

"""What becomes of roles, links and formulas when only plain Markdown is understood.

Roles turn into the names and numbers that the site shows, links into absolute ones, the book's own TeX macros into TeX.
"""

import posixpath
import re
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

PYTHON_ROLES = {"func", "meth", "class", "mod", "attr", "data", "exc"}

INLINE = re.compile(
    r"\\[^\n]"
    r"|\{(?P<role>[\w:+-]+)\}(?P<mark>`+)(?P<content>[^`]+)(?P=mark)"
    r"|(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`)"
    r"|\$\$(?P<display>.+?)\$\$(?:[ \t]*\((?P<label>[^()\n]+)\))?"
    r"|\$(?P<math>(?:\\.|[^$\\])+)\$"
    r"|\[(?P<text>(?:`[^`]*`|[^\[\]`])*)\]\((?P<url>[^()\s]+)\)",
    re.DOTALL,
)


class UnsupportedError(ValueError):
    """The chapter uses something outside the closed set, or refers to something that is not there."""


class Book(NamedTuple):
    """What a notebook must know of the book around it."""

    repository: str
    branch: str
    site: str  # ends in a slash
    macros: dict[str, Any]  # as MathJax takes them: "R": "\\mathbb{R}", "norm": ["\\|#1\\|", 1]
    refs: dict[str, dict[str, Any]]  # as _ext/bookrefs.py writes them


class Inline:
    """Translates the text of one chapter; ``line`` is always the index of the first line of what is passed."""

    def __init__(self, name: str, book: Book) -> None:
        self.name, self.book = name, book
        self.doc = name.removesuffix(".md")
        self.here = book.refs["docs"][self.doc]

    def refuse(self, line: int, why: str) -> UnsupportedError:
        """Return the error that names file and line."""
        return UnsupportedError(f"{self.name}:{line + 1}: {why}")

    def translate(self, text: str, line: int) -> str:
        """Return the text without any MyST; code and what is escaped stay as they are."""

        def one(m: re.Match[str]) -> str:
            at = line + text.count("\n", 0, m.start())
            if m["role"]:
                return self._role(m["role"].removeprefix("py:"), " ".join(m["content"].split()), at)
            if m["display"]:
                before = text[: m.start()].rpartition("\n")[2]
                formula = self.display(m["display"], m["label"], at)
                return one_line(formula) if before.strip() else formula.replace("\n", "\n" + before)
            if m["math"]:
                return f"${expand(m['math'], self.book.macros)}$"
            return self._link(m["url"], self.translate(m["text"], at), at) if m["url"] else m[0]

        return INLINE.sub(one, text)

    def display(self, tex: str, label: str | None, line: int) -> str:
        """Return one displayed formula, with the site's number as its tag."""
        tex = expand(tex.strip(), self.book.macros)
        if re.search(r"\\\\|&", outside_environments(tex)):  # rows that Sphinx aligns by itself
            tex = f"\\begin{{aligned}}\n{tex}\n\\end{{aligned}}"
        if label:
            tex += f" \\tag{{{self.find('equations', label, line)['number']}}}"
        tex = re.sub(r"\n[ \t]*([=-]+)[ \t]*\n[ \t]*", r"\n\1 ", tex)  # alone on a line it would underline a heading
        return f"$$\n{tex}\n$$"

    def find(self, kind: str, name: str, line: int) -> Any:
        """Look a name up in what the book wrote down."""
        if name not in self.book.refs[kind]:
            raise self.refuse(line, f"{name!r} is not among the book's {kind}")
        return self.book.refs[kind][name]

    def _role(self, name: str, content: str, line: int) -> str:
        custom = re.fullmatch(r"(.*?)\s*<([^<>]+)>", content)
        text, to = custom.groups() if custom else ("", content)
        if name in {"cite", "cite:p", "cite:t"}:
            return self._cite([self.find("citations", key.strip(), line) for key in to.split(",")], name == "cite:t")
        if name == "eq":
            there = self.find("equations", to, line)
            return self._to(there, f"({there['number']})")
        if name == "doc":
            return self._link(f"{to}.md", text, line)
        if name in {"ref", "numref", "prf:ref"}:
            return self._named(to, text, line, by_number=name == "numref")
        if name == "term":
            return self._to(self.find("terms", to.lower(), line), text or to)
        if name in PYTHON_ROLES:
            shown = text or (to.rpartition(".")[2] if to.startswith("~") else to) + "()" * (name in {"func", "meth"})
            return f"[`{shown}`]({self.book.site}{self.find('objects', to.lstrip('~'), line)})"
        raise self.refuse(line, f"the role {{{name}}} is outside the closed set of MyST")

    def _cite(self, works: list[dict[str, str]], in_text: bool) -> str:
        # Author and year as on the site, but the link leads to the work itself.
        urls = [quote(work["url"], safe=":/?&=#%~+") or self.book.site + work["entry"] for work in works]
        if in_text:
            named = [f"{work['author']} [[{work['year']}]({url})]" for work, url in zip(works, urls, strict=True)]
            return ", ".join(named)
        named = [f"[{work['author']}, {work['year']}]({url})" for work, url in zip(works, urls, strict=True)]
        return f"[{', '.join(named)}]"

    def _link(self, url: str, text: str, line: int) -> str:
        if urlsplit(url).scheme:
            return f"[{text}]({url})"
        path, _, anchor = url.partition("#")
        if not path.endswith(".md"):
            return self._named(anchor or path, text, line)
        doc = posixpath.normpath(posixpath.join(posixpath.dirname(self.doc), path.removesuffix(".md")))
        page = self.find("docs", doc, line)
        return self._named(anchor, text, line) if anchor else self._to(page, text or page["title"])

    def _named(self, label: str, text: str, line: int, by_number: bool = False) -> str:
        # Theorems, exercises and equations go by their number, sections by their title or, when asked, their number.
        refs = self.book.refs
        if label in refs["equations"]:
            there = refs["equations"][label]
            name = f"({there['number']})"
        elif label in refs["items"]:
            there = refs["items"][label]
            name = f"{there['kind'].title()} {there['number']}"
        else:
            there = self.find("labels", label, line)
            name = f"Section {there['number']}" if by_number else there["title"]
        return self._to(there, text.replace("%s", there["number"]).replace("{number}", there["number"]) or name)

    def _to(self, there: dict[str, str], text: str) -> str:
        # What stands in this very notebook is only named; the rest is on the site.
        if there["page"] == self.here["page"]:
            return text
        return f"[{text}]({self.book.site}{there['page']}{'#' + there['anchor'] if 'anchor' in there else ''})"


def one_line(formula: str) -> str:
    """Return a formula on one line, as it must be where each line carries a mark or stands in a sentence."""
    return " ".join(formula.split())


def outside_environments(tex: str) -> str:
    """Return the formula without its environments, taken out from the innermost."""
    while (less := re.sub(r"\\begin\{(\w+\*?)\}(?:(?!\\begin).)*?\\end\{\1\}", "", tex, flags=re.DOTALL)) != tex:
        tex = less
    return tex


def expand(tex: str, macros: dict[str, Any]) -> str:
    r"""Replace the book's own macros, such as ``\R``: a notebook's hold only within their own cell."""
    for name, macro in macros.items():
        body, count = macro if isinstance(macro, list) else (macro, 0)
        pattern = rf"\\{name}(?![A-Za-z])" + r"\s*\{((?:[^{}]|\{[^{}]*\})*)\}" * count
        if m := re.search(pattern, tex):
            filled = re.sub(r"#(\d)", lambda n, m=m: m[int(n[1])], body)
            return expand(tex[: m.start()] + filled + tex[m.end() :], macros)
    return tex

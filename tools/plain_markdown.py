"""How a chapter, written in MyST, reads in plain Markdown.

``Chapter(text, name, book).parts()`` answers with text, code cells and folds. It knows the closed set of directives
named below and refuses everything else with file and line, so that nothing unreadable reaches a notebook.
"""

import html
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import yaml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from plain_inline import Book, Inline, one_line

SYNTAX = {"amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "strikethrough", "substitution"}
MARKDOWN = create_md_parser(MdParserConfig(enable_extensions=SYNTAX), RendererHTML)

# Plain Markdown that every notebook shows alike, and the MyST that is translated; other syntax is refused.
ALLOWED = set(
    "paragraph heading bullet_list ordered_list list_item blockquote table thead tbody tr th td strong em link inline "
    "text text_special code_inline softbreak hardbreak hr fence math_inline math_inline_double math_block "
    "math_block_label myst_role myst_target myst_line_comment myst_block_break front_matter colon_fence".split()
)
ADMONITIONS = "admonition attention caution danger error hint important margin note seealso tip warning".split()
THEOREMS = "theorem lemma corollary proposition definition example remark".split()
OPTIONS = {"label", "class", "name", "nonumber", "tags", "mystnb"}
FOLDING_TAGS = {"hide-input", "hide-cell"}
# "remove-input" hides code that the site has no use for and the notebook has: an answer is typed into it.
TAGS = FOLDING_TAGS | {"remove-input", "hide-output", "remove-cell"}  # no raises-exception: "Run all" would stop


class Text(NamedTuple):
    """Markdown; a heading opens a new cell."""

    text: str
    opens: bool = False


class Code(NamedTuple):
    """A code cell; with a title, its code is folded under it."""

    source: str
    title: str


class Fold(NamedTuple):
    """What follows is folded under this title, until a Fold without one."""

    title: str


class Directive(NamedTuple):
    """A directive on ``line``; its body is the lines ``begin .. end``."""

    name: str
    argument: str
    options: dict[str, Any]
    line: int
    begin: int
    end: int


Parts = Iterator[Text | Code | Fold]


class Chapter:
    """One chapter, kept as its lines, so that whatever is refused can be named by its line."""

    def __init__(self, text: str, name: str, book: Book) -> None:
        self.lines, self.inline = text.splitlines(), Inline(name, book)
        self.sections = iter(self.inline.here["sections"])
        self.front: dict[str, Any] = {}

    def parts(self, begin: int = 0, end: int | None = None) -> Parts:
        """Translate the lines ``begin .. end``, cut at everything that is more than plain Markdown."""
        end = len(self.lines) if end is None else end
        done = begin
        for token in MARKDOWN.parse("\n".join(self.lines[begin:end])):
            self._check(token, begin)
            if token.level == 0 and token.map and token.type in CUTS:
                first, last = begin + token.map[0], begin + token.map[1]
                yield self._text(done, first)
                yield from CUTS[token.type](self, token, first, last)
                done = last
        yield self._text(done, end)

    def _check(self, token: Token, begin: int, line: int = 0) -> None:
        line = token.map[0] if token.map else line
        kind = token.type.removesuffix("_open").removesuffix("_close")
        on_the_web = kind == "image" and str(token.attrs["src"]).startswith("https://")
        if kind not in ALLOWED and not on_the_web:
            what = f"{kind} is outside the closed set of MyST: {token.content.strip()!r}"
            raise self.inline.refuse(begin + line, what)
        if token.level and token.info.startswith("{"):
            raise self.inline.refuse(begin + line, f"{token.info} must stand at the left margin, not in a list")
        for child in token.children or []:
            self._check(child, begin, line)

    def _text(self, begin: int, end: int) -> Text:
        return Text(self.inline.translate("\n".join(self.lines[begin:end]), begin).strip("\n"))

    # What the text is cut at

    def _frontmatter(self, token: Token, first: int, last: int) -> Parts:
        self.front = yaml.safe_load(token.content)
        yield from ()

    def _dropped(self, token: Token, first: int, last: int) -> Parts:
        yield from ()

    def _heading(self, token: Token, first: int, last: int) -> Parts:
        if not token.markup.startswith("#"):
            raise self.inline.refuse(first, "a heading must start with #, not be underlined")
        page, site = self.inline.here, self.inline.book.site
        number = (page if token.tag == "h1" else next(self.sections))["number"]
        title = self.inline.translate(self.lines[first].strip("# "), first)
        yield Text(f"{token.markup} {number + '. ' if number else ''}{title}", opens=True)
        if token.tag == "h1":
            yield Text(f"*A chapter of [an interactive book]({site}); [read it there]({site}{page['page']}).*")

    def _fence(self, token: Token, first: int, last: int) -> Parts:
        if not token.info.startswith("{"):  # code to be read, not run
            yield Text("\n".join(self.lines[first:last]))
            return
        name, argument = re.match(r"\{([^}]*)\}\s*(.*)", token.info).groups()
        if name not in DIRECTIVES:
            raise self.inline.refuse(first, f"the directive {{{name}}} is outside the closed set of MyST")
        options, begin = self._options(first + 1, last - 1)
        it = Directive(name.removeprefix("prf:"), argument.strip(), options, first, begin, last - 1)
        yield from DIRECTIVES[name](self, it)

    def _options(self, line: int, end: int) -> tuple[dict[str, Any], int]:
        """Read the options, lines ``:key: value`` or YAML between dashes; return them and where the body starts."""
        begin, rules = line, [i for i in range(line, end) if self.lines[i].strip() == "---"]
        if rules[:1] == [line]:
            found, begin = yaml.safe_load("\n".join(self.lines[line + 1 : rules[1]])), rules[1] + 1
        else:
            while begin < end and re.match(r":[\w-]+:", self.lines[begin]):
                begin += 1
            pairs = [self.lines[i][1:].split(":", 1) for i in range(line, begin)]
            found = {key: yaml.safe_load(value) for key, value in pairs}
        if unknown := found.keys() - OPTIONS:
            raise self.inline.refuse(line, f"options {sorted(unknown)} are outside the closed set of MyST")
        return found, begin

    # Directives

    def _code(self, it: Directive) -> Parts:
        tags = set(it.options.get("tags") or ())
        if tags - TAGS:
            raise self.inline.refuse(it.line, f"cell tags must be among {sorted(TAGS)}, got {sorted(tags)}")
        if "remove-cell" not in tags:  # such a cell serves the site alone
            prompt = (it.options.get("mystnb") or {}).get("code_prompt_show", "Show the code")
            source = "\n".join(self.lines[it.begin : it.end]).strip("\n")
            yield Code(source, prompt if tags & FOLDING_TAGS else "")

    def _math(self, it: Directive) -> Parts:
        tex = "\n".join(self.lines[it.begin : it.end])
        yield Text(self.inline.display(tex, it.options.get("label"), it.line))

    def _admonition(self, it: Directive) -> Parts:
        names = {"seealso": "See also", "margin": "Aside"}
        title = self.inline.translate(it.argument, it.line) or names.get(it.name, it.name.title())
        body = self._nested(it)
        yield Text(details(title, body) if folds(it) else quoted(f"**{title}**\n\n{body}"))

    def _theorem(self, it: Directive) -> Parts:
        name, title, body = self._numbered(it), self._title(it), self._nested(it)
        yield Text(details(name + title, body) if folds(it) else quoted(run_in(f"**{name}**{title}.", body)))

    def _proof(self, it: Directive) -> Parts:
        body = self._nested(it)
        yield Text(details("Proof", body) if folds(it) else run_in("*Proof.*", body))

    def _exercise(self, it: Directive) -> Parts:
        yield Text(f"**{self._numbered(it)}**{self._title(it)}")
        yield from self.parts(it.begin, it.end)

    def _solution(self, it: Directive) -> Parts:
        exercise = self.inline.find("items", it.argument, it.line)
        title = f" ({exercise['title']})" if exercise["title"] else ""
        yield Fold(f"Solution to Exercise {exercise['number']}{title}")
        if it.name == "solution":
            yield Text(self._nested(it))
            yield Fold("")

    def _gate(self, it: Directive) -> Parts:
        yield Fold("")

    def _nested(self, it: Directive) -> str:
        parts = list(self.parts(it.begin, it.end))
        if not all(isinstance(part, Text) and not part.opens for part in parts):
            raise self.inline.refuse(it.line, f"{{{it.name}}} holds a cell or heading; solution-start ... -end may")
        return join(part.text for part in parts)

    def _title(self, it: Directive) -> str:
        return f" ({self.inline.translate(it.argument, it.line)})" if it.argument else ""

    def _numbered(self, it: Directive) -> str:
        name = it.name.removesuffix("-start").title()
        if "nonumber" in it.options:
            return name
        if "label" not in it.options:
            raise self.inline.refuse(it.line, f"{{{it.name}}} needs a :label:, by which the notebook learns its number")
        return f"{name} {self.inline.find('items', it.options['label'], it.line)['number']}"


CUTS = {
    "front_matter": Chapter._frontmatter,
    "heading_open": Chapter._heading,
    "fence": Chapter._fence,
    "colon_fence": Chapter._fence,
    "myst_target": Chapter._dropped,
    "myst_line_comment": Chapter._dropped,
    "myst_block_break": Chapter._dropped,
}
DIRECTIVES = {
    **dict.fromkeys(ADMONITIONS, Chapter._admonition),
    **dict.fromkeys([f"prf:{kind}" for kind in THEOREMS], Chapter._theorem),
    **dict.fromkeys(["exercise", "exercise-start"], Chapter._exercise),
    **dict.fromkeys(["solution", "solution-start"], Chapter._solution),
    **dict.fromkeys(["exercise-end", "solution-end"], Chapter._gate),
    "prf:proof": Chapter._proof,
    "code-cell": Chapter._code,
    "math": Chapter._math,
}


def folds(it: Directive) -> bool:
    """Whether the site shows the directive folded."""
    return "dropdown" in (it.options.get("class") or "").split()


def join(texts: Iterable[str]) -> str:
    """Return the blocks of text as one."""
    return "\n\n".join(text for text in texts if text)


def run_in(title: str, body: str) -> str:
    """Put the title on the first line of a paragraph, but not before a list, a formula, a table or a quotation."""
    return f"{title}\n\n{body}" if re.match(r"\$\$|[-*+>] |\d+[.)] |```|\||<", body) else f"{title} {body}"


def quoted(body: str) -> str:
    """Return a block quote; formulas go on one line, or its marks would be read as part of them."""
    body = re.sub(r"\$\$\n.*?\n[ \t]*\$\$", lambda m: one_line(m[0]), body, flags=re.DOTALL)
    return "\n".join(f"> {line}".rstrip() for line in body.splitlines())


def details(title: str, body: str) -> str:
    """Fold the body away; the blank lines make it Markdown again."""
    return f"<details>\n<summary><b>{html.escape(title, quote=False)}</b></summary>\n\n{body}\n\n</details>"

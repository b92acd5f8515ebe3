"""A block: whatever moves or asks, as HTML, data, and the files that bring it to life.

A block has two faces. Inline it carries its styles and scripts and works wherever its HTML stands:
in a notebook, on a page of another tool, in a file. Linked it holds words and data alone; the page
loads the files once, as :mod:`lowrank_tutor.kit.sphinxext` tells it to, so that a change of style
runs no cell.
"""

import functools
import hashlib
import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import lowrank_tutor.kit.palette as palette
from lowrank_tutor.kit.environment import page_links_files

SHARED_STYLE = "kit/block.css"  # beside the colors of the palette
BLOCKS = ":is(.explorer, .instrument, .check)"
DECLARED = re.compile(r"^(?:const|var|let) (\w+)", re.MULTILINE)


def asset(path: str) -> str:
    """Read a text file of the package, such as ``kit/block.css``."""
    return files("lowrank_tutor").joinpath(path).read_text("utf-8")


def _as_code(path: str) -> str:
    name = Path(path).stem.replace("-", "_")
    return (
        f"const {name} = {json.dumps(json.loads(asset(path)))};\n"
        if path.endswith(".json")
        else asset(path)
    )


def literal(value: object) -> str:
    """Write plain data as JSON that can stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


@dataclass(frozen=True)
class Script:
    """Script files joined so that each sees the names declared before it, and nobody else does.

    A block calls the function ``start`` with its element. With an ``engine``, the files also see
    its names, and its function ``mount`` starts the block: ``mount(element, start)``.
    """

    start: str
    files: tuple[str, ...]
    engine: "Script | None" = None

    @property
    def chain(self) -> "list[Script]":
        """The engines, the first of which needs no other, and then the script."""
        return [*(self.engine.chain if self.engine else []), self]

    @functools.cached_property
    def text(self) -> str:
        """The joined files; a file of data becomes a constant such as ``some_data``."""
        return "".join(map(_as_code, self.files))

    @property
    def declared(self) -> list[str]:
        """The names that the files and the engine declare at their left margin."""
        return [*(self.engine.declared if self.engine else []), *DECLARED.findall(self.text)]

    @property
    def names(self) -> str:
        """These names as the members of an object."""
        return f"{{ {', '.join(self.declared)} }}"

    @property
    def source(self) -> str:
        """The files as one function, which returns an object of what they declare."""
        code = re.sub(
            r"(?m)^ *(//.*\n|/\*\*.*\*/\n)?", "", self.text
        )  # no indents, no lines of comments
        return f"({self.engine.names if self.engine else ''}) => {{\n{code}return {self.names};\n}}"

    @property
    def place(self) -> str:
        """Where a page keeps that object.

        Outputs of different versions can share a notebook, so its text names it.
        """
        text = self.source + (self.engine.source if self.engine else "")
        return f'lowrankTutor["{hashlib.sha256(text.encode()).hexdigest()[:8]}"]'

    @property
    def definition(self) -> str:
        """The statement that puts the object there."""
        argument = self.engine.place if self.engine else ""
        return f"window.lowrankTutor ??= {{}};\n{self.place} ??= ({self.source})({argument});\n"

    def starting(self, element: str) -> str:
        """Write the statement that brings an element to life."""
        start = f"{self.place}.{self.start}"
        return (
            f"{self.engine.place}.mount({element}, {start});"
            if self.engine
            else f"{start}({element});"
        )

    @property
    def file_name(self) -> str:
        """What a site calls the joined file, without its ending."""
        return re.sub("[A-Z]", lambda letter: f"-{letter[0].lower()}", self.start)

    def reference(self) -> str:
        """Name the files for a page: the engine's first, the start before its files."""
        own = " ".join((self.start, *self.files))
        return f"{self.engine.reference()}; {own}" if self.engine else own


def scripts_named(reference: str) -> list[Script]:
    """Return the scripts that :meth:`Script.reference` names, the engine first."""
    scripts: list[Script] = []
    for start, *paths in filter(None, map(str.split, reference.split(";"))):
        scripts.append(Script(start, tuple(paths), scripts[-1] if scripts else None))
    return scripts


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of a page: an element with its first content, data, scripts, and styles."""

    kind: str  # its class: explorer, instrument, or check
    name: str
    first: str  # HTML
    data: object  # plain
    script: Script
    styles: tuple[str, ...]  # files of the package, after those that all blocks share
    tag: str = "figure"
    attributes: Mapping[str, str] = field(default_factory=dict)

    def to_html(self, *, linked: bool | None = None) -> str:
        """Return the element, with its scripts and styles inside or linked to files of its page.

        By default it is linked where a page is being built that loads them
        (:mod:`lowrank_tutor.kit.environment`).
        """
        linked = page_links_files() if linked is None else linked
        attributes = {"class": self.kind, "data-name": self.name, **self.attributes}
        if linked:
            attributes |= {
                "data-scripts": self.script.reference(),
                "data-styles": " ".join(self.styles),
            }
        written = "".join(f' {name}="{html.escape(value)}"' for name, value in attributes.items())
        styles, scripts = "", ""
        if not linked:
            start = self.script.starting(f'document.currentScript.closest("{self.tag}")')
            defined = [script.definition for script in self.script.chain]
            styles = style(self.styles)
            scripts = "".join(f"<script>{code}</script>\n" for code in (*defined, start))
        data = f'<script type="application/json">{literal(self.data)}</script>'
        return f"<{self.tag}{written}>\n{styles}{self.first}\n{data}\n{scripts}</{self.tag}>"


def style(paths: Iterable[str]) -> str:
    """Return style elements: the colors and the sheet that all blocks share, and others."""
    shared = palette.css(BLOCKS) + sheet(SHARED_STYLE)
    return f"<style>{shared}{''.join(map(sheet, paths))}</style>\n"


def sheet(path: str) -> str:
    """Read a style sheet without indents and comments."""
    return re.sub(r"(?s)/\*.*?\*/\n?|(?m:^ +)", "", asset(path))

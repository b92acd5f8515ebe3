"""The colors of the book: figures, pages, landing cards and logo all take them from here.

One color stands for one idea, in every figure, on every page. Pairs that meet in a figure differ
for people who see no red or no green, too, and all of them where words are written in them.
"""

from typing import NamedTuple


class Color(NamedTuple):
    """One color in three shades."""

    light: str  # on white or light paper: lines at least 3 : 1, words at least 4.5 : 1
    dark: str  # on a dark page
    either: str  # for pictures that cannot tell which page they stand on


COLORS = {
    "teal": Color("#0b6e83", "#5cc3d8", "#1d93aa"),  # kept, approximate: the method in question
    "orange": Color("#b84a00", "#ff9b5c", "#d0713a"),  # what is lost: error, residual
    "violet": Color("#5b3fb5", "#b9a5ff", "#8468dc"),  # a second method, or below zero
    "gray": Color("#8a919a", "#747d89", "#8b929b"),  # dropped, left out; never a word
    "green": Color(
        "#00795a", "#6fcf8a", "#2f9c70"
    ),  # an answer that is right, a promise that holds
}
SURFACES = {
    "ink": Color(
        "#1c2430", "#e9edf2", "#69727f"
    ),  # words, what is chosen, and what is exact: an outline or a full line
    "muted": Color(
        "#566173", "#9aa7b8", "#69727f"
    ),  # words that may be passed over, such as captions
    "paper": Color("#fffdf9", "#13161b", "#fffdf9"),  # what all of it stands on
    "rule": Color("#e3dfd6", "#2b313b", "#8b929b"),  # thin lines between parts
}
# How a page says that it is dark: this site's theme, Jupyter Book 2, Google Colab, JupyterLab.
DARK = ':is(html[data-theme="dark"], html.dark, html[theme="dark"], [data-jp-theme-light="false"])'


def css(selector: str = "") -> str:
    """Return rules that define each color as a variable such as ``--teal``.

    They hold for a selector or the whole page. A page of this site has surfaces, too. Blocks that
    stand elsewhere take those of the page around them (page.css).
    """
    colors = COLORS if selector else COLORS | SURFACES
    light, dark = (
        "".join(f"--{name}:{getattr(color, shade)};" for name, color in colors.items())
        for shade in ("light", "dark")
    )
    light += "--blend:multiply;"  # the page shows through the white paper of line art
    dark += "--invert:invert(1) hue-rotate(180deg);--blend:screen;"
    # A page is printed in dark ink.
    return f"{selector or ':root'}{{{light}}}\n@media screen{{{DARK} {selector}{{{dark}}}}}\n"

"""The colors of the book: figures, pages, landing cards and logo all take them from here."""

from typing import NamedTuple


class Color(NamedTuple):
    """One color in three shades."""

    light: str  # on white paper: at least 4 : 1
    dark: str  # on a dark page
    either: str  # for pictures that cannot tell which page they stand on


COLORS = {
    "teal": Color("#0b6e83", "#5cc3d8", "#1d93aa"),
    "orange": Color("#b84a00", "#f0a36b", "#d0713a"),
    "violet": Color("#6a4c93", "#b79ae0", "#8b6fc9"),
    "pink": Color("#a44a7d", "#e39ac4", "#c46aa0"),
    "gray": Color("#757b82", "#9aa1a9", "#9aa1a9"),
    "green": Color("#00795a", "#6fcf8a", "#2f9c70"),
    "amber": Color("#a06d00", "#c98500", "#c98500"),
}
# How a page says that it is dark: this site's theme, Jupyter Book 2, Google Colab, JupyterLab.
DARK = ':is(html[data-theme="dark"], html.dark, html[theme="dark"], [data-jp-theme-light="false"])'


def css(selector: str = "") -> str:
    """Return rules that define each color as a variable such as ``--teal``, for a selector or the whole page."""
    light, dark = (
        "".join(f"--{name}:{getattr(color, shade)};" for name, color in COLORS.items()) for shade in ("light", "dark")
    )
    dark += "--invert:invert(1) hue-rotate(180deg);--blend:screen;"  # for line art
    return f"{selector or ':root'}{{{light}}}\n{DARK} {selector}{{{dark}}}\n"

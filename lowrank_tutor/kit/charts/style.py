"""Give every figure the same colors, sizes and style, without changing anybody's settings.

Sizes are chosen for the narrowest screen. A phone of 360 pixels gives a figure 328 of them, so that
on a figure of 4.5 inches a point is a pixel, and type of 9 points is 9 pixels high. A wider picture
is split into :class:`Panels`.
"""

import functools
import html
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.text import Text

from lowrank_tutor.kit.environment import page_is_built
from lowrank_tutor.kit.images import pixels, png
from lowrank_tutor.kit.palette import COLORS, SURFACES

P = ParamSpec("P")

# One color, one idea (palette.py): against white each is at least 3 : 1, and all but gray 4.5 : 1,
# for words are written in them. Lines differ in more than color.
TEAL, ORANGE, VIOLET, GRAY, GREEN = (color.light for color in COLORS.values())
INK, MUTED = SURFACES["ink"].light, SURFACES["muted"].light
HIDDEN = COLORS["orange"].either
# The method, a second one, a baseline, what is exact; a fifth line has the color of the first, and
# other dashes.
LINES = ((TEAL, "-"), (VIOLET, "--"), (GRAY, "-."), (INK, ":"), (TEAL, (0, (6, 1, 1, 1, 1, 1))))
CYCLE = cycler(color=[color for color, _ in LINES], linestyle=[dashes for _, dashes in LINES])
STYLE: Any = ["lowrank_tutor.kit.charts.lowrank", {"axes.prop_cycle": CYCLE}]
# Every table that is no photograph is drawn by one of two maps, whose white is the paper: entries
# of both signs, with equal limits on either side of zero; and weights or other entries that are not
# negative, from zero on.
SIGNED = LinearSegmentedColormap.from_list("signed", (VIOLET, "white", TEAL))
WEIGHTS = LinearSegmentedColormap.from_list("weights", ["white", TEAL])

WIDTH = 4.5  # inches: the widest figure whose type can be read on a phone
# On a page an inch is shown on 104 pixels (site/theme/trees.py): twice as many for sharp screens.
PAGE_DPI = 208
PHOTOGRAPH = "photograph"  # the group identifier of figures that a dark page leaves as they are


class Panels(tuple[Figure, ...]):
    """Figures of one height that belong together, such as a picture and the curve beside it.

    They stand side by side, from left to right, on a wide page, and one below the other on a phone.
    """

    __slots__ = ()

    def _ipython_display_(self) -> None:
        from IPython import display  # only a notebook shows itself

        show: Any = display.display
        if page_is_built():  # the page arranges pictures itself
            for figure in self:
                show(figure)
        else:
            row = (
                '<div style="display:flex;flex-wrap:wrap;gap:8px">'
                f"{''.join(map(_as_img, self))}</div>"
            )
            show({"text/plain": f"<{len(self)} panels>", "text/html": row}, raw=True)


def _as_img(figure: Figure) -> str:
    words = html.escape(
        "; ".join(title for ax in figure.axes if (title := ax.get_title(loc="left")))
    )
    return (
        f'<img alt="{words}" src="data:image/png;base64,{png(pixels(figure, round(figure.dpi)))}">'
    )


F = TypeVar("F", bound=Figure | tuple[Figure, ...])


def styled(draw: Callable[P, F]) -> Callable[P, F]:
    """Make a function draw in the book's style.

    The function returns a figure, :class:`Panels` or a tuple of figures. The style changes nobody's
    settings and leaves no figure open.
    """

    @functools.wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> F:
        others = set(plt.get_fignums())
        with plt.style.context(STYLE):
            try:
                drawn = draw(*args, **kwargs)
            finally:
                for number in set(plt.get_fignums()) - others:
                    plt.close(
                        number
                    )  # which gives a figure back the resolution that it was made with, so first
        if page_is_built():
            for figure in (drawn,) if isinstance(drawn, Figure) else drawn:
                figure.set_dpi(PAGE_DPI)
        return drawn

    return wrapped


def photograph(figure: Figure) -> Figure:
    """Mark a figure as a photograph, so that a dark page does not invert it, and return it.

    So is a picture whose caption speaks of light and dark. All others are line art. A page knows a
    photograph by its paper, which is transparent.
    """
    figure.set_gid(PHOTOGRAPH)
    figure.patch.set_alpha(0)  # its paper is that of the page, so its words must be legible on both
    for text in figure.findobj(Text):
        text.set_color(SURFACES["ink"].either)
    return figure


def panel(
    width: float = WIDTH,
    height: float = 2.6,
    *,
    left: float = 0.5,
    right: float = 0.15,
    top: float = 0.32,
    bottom: float = 0.46,
) -> tuple[Figure, Axes]:
    """Make a figure with one pair of axes whose place does not depend on what is drawn in them.

    All arguments are inches; ``left`` to ``bottom`` lie between the axes and the edges of the
    figure. Up to 4.5 wide, type of 9 points can be read on a phone; panels side by side have up to
    6.3 together.
    """
    fig = plt.figure(figsize=(width, height), layout="none")
    across, up = (width - left - right) / width, (height - top - bottom) / height
    return fig, fig.add_axes((left / width, bottom / height, across, up))


def sheet(width: float, height: float) -> tuple[Figure, Axes]:
    """Make a figure whose axes count inches from its upper left corner.

    There y is 0, and negative below. Making a pair of axes takes longer than drawing into it, so
    many small pictures share one.
    """
    fig = plt.figure(figsize=(width, height), layout="none")
    ax = fig.add_axes((0, 0, 1, 1))
    ax.set(xlim=(0, width), ylim=(-height, 0), autoscale_on=False)
    ax.set_axis_off()
    return fig, ax

"""Tilt a picture, cut its spectrum, and count the sheets that it needs."""

from __future__ import annotations

import reprlib

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.parts.sample_pictures import FINE, PICTURES, SIZE, as_png, attention, grays, portrait, square
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import finite, number, whole
from lowrank_tutor.kit.charts.style import GRAY, ORANGE, TEAL, styled
from lowrank_tutor.svd import choose_rank, tail_error

ENOUGH = 0.05
MAX_TILT = 45

SUBJECTS = {name: words[0].upper() + words[1:] for name, words in PICTURES.items()} | {"own": "Your picture"}

SAY = "{subject}, tilted by {tilt:g} degrees: with {k} of 160 sheets the error is {relative_error:.1%}."
REMARKS = {
    "beyond": "The sheets kept need more numbers than the picture itself.",
    "black": "The picture is black: there is nothing to add up, so choose a brighter one.",
    "even": "The picture is one even gray: a single sheet says it all.",
}
WORDS = {
    "no_picture": "The file cannot be read as a picture: choose a PNG, a JPEG or a WebP.",
    "too_large": "The picture is too large: choose one with at most 100 million pixels.",
    "long": "Your picture is large, so reading it takes a moment.",
    "no_photo": "There is no picture of your own yet: choose a file first.",
    "no_camera": "The camera cannot be used here: choose a file instead.",
    "open": "Open a picture",
    "camera": "Use the camera",
    "explain": "Turn the picture by hand or with the slider. Then drag the cut.",
    "tilt": "tilt",
    "picture": "picture",
    "sheet": "sheet",
    "one": "one sheet",
    "sum": "sum of {k} sheets",
    "alone": "sheet {k} alone",
    "empty": "sheet {k} is empty",
    "rest": "what is left out",
    "left_out": "show what is left out",
    "weights": "weights of the sheets, and the cut",
    "weight": "weight",
    "cut": "cut: sheets kept",
    "of": "{k} of 160 sheets",
    "numbers": "numbers kept",
    "full": "the picture itself: ",
    "others": "other pictures",
    "choose": "picture",
    "own": "your own",
    "stays": "Your picture stays on this machine, so the link shows the window in its place.",
}
CAPTION = (
    "The panels show the picture, the sum of the sheets that are kept, and the last of these sheets, with its column "
    "on the left and its row above it (teal is positive, orange is negative). Each dot stands for a sheet, and its "
    "height shows the weight of the sheet relative to the first one. The sheets with teal dots are kept. The bar shows "
    "how many numbers they need; past the black mark, they need more than the picture itself."
)


def tilt(picture: str | ArrayLike = "window", degrees: float = 12, k: int = 4) -> Instrument:
    r"""Show a picture that can be tilted, and its spectrum, which can be cut.

    State ``picture``, ``tilt``, ``k``; numbers ``relative_error`` ($\|A - A_k\|_F / \|A\|_F$), ``numbers_kept`` ($k(m +
    n)$), ``layers_for_5_percent`` (the smallest k whose relative error is at most 5%).

    Parameters
    ----------
    picture : str or array_like, shape (m, n)
        What is seen first: ``"stripes"``, ``"window"``, ``"disc"``, ``"noise"``, ``"portrait"`` (Grace Hopper, the
        sample picture of matplotlib) or ``"attention"`` (of the six words of ``lowrank_tutor.sentence``, its
        largest weight white), or the middle square of a picture of your own: numbers of at least 0, which is black;
        the largest is white. Readers can bring a picture of their own; it never leaves their machine.
    degrees : float
        The tilt at first, 0 to 45.
    k : int
        The number of sheets kept at first, 1 to 160.

    Examples
    --------
    >>> tilt("window", degrees=5, k=17).numbers["layers_for_5_percent"]
    17
    """
    own = None if isinstance(picture, str) else finite("picture", picture, None, None)
    if picture not in PICTURES if own is None else (own < 0).any():
        rule = f"one of {', '.join(PICTURES)} or numbers of at least 0"
        raise ValueError(f"picture must be {rule}, got {reprlib.repr(picture)}")
    name, seen = (str(picture), str(picture)) if own is None else ("own", square(own))
    degrees, k = number("degrees", degrees, 0, MAX_TILT), whole("k", k, 1, SIZE)
    gray = grays(seen, degrees)
    return figure(
        name="tilt",
        parts=("linalg", "background", "sample_pictures", "photo", "layers"),
        state={"picture": name, "tilt": degrees, "k": k},
        numbers=numbers(gray, k),
        values={"subject": SUBJECTS[name]},
        say=SAY,
        remarks=REMARKS,
        data={
            "size": SIZE,
            "fine": FINE,
            "enough": ENOUGH,
            "max_tilt": MAX_TILT,
            "pictures": PICTURES,
            "subjects": SUBJECTS,
            "words": WORDS,
            "portrait": as_png(portrait()),
            "own": "" if isinstance(seen, str) else as_png(seen),
            "attention": attention().tolist(),
        },
        readouts={
            "relative_error": ("relative error", ".1%"),
            "numbers_kept": (f"numbers kept, of {SIZE * SIZE:,}", ","),
            "layers_for_5_percent": ("sheets for an error of 5%", ","),
        },
        caption=CAPTION,
        picture=lambda: _still(gray, k),
    )


def numbers(gray: np.ndarray, k: int) -> dict[str, float]:
    """Compute the numbers of a square of gray values, cut after k layers."""
    s = np.linalg.svd(gray, compute_uv=False)
    error = tail_error(s, k) / (tail_error(s, 0) or 1.0)
    return {"relative_error": error, "numbers_kept": 2 * SIZE * k, "layers_for_5_percent": choose_rank(s, error=ENOUGH)}


@styled
def _still(gray: Floats, k: int) -> Figure:
    u, s, vt = np.linalg.svd(gray)
    fig, (left, middle, right) = plt.subplots(1, 3, layout="constrained", figsize=(7, 2.5))
    for ax, drawn, title in (
        (left, gray, "picture"),
        (middle, (u[:, :k] * s[:k]) @ vt[:k], "one sheet" if k == 1 else f"sum of {k} sheets"),
    ):
        ax.imshow(drawn, cmap="gray", vmin=0, vmax=255)
        ax.set_title(title)
        ax.set_axis_off()
    index, shares = np.arange(1, SIZE + 1), s / (s[0] or 1)
    for part, color, size in ((slice(k), TEAL, 3), (slice(k, None), GRAY, 1.5)):
        dots = np.where(shares[part] > 1e-9, np.maximum(shares[part], 1e-4), np.nan)  # no zeros
        right.plot(index[part], dots, "o", color=color, markersize=size)
    right.axvline(k + 0.5, color=ORANGE)
    right.set(xscale="log", yscale="log", xlabel="sheet", title="weight of each sheet", ylim=(0.8e-4, 1.5))
    return fig

"""Tilt a picture, cut its spectrum, and count the sheets that it needs."""

import numpy as np

from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.figures.parts.sample_pictures import (
    FINE,
    PICTURES,
    SIZE,
    as_png,
    attention,
    grays,
    portrait,
)
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts.arguments import number, whole
from lowrank_tutor.svd import choose_rank, tail_error

ENOUGH = 0.05
MAX_TILT = 45

SUBJECTS = {name: words[0].upper() + words[1:] for name, words in PICTURES.items()} | {
    "own": "Your picture"
}

SAY = (
    "{subject}, tilted by {tilt:g} degrees: "
    "with {k} of 160 sheets the error is {relative_error:.1%}."
)
REMARKS = {
    "beyond": "The sheets kept need more numbers than the picture itself.",
    "black": "The picture is black: there is nothing to add up, so choose a brighter one.",
    "even": "The picture is one even gray: a single sheet says it all.",
}
CAPTION = (
    "The third panel shows the last of the sheets that are kept, with its column on the left and "
    "its row above it (teal is positive, violet is negative). Each dot is a sheet, as high as its "
    "weight relative to the first one; the teal ones are kept. Past the upright mark, they need "
    "more numbers than the picture itself."
)


def tilt(picture: str = "window", degrees: float = 12, k: int = 4) -> Instrument:
    r"""Show a picture that can be tilted, and its spectrum, which can be cut.

    State ``picture``, ``tilt``, ``k``; numbers ``relative_error`` ($\|A - A_k\|_F / \|A\|_F$),
    ``numbers_kept`` ($k(m + n)$), ``layers_for_5_percent`` (the smallest k whose relative error is
    at most 5%).

    Parameters
    ----------
    picture : str
        What is seen first: ``"stripes"``, ``"window"``, ``"disc"``, ``"noise"``, ``"portrait"``
        (Grace Hopper, the sample picture of matplotlib) or ``"attention"`` (of the six words of
        ``lowrank_tutor.sentence``, its largest weight white). Readers can bring a picture of their
        own; it never leaves their machine.
    degrees : float
        The tilt at first, 0 to 45.
    k : int
        The number of sheets kept at first, 1 to 160.

    Examples
    --------
    >>> tilt("window", degrees=5, k=17).numbers["layers_for_5_percent"]
    17
    """
    one_of("picture", picture, PICTURES)
    degrees, k = number("degrees", degrees, 0, MAX_TILT), whole("k", k, 1, SIZE)
    gray = grays(picture, degrees)
    return figure(
        name="tilt",
        parts=("linalg", "background", "sample_pictures", "photo", "layers"),
        state={"picture": picture, "tilt": degrees, "k": k},
        numbers=_numbers(gray, k),
        values={"subject": SUBJECTS[picture]},
        say=SAY,
        remarks=REMARKS,
        data={
            "size": SIZE,
            "fine": FINE,
            "enough": ENOUGH,
            "max_tilt": MAX_TILT,
            "pictures": PICTURES,
            "subjects": SUBJECTS,
            "portrait": as_png(portrait()),
            "attention": attention().tolist(),
        },
        readouts={
            "relative_error": ("relative error", ".1%"),
            "numbers_kept": (f"numbers kept, of {SIZE * SIZE:,}", ","),
            "layers_for_5_percent": ("sheets for an error of 5%", ","),
        },
        caption=CAPTION,
    )


def _numbers(gray: Floats, k: int) -> dict[str, float]:
    s = np.linalg.svd(gray, compute_uv=False)
    error = tail_error(s, k) / (tail_error(s, 0) or 1.0)
    return {
        "relative_error": error,
        "numbers_kept": 2 * SIZE * k,
        "layers_for_5_percent": choose_rank(s, error=ENOUGH),
    }

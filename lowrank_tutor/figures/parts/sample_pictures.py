"""Gray values of turned pictures, the same that ``sample_pictures.js`` computes."""

import functools

import numpy as np
from matplotlib import cbook
from numpy.typing import NDArray
from PIL import Image

from lowrank_tutor import sentence
from lowrank_tutor.kit.canvas.instrument import Floats
from lowrank_tutor.kit.images import png

SIZE = 160  # pixels to a side: a decomposition takes a fraction of a second in a browser
FINE = 5  # points to a pixel, each way

PICTURES = {
    "stripes": "stripes",
    "window": "a window",
    "disc": "a disc",
    "noise": "noise",
    "portrait": "a portrait",
    "attention": "attention of six words",
}


def grays(picture: str, degrees: float) -> Floats:
    """Draw a tilted picture in whole grays, 0 to 255, each the mean of the points in its pixel."""
    at = (2 * np.arange(SIZE * FINE) + 1) / (SIZE * FINE) - 1
    x, y = at[None, :], at[:, None]
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    points = values(picture, c * x + s * y, c * y - s * x)
    mean = points.reshape(SIZE, FINE, SIZE, FINE).mean(axis=(1, 3))
    return np.asarray(np.floor(mean + 0.5))  # as the browser rounds


def values(picture: str, x: Floats, y: Floats) -> Floats:
    """Look up a picture's gray at points of the plane.

    The square from -1 to 1 is what is seen upright.
    """
    if picture == "stripes":
        return np.where(np.floor(5 * x) % 2 == 0, 255.0, 0.0)
    if picture == "window":
        panes = [(np.abs(v) > 0.1125) & (np.abs(v) < 0.7875) for v in (x, y)]
        return np.where(panes[0] & panes[1], 255.0, 0.0)
    if picture == "disc":
        return np.where(x**2 + y**2 < 0.6875**2, 255.0, 0.0)
    table = noise() if picture == "noise" else attention() if picture == "attention" else portrait()
    return np.asarray(table[fold(y, len(table)), fold(x, len(table))])


def fold(v: Floats, size: int) -> NDArray[np.int64]:
    """Turn a coordinate into a row or a column; beyond its edges a picture is mirrored."""
    inside = np.where(v > 1, 2 - v, np.where(v < -1, -2 - v, v))
    return np.minimum(size - 1, np.floor((inside + 1) / 2 * size)).astype(np.int64)


def noise() -> Floats:
    """Make a quarter of the pixels white, by a sequence that a browser repeats.

    It is that of Park and Miller (1988). A brighter picture would be mostly its mean, which is a
    single sheet.
    """
    at, sequence = 1, []
    for _ in range(SIZE * SIZE):
        at = at * 16807 % 2147483647
        sequence.append(255.0 if at < 2**29 else 0.0)
    return np.array(sequence).reshape(SIZE, SIZE)


def attention() -> Floats:
    """Draw the attention of six words as whole grays: the largest weight is white."""
    weights, _ = sentence.attention()
    return np.asarray(np.round(255 * weights / weights.max()))


@functools.cache
def portrait(size: int = SIZE) -> Floats:
    """Return the upper square of the sample portrait of matplotlib, size by size whole grays."""
    with Image.open(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)) as image:
        side = min(image.size)
        left = (image.size[0] - side) // 2
        box = (left, 0, left + side, side)
        return np.asarray(
            image.convert("L").resize((size, size), Image.Resampling.LANCZOS, box), dtype=float
        )


def as_png(gray: Floats) -> str:
    """Encode grays without loss, as an address that holds the picture itself."""
    return "data:image/png;base64," + png(gray.astype(np.uint8), optimize=True)

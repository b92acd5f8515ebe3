"""Pictures that one number moves: a turn and a stretch, turning lines, a zigzag, and more."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument

A = np.array([[3.0, 0.0], [4.0, 5.0]])  # of chapter 2
POINTS = np.array([[3.0, 1.0], [1.0, 2.0], [-1.0, 0.0], [-3.0, -2.0], [2.0, -1.0], [-2.0, 0.0]])
CLASS = np.array(
    [[-2.0, 1.0], [-1.0, 0.0], [1.0, 0.0], [2.0, -1.0]]
)  # of chapter 3, seen from its mean
GROUPS = CLASS + np.array(
    [[[-1.5, 0.0]], [[1.5, 0.0]]]
)  # two classes, seen from midway between their means
K, LEVEL = 72, 1.5  # of a sum of squares, and how many times its mean it exceeds
HALF = LEVEL * K / 2
# The chance of that, for even K a sum of Poisson's.
EXACT = math.exp(-HALF) * sum(HALF**j / math.factorial(j) for j in range(K // 2))
W, ROOT = (
    np.diag([2.0, 1.0]),
    np.array([[2.0, 1.0], [1.0, 2.0]]),
)  # a table, and the root of the queries' second moment
KEYS, VALUES = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([5.0, 0.0])


class Shape(NamedTuple):
    """A shape of a panel: what draws it in the browser, its points, its look, and its words."""

    panel: int
    kind: str  # line, area, dots, arrow, rect, text, or handle
    points: Any  # (n, 2), or None where it is not seen
    look: str
    words: str = ""


Drawing = tuple[dict[str, float], list[Shape]]  # the numbers, and what is drawn


class Scene(NamedTuple):
    """What moves, and what is said about it."""

    label: str  # of the slider
    stations: list[
        float
    ]  # from the first value of t to the last: where it stops for readers who want no motion
    step: float
    every: int  # steps from one drawing to the next; in between, points move on straight lines
    start: float
    seconds: float
    say: str
    readouts: dict[str, tuple[str, str]]
    caption: str
    at: Callable[[float], Drawing]
    panels: list[dict[str, Any]]
    unit: str = ""
    remarks: Sequence[str] = ()  # what is said from each whole t on


def moving(scene: str = "turns") -> Instrument:
    r"""Show a picture that a number t moves, by a slider or by a button that lets it run.

    State ``t``; the numbers depend on the scene.

    Parameters
    ----------
    scene : str
        ``"turns"`` shows what a 2 x 2 matrix does to the circle, as a turn, a stretch, and a turn
        (t from 0 to 3). ``"line"`` turns a line about the mean of six points (t in degrees).
        ``"markov"`` stretches the scale on which Markov's inequality bounds a sum of 72 squares (t
        from 0 to 0.3). ``"classes"`` turns the axis on which two classes of four points are told
        apart (t in degrees). ``"rescale"`` rescales queries, cuts a table, and undoes the rescaling
        (t from 0 to 3). ``"writes"`` counts writes of the delta rule into a state of two numbers (t
        from 0 to 8).

    Examples
    --------
    >>> print(moving("rescale").alt)
    The scores are off by 25%; if W itself were cut, they would be off by 45%.
    """
    shown = SCENES[one_of("scene", scene, SCENES)]
    numbers, _ = shown.at(shown.start)
    film = [shown.at(t) for t in _places(shown)]
    return figure(
        name="moving",
        state={"t": shown.start},
        numbers=numbers,
        say=shown.say,
        remarks={str(i): words for i, words in enumerate(shown.remarks)},
        data={name: getattr(shown, name)
              for name in ("label", "stations", "step", "every", "seconds", "unit", "panels")}
        | {"numbers": [_rounded(row) for row, _ in film],
           "shapes": _frames([shapes for _, shapes in film[:: shown.every]]),
           "remarked": bool(shown.remarks)},
        readouts=shown.readouts,
        caption=shown.caption,
    )  # fmt: skip


def _places(scene: Scene) -> list[float]:
    """Return the values that t may have."""
    first, last = scene.stations[0], scene.stations[-1]
    count = round((last - first) / scene.step)
    return [round(first + i * scene.step, 6) for i in range(count + 1)]


def _rounded(numbers: dict[str, float]) -> dict[str, float]:
    # A zero has no minus.
    return {name: round(x, 12) + 0.0 for name, x in numbers.items()}


def _frames(drawings: list[list[Shape]]) -> list[list[Any]]:
    """Return each shape with its points in every drawing, or in one if they stay."""
    film = []
    for moved in zip(*drawings, strict=True):
        frames = [
            None if shape.points is None else np.round(shape.points, 3).ravel().tolist()
            for shape in moved
        ]
        stays = all(frame == frames[0] for frame in frames)
        panel, kind, _, *words = moved[0]
        film.append([panel, kind, *words, frames[:1] if stays else frames])
    return film


def _plane(title: str, reach: float, size: int = 300) -> dict[str, Any]:
    return {"title": title, "width": size, "height": size, "margin": [8, 8, 8, 8],
            "x": [-reach, reach], "y": [-reach, reach]}  # fmt: skip


def _cross(panel: int, reach: float) -> list[Shape]:
    """Return the two axes of a plane."""
    return [Shape(panel, "line", np.array([[-reach, 0], [reach, 0]])[:, order], "gray thin dotted")
            for order in ([0, 1], [1, 0])]  # fmt: skip


def _through(way: Floats, reach: float) -> Any:
    """Return the ends of the line along a direction, at the edges of a plane."""
    return np.outer([-1, 1], way) * reach / np.abs(way).max()


def _share(t: float, start: float) -> float:
    """Return how much of the move that lasts from ``start`` to ``start + 1`` is done."""
    return min(1.0, max(0.0, t - start))


def _turn(degrees: float) -> Floats:
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


# A = U S V^T with V^T a turn by -45 degrees, and U one by 71.6


NAMES = ("v\u2081", "\u03c3\u2081u\u2081"), ("v\u2082", "\u03c3\u2082u\u2082")
CIRCLE = np.array([_turn(10.0 * i)[:, 0] for i in range(37)])


def _turns(t: float) -> Drawing:
    sigmas = 1 + (np.linalg.svd(A, compute_uv=False) - 1) * _share(t, 1)
    first, last = -45 * _share(t, 0), float(np.degrees(np.arctan2(3, 1))) * _share(t, 2)
    table = _turn(last) @ np.diag(sigmas) @ _turn(first)
    shapes = [
        *_cross(0, 7),
        Shape(0, "line", CIRCLE, "gray thin dotted"),
        Shape(0, "line", CIRCLE @ table.T, "ink"),
    ]
    for v, color, names in zip(_turn(45).T, ("teal", "violet"), NAMES, strict=True):
        tip = table @ v
        beside = [tip * (1 + 0.5 / np.linalg.norm(tip))]
        shapes += [
            Shape(0, "arrow", [np.zeros(2), tip], color),
            Shape(0, "text", beside if t < 3 else None, f"{color} middle", names[0]),
            Shape(0, "text", beside if t == 3 else None, f"{color} middle", names[1]),
        ]
    sigma_1, sigma_2 = sigmas.tolist()
    return {"first": first, "sigma_1": sigma_1, "sigma_2": sigma_2, "last": last}, shapes


def _line(t: float) -> Drawing:
    way, total = _turn(t)[:, 0], float((POINTS**2).sum())
    along = float(((POINTS @ way) ** 2).sum())
    feet, across = np.outer(POINTS @ way, way), total - along
    shapes = [
        *_cross(0, 4),
        Shape(0, "line", _through(way, 4), "ink thin"),
        *(Shape(0, "line", [p, foot], "orange") for p, foot in zip(POINTS, feet, strict=True)),
        Shape(0, "dots", feet, "teal"),
        Shape(0, "dots", POINTS, "ink"),
        Shape(1, "rect", [[0.4, 0], [1.6, along]], "teal solid"),
        Shape(1, "rect", [[0.4, along], [1.6, total]], "orange solid"),
        Shape(1, "text", [[1, along / 2]] if along > 0.1 * total else None,
              "paper middle", "along"),
        Shape(1, "text", [[1, (along + total) / 2]] if across > 0.1 * total else None,
              "paper middle", "across"),
        Shape(0, "handle", [3.44 * way], "ink", "direction of the line"),
    ]  # fmt: skip
    return {"along": along, "across": across}, shapes


def _classes(t: float) -> Drawing:
    way, reach = _turn(t)[:, 0], 4.2
    low, high = GROUPS @ way
    gap, scatter = float((high.mean() - low.mean()) ** 2), float(4 * (low.var() + high.var()))
    side = 1 if high.mean() >= low.mean() else -1
    right = int((side * low < -1e-9).sum() + (side * high > 1e-9).sum())
    shapes = [
        *_cross(0, reach),
        Shape(0, "line", _through(_turn(t)[:, 1], reach), "gray thin dashed"),
        Shape(0, "arrow", np.outer([-1, 1], 0.86 * reach * way), "teal"),
        Shape(1, "line", [[0, -1], [0, 1]], "gray thin dashed"),
    ]
    for points, color, height in zip(GROUPS, ("ink", "violet"), (0.45, -0.45), strict=True):
        spots = np.column_stack([points @ way, np.full(4, height)])
        middle = spots.mean(axis=0)
        shapes.append(Shape(1, "line", np.add([[0, -0.3], [0, 0.3]], middle), "teal"))
        for panel, each in enumerate((points, spots)):
            shapes.append(Shape(panel, "dots", each, f"{color} large"))
            if color == "violet":
                shapes.append(Shape(panel, "dots", each, "paper"))
    shapes.append(Shape(0, "handle", [0.86 * reach * way], "teal", "direction of the axis"))
    return {"ratio": gap / scatter, "gap": gap, "scatter": scatter, "right": right}, shapes


def _times(t: Any, at: Any) -> Any:
    """Return what the stretched scale makes of a sum, in units of the mean of all."""
    return np.exp(t * at * K + K / 2 * np.log(1 - 2 * t))


STRETCHES = np.linspace(0, 0.3, 61)


def _markov(t: float) -> Drawing:
    at, peak, top = np.linspace(0.5, 1.8, 66), 1 - 2 / K, 40
    hill = 15 * np.exp((K / 2 - 1) * np.log(at / peak) - K / 2 * (at - peak))
    end = min(1.8, (np.log(top) - K / 2 * np.log(1 - 2 * t)) / (K * t)) if t else 1.8
    scale, times = np.linspace(0.5, end, 41), float(_times(t, LEVEL))
    here, bounds = min(times, top), 1 / _times(STRETCHES, LEVEL)
    shapes = [
        Shape(0, "area", np.column_stack([at, hill]), "gray"),
        Shape(0, "line", [[LEVEL, 0], [LEVEL, top]], "ink thin dotted"),
        Shape(0, "line", np.column_stack([scale, _times(t, scale)]), "teal"),
        Shape(0, "dots", [[LEVEL, here]], "ink"),
        Shape(0, "text", [[LEVEL - 0.03, min(max(here + 0.6, 2), top - 3)]], "ink end",
              "{times:.3g} times"),
        Shape(1, "line", np.column_stack([STRETCHES, bounds]), "teal"),
        Shape(1, "line", [[0, EXACT], [0.3, EXACT]], "ink thin dashed"),
        Shape(1, "text", [[0.148 if t > 0.152 else 0.3, 1.25 * EXACT]], "ink end",
              "the exact chance"),  # on the side that the handle's line doesn't cross
        Shape(1, "dots", [[t, 1 / times]], "ink"),
        Shape(1, "handle", [[t, 0.05]], "ink", "stretch"),
    ]  # fmt: skip
    return {"times": times, "bound": 1 / times}, shapes


# The best table of rank 1 for queries whose second moment is ROOT @ ROOT

U, SIZES, VT = np.linalg.svd(ROOT @ W)
DOTS = np.round(np.random.default_rng(5).standard_normal((150, 2)), 2)
WHOLE, CUT = float(np.linalg.norm(SIZES)), W - np.diag([2.0, 0.0])


def _rescale(t: float) -> Drawing:
    error, plain = float(SIZES[1]) / WHOLE * _share(t, 1), np.linalg.norm(ROOT @ CUT)
    kept = DOTS - _share(t, 1) * (DOTS - np.outer(DOTS @ U[:, 0], U[:, 0]))
    way = _share(t, 0) if t <= 1 else 1 - _share(t, 2)
    now = ROOT + way * (np.eye(2) - ROOT)
    read = (np.linalg.inv(ROOT) + way * (np.eye(2) - np.linalg.inv(ROOT))) @ U[:, 0]
    shapes = [*_cross(0, 8), *_cross(1, 16)]
    for panel, table, line, reach in ((0, now, read, 8), (1, W @ ROOT, VT[0], 16)):
        shapes += [
            Shape(panel, "dots", DOTS @ table.T, "gray small"),
            Shape(panel, "dots", kept @ table.T if t >= 1 else None, "ink small"),
            Shape(panel, "line", _through(line, reach), "teal"),
        ]
    return {"error": error, "plain": float(plain) / WHOLE}, shapes


# The delta rule with beta 1: each write projects the state onto the line of its pair

BEST = np.linalg.solve(KEYS, VALUES)


def _state(t: float) -> Floats:
    state, whole = np.zeros(2), int(t)
    for i in range(whole + 1):
        step = KEYS[i % 2] * (VALUES[i % 2] - KEYS[i % 2] @ state)
        state = state + (step if i < whole else (t - whole) * step)
    return state


def _writes(t: float) -> Drawing:
    state, way = _state(t), np.array([_state(min(i, t)) for i in range(9)])
    read_1, read_2 = (KEYS @ state).tolist()
    shapes = [
        Shape(0, "line", [[5, -6], [5, 4]], "teal"),
        Shape(0, "text", [[4.85, 3.2]], "teal end", "first key reads 5"),
        Shape(0, "line", [[-2, 1.5], [8, -6]], "violet"),
        Shape(0, "text", [[-1.6, 1.9]], "violet", "second key reads 0"),
        Shape(0, "line", way, "ink thin"),
        Shape(0, "dots", [BEST], "gray"),
        Shape(0, "dots", way, "ink small"),
        Shape(0, "dots", [state], "ink"),
    ]
    off = float(np.linalg.norm(state - BEST))
    return {"read_1": read_1, "read_2": read_2, "off": off}, shapes


MOVES: list[float] = [0, 1, 2, 3]
SCENES = {
    "turns": Scene(
        label="turn, stretch, turn", stations=MOVES, step=0.04, every=3, start=3, seconds=6,
        say="Turned by {first:.0f} degrees, stretched by {sigma_1:.2f} and {sigma_2:.2f}, "
            "and turned by {last:.0f} degrees.",
        readouts={
            "first": ("first turn, in degrees", ".0f"), "sigma_1": ("stretch along", ".2f"),
            "sigma_2": ("stretch up", ".2f"), "last": ("last turn, in degrees", ".0f"),
        },
        caption="The dotted circle holds all inputs of length 1. The first move turns v\u2081 and "
                "v\u2082 onto the axes, the second stretches along the axes, "
                "and the third turns the result.",
        at=_turns,
        panels=[_plane("the unit circle, and what has become of it", 7, 340)],
    ),
    "line": Scene(
        label="angle", stations=[0, 45, 90, 135, 180], step=1, every=3, start=0, seconds=8,
        unit="\u00b0",
        say="Along the line the squares add up to {along:.1f}, and across it to {across:.1f}.",
        readouts={"along": ("along the line", ".1f"), "across": ("across it", ".1f")},
        caption="The orange segments lead from each point to the line. "
                "The two bars always add up to 38, the sum of the squared distances to the mean.",
        at=_line,
        panels=[
            _plane("six points and a line through their mean", 4),
            {"title": "sums of squares", "width": 240, "height": 300, "margin": [12, 12, 26, 36],
             "x": [0, 2], "y": [0, 38], "axes": {"y": [0, 19, 38]}},
        ],
    ),
    "classes": Scene(
        label="angle of the axis", stations=[0, 45, 90, 135, 180], step=1, every=3, start=0,
        seconds=10, unit="\u00b0",
        say="The squared gap is {gap:.2f} and the scatter {scatter:.2f}, "
            "so the ratio is {ratio:.2f}. On the correct side are {right} of 8 points.",
        readouts={
            "ratio": ("ratio", ".2f"), "gap": ("squared gap", ".2f"), "scatter": ("scatter", ".2f"),
            "right": ("on the correct side, of 8", ","),
        },
        caption="The left side shows two classes (dots and violet rings), the axis in teal, and "
                "the dashed threshold midway between the means. The right side shows each point "
                "along the axis, a row for each class; teal strokes mark the means. "
                "Watch the two rows move apart.",
        at=_classes,
        panels=[
            _plane("drag the axis", 4.2),
            {"title": "along the axis", "width": 300, "height": 160, "margin": [8, 8, 8, 8],
             "x": [-4.2, 4.2], "y": [-1, 1]},
        ],
    ),
    "markov": Scene(
        label="stretch t", stations=[0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3], step=0.005, every=1,
        start=0.05,
        seconds=6,
        say="After the stretch, 50% above the mean is {times:.3g} times the mean, "
            "so its chance is at most {bound:.1%}.",
        readouts={"times": ("times the mean", ".3g"), "bound": ("Markov's bound", ".1%")},
        caption="The gray hill is the sum of 72 squares; the teal curve on the left is the "
                "stretched scale, and its height is measured in means of the stretched sum.",
        at=_markov,
        panels=[
            {"title": "how many times its own mean the stretched sum is", "width": 300,
             "height": 250, "margin": [10, 12, 34, 36], "x": [0.5, 1.8], "y": [0, 40],
             "axes": {"x": [0.5, 1, 1.5], "y": [1, 10, 20, 30, 40], "xTitle": "sum / its mean"}},
            {"title": "Markov's bound, one over that", "width": 300, "height": 250,
             "margin": [10, 12, 34, 46], "x": [0, 0.3], "y": [0.002, 2], "yLog": True,
             "axes": {"x": [0, 0.1, 0.2, 0.3], "y": [0.01, 0.1, 1], "xTitle": "stretch t"}},
        ],
    ),
    "rescale": Scene(
        label="rescale, cut, undo", stations=MOVES, step=0.02, every=50, start=3, seconds=8,
        say="The scores are off by {error:.0%}; if W itself were cut, "
            "they would be off by {plain:.0%}.",
        remarks=(
            "The queries are long in one direction.",
            "In new units the queries are round, and no score has changed.",
            "The cut keeps what the scores use most, so it loses least.",
            "In the old units the teal line does not follow the cloud: "
            "it shows what the score reads.",
        ),
        readouts={"error": ("error of the scores", ".0%"), "plain": ("if W itself is cut", ".0%")},
        caption="Gray dots are queries, the others what the cut leaves of them. The teal line on "
                "the left shows the direction in which the score reads a query; "
                "on the right it is the long axis of the arrows.",
        at=_rescale,
        panels=[_plane("queries s", 8), _plane("arrows Wᵀs, which score the documents", 16)],
    ),
    "writes": Scene(
        label="writes", stations=[float(i) for i in range(9)], step=0.05, every=20, start=0,
        seconds=8, say="The keys now read {read_1:.2f} and {read_2:.2f}; 5 and 0 were written.",
        readouts={
            "read_1": ("the first key reads", ".2f"), "read_2": ("the second reads", ".2f"),
            "off": ("distance to the crossing", ".2f"),
        },
        caption="Every state on the teal line answers the first key correctly, and every state on "
                "the violet one the second. "
                "A write steps onto the line of its pair by the shortest way.",
        at=_writes,
        panels=[
            {"title": "a state of two numbers, and the line of each pair", "width": 340,
             "height": 340, "margin": [8, 8, 30, 36], "x": [-2, 8], "y": [-6, 4],
             "axes": {"x": [-2, 0, 2, 4, 6, 8], "y": [-6, -4, -2, 0, 2, 4],
                      "xTitle": "first number of the state"}},
        ],
    ),
}  # fmt: skip

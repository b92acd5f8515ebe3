"""Pictures that one number moves: a turn and a stretch, turning lines, a zigzag, and more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from lowrank_tutor._checks import check_choice
from lowrank_tutor.figures.parts.figure import figure
from lowrank_tutor.figures.parts.stills import square, still
from lowrank_tutor.kit.canvas.instrument import Floats, Instrument
from lowrank_tutor.kit.charts import arrow
from lowrank_tutor.kit.charts.arguments import number
from lowrank_tutor.kit.charts.style import GRAY, INK, ORANGE, TEAL, VIOLET

A = np.array([[3.0, 0.0], [4.0, 5.0]])  # of chapter 2
POINTS = np.array([[3.0, 1.0], [1.0, 2.0], [-1.0, 0.0], [-3.0, -2.0], [2.0, -1.0], [-2.0, 0.0]])
CLASS = np.array(
    [[-2.0, 1.0], [-1.0, 0.0], [1.0, 0.0], [2.0, -1.0]]
)  # of chapter 3, seen from its mean
GROUPS = CLASS + np.array(
    [[[-1.5, 0.0]], [[1.5, 0.0]]]
)  # two classes, seen from midway between their means
K, LEVEL = 72, 1.5  # of a sum of squares, and how many times its mean it exceeds
W, ROOT = (
    np.diag([2.0, 1.0]),
    np.array([[2.0, 1.0], [1.0, 2.0]]),
)  # a table, and the root of the queries' second moment
KEYS, VALUES = np.array([[1.0, 0.0], [0.6, 0.8]]), np.array([5.0, 0.0])


class Scene(NamedTuple):
    """What moves, and what is said about it."""

    label: str  # of the slider
    stations: list[
        float
    ]  # from the first value of t to the last: where it stops for readers who want no motion
    step: float
    start: float
    seconds: float
    say: str
    readouts: dict[str, tuple[str, str]]
    caption: str
    numbers: Callable[[float], dict[str, float]]
    draw: Callable[..., None]  # draw(t, *axes)
    data: dict[str, Any]
    panels: int = 2
    unit: str = ""
    remarks: Mapping[str, str] = MappingProxyType({})


def moving(scene: str = "turns", t: float | None = None) -> Instrument:
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
    t : float, optional
        Where it stands at first.

    Examples
    --------
    >>> moving("writes", 2).numbers["read_1"]
    3.2
    """
    check_choice(scene, "scene", tuple(SCENES))
    shown = SCENES[scene]
    at = number("t", shown.start if t is None else t, shown.stations[0], shown.stations[-1])
    return figure(
        name="moving",
        parts=("vectors", "scenes"),
        state={"t": at},
        numbers=shown.numbers(at),
        say=shown.say,
        remarks=dict(shown.remarks),
        data={
            "scene": scene,
            "stations": shown.stations,
            "step": shown.step,
            "label": shown.label,
            "seconds": shown.seconds,
            "unit": shown.unit,
            "panels": shown.panels,
            **shown.data,
        },
        readouts=shown.readouts,
        caption=shown.caption,
        picture=still(shown.draw, at, size=(3 * shown.panels, 3), ncols=shown.panels),
    )


def _share(t: float, start: float) -> float:
    """Return how much of the move that lasts from ``start`` to ``start + 1`` is done."""
    return min(1.0, max(0.0, t - start))


def _turn(degrees: float) -> Floats:
    angle = np.radians(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


# A = U S V^T with V^T a turn by -45 degrees, and U one by 71.6


def _turned(t: float) -> dict[str, float]:
    sigmas = np.linalg.svd(A, compute_uv=False)
    stretched = 1 + (sigmas - 1) * _share(t, 1)
    last = float(np.degrees(np.arctan2(3, 1)))
    return {
        "first": -45.0 * _share(t, 0),
        "sigma_1": float(stretched[0]),
        "sigma_2": float(stretched[1]),
        "last": last * _share(t, 2),
    }


def _draw_turns(t: float, ax: Axes) -> None:
    now = _turned(t)
    table = _turn(now["last"]) @ np.diag([now["sigma_1"], now["sigma_2"]]) @ _turn(now["first"])
    around = np.array(
        [np.cos(np.linspace(0, 2 * np.pi, 200)), np.sin(np.linspace(0, 2 * np.pi, 200))]
    )
    ax.plot(*around, ":", color=GRAY)
    ax.plot(*(table @ around), color=INK)
    for v, color, name in ((_turn(45)[:, 0], TEAL, "$v_1$"), (_turn(45)[:, 1], VIOLET, "$v_2$")):
        arrow(ax, table @ v, color=color, name=name)
    square(ax, 7)


def _along(t: float) -> dict[str, float]:
    along = float(((POINTS @ _turn(t)[:, 0]) ** 2).sum())
    return {"along": along, "across": float((POINTS**2).sum()) - along}


def _draw_line(t: float, plane: Axes, bars: Axes) -> None:
    way = _turn(t)[:, 0]
    plane.axline((0, 0), tuple(way), color=INK, linewidth=1)
    for point in POINTS:
        plane.plot(*np.transpose([point, way * (way @ point)]), color=ORANGE)
    plane.plot(*POINTS.T, "o", color=INK)
    square(plane, 4)
    bars.bar(["along", "across"], list(_along(t).values()), color=[TEAL, ORANGE])


def _parted(t: float) -> dict[str, float]:
    low, high = GROUPS @ _turn(t)[:, 0]
    gap, scatter = float((high.mean() - low.mean()) ** 2), float(4 * (low.var() + high.var()))
    side = 1 if high.mean() >= low.mean() else -1
    right = int((side * low < -1e-9).sum() + (side * high > 1e-9).sum())
    return {"ratio": gap / scatter, "gap": gap, "scatter": scatter, "right": right}


def _draw_classes(t: float, plane: Axes, strip: Axes) -> None:
    way = _turn(t)[:, 0]
    plane.axline((0, 0), tuple(_turn(t)[:, 1]), color=GRAY, linestyle="--", linewidth=1)
    arrow(plane, 2 * way, -2 * way, color=TEAL)
    for points, color, height in zip(GROUPS, (INK, VIOLET), (0.4, -0.4), strict=True):
        plane.plot(*points.T, "o", color=color)
        strip.plot(points @ way, np.full(4, height), "o", color=color)
    strip.axvline(0, color=GRAY, linestyle="--")
    square(plane, 4.2)
    strip.set(xlim=(-4.2, 4.2), ylim=(-1, 1), yticks=[])


def _bounded(t: float) -> dict[str, float]:
    times = float(np.exp(t * LEVEL * K + K / 2 * np.log(1 - 2 * t)))
    return {"times": times, "bound": 1 / times}


def _exact() -> float:
    """Return the chance that a sum of K squares exceeds LEVEL times its mean.

    For even K it is a sum of Poisson's.
    """
    half = LEVEL * K / 2
    return math.exp(-half) * sum(half**j / math.factorial(j) for j in range(K // 2))


def _hill(at: float) -> float:
    """Return the density of the sum of squares over its mean, 15 at its peak."""
    peak = 1 - 2 / K
    return 15 * float(np.exp((K / 2 - 1) * np.log(at / peak) - K / 2 * (at - peak)))


def _draw_markov(t: float, scale: Axes, bound: Axes) -> None:
    at, stretches = np.linspace(0.5, 1.8, 200), np.linspace(0, 0.3, 61)
    scale.plot(at, np.exp(t * at * K + K / 2 * np.log(1 - 2 * t)), color=TEAL)
    scale.axvline(LEVEL, color=ORANGE, linestyle=":")
    scale.set(ylim=(0, 40), xlabel="sum / its mean", title="times its own mean")
    bound.semilogy(stretches, [_bounded(each)["bound"] for each in stretches], color=TEAL)
    bound.plot([t], [_bounded(t)["bound"]], "o", color=ORANGE)
    bound.axhline(_exact(), color=INK, linestyle="--")
    bound.set(xlabel="stretch t", title="Markov's bound")


# The best table of rank 1 for queries whose second moment is ROOT @ ROOT

U, SIZES, VT = np.linalg.svd(ROOT @ W)
DOTS = np.round(np.random.default_rng(5).standard_normal((150, 2)), 2)
WHOLE = float(np.linalg.norm(SIZES))


def _rescaled(t: float) -> dict[str, float]:
    without = W - np.diag([2.0, 0.0])
    return {
        "error": float(SIZES[1]) / WHOLE * _share(t, 1),
        "plain": float(np.linalg.norm(ROOT @ without)) / WHOLE,
    }


def _draw_rescale(t: float, queries: Axes, arrows: Axes) -> None:
    kept = DOTS - _share(t, 1) * (DOTS - np.outer(DOTS @ U[:, 0], U[:, 0]))
    way = _share(t, 0) if t <= 1 else 1 - _share(t, 2)
    now = ROOT + way * (np.eye(2) - ROOT)
    read = (np.linalg.inv(ROOT) + way * (np.eye(2) - np.linalg.inv(ROOT))) @ U[:, 0]
    for ax, table, line, reach in ((queries, now, read, 8), (arrows, W @ ROOT, VT[0], 16)):
        ax.plot(*(table @ DOTS.T), ".", color=GRAY, markersize=3)
        ax.plot(*(table @ kept.T), ".", color=INK, markersize=3)
        ax.axline((0, 0), tuple(line), color=TEAL)
        square(ax, reach)


# The delta rule with beta 1: each write projects the state onto the line of its pair

BEST = np.linalg.solve(KEYS, VALUES)


def _state(t: float) -> Floats:
    state, whole = np.zeros(2), int(t)
    for i in range(whole + 1):
        step = KEYS[i % 2] * (VALUES[i % 2] - KEYS[i % 2] @ state)
        state = state + (step if i < whole else (t - whole) * step)
    return state


def _written(t: float) -> dict[str, float]:
    state = _state(t)
    first, second = KEYS @ state
    return {
        "read_1": float(first),
        "read_2": float(second),
        "off": float(np.linalg.norm(state - BEST)),
    }


def _draw_writes(t: float, ax: Axes) -> None:
    for key, value, color in zip(KEYS, VALUES, (TEAL, VIOLET), strict=True):
        ax.axline(tuple(key * value), tuple(key * value + [-key[1], key[0]]), color=color)
    way = np.array([_state(each) for each in [*range(int(t) + 1), t]])
    ax.plot(*way.T, "o-", color=INK, markersize=3)
    ax.plot(*way[-1], "o", color=ORANGE)
    ax.set(xlim=(-2, 8), ylim=(-6, 4), aspect="equal")


MOVES: list[float] = [0, 1, 2, 3]
SCENES = {
    "turns": Scene(
        label="turn, stretch, turn", stations=MOVES, step=0.01, start=3, seconds=6, panels=1,
        say="Turned by {first:.0f} degrees, stretched by {sigma_1:.2f} and {sigma_2:.2f}, "
            "and turned by {last:.0f} degrees.",
        readouts={
            "first": ("first turn, in degrees", ".0f"), "sigma_1": ("stretch along", ".2f"),
            "sigma_2": ("stretch up", ".2f"), "last": ("last turn, in degrees", ".0f"),
        },
        caption="The dotted circle holds all inputs of length 1. The first move turns v\u2081 and "
                "v\u2082 onto the axes, the second stretches along the axes, "
                "and the third turns the result.",
        numbers=_turned, draw=_draw_turns,
        data={"sigmas": np.linalg.svd(A, compute_uv=False).tolist(), "first": -45,
              "last": _turned(3)["last"], "reach": 7},
    ),
    "line": Scene(
        label="angle", stations=[0, 45, 90, 135, 180], step=1, start=0, seconds=8, unit="\u00b0",
        say="Along the line the squares add up to {along:.1f}, and across it to {across:.1f}.",
        readouts={"along": ("along the line", ".1f"), "across": ("across it", ".1f")},
        caption="The orange segments lead from each point to the line. "
                "The two bars always add up to 38, the sum of the squared distances to the mean.",
        numbers=_along, draw=_draw_line, data={"points": POINTS.tolist(), "reach": 4},
    ),
    "classes": Scene(
        label="angle of the axis", stations=[0, 45, 90, 135, 180], step=1, start=0, seconds=10,
        unit="\u00b0",
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
        numbers=_parted, draw=_draw_classes, data={"groups": GROUPS.tolist(), "reach": 4.2},
    ),
    "markov": Scene(
        label="stretch t", stations=[0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3], step=0.005, start=0.05,
        seconds=6,
        say="After the stretch, 50% above the mean is {times:.3g} times the mean, "
            "so its chance is at most {bound:.1%}.",
        readouts={"times": ("times the mean", ".3g"), "bound": ("Markov's bound", ".1%")},
        caption="The gray hill is the sum of 72 squares; the teal curve on the left is the "
                "stretched scale, and its height is measured in means of the stretched sum.",
        numbers=_bounded, draw=_draw_markov,
        data={"k": K, "level": LEVEL, "exact": _exact(),
              "density": [
                  [round(float(at), 3), round(_hill(at), 3)] for at in np.linspace(0.5, 1.8, 66)
              ]},
    ),
    "rescale": Scene(
        label="rescale, cut, undo", stations=MOVES, step=0.01, start=3, seconds=8,
        say="The scores are off by {error:.0%}; if W itself were cut, "
            "they would be off by {plain:.0%}.",
        remarks={
            "start": "The queries are long in one direction.",
            "round": "In new units the queries are round, and no score has changed.",
            "cut": "The cut keeps what the scores use most, so it loses least.",
            "undone": "In the old units the teal line does not follow the cloud: "
                      "it shows what the score reads.",
        },
        readouts={"error": ("error of the scores", ".0%"), "plain": ("if W itself is cut", ".0%")},
        caption="Gray dots are queries, the others what the cut leaves of them. The teal line on "
                "the left shows the direction in which the score reads a query; "
                "on the right it is the long axis of the arrows.",
        numbers=_rescaled, draw=_draw_rescale,
        data={"dots": DOTS.tolist(), "root": ROOT.tolist(), "inverse": np.linalg.inv(ROOT).tolist(),
              "u": U[:, 0].tolist(), "v": VT[0].tolist(), "arrows": (W @ ROOT).tolist(),
              "off": float(SIZES[1]) / WHOLE, "plain": _rescaled(3)["plain"], "reach": 8},
    ),
    "writes": Scene(
        label="writes", stations=[float(i) for i in range(9)], step=0.05, start=0, seconds=8,
        panels=1, say="The keys now read {read_1:.2f} and {read_2:.2f}; 5 and 0 were written.",
        readouts={
            "read_1": ("the first key reads", ".2f"), "read_2": ("the second reads", ".2f"),
            "off": ("distance to the crossing", ".2f"),
        },
        caption="Every state on the teal line answers the first key correctly, and every state on "
                "the violet one the second. "
                "A write steps onto the line of its pair by the shortest way.",
        numbers=_written, draw=_draw_writes,
        data={"keys": KEYS.tolist(), "values": VALUES.tolist(), "best": BEST.tolist()},
    ),
}  # fmt: skip

"""Drag a cut of a real language model along its path, and see what others cost."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.figures.parts.stills import still
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.style import GRAY, INK

# Each cut of the data: what its path is called, and what it keeps.
CUTS = {
    "sheets": ("sheets", "{k} sheets of each table"),
    "window": ("newest tokens", "the newest {k} tokens"),
    "window and first 4": ("newest and first tokens", "the newest {k} tokens and the first 4"),
    "averages": ("averages", "averages of {k} groups"),
    "bits": ("few bits", "{k} bits a number"),
}
TEXTS = {"prose": "English prose", "code": "Python code", "help": "help pages of Python"}
# What of the story is shown before the model goes on.
STORY = (
    "Anna had a red coat, and Tom had a blue one.",
    "But Max was hungry, so Anna put on her",
)
LENGTH = 256  # tokens of a piece
SAY = (
    "With {kept}, the tables are off by {error:.0%}, and the loss is {loss:.2f} nats a token: "
    "{more:.2f} more than uncut."
)
REMARKS = {
    "others": "At the same error, {best} would cost {least:.2f}, and {worst} {most:.2f}.",
    "other": "At the same error, {best} would cost {least:.2f}.",
    "alone": "No other cut here is off by as much.",
}
CAPTION = (
    "Each path is one cut of SmolLM2-135M, from mild to harsh. Dots are measured settings, the "
    "mean of twelve pieces of text. The ring is yours. Large dots show what the other cuts cost "
    "where they are off by as much, between two settings: teal less than yours, orange more."
)


def error_against_loss(
    cut: str = "window and first 4", setting: int = 32, text: str = "help"
) -> Instrument:
    """Show what cuts of attention cost SmolLM2-135M: the error of its tables, and its loss.

    State ``cut``, ``setting``, ``text``; numbers ``error`` (of all tables, relative to their norm,
    for the inputs that the cut model has) and ``loss`` (nats a token). All were measured
    beforehand; ``data/real_model.json`` says how.

    Parameters
    ----------
    cut : str
        A path: ``"sheets"``, ``"window"``, ``"window and first 4"``, ``"averages"``, or ``"bits"``.
    setting : int
        How much the cut keeps at first, as it was measured.
    text : str
        What is read: ``"prose"``, ``"code"``, or ``"help"``.

    Examples
    --------
    >>> sorted(error_against_loss().numbers)
    ['error', 'loss']
    """
    data = _data()
    paths = data["paths"][one_of("text", text, TEXTS)]
    path = paths[one_of("cut", cut, CUTS)]
    one_of("setting", setting, [k for k, _, _ in path])
    error, loss = next((error, loss) for k, error, loss in path if k == setting)
    return figure(
        name="error-against-loss",
        state={"cut": cut, "setting": setting, "text": text},
        numbers={"error": error, "loss": loss},
        values={
            "kept": CUTS[cut][1].format(k=setting),
            "more": loss - data["uncut"][text],
        },
        say=SAY,
        remarks=REMARKS,
        data=data,
        readouts={"error": ("error of the tables", ".0%"), "loss": ("nats a token", ".2f")},
        caption=CAPTION,
        picture=still(_draw, paths, data["uncut"][text], cut, setting, size=(5, 3.6)),
    )


def _data() -> dict[str, Any]:
    """Return the mean error and loss of each setting, mildest first, and what the model says."""
    found = json.loads(files("lowrank_tutor").joinpath("data/real_model.json").read_text("utf-8"))
    measured: dict[tuple[str, str, int | None], list[tuple[float, float]]] = {}
    for row in found["rows"]:
        if row["length"] == LENGTH and row["cut"] in {*CUTS, "none"}:
            place = (row["text"], row["cut"], row["setting"])
            measured.setdefault(place, []).append((row["error"], row["loss"]))
    means = {place: np.mean(rows, axis=0).round(4).tolist() for place, rows in measured.items()}

    def path(text: str, cut: str) -> list[list[float]]:
        rows = [[k, *mean] for (of, by, k), mean in means.items() if (of, by) == (text, cut)]
        return sorted(rows, key=lambda row: row[1])

    said: dict[str, dict[str, str]] = {}
    for row in found["continuations"]:
        said.setdefault(row["cut"], {})[str(row["setting"])] = row["text"]
    return {
        "paths": {text: {cut: path(text, cut) for cut in CUTS} for text in TEXTS},
        "uncut": {text: means[text, "none", None][1] for text in TEXTS},
        "texts": TEXTS,
        "names": {cut: name for cut, (name, _) in CUTS.items()},
        "kept": {cut: kept for cut, (_, kept) in CUTS.items()},
        "start": " … ".join(STORY),
        "said": {cut: said[cut] for cut in CUTS},
        "uncut_says": said["none"]["None"],
    }


def _draw(
    paths: dict[str, list[list[float]]], uncut: float, cut: str, setting: int, ax: Axes
) -> None:
    for name, path in paths.items():
        x = [0, *(error for _, error, _ in path)]
        y = [0, *(loss - uncut for *_, loss in path)]
        color, width = (INK, 2) if name == cut else (GRAY, 1)
        ax.plot(x, y, "-o", color=color, linewidth=width, markersize=3)
        ax.annotate(CUTS[name][0], (x[-1], y[-1]), (-4, 4), textcoords="offset points", ha="right")
    error, loss = next((error, loss) for k, error, loss in paths[cut] if k == setting)
    ax.plot(error, loss - uncut, "o", color=INK, markersize=9, markerfacecolor="none")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set(xlabel="error of the tables", ylabel="more loss, nats a token")

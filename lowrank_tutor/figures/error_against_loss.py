"""Drag a cut of a real language model along its path, and see what others cost."""

import json
from typing import Any

import numpy as np

from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.kit.block import asset
from lowrank_tutor.kit.canvas.instrument import Instrument

NAMES = {  # of the path of each cut
    "sheets": "sheets",
    "window": "newest tokens",
    "window and first 4": "newest and first tokens",
    "averages": "averages",
    "bits": "few bits",
}
KEPT = {
    "sheets": "{k} of the sheets of each table",
    "window": "the newest {k} tokens",
    "window and first 4": "the newest {k} tokens and the first 4",
    "averages": "averages of {k} groups",
    "bits": "{k} bits a number",
}
TEXTS = {"prose": "English prose", "code": "Python code", "help": "help pages of Python"}
# What of the story is shown before the model goes on.
STORY = "Anna had a red coat, and Tom had a blue one. … But Max was hungry, so Anna put on her"
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
    path = {k: (error, loss) for k, error, loss in paths[one_of("cut", cut, NAMES)]}
    error, loss = path[one_of("setting", setting, path)]
    uncut = data["uncut"][text]
    return figure(
        name="error-against-loss",
        state={"cut": cut, "setting": setting, "text": text},
        numbers={"error": error, "loss": loss},
        values={"kept": KEPT[cut].format(k=setting), "more": loss - uncut},
        say=SAY,
        remarks=REMARKS,
        data=data,
        readouts={"error": ("error of the tables", ".0%"), "loss": ("nats a token", ".2f")},
        caption=CAPTION,
    )


def _data() -> dict[str, Any]:
    """Return the mean error and loss of each setting, mildest first, and what the model says."""
    stored = json.loads(asset("data/real_model.json"))
    rows = [row for row in stored["rows"] if row["length"] == LENGTH]
    said = {(row["cut"], row["setting"]): row["text"] for row in stored["continuations"]}

    def mean(*wanted: object) -> list[float]:
        found = [row for row in rows if (row["text"], row["cut"], row["setting"]) == wanted]
        means = np.mean([(row["error"], row["loss"]) for row in found], axis=0)
        return list(means.round(4).tolist())

    def path(text: str, cut: str) -> list[list[float]]:
        settings = {row["setting"] for row in rows if row["cut"] == cut}
        return sorted(([k, *mean(text, cut, k)] for k in settings), key=lambda place: place[1])

    return {
        "paths": {text: {cut: path(text, cut) for cut in NAMES} for text in TEXTS},
        "uncut": {text: mean(text, "none", None)[1] for text in TEXTS},
        "texts": TEXTS,
        "names": NAMES,
        "kept": KEPT,
        "start": STORY,
        "said": {
            cut: {str(k): text for (by, k), text in said.items() if by == cut} for cut in NAMES
        },
    }

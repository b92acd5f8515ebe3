"""The call that puts sliders on a figure, and checks every argument before all of it is drawn."""

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lowrank_tutor.kit.sliders.explorer import Explorer
from lowrank_tutor.kit.sliders.film import MAX_BYTES
from lowrank_tutor.kit.words import Format, Value

MAX_POSITIONS = (
    48  # a slider: more positions than that are no easier to hit than a number is to type
)
MAX_CHOICES = 8  # a row of radio buttons
MAX_FRAMES = 240  # all sliders together


def explore(
    draw: Callable[..., Figure | Sequence[Figure]],
    readout: Callable[..., Mapping[str, Value]] | None = None,
    *,
    alt: str = "",
    caption: str = "",
    name: str | None = None,
    start: Mapping[str, Value] | None = None,
    labels: Mapping[str, str] | None = None,
    formats: Mapping[str, Format] | None = None,
    play: bool | str = False,
    limit: int = MAX_BYTES,
    **sliders: Iterable[Value],
) -> Explorer:
    r"""Put sliders on a figure.

    On a page, a drag across the pictures moves the slider that ``play`` names, or else the first
    slider of numbers, and points and lines travel from one position to the next.

    Parameters
    ----------
    draw : callable
        ``draw(k=...)`` returns a matplotlib figure, or a list of figures (panels), which stand side
        by side where there is room and one below the other on a phone: they should have one height,
        and 6.3 inches together at most. A panel up to 4.5 inches wide can be read on a phone in
        type of 9 points. Number and sizes must be the same at every position. A dark page inverts
        panels, except those that ``charts.photograph`` has marked.
    readout : callable, optional
        ``readout(k=...)`` returns a dict of named finite numbers or words, the same names at every
        position.
    alt : str
        What the picture shows, for people who cannot see it. A template: ``{k}`` is the slider's
        value as on the page, ``{relative_error:.1%}`` a number of the readout in a format of its
        own.
    caption : str, optional
        A sentence below the figure (plain text).
    name : str, optional
        The explorer's name on the page; by default the name of ``draw`` with hyphens.
    start : mapping, optional
        Where each slider stands at first; by default at its first value.
    labels, formats : mapping, optional
        Words and formats for sliders and readouts, by name. A format is a specification
        (``".1%"``), a template with a unit (``"{:.2f} s"``), or a function that returns words. An
        empty label hides a number that the picture itself shows.
    play : bool or str
        Whether a button moves the first slider of numbers by itself, or the name of the slider that
        it moves. For readers who ask for less motion each press is one step.
    limit : int
        The most bytes that the block may have on a page; what is heavier is refused. Artists with
        thousands of points weigh less after ``artist.set_rasterized(True)``.
    **sliders : iterable of numbers or of words
        One slider each, such as ``k=range(1, 49)``: increasing, 2 to 48 positions. Words, such as
        ``gpu=["T4", "A100"]``, make a row of 2 to 8 radio buttons, and so do up to 4 numbers. At
        most 240 frames in all.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> draw, readout = lambda k: Figure(), lambda k: {"double": 2 * k}
    >>> explore(draw, readout, alt="Twice {k} is {double}.", name="twice", k=range(4))
    <Explorer twice (k: 4 positions)>
    """
    if not isinstance(alt, str) or not alt.strip():
        raise ValueError(
            f'alt must be words that describe the picture, such as alt="Rank {{k}}.", got {alt!r}'
        )
    values = {slider: _slider_values(slider, raw) for slider, raw in sliders.items()}
    if not values:
        raise ValueError("sliders must be given by name, such as k=range(1, 49), got none")
    frames = math.prod(map(len, values.values()))
    if frames > MAX_FRAMES:
        raise ValueError(f"sliders must give at most {MAX_FRAMES} frames, got {frames}")
    first = {slider: v[0] for slider, v in values.items()}
    for slider, value in (start or {}).items():
        if value not in values.get(slider, ()):
            raise ValueError(f"start must be a position of a slider, got {slider}={value!r}")
        first[slider] = values[slider][
            values[slider].index(value)
        ]  # the slider's own 8, not the caller's np.int64(8)
    named = name if name is not None else getattr(draw, "__name__", "explorer").replace("_", "-")
    if not isinstance(named, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", named):
        whose = "" if name is not None else ", which is draw's own: give name="
        raise ValueError(f"name must be lower-case words joined by hyphens, got {named!r}{whose}")
    explorer = Explorer(
        draw=draw,
        readout=readout or (lambda **_: {}),
        sliders=values,
        start=first,
        name=named,
        alt=alt,
        caption=caption,
        labels=dict(labels or {}),
        formats=dict(formats or {}),
        plays=_player(play, values),
        limit=limit,
    )
    _check_words(explorer)
    return explorer


def _player(play: bool | str, sliders: Mapping[str, tuple[Value, ...]]) -> str | None:
    """Return the name of the slider that a button moves, if there is a button."""
    if play is False:
        return None
    numeric = [name for name, values in sliders.items() if not isinstance(values[0], str)]
    name = next(iter(numeric), "") if play is True else play
    if name not in numeric:
        raise ValueError(
            f"play must be True or False or name one of the sliders of numbers {numeric}, "
            f"got {play!r}"
        )
    return name


def _slider_values(name: str, raw: Any) -> tuple[Value, ...]:
    if isinstance(raw, str | Set | int | float):  # a set has no order
        raise TypeError(
            f"{name} must be a sequence of numbers or of words, such as range(1, 21), got {raw!r}"
        )
    values: tuple[Any, ...] = tuple(
        v.item() if isinstance(v, np.generic) else v
        for v in itertools.islice(raw, MAX_POSITIONS + 1)
    )
    words = bool(values) and all(isinstance(v, str) for v in values)
    most = MAX_CHOICES if words else MAX_POSITIONS
    if not 2 <= len(values) <= most:
        found = len(values) if len(values) <= most else "more"
        raise ValueError(f"{name} must have 2 to {most} positions, got {found}")
    if words:
        if len({v.strip() for v in values} - {""}) < len(values):
            raise ValueError(
                f"{name} must have words that differ and are not empty, got {list(values)}"
            )
        return values
    for v in values:
        if isinstance(v, bool) or not isinstance(v, int | float):
            raise TypeError(f"{name} must hold numbers alone or words alone, got {v!r}")
        if not math.isfinite(v):
            raise ValueError(f"{name} must hold finite numbers, got {v}")
    if any(b <= a for a, b in itertools.pairwise(values)):
        raise ValueError(f"{name} must increase, got {list(values)}")
    return values


def _check_words(explorer: Explorer) -> None:
    """Refuse words for sliders and readouts that do not exist, and formats that do not fit."""
    numbers = explorer.numbers(**explorer.start)
    if both := numbers.keys() & explorer.start:
        raise ValueError(f"readout must not name a number like a slider, got {sorted(both)}")
    known = {**explorer.start, **numbers}
    for argument in ("labels", "formats"):
        if unknown := set(getattr(explorer, argument)) - set(known):
            raise ValueError(f"{argument} must name one of {sorted(known)}, got {sorted(unknown)}")
    explorer.words.place(known)  # early, because a page draws for minutes before it writes
    explorer.words.sentence(explorer.alt, known)

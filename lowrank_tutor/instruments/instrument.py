"""What is an instrument? A figure that computes in the reader's browser; Python chooses its data and its words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from lowrank_tutor.explore.page import Words
from lowrank_tutor.instruments.block import WORDS, encode_figure, page_block, script


class Instrument:
    """A figure to take hold of. Made by the functions of this package; shows itself as the last line of a cell.

    Parameters
    ----------
    name : str
        The instrument's name: its function is that in ``<name>.js`` (``draw_first`` is ``drawFirst`` there).
    state : mapping
        How it starts: words, numbers, switches, lists of numbers, or rows of numbers.
    numbers : mapping
        What NumPy computes for that state, by the names that ``numbers()`` has in the browser.
    picture : callable
        ``picture()`` returns a figure of that state, for print and where no script runs.
    say : str
        The sentence that describes any state, a template as in :func:`lowrank_tutor.explore.explore`: ``{k}``,
        ``{relative_error:.1%}``. What it says of the start is the picture's text.
    values : mapping, optional
        What a template may use beside state and numbers, for the start.
    remarks : mapping, optional
        Sentences that may follow, by the names that the script calls them by.
    data : mapping, optional
        What the script needs beside the state, as plain data.
    parts : sequence of str, optional
        Further scripts of this package that the instrument needs, in order; its own comes last.
    labels, formats : mapping, optional
        Words and formats of the numbers, by name.
    caption : str, optional
        A sentence below the figure.
    algebra : bool
        Whether it needs ``linalg.js`` and ``background.js``; without them a block is 11 kB lighter.
    """

    def __init__(
        self,
        name: str,
        *,
        state: Mapping[str, Any],
        numbers: Mapping[str, float],
        picture: Callable[[], Figure],
        say: str,
        values: Mapping[str, Any] | None = None,
        remarks: Mapping[str, str] | None = None,
        data: Mapping[str, Any] | None = None,
        parts: tuple[str, ...] = (),
        labels: Mapping[str, str] | None = None,
        formats: Mapping[str, str] | None = None,
        caption: str = "",
        algebra: bool = True,
    ) -> None:
        self.algebra = algebra
        self.name, self.state, self.numbers = name, dict(state), dict(numbers)
        self.picture, self.say, self.caption = picture, say, caption
        self.remarks, self.data, self.parts = dict(remarks or {}), dict(data or {}), parts
        self.words = Words(dict(labels or {}), dict(formats or {}))
        self.alt = say.format(**{**self.state, **self.numbers, **(values or {})})

    def __repr__(self) -> str:
        return f"<Instrument {self.name}: {self.alt}>"

    def to_html(self) -> str:
        """Return the self-contained HTML block: it needs no kernel, no library and no network.

        Returns
        -------
        str
            A ``<figure class="instrument">`` with its style, script, picture and numbers inside.
        """
        config = {
            "state": self.state,
            "data": self.data,
            "formats": {name: self.words.formats.get(name, ",") for name in self.numbers},
            "say": self.say,
            "remarks": self.remarks,
            "words": WORDS,
        }
        source = script(self.name, (*self.parts, self.name), config, self.algebra)
        still = encode_figure(self.picture())
        return page_block(self.name, source, still, self.alt, self.caption, self.words, self.numbers)

    def _repr_html_(self) -> str:
        return self.to_html()

    def _repr_mimebundle_(self, **_kwargs: object) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.to_html()}

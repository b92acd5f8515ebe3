"""Tables that a page, a notebook and a terminal typeset alike, and numbers as people write them."""

import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import NamedTuple

from lowrank_tutor.kit.words import minus

__all__ = ["Table", "number", "table"]

NARROW = "\u202f"  # a space at which no line breaks
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Table(NamedTuple):
    """A table whose cells are words."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]  # whether a column is set flush right, as numbers are

    def _repr_markdown_(self) -> str:
        header = [
            name.replace(" = ", "\u00a0=\u00a0") for name in self.header
        ]  # no line breaks in "k = 8"
        header, *rows = (list(map(_as_markdown, line)) for line in (header, *self.rows))
        lines = [header, [" ---:" if right else ":--- " for right in self.right], *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def __repr__(self) -> str:
        columns = list(zip(self.header, *self.rows, strict=True))
        widths = [max(map(len, column)) for column in columns]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, self.right, strict=True)
            ).rstrip()
            for line in (self.header, *self.rows)
        )


def _as_markdown(cell: str) -> str:
    """Write a cell on one line, and escape Markdown, unless it is code between backticks."""
    if re.fullmatch("`[^`|]+`", cell):
        return cell
    line = re.sub(r"[\\`*_$~|<>&\[\]{]", r"\\\g<0>", " ".join(cell.splitlines()))
    # JupyterLab looks for formulas once more, in what Markdown has become, but not across the
    # borders of an element.
    return re.sub(r"\\[$\\]", r"<span>\g<0></span>", line)


def table(
    columns: Mapping[str, Sequence[object]], formats: Mapping[str, str] | None = None
) -> Table:
    r"""Put columns side by side.

    Parameters
    ----------
    columns : mapping of str to sequence
        The name of each column, and its cells from the top: numbers, words, or code between
        backticks. ``None`` leaves a cell empty.
    formats : mapping of str to str, optional
        How :func:`number` writes those of a column, such as ``".1%"``; by default whole numbers as
        ``"1,234"`` and all others with three digits.

    Examples
    --------
    >>> table({"k": [100, 1000], "chance": [0.48, 0.025]}, formats={"chance": ".1%"})
        k  chance
      100   48.0%
    1,000    2.5%
    """
    if unknown := (formats or {}).keys() - columns:
        raise ValueError(
            f"formats must be by names of columns, {', '.join(columns)}, got {sorted(unknown)}"
        )
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"columns must be at least one and equally long, got {lengths}")
    written = [
        [_written(cell, (formats or {}).get(name)) for cell in column]
        for name, column in columns.items()
    ]
    right = tuple(not any(isinstance(cell, str) for cell in column) for column in columns.values())
    return Table(tuple(columns), tuple(zip(*written, strict=True)), right)


def _written(cell: object, form: str | None) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    return number(cell, form or ("," if isinstance(cell, Integral) else ".3g"))


def number(value: object, form: str = ".3g") -> str:
    """Write a number as people do: 2 · 10⁻⁷ where Python's format ``form`` gives 2e-07.

    No line breaks in it.

    Examples
    --------
    >>> number(2.34e-7, ".1e").split(), number(0.25), number(1000, ",")
    (['2.3', '·', '10⁻⁷'], '0.25', '1,000')
    """
    written = minus(re.sub(r"^-(?=[0.,]+%?$)", "", format(value, form)))  # no zero has a sign
    split = re.fullmatch(r"(.+)e([-+]\d+)", written)
    if not split:
        return written
    mantissa, power = split.groups()
    return f"{mantissa}{NARROW}·{NARROW}10{str(int(power)).translate(RAISED)}" if value else "0"

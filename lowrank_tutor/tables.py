"""How does one read many numbers? In a table, which a page and a notebook typeset alike.

Readers import ``table``; what it returns shows itself as the last line of a cell. ``number`` writes one number alike.
"""

import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import NamedTuple

NARROW = "\u202f"  # a space at which no line breaks
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Table(NamedTuple):
    """A table whose cells are words.

    Attributes
    ----------
    header : tuple of str
        What each column holds.
    rows : tuple of tuples of str
        One cell a column.
    right : tuple of bool
        Whether a column is set flush right, as numbers are.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]

    def _repr_markdown_(self) -> str:
        header = [name.replace(" = ", "\u00a0=\u00a0") for name in self.header]  # no line breaks in "k = 8"
        lines = [header, [" ---:" if right else ":--- " for right in self.right], *self.rows]
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


def table(columns: Mapping[str, Sequence[object]], formats: Mapping[str, str] | None = None) -> Table:
    r"""Put columns side by side.

    Parameters
    ----------
    columns : mapping of str to sequence
        What each column is called, and its cells from the top: numbers, which are set flush right, or words; ``None``
        leaves a cell empty.
    formats : mapping of str to str, optional
        How the numbers of a column are written, such as ``".1%"``; without it whole numbers as ``"1,234"`` and all
        others with three digits. A format that leads to an exponent is written as :func:`number` does.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If there is no column, or the columns differ in length.

    Examples
    --------
    >>> table({"k": [100, 1000], "chance": [0.48, 0.025]}, formats={"chance": ".1%"})
        k  chance
      100   48.0%
    1,000    2.5%
    """
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns must be a dict from names to cells, got {type(columns).__name__}")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"columns must be at least one and equally long, got {lengths}")
    written = [[_written(cell, (formats or {}).get(name)) for cell in column] for name, column in columns.items()]
    right = tuple(not any(isinstance(cell, str) for cell in column) for column in columns.values())
    return Table(tuple(columns), tuple(zip(*written, strict=True)), right)


def _written(cell: object, form: str | None) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    return number(cell, form or ("," if isinstance(cell, Integral) else ".3g"))


def number(value: object, form: str = ".3g") -> str:
    """Write a number as people do: 2 · 10⁻⁷ where Python writes 2e-07.

    Parameters
    ----------
    value : number
    form : str
        A format specification of Python.

    Returns
    -------
    str
        Its spaces are narrow, and no line breaks there.

    Examples
    --------
    >>> number(2.34e-7, ".1e").split(), number(0.25), number(1000, ",")
    (['2.3', '·', '10⁻⁷'], '0.25', '1,000')
    """
    written = format(value, form)
    split = re.fullmatch(r"(.+)e([-+]\d+)", written)
    if not split:
        return written
    mantissa, power = split.groups()
    return f"{mantissa}{NARROW}·{NARROW}10{str(int(power)).translate(RAISED)}" if value else "0"

"""How does one read many numbers? In a table, which a page and a notebook typeset alike.

Readers import ``table``; what it returns shows itself as the last line of a cell.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import NamedTuple


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
        lines = [self.header, [" ---:" if right else ":--- " for right in self.right], *self.rows]
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
        others with three digits.

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
    return format(cell, form or ("," if isinstance(cell, Integral) else ".3g"))

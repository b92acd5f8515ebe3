"""What every contract needs: a promise is one line, tried on each package, with an outcome, a number and a remark."""

import io
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from benchmarks.harness import provenance, write

OUTCOMES = ("holds", "fails", "not offered", "error")
EXACT = 1e-6  # relative error in single precision: several times its rounding


class NotOffered(Exception):
    """The package has no such feature; the text says how one knows."""


class Package(ABC):
    """What a contract has to know of a package; adapters add how to use it."""

    name: ClassVar[str]
    distribution: ClassVar[str]
    layer: ClassVar[str]  # what is built, for the record
    remarks: ClassVar[Mapping[str, str]] = {}  # by line: what the reader should know beside the number
    ours: ClassVar[bool] = False
    may_lack: ClassVar[Sequence[str]] = ()  # lines that our own package need not offer in this form


class Finding(NamedTuple):
    """What one line measured, and what there is to say about it."""

    number: float
    remark: str = ""


class Line(NamedTuple):
    """One promise: what it says, the bound of its number, and how to measure that."""

    name: str
    title: str
    bar: float
    measure: Callable[[Any], Finding]


class Family(NamedTuple):
    """Packages that do the same thing, and what all of them should promise."""

    record: str  # name of the file that is written
    packages: Sequence[Package]
    lines: Sequence[Line]


def distance(found: torch.Tensor, wanted: torch.Tensor, where: torch.Tensor | None = None) -> float:
    """Relative error in the Frobenius norm, over the tokens that a mask marks."""
    found, wanted = found.detach().double(), wanted.detach().double()
    if where is not None:
        found, wanted = found[where], wanted[where]
    return float((found - wanted).norm() / wanted.norm())


def not_finite(*parts: torch.Tensor) -> int:
    """Count the entries that are infinite or NaN."""
    return sum(int((~part.isfinite()).sum()) for part in parts)


def reloaded(first: nn.Module, second: nn.Module) -> nn.Module:
    """Save the state of one layer and load it into another."""
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    return second


def try_line(line: Line, package: Package) -> dict[str, Any]:
    """Try one promise on one package and return a row."""
    number: float | None = None
    remark = package.remarks.get(line.name, "")
    try:
        number, found = line.measure(package)
        outcome, remark = "holds" if number <= line.bar else "fails", "; ".join(filter(None, (remark, found)))
    except NotOffered as reason:
        outcome, remark = "not offered", str(reason)
    except Exception as problem:  # noqa: BLE001  a peer may fail in any way, and that is a finding
        outcome, remark = "error", f"{type(problem).__name__}: {problem}"
    measured = None if number is None else float(f"{number:.3g}")
    return {
        "line": line.name,
        "package": package.name,
        "outcome": outcome,
        "measured": measured,
        "bar": line.bar,
        "remark": remark,
    }


def ours_hold(family: Family, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether our own packages keep every promise, but for those that they need not offer."""
    ours = {package.name: package for package in family.packages if package.ours}
    return all(
        row["outcome"] == "holds" or (row["outcome"] == "not offered" and row["line"] in ours[row["package"]].may_lack)
        for row in rows
        if row["package"] in ours
    )


def show(family: Family, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Lay the rows out as a table, then give the remarks."""
    names = [package.name for package in family.packages]
    widths = [max(22, len(name) + 2) for name in names]
    cells = {(row["line"], row["package"]): row for row in rows}
    yield f"{'':50}" + "".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True))
    for line in family.lines:
        texts = []
        for name, width in zip(names, widths, strict=True):
            row = cells[line.name, name]
            number = "" if row["measured"] is None else f" {row['measured']:.2g}"
            texts.append(f"{row['outcome'] + number:>{width}}")
        yield f"{line.title:50}" + "".join(texts) + f"   bar {line.bar:g}"
    for row in rows:
        if row["remark"]:
            yield f"{row['package']}, {row['line']} ({row['outcome']}): {row['remark']}"


def keep_record(family: Family, command: str) -> bool:
    """Try all, print and write; say whether our own packages keep every promise."""
    meta = provenance(command, sorted({"torch", *(package.distribution for package in family.packages)}))
    del meta["machine"]  # the outcomes do not depend on it
    rows = [try_line(line, package) for line in family.lines for package in family.packages]
    print("\n".join(show(family, rows)))
    meta["packages"] = {
        package.name: {"version": version(package.distribution), "layer": package.layer} for package in family.packages
    }
    meta["lines"] = {line.name: {"title": line.title, "bar": line.bar} for line in family.lines}
    meta["outcomes"] = list(OUTCOMES)
    print(f"written: {write(family.record, meta, rows).name}")
    return ours_hold(family, rows)

"""Ask packages for their promises: each is one line with a number and its bound, tried on each package."""

import io
from abc import ABC
from collections.abc import Callable, Mapping, Sequence
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
    """A package as a contract sees it; its adapter adds methods that use it."""

    name: ClassVar[str]
    distribution: ClassVar[str]
    layer: ClassVar[str]  # what is built, for the record
    lacks: ClassVar[Mapping[str, str]] = {}  # by method: how one knows that the package has no such feature
    remarks: ClassVar[Mapping[str, str]] = {}  # by line: what the reader should know beside the number
    ours: ClassVar[bool] = False
    may_lack: ClassVar[Sequence[str]] = ()  # lines that our own package need not offer in this form

    def __getattr__(self, name: str) -> Any:
        for cls in type(self).__mro__:
            if name in vars(cls).get("lacks", {}):
                raise NotOffered(vars(cls)["lacks"][name])
        raise AttributeError(f"{type(self).__name__} has no {name}")


class Finding(NamedTuple):
    """What one line measured, and what there is to say about it."""

    number: float
    remark: str = ""


class Line(NamedTuple):
    """One promise: what it says, the bound of its number, and how to measure that."""

    name: str
    title: str
    bar: float
    measure: Callable[[Any], float | Finding]


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


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    """Draw a standard normal tensor."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def some_mask(n: int) -> torch.Tensor:
    """Hide the end of a first sequence, and tokens here and there in a second."""
    kept = torch.arange(n) < 2 * n // 3
    return torch.stack([kept, kept[torch.randperm(n, generator=torch.Generator().manual_seed(3))]])


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


def takes_unknown(call: Callable[..., Any]) -> int:
    """Return 1 if a keyword that means nothing is accepted silently."""
    try:
        call(no_such_keyword=True)
    except TypeError:
        return 0
    return 1


def try_line(line: Line, package: Package) -> dict[str, Any]:
    """Try one promise on one package and return a row."""
    number: float | None = None
    remark = package.remarks.get(line.name, "")
    try:
        found = line.measure(package)
        number, told = found if isinstance(found, Finding) else Finding(found)
        outcome, remark = "holds" if number <= line.bar else "fails", "; ".join(filter(None, (remark, told)))
    except NotOffered as reason:
        outcome, remark = "not offered", str(reason)
    except Exception as problem:  # noqa: BLE001  a peer may fail in any way, and that is a finding
        outcome, remark = "error", f"{type(problem).__name__}: {problem}"
    measured = None if number is None else float(f"{number:.3g}")
    row = {"line": line.name, "package": package.name, "outcome": outcome, "measured": measured}
    return row | {"bar": line.bar, "remark": remark}


def ours_hold(family: Family, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether our own packages keep every promise, but for those that they need not offer."""
    ours = {package.name: package for package in family.packages if package.ours}
    return all(
        row["outcome"] == "holds" or (row["outcome"] == "not offered" and row["line"] in ours[row["package"]].may_lack)
        for row in rows
        if row["package"] in ours
    )


def keep_record(family: Family, command: str) -> bool:
    """Try all, print and write; say whether our own packages keep every promise."""
    meta = provenance(command, sorted({"torch", *(package.distribution for package in family.packages)}))
    del meta["machine"]  # the outcomes do not depend on it
    rows = [try_line(line, package) for line in family.lines for package in family.packages]
    for row in rows:
        print("{line}, {package}: {outcome} ({measured}, at most {bar:g}). {remark}".format(**row))
    meta["packages"] = {
        package.name: {"version": version(package.distribution), "layer": package.layer} for package in family.packages
    }
    meta["lines"] = {line.name: {"title": line.title, "bar": line.bar} for line in family.lines}
    meta["outcomes"] = list(OUTCOMES)
    print(f"written: {write(family.record, meta, rows).name}")
    return ours_hold(family, rows)

"""The records of both families are true: a rerun gives them, and our own layers and functions keep every promise."""

import json
from pathlib import Path

import pytest

from benchmarks import contract, promises
from benchmarks.contract import FAMILIES
from benchmarks.promises import try_line

DATA = Path(__file__).parents[2] / "lowrank_tutor" / "data"


PACKAGES = [(family, package) for family in FAMILIES for package in family.packages]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.record)


def record(family):
    return json.loads((DATA / f"{family.record}.json").read_text(encoding="utf-8"))


@each_family
def test_the_record_has_every_line_for_every_package(family):
    meta, rows = record(family).values()
    wanted = [(line.name, package.name) for line in family.lines for package in family.packages]
    assert [(row["line"], row["package"]) for row in rows] == wanted
    assert meta["lines"] == {line.name: {"title": line.title, "bar": line.bar} for line in family.lines}
    assert list(meta["packages"]) == [package.name for package in family.packages]
    assert meta["command"] == contract.COMMAND
    assert "machine" not in meta


@each_family
def test_the_record_says_why_where_a_promise_is_not_kept(family):
    for row in record(family)["rows"]:
        assert row["outcome"] in promises.OUTCOMES
        assert (row["measured"] is None) == (row["outcome"] in ("not offered", "error"))
        if row["measured"] is not None:
            assert (row["outcome"] == "holds") == (row["measured"] <= row["bar"])
        if row["outcome"] in ("fails", "not offered"):
            assert row["remark"], row


@pytest.mark.parametrize(("family", "package"), PACKAGES, ids=[package.name for _, package in PACKAGES])
def test_the_record_is_what_a_rerun_gives(family, package):
    recorded = {row["line"]: row["outcome"] for row in record(family)["rows"] if row["package"] == package.name}
    assert {line.name: try_line(line, package)["outcome"] for line in family.lines} == recorded


@each_family
def test_the_exit_status_follows_our_own(family):
    rows = record(family)["rows"]
    assert promises.ours_hold(family, rows)
    for package in family.packages:
        for i, row in enumerate(rows):
            for outcome in ("fails", "not offered", "error"):
                fine = not package.ours or (outcome == "not offered" and row["line"] in package.may_lack)
                if row["package"] == package.name:
                    changed = [*rows[:i], {**row, "outcome": outcome}, *rows[i + 1 :]]
                    assert promises.ours_hold(family, changed) == fine


def test_our_own_may_lack_only_what_cannot_be_meant():
    assert {package.name: list(package.may_lack) for _, package in PACKAGES if package.may_lack} == {
        "lowrank_tutor E != F": ["saved, fixed"],
        "lowrank_tutor linear": ["limit", "unbiased"],
    }


def test_the_exit_status_says_whether_both_families_hold(monkeypatch, capsys):
    kept = {"linformer_contract": True, "kernel_contract": True}
    monkeypatch.setattr(contract, "keep_record", lambda family, command: kept[family.record])
    assert contract.main() == 0
    for name in kept:
        kept[name] = False
        assert contract.main() == 1
        kept[name] = True


@each_family
def test_the_table_shows_every_row(family):
    rows = record(family)["rows"]
    text = "\n".join(promises.show(family, rows))
    assert all(line.title in text for line in family.lines)
    assert all(package.name in text for package in family.packages)
    assert text.count("\n") + 1 == 1 + len(family.lines) + sum(bool(row["remark"]) for row in rows)
    assert len({len(line.split("   bar ")[0]) for line in text.splitlines()[: 1 + len(family.lines)]}) == 1

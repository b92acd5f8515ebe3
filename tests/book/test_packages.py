"""Packages, asked the same questions: its cells run, and its tables say what the data say."""

import json
from importlib.resources import files

import pytest
from chapters import ROOT, run

from lowrank_tutor.kit.tables import number


def stored(name):
    return json.loads(
        (files("lowrank_tutor") / "data" / f"{name}.json").read_text(encoding="utf-8")
    )


@pytest.fixture(scope="module")
def page():
    return run(ROOT / "book" / "packages.md").namespace


def test_contract_table(page):
    """Every question stands there once, with every outcome and every remark."""
    contract = stored("linformer_contract")
    assert page["linformers"] == contract
    packages = dict(zip(contract["meta"]["packages"], "abcd", strict=True))
    table, _, others = page["asked"](contract, packages).data.partition("All pass these: ")
    escape = page["html"].escape
    shown = []
    for line, told in contract["meta"]["lines"].items():
        rows = [row for row in contract["rows"] if row["line"] == line]
        if all(row["outcome"] == "holds" for row in rows):
            assert escape(told["title"]) in others
        else:
            assert (
                table.count(f">{escape(told['title'])} (at most {number(told['bar'], 'g')})<") == 1
            )
            shown += rows
    for outcome, (_, mark) in page["LOOKS"].items():
        assert table.count(f"{mark} {outcome}<") == sum(row["outcome"] == outcome for row in shown)
    for row in shown:
        assert escape(row["remark"] or "") in table


def test_outcome_contrast(page):
    """Each chip says its outcome in words, white on a color of at least 4.5 to 1."""

    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert set(page["LOOKS"]) | {"error"} == set(stored("linformer_contract")["meta"]["outcomes"])
    for outcome, (color, mark) in page["LOOKS"].items():
        assert 1.05 / (luminance(color) + 0.05) >= 4.5, outcome
        assert mark


def test_bold_methods(page):
    rows = page["bench"]["rows"]
    for row in rows:
        faster = [
            r for r in rows if r["spectrum"] == row["spectrum"] and r["time_min"] < row["time_min"]
        ]
        assert page["beaten"](row) == any(r["excess"] <= row["excess"] for r in faster)
        assert page["cell"](row["method"], row["spectrum"]).startswith("<td><b>") != page["beaten"](
            row
        )


def test_helpers_table(page):
    helpers = stored("peers")
    assert page["helpers"] == helpers
    for row in helpers["rows"]:
        told = page["helper"](row)
        assert row["task"] in told
        assert f"compared with {row['peer']}<" in told
        assert (
            f"{1000 * row['time_ours']:,.0f}</td><td>{1000 * row['time_theirs']:,.0f}</td>" in told
        )
        assert f">{row['ratio']:.2f}<" in told
        assert ("<b>" in told) == (row["ratio"] < 1)
        assert all(
            number(row[who], ".4g") in told for who in ("error_ours", "error_theirs") if who in row
        )


def test_feature_signs(page):
    """Without the signs more features do not help."""
    right, wrong = page["off"]["with signs"], page["off"]["without"]
    assert right[2] < right[1] / 2 < right[0] / 4
    assert wrong[2] > 0.8 * wrong[1] > 0.02


def test_questions_of_today(page):
    """All obey a mask; only this book's function ignores NaN below it, as the page says."""
    for name, (exact, hidden, none_left, gradients) in page["asked_now"].items():
        assert max(exact, none_left) < 1e-6, name
        assert (hidden < 1e-6) == (name == "softmax_attention"), name
        assert gradients == ("refused" if name == "FlexAttention" else "yes"), name

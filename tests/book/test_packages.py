"""Packages, asked the same questions: its cells run, its tables say what the data say, and so do its sentences."""

import itertools
import json
import re
from importlib.resources import files

import pytest
from chapters import ROOT, run

from lowrank_tutor.tables import number

PAGE = ROOT / "book" / "packages.md"
TEXT = PAGE.read_text(encoding="utf-8")
CONTRACTS = {"linformer_contract": "linformers", "kernel_contract": "kernels"}


def stored(name):
    return json.loads((files("lowrank_tutor") / "data" / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page():
    return run(PAGE).namespace


@pytest.mark.parametrize(("name", "variable"), CONTRACTS.items())
def test_a_table_has_every_question_once_every_outcome_and_every_remark(page, name, variable):
    contract = stored(name)
    assert page[variable] == contract
    packages = dict(zip(contract["meta"]["packages"], "abcd", strict=True))
    table, _, others = page["asked"](contract, packages).data.partition("All hold on these: ")
    escape = page["html"].escape
    shown = []
    for line, told in contract["meta"]["lines"].items():
        rows = [row for row in contract["rows"] if row["line"] == line]
        if all(row["outcome"] == "holds" for row in rows):
            assert escape(told["title"]) in others
        else:
            assert table.count(f">{escape(told['title'])} (at most {number(told['bar'], 'g')})<") == 1
            shown += rows
    for outcome, (_, mark) in page["LOOKS"].items():
        assert table.count(f"{mark} {outcome}<") == sum(row["outcome"] == outcome for row in shown)
    for row in shown:
        assert escape(row["remark"] or "") in table


def test_marks_are_words_too_and_can_be_read(page):
    """Each chip says its outcome in words, white on a color of at least 4.5 to 1."""

    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert set(page["LOOKS"]) | {"error"} == set(stored("kernel_contract")["meta"]["outcomes"])
    for outcome, (color, mark) in page["LOOKS"].items():
        assert 1.05 / (luminance(color) + 0.05) >= 4.5, outcome
        assert mark


def test_what_the_sentences_say_of_the_svd():
    bench = stored("svd_bench")
    assert (bench["meta"]["m"], bench["meta"]["n"], bench["meta"]["k"]) == (4000, 1000, 50)
    assert bench["meta"]["repeats"] == 15
    rows = {(row["method"], row["spectrum"]): row for row in bench["rows"]}
    spectra = {spectrum for _, spectrum in rows}
    ours = {spectrum: rows["block Krylov (ours)", spectrum] for spectrum in spectra}

    def ratios(method, what):
        return sorted(ours[s][what] / rows[method, s][what] for s in spectra if (method, s) in rows)

    most = len(spectra) // 2
    assert ratios("scikit-learn", "time_min")[most] < 0.34
    for method in ("svd_lowrank", "svd_lowrank q=k+10", "fbpca"):
        assert 0.4 < ratios(method, "time_min")[most] < 1.5
        assert all(ours[s]["excess"] <= 0.2 * rows[method, s]["excess"] for s in spectra)
    assert all(ours[s]["excess"] <= 0.2 * rows["scikit-learn", s]["excess"] for s in spectra)
    assert ratios("ARPACK", "time_min")[-1] < 1
    for method in ("ARPACK", "PROPACK"):
        assert {row["excess"] for (name, _), row in rows.items() if name == method} == {0}
    assert {failure["method"] for failure in bench["meta"]["failures"]} == {"PROPACK"}
    assert len(bench["meta"]["failures"]) == len(spectra - {s for m, s in rows if m == "PROPACK"}) == 2
    assert 0.9 < ours["steep"]["time_min"] / rows["PROPACK", "steep"]["time_min"] < 1.1
    for (_, spectrum), row in rows.items():
        best = ours[spectrum]
        assert not (row["time_min"] < best["time_min"] and row["excess"] < best["excess"])


def test_bold_is_what_nobody_beats(page):
    rows = page["bench"]["rows"]
    best = {"block Krylov (ours)": 0}
    for row in rows:
        if not page["beaten"](row):
            best[row["method"]] = best.get(row["method"], 0) + 1
    assert best["block Krylov (ours)"] >= 4
    fastest = [min((r for r in rows if r["spectrum"] == s), key=lambda r: r["time_min"]) for s in page["SPECTRA"]]
    assert not any(map(page["beaten"], fastest))


def test_the_table_of_helpers_tells_every_task_and_bold_is_a_win(page):
    helpers = stored("helpers")
    assert page["helpers"] == helpers
    for row in helpers["rows"]:
        told = page["helper"](row)
        assert row["task"] in told
        assert f"beside {row['peer']}<" in told
        assert f"{1000 * row['time_ours']:,.0f}</td><td>{1000 * row['time_theirs']:,.0f}</td>" in told
        assert f">{row['ratio']:.2f}<" in told
        assert row["ratio"] == pytest.approx(row["time_ours"] / row["time_theirs"], rel=0.01)
        assert ("<b>" in told) == (row["ratio"] < 1)
        assert all(number(row[who], ".4g") in told for who in ("error_ours", "error_theirs") if who in row)
    linear = [row["peer"] for row in helpers["rows"] if row["task"].startswith("linear_attention")]
    assert linear[-1] == "its formula in plain PyTorch"


def test_what_the_sentences_say_of_the_times_of_linformer():
    took = {
        (row["method"], row["k"], row["n"]): row["time_median"]
        for row in stored("linformer_cpu")["rows"]
        if (row["series"], row["mode"]) == ("module", "forward")
    }
    sizes = sorted({n for _, _, n in took})
    for k, package in itertools.product((128, 256), ("linformer", "linformer-pytorch kv")):
        assert all(took["lowrank_tutor E = F", k, n] < 0.67 * took[package, k, n] for n in sizes[1:])
    alike = {n: took["lowrank_tutor E != F", 256, n] / took["linformer", 256, n] for n in sizes}
    told = f"{alike[512]:.0%} of its time at 512 tokens, {alike[1024]:.0%} at 1,024 and {alike[4096]:.0%} at 4,096"
    assert told in TEXT


def test_what_the_sentences_say_of_the_features_at_64():
    remarks = {(row["line"], row["package"]): row["remark"] for row in stored("kernel_contract")["rows"]}
    (ratio,) = re.findall(r"with d = 64 the ratio is (\S+)$", remarks["limit", "performer-pytorch"])
    (bias,) = re.findall(r"with d = 64 it is (\S+);", remarks["unbiased", "performer-pytorch"])
    assert f"the ratio of `performer-pytorch` is {ratio}, within the bar, and its bias {bias}." in TEXT


def test_without_the_signs_more_features_do_not_help(page):
    right, wrong = page["off"]["with signs"], page["off"]["without"]
    assert right[2] < right[1] / 2 < right[0] / 4
    assert wrong[2] > 0.8 * wrong[1] > 0.02

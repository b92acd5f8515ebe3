"""The study of long inputs: its texts, its questions, its standard errors, and its record."""

import json
import sys

import numpy as np
import pytest

from measure.harness import DATA
from measure.training import long_study as study

META, ROWS = json.loads((DATA / "long_study.json").read_text(encoding="utf-8")).values()


@pytest.mark.parametrize(("task", "passages"), [("passage", 1), ("order", 2)])
def test_first_sign_answers(task, passages):
    """Read each text from the left, as a person would: the first sign of a passage is the answer to
    every question.
    """
    training = study.Training(task, "none", 0, 1e-3, study.SHORT, "cpu")
    x = study.corpus(study.SHORT)["train"]
    shown, asked, wanted = study.plant(x, training.passages, training.generator)
    orders = set()
    for before, text, places, answer in zip(
        *(each.tolist() for each in (x, shown, asked, wanted)), strict=True
    ):
        signs = [symbol - 256 for symbol in text if 256 <= symbol < study.QUESTION]
        kinds = list(dict.fromkeys(signs))
        assert signs == [
            kind for kind in kinds for _ in range(study.RUN)
        ]  # passages are whole, and of other kinds
        assert (len(kinds), answer) == (passages, kinds[0])
        assert sorted(places) == [
            place for place, symbol in enumerate(text) if symbol == study.QUESTION
        ]
        assert len(places) == study.ASKED
        assert all(
            now in (old, *range(256, study.QUESTION + 1))
            for old, now in zip(before, text, strict=True)
        )
        orders.add(tuple(kinds))
    if passages == 2:  # the same two signs come in both orders, with two answers
        assert any(kinds[::-1] in orders for kinds in orders)


def test_parts_share_no_text():
    parts = {
        part: {tuple(row) for row in texts.tolist()}
        for part, texts in study.corpus(study.SHORT).items()
    }
    assert not parts["train"] & parts["test"]
    assert not parts["validation"] & (parts["train"] | parts["test"])


@pytest.mark.parametrize("kind", study.KINDS)
def test_each_kind_learns(kind):
    """One batch, shown again and again, is learned by heart."""
    sizes = study.SHORT._replace(texts=1, held_out=(1, 1), steps=(1000, 1000))
    training, losses = study.Training("order", kind, 0, 3e-3, sizes, "cpu"), []
    for _ in range(60):
        training.generator.manual_seed(0)
        losses += training.go_on()
    assert losses[-1] < losses[0] / 2


def test_standard_error_covers():
    """Draw shares with chance in texts, seeds, and both 2,000 times: the error is the spread of
    their means.
    """
    draw = np.random.default_rng(0).normal
    seeds, texts = 3, 40
    tables = [
        8 + draw(0, 3, texts) + draw(0, 0.7, (seeds, 1)) + draw(0, 0.5, (seeds, texts))
        for _ in range(2000)
    ]
    spread = np.std([table.mean() / study.ASKED for table in tables])
    claimed = np.sqrt(np.mean([study.standard_error(table) ** 2 for table in tables]))
    assert claimed == pytest.approx(spread, rel=0.05)
    assert study.standard_error(np.array([[0, 16], [8, 16]])) == pytest.approx(
        (0.28125 / 2 + 0.03125 / 2) ** 0.5
    )


def test_short_run(monkeypatch, tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr(study, "KINDS", {kind: study.KINDS[kind] for kind in ("none", "averages")})
    monkeypatch.setattr(sys, "argv", ["long_study", "--short", "--resume", str(path)])
    assert study.main() == 0
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 2 * 2 * 2 + 1  # tasks, kinds and rates, and then the times
    assert set(lines[-1]["times"]["seconds"]) == {"none", "averages"}
    assert study.main() == 0  # nothing is repeated
    assert len(path.read_text().splitlines()) == len(lines)
    assert "after 4 steps" in capsys.readouterr().out


def test_record_has_equal_steps():
    """Every kind has a run from seed 0 at both rates, and from all other seeds at the better one,
    of equal length.
    """
    for task, steps in zip(("passage", "order"), META["sizes"]["steps"], strict=True):
        rows = [row for row in ROWS if row["task"] == task]
        assert len({json.dumps([step for step, _ in row["curve"]]) for row in rows}) == 1
        assert {row["steps"] for row in rows} == {steps} == {rows[0]["curve"][-1][0]}
    places = [(row["task"], row["kind"], row["seed"], row["rate"]) for row in ROWS]
    wanted = []
    for task in ("passage", "order"):
        for kind in study.KINDS:
            ended = {
                row["rate"]: row["curve"][-1][1]
                for row in ROWS
                if (row["task"], row["kind"], row["seed"]) == (task, kind, 0)
            }
            assert set(ended) == set(study.RATES)
            (result,) = (
                each for each in META["results"] if (each["task"], each["kind"]) == (task, kind)
            )
            assert ended[result["rate"]] == max(ended.values()), result
            wanted += [(task, kind, 0, rate) for rate in study.RATES]
            wanted += [(task, kind, seed, result["rate"]) for seed in range(1, result["seeds"])]
    assert sorted(places) == sorted(wanted)
    assert set(META["times"]["seconds"]) == set(study.KINDS)


def test_record_adds_up():
    """Means and standard errors, from the letters of each run, by a sum of squares over texts and
    seeds.
    """
    for result in META["results"]:
        runs = [
            row
            for row in ROWS
            if all(row[name] == result[name] for name in ("task", "kind", "rate"))
        ]
        shares = [[int(letter, 17) / 16 for letter in row["right"]] for row in runs]
        for row, each in zip(runs, shares, strict=True):
            assert row["test"] == pytest.approx(sum(each) / len(each), abs=1e-4)
        variance = 0.0
        for table in (shares, [*zip(*shares, strict=True)]):
            means = [sum(each) / len(each) for each in table]
            middle = sum(means) / len(means)
            variance += sum((each - middle) ** 2 for each in means) / (len(means) - 1) / len(means)
        assert result["mean"] == pytest.approx(middle)
        assert result["standard_error"] == pytest.approx(variance**0.5)


@pytest.mark.parametrize("task", ["passage", "order"])
def test_record_separates_kinds(task):
    """Exact attention finds the passage; without attention nothing beats guessing."""
    scores = {
        each["kind"]: (each["mean"], each["standard_error"])
        for each in META["results"]
        if each["task"] == task
    }
    assert scores["exact"][0] > {"passage": 0.95, "order": 0.5}[task]
    mean, error = scores["none"]
    assert abs(mean - 1 / 8) < 4 * error

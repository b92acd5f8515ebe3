"""The study of long inputs: its texts, its questions, its standard errors, and its record."""

import json

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
    training = study.Training(task, "none", 0, 1e-3, study.SHORT)
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

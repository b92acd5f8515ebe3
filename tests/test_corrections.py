"""Corrections: every cell's assertions hold, and the law that replaces the slip is right."""

import numpy as np
import pytest
from chapters import ROOT, run

PAGE = ROOT / "book" / "corrections.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page():
    return run(PAGE).namespace


def test_the_cells_run_and_their_assertions_hold(page):
    assert page["spread"] < 1e-3


def test_the_law_of_a_random_middle_against_many_draws():
    """Small enough for a mean over thousands of draws, which pins the constant in the law."""
    rng = np.random.default_rng(0)
    p, v = rng.standard_normal((3, 6)), rng.standard_normal((6, 2))
    k, draws = 4, 20_000
    r = rng.standard_normal((draws, k, 6)) / np.sqrt(k)
    errors = ((p @ r.transpose(0, 2, 1) @ (r @ v) - p @ v) ** 2).sum(axis=(1, 2))
    law = ((p**2).sum() * (v**2).sum() + ((p @ v) ** 2).sum()) / k
    assert errors.mean() == pytest.approx(law, rel=0.03)


def test_the_constants_in_words():
    assert "$k = 5 \\ln n/\\varepsilon^2$ is 3,119" in TEXT
    assert 5 * np.log(512) / 0.01 == pytest.approx(3119, abs=1)


def test_every_correction_names_what_is_right():
    sections = TEXT.split("\n### ")[1:]
    assert len(sections) == 3
    assert all("**Claim.**" in section for section in sections)
    assert all("**Right**" in section or "**What survives.**" in section for section in sections)

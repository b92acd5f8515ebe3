"""Packages, asked the same questions: its cells run, and its tables say what the data say."""

import pytest
from chapters import ROOT, run


@pytest.fixture(scope="module")
def page():
    return run(ROOT / "book" / "packages.md").namespace


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

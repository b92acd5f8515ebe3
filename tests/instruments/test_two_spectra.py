"""Two skylines and one cut: both errors are those of the package's factors."""

import numpy as np
import pytest

from lowrank_tutor.bilinear import factorize, score_error
from lowrank_tutor.figures import two_spectra

TABLE = np.random.default_rng(0).standard_normal((24, 24))


@pytest.fixture(scope="module")
def one():
    return two_spectra(TABLE)


@pytest.fixture(scope="module")
def hand(show, one):
    return show(one)


def test_random_states_match_factors(hand, one):
    w, rng = np.array(one.data["w"]), np.random.default_rng(1)
    assert w == pytest.approx(TABLE, rel=0.01)
    states = [{"k": int(rng.integers(1, 25)), "decay": round(float(rng.uniform(0, 2)), 2)} for _ in range(19)]

    def judge(seen):
        k, decay = seen.call("state").values()
        sizes = np.arange(1, 25.0) ** -decay
        moment = np.diag(sizes**2)
        whole = np.linalg.norm(sizes[:, None] * w)
        cuts = {"plain": factorize(w, k), "weighted": factorize(w, k, s_moment=moment)}
        errors = {name: score_error(w, *pair, s_moment=moment) / whole for name, pair in cuts.items()}
        assert seen.shown() == pytest.approx(errors, abs=1e-7)
        expected = [np.linalg.svd(w)[1], sizes, np.linalg.svd(sizes[:, None] * w)[1]]
        for bars, want in zip(seen.call("table")["bars"], expected, strict=True):
            assert bars == pytest.approx(want, abs=1e-9)

    hand.tour([*states, {"k": 24, "decay": 1}], judge)


def test_handles(hand):
    hand.set(k=6, decay=0)
    tenth, cut = hand.handle("size of input direction 10"), hand.handle("rank kept")
    tenth.press("Shift+ArrowDown")
    assert hand.call("state")["decay"] == pytest.approx(0.5)
    tenth.press("Home")
    assert hand.call("state")["decay"] == 2
    tenth.press("End")
    hand.said("both cuts are the same")
    assert hand.shown()["plain"] == pytest.approx(hand.shown()["weighted"])
    hand.drag("size of input direction 10", 0, 40)
    assert 0.2 < hand.call("state")["decay"] < 0.5
    for key, k in (("End", 24), ("Home", 1), ("ArrowRight", 2), ("Shift+ArrowUp", 6)):
        cut.press(key)
        assert hand.call("state")["k"] == k
    hand.drag("rank kept", 100, 0)
    assert hand.call("state")["k"] == 10


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": 25},
        {"k": 1.5},
        {"decay": -0.1},
        {"decay": 2.1},
        {"table": np.eye(9)},
        {"table": np.eye(65)},
        {"table": np.ones((12, 12))},
        {"table": np.ones((12, 24))},
    ],
)
def test_bad_arguments(hand, wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name} must "):
        two_spectra(**{"table": TABLE, **wrong})
    if name != "table":
        before = hand.call("state")
        with pytest.raises(Exception, match="must be"):
            hand.call("set", wrong)
        assert hand.call("state") == before

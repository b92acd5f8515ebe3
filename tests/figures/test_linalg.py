"""The little linear algebra of the browser, judged by NumPy."""

import numpy as np
import pytest

from lowrank_tutor.kit.block import asset

rng = np.random.default_rng(0)


def from_spectrum(s, m, n):
    """A matrix with these singular values, in random directions."""
    u, _ = np.linalg.qr(rng.standard_normal((m, len(s))))
    v, _ = np.linalg.qr(rng.standard_normal((n, len(s))))
    return (u * s) @ v.T


MATRICES = {
    "one row": np.array([[3.0, 0.0, 4.0]]),
    "tall": rng.standard_normal((30, 5)),
    "wide": rng.standard_normal((5, 30)),
    "rank-deficient": from_spectrum([3, 2, 1], 20, 12),
    "zero": np.zeros((4, 6)),
    "repeated": from_spectrum([2, 2, 2, 1, 1], 8, 8),
    "orthogonal": np.linalg.qr(rng.standard_normal((9, 9)))[0],
    "graded upward": np.logspace(-12, 0, 20)[:, None] * rng.standard_normal((20, 20)),
    "zeros on the diagonal": np.eye(8, k=1) + np.diag([1.0, 1, 1, 0, 1, 0, 1, 1]),
    "256 x 256": rng.standard_normal((256, 256)),
    "tiny": 1e-70 * rng.standard_normal((6, 4)),
    "huge": 1e70 * rng.standard_normal((4, 6)),
}
each_matrix = pytest.mark.parametrize("name", MATRICES)


@pytest.fixture(scope="module")
def js(browser):
    """Call a function of linalg.js, loaded alone."""
    page = browser.new_page()
    page.goto("about:blank")
    before = set(page.evaluate("Object.getOwnPropertyNames(window)"))
    page.add_script_tag(content=asset("figures/parts/linalg.js"))
    assert set(page.evaluate("Object.getOwnPropertyNames(window)")) - before == {"lowrankLinalg"}
    yield lambda code, *given: page.evaluate(f"(all) => lowrankLinalg.{code}(...all)", list(given))
    page.close()


@each_matrix
def test_svd(js, name):
    a = MATRICES[name]
    r = min(a.shape)
    found = js("svd", a.tolist())
    u, s, v = (np.array(found[part]) for part in "usv")
    expected = np.linalg.svd(a, compute_uv=False)
    largest = expected[0] or 1.0
    assert (u.shape, s.shape, v.shape) == ((len(a), r), (r,), (a.shape[1], r))
    assert (np.diff(s) <= 0).all()
    assert np.abs(s - expected).max() <= 1e-10 * largest
    assert np.abs((u * s) @ v.T - a).max() <= 1e-10 * largest
    assert np.abs(u.T @ u - np.eye(r)).max() <= 1e-10
    assert np.abs(v.T @ v - np.eye(r)).max() <= 1e-10


@pytest.mark.parametrize("name", [name for name in MATRICES if name not in ("tiny", "huge")])
def test_qr(js, name):
    a = MATRICES[name]
    found = js("qr", a.T.tolist())
    q, r = (np.array(found[part]).T for part in "qr")
    assert q.shape == (len(a), min(a.shape))
    assert np.abs(q @ r - a).max() <= 1e-12 * max(1, np.abs(a).max()) * len(a)
    assert np.abs(q.T @ q - np.eye(min(a.shape))).max() <= 1e-10
    assert np.array_equal(r, np.triu(r))
    assert (np.diag(r) >= 0).all()


def test_matmul_and_softmax(js):
    a, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    assert np.array(js("matmul", a.tolist(), b.tolist())) == pytest.approx(a @ b, abs=1e-14)
    assert js("softmax", [0, np.log(3)]) == pytest.approx([0.25, 0.75])
    assert js("softmax", [1000, 1000]) == [0.5, 0.5]

"""What randomized SVD, PCA, and the counts of rank promise, swept across every border where they
take another way.

Small sizes are swept exhaustively, flat spectra first: a spectrum that falls fast hides what goes
wrong at a border.
"""

import itertools

import numpy as np
import pytest
import scipy.sparse
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from matrices import orthonormal, with_spectrum
from numpy.random import default_rng
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from lowrank_tutor.pca import PCA
from lowrank_tutor.rank import effective_rank, numerical_rank, rank_factorization
from lowrank_tutor.svd import choose_rank, randomized_svd

# Randomized SVD: (m, n) matrices of every kind


def half_empty(m, n):
    """Every other row and the last third of the columns are zero."""
    a = default_rng(1).standard_normal((m, n))
    a[::2], a[:, 2 * n // 3 :] = 0, 0
    return a


def spread(s):
    """Return a maker of matrices with the spectrum s(r) of r values."""
    return lambda m, n: with_spectrum(s(min(m, n)), m, n)


KINDS = {
    "Gaussian": lambda m, n: default_rng(0).standard_normal((m, n)),
    "flat": spread(np.ones),
    "two levels": spread(lambda r: np.r_[np.ones(r // 2), np.full(r - r // 2, 0.5)]),
    "falling": spread(lambda r: 1 / np.arange(1.0, r + 1)),
    "steep": spread(lambda r: np.logspace(0, -16, r)),
    "deficient": spread(lambda r: np.r_[np.ones(r // 3), np.zeros(r - r // 3)]),
    "equal columns": lambda m, n: np.repeat(
        default_rng(2).standard_normal((m, -(-n // 3))), 3, axis=1
    )[:, :n],
    "empty rows and columns": half_empty,
    "corner": lambda m, n: np.pad(
        np.diag(np.arange(1.0 + min(m, n) // 2, 0, -1)), ((0, m), (0, n))
    )[:m, :n],
    "zero": lambda m, n: np.zeros((m, n)),
}


def check_promises(a, k, row, *, exact=False, near=1e99, **options):
    """Orthonormal vectors, no value above the exact one, and the error law, up to rounding."""
    u, s, vt = randomized_svd(a, k, rng=0, **options)
    assert u.dtype == s.dtype == vt.dtype == a.dtype, row
    a, u, s, vt = (part.astype(np.float64) for part in (a, u, s, vt))
    judge, eps = np.linalg.svd(a, compute_uv=False), 60 * float(np.finfo(row[-1]).eps)
    rounding = eps * np.linalg.norm(a)
    assert np.abs(u.T @ u - np.eye(k)).max() < eps, row
    assert np.abs(vt @ vt.T - np.eye(k)).max() < eps, row
    assert (s >= 0).all(), row
    assert (s[1:] <= s[:-1]).all(), row
    assert (s <= judge[:k] + rounding).all(), row
    rest = np.linalg.norm(a - (u * s) @ vt)
    assert abs(
        rest**2 - (np.square(judge).sum() - np.square(s).sum())
    ) <= rounding * np.linalg.norm(a), row
    assert rest <= near * np.linalg.norm(judge[k:]) + rounding, row
    if exact:
        np.testing.assert_allclose(s, judge[:k], atol=rounding, err_msg=str(row))


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(sorted(KINDS)), *[st.integers(1, 26)] * 3, st.data())
def test_every_shape_block_and_pass(kind, m, n, k, data):
    """Block and passes meet each border: k + oversample = side, and 10 k = side."""
    side, dtype = min(m, n), data.draw(st.sampled_from(["float64", "float32"]))
    k = min(k, side)
    options = {
        "oversample": data.draw(st.none() | st.integers(0, 12)),
        "power_iterations": data.draw(st.none() | st.sampled_from([0, 1, 2, 12])),
    }
    options = {name: value for name, value in options.items() if value is not None}
    exact = k + options.get("oversample", 10) >= side
    near = 1e99 if options else 1.01
    row = (kind, m, n, k, options, dtype)
    check_promises(KINDS[kind](m, n).astype(dtype), k, row, exact=exact, near=near, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("m", "n"), [(60, 40), (40, 60), (200, 64), (1000, 50), (40, 40)])
def test_larger_shapes(kind, m, n):
    for k in (1, 2, 3, 4, 5, 6, 11, 14, 25, 29, 30, 31, 39):
        check_promises(KINDS[kind](m, n), k, (kind, m, n, k, "float64"), near=1.02)


@pytest.mark.parametrize("kind", KINDS)
def test_what_changes_nothing(kind):
    """Transposition, units, the order of rows, rows of zeros, and the form: dense, sparse, or an
    operator.
    """
    for (m, n), k in itertools.product([(30, 14), (27, 26), (70, 33)], (1, 2, 3, 4, 12, 14)):
        a = KINDS[kind](m, n)
        s, rows = randomized_svd(a, k, rng=3).s, default_rng(4).permutation(m)
        forms = {
            "unit": 2.0**-90 * randomized_svd(2.0**90 * a, k, rng=3).s,
            "transposed": randomized_svd(a.T, k, rng=3).s,
            "rows in another order": randomized_svd(a[rows], k, rng=3).s,
            "rows of zeros": randomized_svd(np.pad(a, ((0, 9), (0, 0))), k, rng=3).s,
            "sparse": randomized_svd(scipy.sparse.csc_array(a), k, rng=3).s,
            "sparse and wide": randomized_svd(scipy.sparse.csr_matrix(a.T), k, rng=3).s,
            "operator": randomized_svd(aslinearoperator(a), k, rng=3).s,
        }
        for form, values in forms.items():
            np.testing.assert_allclose(
                values, s, rtol=1e-9, atol=1e-13 * s[0], err_msg=f"{kind} {m} {n} {k} {form}"
            )


@pytest.mark.parametrize("unit", [1e-160, 1e-20, 1.0, 1e20, 1e160])
def test_operators_of_any_unit(unit):
    """Their entries cannot be bounded in advance; squares of products must not overflow."""
    a = KINDS["Gaussian"](50, 30)
    scaled = aslinearoperator(scipy.sparse.diags_array(np.full(50, unit))) @ aslinearoperator(a)
    np.testing.assert_allclose(
        randomized_svd(scaled, 4, rng=0).s / unit, randomized_svd(a, 4, rng=0).s, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("k", "options", "products"),
    [
        (19, {}, 18),
        (20, {}, 12),
        (39, {}, 12),
        (40, {}, 10),
        (189, {}, 10),
        (190, {}, 2),
        (190, {"oversample": 9}, 10),
        (2, {"power_iterations": 0}, 2),
        (2, {"power_iterations": 3}, 8),
    ],
)
def test_products_are_counted(k, options, products):
    """2 (t + 1) products for t passes, and two where the block holds all directions."""
    a, calls = KINDS["Gaussian"](300, 200), []
    forth, back = lambda x: calls.append(1) or a @ x, lambda x: calls.append(1) or a.T @ x
    counted = LinearOperator(a.shape, forth, back, forth, np.float64, back)
    randomized_svd(counted, k, **options, rng=0)
    assert len(calls) == products


# PCA: the scatter matrix serves from ten points a coordinate on, down to 1e-5 of the largest
# variance


def judged(x):
    """Center in long double, and return the mean, the variances, and the axes, found in float64."""
    wide = x.astype(np.longdouble)
    mean = wide.mean(axis=0)
    _, s, vt = np.linalg.svd((wide - mean).astype(np.float64), full_matrices=False)
    return mean.astype(np.float64), np.square(s) / (len(x) - 1), vt


CLOUDS = {
    "even": lambda d: np.ones(d),
    "falling": lambda d: 1.0 / np.arange(1, d + 1),
    "just safe": lambda d: np.geomspace(1, 3.3e-3, d),  # a variance of 1.1e-5
    "just unsafe": lambda d: np.geomspace(1, 3.0e-3, d),
    "steep": lambda d: np.geomspace(1, 1e-7, d),
    "flat in half": lambda d: np.arange(d) < (d + 1) // 2,
}


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize(("dtype", "eps"), [("float64", 1e-10), ("float32", 1e-5)])
@pytest.mark.parametrize("kind", CLOUDS)
def test_axes_agree_with_float64(kind, dtype, eps, offset):
    """On both sides of both borders, far from the origin, with every kind of ``n_components``."""
    for d in range(1, 6):
        for n in sorted({2, d, d + 1, 10 * d - 1, 10 * d, 10 * d + 1, 400} - {0, 1}):
            x = (default_rng(n).standard_normal((n, d)) * CLOUDS[kind](d) + offset).astype(dtype)
            mean, variances, axes = judged(x)
            blur = eps * variances[0] + (1e-13 * offset) ** 2
            share = variances / (variances.sum() or 1)
            apart = np.diff(np.r_[np.inf, variances, 0]) < -0.05 * variances[0]
            for wanted in [None, *range(1, min(n, d) + 1), 0.5, 0.999999]:
                pca, row = PCA(wanted).fit(x), f"{n} {d} {wanted}"
                k = pca.n_components_
                own, squares = pca.components_, pca.explained_variance_
                center = pca.transform(x).mean(axis=0)
                near = 1e-5 * variances[0] ** 0.5 + 1e-15 * offset
                for part, judge, rtol, atol in (
                    (pca.mean_, mean, 1e-15, 1e-15),
                    (squares, variances[:k], eps, blur),
                    (pca.explained_variance_ratio_, share[:k], 1e-7, 10 * eps),
                    (own @ own.T, np.eye(k), 1e-7, 0.1 * eps),
                    (center, np.zeros(k), 0, near),
                ):
                    np.testing.assert_allclose(part, judge, rtol=rtol, atol=atol, err_msg=row)
                for i in range(k):  # an axis is judged where its variance stands apart
                    assert abs(own[i] @ axes[i]) > 1 - 1e-3 or not apart[i : i + 2].all(), row


# Counts


def integers():
    """Every 2 x 3 matrix with entries 0, 1, and 7, and 600 larger ones drawn at random, many of
    them deficient.
    """
    yield from (np.reshape(entries, (2, 3)) for entries in itertools.product((0, 1, 7), repeat=6))
    rng = default_rng(0)
    for _ in range(600):
        m, n, r = rng.integers(1, 6, 3)
        low = rng.integers(-4, 5, (m, r)) @ rng.integers(-3, 4, (r, n))
        yield low if rng.random() < 0.5 else rng.integers(-20, 21, (m, n))


def test_factors_are_the_echelon_form():
    for a in integers():
        echelon, pivots = sympy.Matrix(a.tolist()).rref()
        c, f = result = rank_factorization(a)
        assert numerical_rank(a) == len(result.columns) == len(pivots), a
        np.testing.assert_array_equal(result.columns, pivots, err_msg=str(a))
        np.testing.assert_array_equal(c, a[:, pivots], err_msg=str(a))
        rows = np.array(echelon.tolist(), float)[: len(pivots)]
        np.testing.assert_allclose(f, rows, rtol=1e-11, atol=1e-11, err_msg=str(a))


def test_tiny_shares():
    """Values that vanish beside the largest, and shares that vanish beside 1."""
    tiny = np.array([[1e75, 1e-300], [1e75, 0.0], [2.0, 2.0]])
    np.testing.assert_allclose(effective_rank(tiny), [1, 1, 2])
    for share in (1e-300, 1e-17, 1e-16, 0.5):
        assert choose_rank([1.0], energy=share) == choose_rank([1.0, 1.0], energy=share) == 1
    assert choose_rank([1.0, 1e-9], error=1 - 2.0**-53) == 1


def test_gap_between_levels():
    """Two levels of every length, equal or up to rounding, are cut between them."""
    for r, low, jitter in itertools.product(range(2, 40), (0.99, 0.5, 0.1, 0.0), (0.0, 1e-15)):
        for k in range(1, r):
            s = np.where(np.arange(r) < k, 1.0, low) * (1 - jitter * np.arange(r))
            assert choose_rank(s, gap=True) == k, (r, low, jitter, k)


def test_gap_in_noise():
    """Three directions well above square noise, whose last values lie far apart by chance."""
    n, rng, right = 30, default_rng(0), 0
    for _ in range(100):
        strong = (orthonormal(n, 3, rng) * (6 * np.sqrt(n))) @ orthonormal(n, 3, rng).T
        s = np.linalg.svd(strong + rng.standard_normal((n, n)), compute_uv=False)
        right += choose_rank(s, gap=True) == 3
    assert right >= 95


def test_part_of_a_spectrum():
    """With the sum of all squares, part of a spectrum gives what all of it gives, or is refused."""
    a = default_rng(0).standard_normal((60, 40)) / np.sqrt(np.arange(1, 41))
    s, total = np.linalg.svd(a, compute_uv=False), np.square(a).sum()
    for rule, share in itertools.product(("energy", "error"), np.linspace(0.05, 0.95, 19)):
        k = choose_rank(s, **{rule: share})
        for size in {k, min(k + 1, 40), 40}:
            assert choose_rank(s[:size], **{rule: share}, total=total) == k
        if k > 1:
            with pytest.raises(ValueError, match=r"^s must hold enough values"):
                choose_rank(s[: k - 1], **{rule: share}, total=total)

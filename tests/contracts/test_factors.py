"""What each factorization and count promises, checked at all small sizes on both sides of every
border.

A row of the table is a public function, the border that its cases cross, and a check, whose
docstring is the promise. Tables have flat, repeated, falling and deficient spectra, empty rows and
columns, and equal ones. The judges are dense and in float64: closed forms, plain loops, SciPy,
scikit-learn.
"""

import contextlib
import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse
import scipy.special
import torch
from matrices import fresh, with_spectrum
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import nn

from lowrank_tutor import adapters, bilinear, caches, jl, roofline
from lowrank_tutor.autoencoder import Autoencoder
from lowrank_tutor.factorization import factorize_ratings
from lowrank_tutor.lda import lda
from lowrank_tutor.nmf import NMFResult, nmf

TABLE = []
SIDES = (1, 2, 3, 5)
SHAPES = list(itertools.product(SIDES, SIDES))
FEWER_SHAPES = list(itertools.product((1, 2, 4), repeat=2))
FLOATS = (np.float64, np.float32)
PENALTIES = [
    (0, np.float64),
    (1e-9, np.float64),
    (1e-7, np.float64),
    (0.1, np.float64),
    (0.01, np.float32),
]
NEARNESS = [
    (1.0, np.float64),
    (0.3, np.float64),
    (0.1, np.float64),
    (1e-7, np.float64),
    (1, np.float32),
]
EPS = {np.float64: 1e-10, np.float32: 1e-4}  # what is left of the digits after a few steps
KINDS = ("flat", "repeated", "falling", "deficient", "empty", "equal")


def promise(*functions, border):
    """Enter a check into the table, beside the functions whose promise it is, and the border that
    its cases cross.
    """

    def enter(check):
        TABLE.append(
            pytest.param(
                functions, check, id=f"{', '.join(functions)}: {check.__name__} ({border})"
            )
        )
        return check

    return enter


@contextlib.contextmanager
def case(**settings):
    """Name the case in which a check failed."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in the case {settings}")
        raise


def table_of(kind, m, n, seed=0):
    """Draw an (m, n) table of a kind."""
    rng, r = fresh(seed), min(m, n)
    if kind in ("repeated", "falling", "deficient"):
        s = {
            "repeated": np.ones(r),
            "falling": 4.0 ** -np.arange(r),
            "deficient": np.ones((r + 1) // 2),
        }[kind]
        return with_spectrum(s, m, n, seed)
    table = rng.standard_normal((m, n))
    if kind == "empty":
        table[-1], table[:, -1] = 0, 0
    if kind == "equal":
        table[-1], table[:, -1] = table[0], table[:, 0]
    return table


def all_tables(kinds=KINDS, shapes=SHAPES):
    """Yield the kind, the table, and each rank that it may be cut to."""
    for kind, (m, n) in itertools.product(kinds, shapes):
        table = table_of(kind, m, n)
        for k in range(1, min(m, n) + 1):
            yield kind, table, k


def positive_tables():
    """Yield non-negative tables and each rank; a product of such factors keeps its rank."""
    for kind, table, k in all_tables():
        r = (min(table.shape) + 1) // 2
        low = np.abs(table[:, :r]) @ np.abs(table[:r])
        yield kind, low if kind == "deficient" else np.abs(table), k
    for value, (m, n) in itertools.product(fresh().random(9), ((2, 2), (2, 3), (3, 3), (9, 4))):
        yield "constant", np.full((m, n), value), min(m, n)


def spectrum_of(a):
    return np.linalg.svd(np.asarray(a, np.float64), compute_uv=False)


def best_error(a, k):
    """Return Eckart and Young's bound."""
    return math.hypot(*spectrum_of(a)[k:])


# Non-negative factors


@promise("nmf", border="n or d is larger; k to min(n, d); float32; parts without weight")
def returns_its_error():
    """Factors are non-negative, parts have length 1 or 0, the heaviest first, and no error beats
    Eckart and Young.
    """
    for (kind, x, k), dtype in itertools.product(positive_tables(), FLOATS):
        with case(kind=kind, shape=x.shape, k=k, dtype=dtype):
            given = x.astype(dtype)
            found = nmf(given, k, rng=0, starts=3, tolerance=1e-4)
            size = np.linalg.norm(x)
            assert found.c.dtype == found.f.dtype == dtype
            assert (found.c >= 0).all()
            assert (found.f >= 0).all()
            # A part of less weight than 1e-14 of the heaviest counts as rounding.
            assert found.error == pytest.approx(
                np.linalg.norm(given.astype(float) - found.c.astype(float) @ found.f.astype(float)),
                abs=1e-14 * size if dtype is np.float64 else 1e-6 * size, rel=1e-9,
            )  # fmt: skip
            assert found.error >= (1 - 1e-9) * best_error(given, k) - 1e-14 * size
            assert (np.diff(found.errors) <= 0).all()
            weights, lengths = np.linalg.norm(found.c, axis=0), np.linalg.norm(found.f, axis=1)
            np.testing.assert_allclose(lengths, weights > 0, rtol=1e-6)
            assert (np.diff(weights) <= 1e-6 * size).all()
            assert not found.c[~x.any(axis=1)].any()
            assert not found.f[:, ~x.any(axis=0)].any()
            if k == min(x.shape):  # one of the starts takes all rows, or all columns
                assert found.error <= 1e-14 * size


@promise("nmf", border="the error is a difference of sums above a share of 1e-3, and a norm below")
def keeps_the_digits_of_small_errors():
    """The error has its digits on both sides of the formula's border."""
    exact = np.abs(table_of("flat", 12, 2)) @ np.abs(table_of("flat", 2, 9))
    for power, sweeps in itertools.product(
        np.arange(-8, 0.1, 0.5), (1, 39, 40, 41)
    ):  # and a start's brief trial
        x = exact + 10**power * np.abs(table_of("flat", 12, 9, seed=1))
        with case(noise=power, sweeps=sweeps):
            result = nmf(x, 2, starts=1, max_sweeps=sweeps, tolerance=0)
            assert result.error == pytest.approx(np.linalg.norm(x - result.c @ result.f), rel=1e-9)
            assert len(result.errors) == sweeps + 1 or result.converged


@promise("nmf", border="the smallest and the largest unit; a part whose square underflows")
def has_no_unit_and_no_order():
    """Units, the order of rows and columns, and empty rows and columns change nothing."""
    x = np.abs(table_of("flat", 7, 5))
    base = nmf(x, 3, starts=1)
    product = base.c @ base.f
    for power in (-249, -240, -1, 3, 240, 247):
        with case(power=power):
            other = nmf(x * 2.0**power, 3, starts=1)
            assert other.error == pytest.approx(base.error * 2.0**power, rel=1e-7)
            np.testing.assert_allclose(other.f, base.f, atol=1e-6)
    rows, columns = fresh(1).permutation(7), fresh(2).permutation(5)
    for change in (lambda a: a[rows][:, columns], lambda a: np.pad(a, ((0, 2), (1, 0)))):
        other = nmf(change(x), 3, starts=1)
        np.testing.assert_allclose(other.c @ other.f, change(product), atol=1e-5)


def parts_of(kind, k, d):
    """Draw non-negative parts; "near" ones differ from each other by a thousandth or less."""
    f = np.abs(table_of("flat", k, d, seed=k + 9 * d))
    if kind.startswith("near"):
        f = 1 + float(kind.split()[1]) * f
    if kind == "zero":
        f[-1] = 0
    if kind == "equal":
        f[-1] = f[0]
    if kind == "disjoint":
        f = np.eye(k, d)
    return f


@promise(
    "NMFResult.transform",
    border="a part joins or leaves a row; parts nearly the same; more parts than columns",
)
def finds_the_best_amounts():
    """Each row is as near as SciPy's non-negative least squares brings it."""
    kinds = ("flat", "zero", "equal", "disjoint", "near 1e-2", "near 1e-4", "near 1e-6")
    for kind, k, d in itertools.product(kinds, SIDES, SIDES):
        f = parts_of(kind, k, d)
        mixed = np.abs(table_of("flat", 6, k)) @ f
        x = np.vstack([mixed, mixed * fresh().standard_normal((6, d)), np.zeros((1, d)), f])
        for dtype, power in itertools.product(FLOATS, (-80, 0, 30)):  # new rows may be near zero
            with case(kind=kind, k=k, d=d, dtype=dtype, power=power):
                c = NMFResult(np.ones((1, k)), f, np.zeros(1), True).transform(
                    (x * 2.0**power).astype(dtype)
                )
                assert c.dtype == dtype
                assert (c >= 0).all()
                for row, amounts in zip(x, c.astype(float) / 2.0**power, strict=True):
                    best, least = scipy.optimize.nnls(f.T, row)
                    slack = 1e-5 if dtype is np.float32 else 1e-7 if kind == "near 1e-6" else 1e-12
                    assert np.linalg.norm(row - amounts @ f) <= least + slack * np.linalg.norm(row)
                    if kind in ("flat", "disjoint", "near 1e-2") and k <= d and dtype is np.float64:
                        np.testing.assert_allclose(
                            amounts, best, atol=1e-9 * max(np.abs(best).max(), 1)
                        )


# Ratings


def patterns(m, n):
    """Yield masks of what is known: all, one entry, a diagonal, a row and a column without any, and
    three in four.
    """
    yield np.ones((m, n), bool)
    yield np.arange(m * n).reshape(m, n) == m * n // 2
    yield np.eye(m, n, dtype=bool)
    part = np.ones((m, n), bool)
    part[-1], part[:, 0] = m == 1, n == 1
    yield part
    yield fresh(m * n).random((m, n)) < 0.75


def ridge(factors, values, penalty):
    """Return the shortest best answer of a ridge regression, without squaring the factors."""
    k = factors.shape[1]
    a = np.vstack([factors, math.sqrt(penalty) * np.eye(k)])
    return np.linalg.lstsq(a, np.append(values, np.zeros(k)), rcond=1e-13)[0]


@promise(
    "factorize_ratings",
    border="squares or not at a penalty of 1e-8 of the factors'; no penalty; gaps",
)
def solves_each_column():
    """The loss is that of the factors, it never rises, and each column of f is its own ridge
    regression.
    """
    for (kind, x, k), (penalty, dtype) in itertools.product(
        all_tables(("flat", "equal"), FEWER_SHAPES), PENALTIES
    ):
        for i, known in enumerate(patterns(*x.shape)):
            if len({*x[known]}) < 2:  # refused
                continue
            with case(kind=kind, shape=x.shape, k=k, pattern=i, penalty=penalty, dtype=dtype):
                ratings = x.astype(dtype)
                result = factorize_ratings(ratings, known, k, regularization=penalty, rng=0)
                c, f = result.c.astype(float), result.f.astype(float)
                assert result.c.dtype == result.f.dtype == dtype
                np.testing.assert_array_equal(np.isnan(c).all(axis=1), ~known.any(axis=1))
                np.testing.assert_array_equal(np.isnan(f).all(axis=0), ~known.any(axis=0))
                missed = np.where(known, ratings - c @ f, 0)
                loss = np.square(missed).sum() + penalty * (np.nansum(c**2) + np.nansum(f**2))
                size = np.square(ratings[known]).sum()
                assert result.losses[-1] == pytest.approx(
                    loss, rel=EPS[dtype], abs=EPS[dtype] ** 2 * size
                )
                assert (np.diff(result.losses) <= 0).all()
                if known.all():
                    assert result.losses[-1] >= best_error(ratings, k) ** 2 - 1e-14 * size
                for j in np.flatnonzero(known.any(axis=0)):
                    seen = known[:, j]
                    best = ridge(c[seen], ratings[seen, j], penalty)
                    gap = np.linalg.norm(c[seen] @ (f[:, j] - best))
                    assert gap <= (1e-6 if dtype is np.float64 else 1e-3) * math.sqrt(size)


@promise("factorize_ratings", border="dense or sparse, CSR, CSC, or COO; rows out of order")
def sparse_is_dense():
    """A sparse table gives the factors of the dense one, a stored zero is a rating, and the order
    does not matter.
    """
    for kind, x, k in all_tables(("flat", "empty")):
        known = fresh(3).random(x.shape) < 0.7
        known[0, 0] = True
        if len({*x[known]}) < 2:  # refused
            continue
        entries = (x[known], np.nonzero(known))
        order = fresh(4).permutation(known.sum())
        shuffled = (entries[0][order], tuple(index[order] for index in entries[1]))
        dense = factorize_ratings(x, known, k, regularization=0.1, rng=0)
        for form, (values, places) in itertools.product(("csr", "csc", "coo"), (entries, shuffled)):
            with case(kind=kind, shape=x.shape, k=k, form=form):
                table = scipy.sparse.coo_array((values, places), shape=x.shape).asformat(form)
                sparse = factorize_ratings(table, None, k, regularization=0.1, rng=0)
                np.testing.assert_allclose(sparse.c @ sparse.f, dense.estimates, atol=1e-7)
                np.testing.assert_allclose(
                    sparse.losses[-1], dense.losses[-1], rtol=1e-9, atol=1e-25
                )


@promise(
    "factorize_ratings",
    border="a block holds one row, some rows, or all; rows with one rating or many",
)
def blocks_change_nothing():
    """How many rows are solved together, their order, and their unit change only rounding."""
    x = table_of("flat", 60, 9)
    known = fresh(1).random((60, 9)) < np.linspace(0.05, 1, 60)[:, np.newaxis]
    known[np.arange(60), np.arange(60) % 9] = True
    order = fresh(2).permutation(60)

    def fit(penalty, rows=slice(None), unit=1.0):
        options = {"regularization": penalty * unit, "rng": 0, "tolerance": 1e-2}
        return factorize_ratings(x[rows] * unit, known[rows], 2, **options)

    for penalty in (0.0, 1.0):
        base = fit(penalty)
        for room in (1, 30, 200, 1000, 10**9):
            with pytest.MonkeyPatch.context() as patch, case(penalty=penalty, room=room):
                patch.setattr("lowrank_tutor.factorization._ROOM", room)
                np.testing.assert_allclose(fit(penalty).c, base.c, atol=1e-6)
        turned = fit(penalty, order)
        np.testing.assert_allclose(turned.estimates, base.estimates[order], atol=1e-5)
        for unit in (4.0**-40, 4.0**40):
            scaled = fit(penalty, unit=unit).estimates
            np.testing.assert_allclose(scaled / unit, base.estimates, rtol=1e-6, atol=1e-6)


# Classes


def judged_axes(x, labels, k):
    """Solve the generalized eigenproblem densely."""
    means = np.array([x[labels == label].mean(axis=0) for label in np.unique(labels)])
    own = means[np.unique(labels, return_inverse=True)[1]]
    within, between = (x - own).T @ (x - own), (own - x.mean(axis=0)).T @ (own - x.mean(axis=0))
    values, vectors = scipy.linalg.eigh(between, within)
    return values[::-1][:k], vectors[:, ::-1][:, :k] * math.sqrt(len(x))


@promise(
    "lda",
    border="10 points for each coordinate; the scatter matrix is well conditioned to 1e-5, or not",
)
def solves_the_eigenproblem():
    """The axes whiten the classes and separate their centers best, as a dense eigensolver and
    scikit-learn say.
    """
    for d, classes, extra, spread in itertools.product(
        (1, 2, 3, 4), (2, 3, 4), (-1, 0, 1, 40), (1, 1e-2, 1e-3, 4e-3)
    ):
        n = max(10 * d + extra, 3 * classes)
        labels = np.arange(n) % classes
        x = table_of("flat", n, d, seed=n) + 3 * table_of("flat", classes, d, seed=1)[labels]
        x[:, 1:] = x[:, :1] + spread * x[:, 1:]  # nearly equal coordinates
        k = min(d, classes - 1)
        for dtype in FLOATS if spread == 1 else (np.float64,):
            with case(d=d, classes=classes, n=n, spread=spread, dtype=dtype):
                found = lda(x.astype(dtype), labels, k)
                values, axes = judged_axes(x, labels, k)
                slack = 1e-7 if dtype is np.float64 else 1e-3
                np.testing.assert_allclose(
                    np.abs(found.axes), np.abs(axes), rtol=slack, atol=slack * np.abs(axes).max()
                )
                whole = judged_axes(x, labels, min(d, classes - 1))[0].sum()
                np.testing.assert_allclose(found.ratio, values / whole, atol=slack)
                judge = LinearDiscriminantAnalysis(solver="svd", n_components=k).fit(x, labels)
                assert (found.classify(x.astype(dtype)) == judge.predict(x)).mean() >= (
                    1 if k == classes - 1 else 0.6
                )


@promise("lda", border="a coordinate or direction with 1e-4 of the spread; coordinates without any")
def ignores_order_units_and_constants():
    """The order of points, a point twice, a unit for each coordinate, and constant coordinates
    change nothing.
    """
    labels = np.repeat([0, 1, 2], 7)
    x = table_of("flat", 21, 3) + 2 * table_of("flat", 3, 3, seed=1)[labels]
    base = lda(x, labels, 2)
    order, units = fresh(1).permutation(21), 2.0 ** np.array([[-30], [1], [40]])
    for name, points, of_points, unit in (
        ("order", x[order], labels[order], 1),
        ("twice", np.vstack([x, x]), np.append(labels, labels), 1),
        ("units", x * units.T, labels, units),
        ("constant", np.column_stack([x, np.full(21, 7.1), labels]), labels, 1),
    ):
        with case(change=name):
            other = lda(points, of_points, 2)
            np.testing.assert_allclose(np.abs(other.axes[:3] * unit), np.abs(base.axes), rtol=1e-8)
            np.testing.assert_allclose(other.ratio, base.ratio, rtol=1e-9)
            assert not other.axes[3:].any()
    sevenths = np.arange(21) % 7
    for noise, kept in ((2e-5, 3), (5e-4, 4)):
        near = np.column_stack([x, x[:, 0] + noise * table_of("flat", 21, 1, seed=5)[:, 0]])
        with case(noise=noise):
            assert lda(near, sevenths, kept).axes.shape == (4, kept)
    with pytest.raises(ValueError, match=r"^k must be between 1 and .* = 3, got 4$"):
        lda(near * 0 + x[:, [0, 1, 2, 0]], sevenths, 4)


@promise("lda", border="float32 far from zero; new points near zero")
def classifies_far_from_zero():
    """The offset of float32 points changes no coordinate or class; a new point may be tiny."""
    labels = np.arange(4000) % 2
    for offset, spread in ((0, 1), (300, 0.1), (1e6, 0.3), (1e6, 0.1)):
        x = table_of("flat", 4000, 2) * spread + offset + spread * labels[:, np.newaxis]
        single = x.astype(np.float32)
        wide = single.astype(float)
        with case(offset=offset, spread=spread):
            found, judge = lda(single, labels, 1), lda(wide, labels, 1)
            assert found.project(single).dtype == np.float32
            np.testing.assert_allclose(found.project(single), judge.project(wide), atol=1e-5)
            assert (found.classify(single) == judge.classify(wide)).all()
    tiny = np.float32([[1e-30, 0]])
    np.testing.assert_allclose(found.project(tiny), judge.project(tiny.astype(float)), rtol=1e-6)


# Autoencoders


@promise("Autoencoder", border="the squares of the spread are the smallest normal floats")
def trains_in_every_unit():
    """The axis is that of PCA in the smallest unit and in 1; equal points have nothing to learn."""
    for dtype, smallest in ((torch.float32, 2e-38), (torch.float64, 3e-308)):
        x = torch.tensor(table_of("flat", 40, 3) * [3, 1, 0.3], dtype=dtype)
        axis = np.linalg.svd(x.double().numpy() - x.double().numpy().mean(axis=0))[2][0]
        for unit in (math.sqrt(smallest / 10), 1.0):
            with case(dtype=dtype, unit=unit):
                model = Autoencoder(3, 1, generator=torch.Generator().manual_seed(0), dtype=dtype)
                assert float(model.fit((x * unit)[:1].expand(5, 3))[-1]) == 0
                model.fit(x * unit)
                found = model.decoder.weight.detach().double().numpy()[:, 0]
                assert abs(found @ axis) > (1 - 1e-3) * np.linalg.norm(found)


@promise(
    "Autoencoder",
    border="linear or with a hidden layer; one point; k = d; scales that differ by 100",
)
def rebuilds_no_better_than_pca():
    """The loss never rises, is that of the points, and a linear one reaches PCA's and no less."""
    even, apart = (1, 1, 1), (100, 1, 0.1)
    for (d, k, n, scales, hidden), (dtype, slack, eps) in itertools.product(
        ((3, 1, 1, even, None), (3, 2, 40, even, None), (3, 2, 40, apart, None),
         (2, 2, 9, apart, None), (3, 2, 40, even, 4)),
        ((torch.float64, 1e-6, 1e-10), (torch.float32, 1e-4, 1e-5)),
    ):  # fmt: skip
        with case(d=d, k=k, n=n, dtype=dtype, scales=scales, hidden=hidden):
            x = torch.tensor(table_of("flat", n, d) * np.array(scales)[:d] + 5, dtype=dtype)
            generator = torch.Generator().manual_seed(0)
            model = Autoencoder(d, k, hidden, generator=generator, dtype=dtype)
            losses = model.fit(x, steps=30 if hidden else 200)
            centered = x.double() - x.double().mean(dim=0)
            spread = float(centered.square().sum() / n)
            rounding = eps * (spread + 75)
            assert (losses.diff() <= 0).all()
            last = float(losses[-1])
            missed = model(x).detach().double() - x.double()
            assert last == pytest.approx(float(missed.square().sum() / n), rel=1e-3, abs=rounding)
            if hidden is None:
                least = best_error(centered, k) ** 2 / n
                assert -rounding <= last - least <= slack * spread + rounding


# Random projections


def failure(k, eps):
    """Return both tails of chi-square by SciPy's incomplete gamma functions."""
    return scipy.special.gammaincc(k / 2, k / 2 * (1 + eps)) + scipy.special.gammainc(
        k / 2, k / 2 * (1 - eps)
    )


@promise("norm_failure_probability", "norm_failure_chernoff", "norm_failure_bound",
         "inner_product_failure_bound",
         border="Stirling's series from k = 32 on; an integrand's series below 1")  # fmt: skip
def failure_is_chi_square():
    """The exact chance is SciPy's, falls with k, and lies below the bounds, which are in order."""
    for eps in (1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-12):
        last = 1.0
        for k in (*range(1, 70), 200, 1000, 5000):
            with case(k=k, eps=eps):
                found, chernoff, product, simple = (
                    bound(k, eps)
                    for bound in (
                        jl.norm_failure_probability,
                        jl.norm_failure_chernoff,
                        jl.inner_product_failure_bound,
                        jl.norm_failure_bound,
                    )
                )
                assert found == pytest.approx(failure(k, eps), rel=1e-10, abs=1e-280)
                tails = (math.exp(-k / 2 * (e - math.log1p(e))) for e in (eps, -eps))
                assert chernoff == pytest.approx(sum(tails), rel=1e-9)
                for less, more in ((0, found), (found, last), (found, chernoff),
                                   (chernoff, product), (product, simple)):  # fmt: skip
                    assert less <= more * (1 + 1e-12)
                last = found


@promise("min_dim", border="each k is the smallest: one less fails")
def min_dim_is_the_smallest():
    """The chance of k is small enough, and that of k - 1 is not."""
    bounds = {"chi-square": jl.norm_failure_probability, "chernoff": jl.norm_failure_chernoff,
              "dasgupta-gupta": jl.norm_failure_bound}  # fmt: skip
    cases = itertools.product(
        (2, 3, 10**6, 10**100), (0.05, 0.3, 0.9, 0.999), (1e-9, 0.05, 0.999), bounds.items()
    )
    for n, eps, delta, (name, bound) in cases:
        with case(n=n, eps=eps, delta=delta, bound=name):
            k = jl.min_dim(n, eps, delta=delta, bound=name)
            pairs = n * (n - 1) / 2
            assert pairs * bound(k, eps) <= delta * (1 + 1e-9)
            assert k == 1 or pairs * bound(k - 1, eps) > delta * (1 - 1e-9)


def distortions(x, r):
    """Take the difference of each pair."""
    i, j = np.triu_indices(len(x), 1)
    steps = x[i].astype(np.float64) - x[j]
    return np.square(steps @ r.T).sum(axis=1) / np.square(steps).sum(axis=1) - 1


@promise(
    "distortion",
    border="128 points to a block; pairs nearer than a tenth of their lengths; 2 points",
)
def distortion_by_differences():
    """Each pair is what its difference gives, always in float64, at every number of points."""
    for n in (2, 3, 127, 128, 129, 130, 255, 256, 257):
        for d, k in ((1, 1), (3, 2)):
            r = table_of("flat", k, d, seed=1)
            for near, dtype in NEARNESS:
                with case(n=n, d=d, near=near, dtype=dtype):
                    x = (10 + near * table_of("flat", n, d)).astype(dtype)
                    found = jl.distortion(x, r)
                    assert found.dtype == np.float64
                    np.testing.assert_allclose(found, distortions(x, r), rtol=1e-9, atol=1e-9)


@promise("inner_product_std", "sign_inner_product_std", "sign_inner_products",
         "projected_product_error",
         border="parallel, orthogonal, and opposite vectors; a product of 0")  # fmt: skip
def products_by_loops():
    """The deviations are their formulas, estimates are loops, and the expected error is that of the
    moments.
    """
    for k, rho in itertools.product((1, 2, 7, 2**53), (-1.0, -0.3, 0.0, 1.0)):
        for std, square in (
            (jl.inner_product_std, 1 + rho**2),
            (jl.sign_inner_product_std, math.pi / 2 - rho**2),
        ):
            assert std(rho, k) == pytest.approx(math.sqrt(square / k))
    for (n, d), k in itertools.product(SHAPES, (1, 3)):
        x, r = table_of("equal", n, d), table_of("flat", k, d, seed=2)
        y, v = table_of("empty", 2, d, seed=1), table_of("flat", d, 2, seed=3)
        with case(n=n, d=d, k=k):
            estimates = jl.sign_inner_products(x, y, r)
            for i, j in np.ndindex(estimates.shape):
                signed = sum((1 if row @ x[i] >= 0 else -1) * (row @ y[j]) for row in r)
                judged = math.sqrt(math.pi / 2 / k) * np.linalg.norm(x[i]) * signed
                assert estimates[i, j] == pytest.approx(judged, rel=1e-12, abs=1e-12)
            kappa = np.linalg.norm(x) * np.linalg.norm(v) / np.linalg.norm(x @ v)
            expected = math.sqrt((1 + kappa**2) / k)
            assert jl.projected_product_error(x, v, k) == pytest.approx(expected)


# Scores


def moments(d):
    """Yield second moments: none, of many vectors, of fewer than d, with a zero coordinate, in
    mixed units.
    """
    yield None
    for n in {2 * d, max(d - 1, 1)}:
        s = table_of("flat", n, d, seed=7)
        yield s.T @ s / n
    s = table_of("flat", 2 * d, d, seed=8)
    s[:, 0] = 0
    if d > 1:
        yield s.T @ s
    s = table_of("flat", 2 * d, d, seed=9) * 2.0 ** (20 * np.arange(d))
    yield s.T @ s


def root_of(moment, d):
    """Return a root of a moment, root.T @ root, to all digits in any units."""
    if moment is None:
        return np.eye(d)
    units = np.sqrt(np.diag(moment)) + (np.diag(moment) == 0)
    values, axes = np.linalg.eigh(moment / units / units[:, np.newaxis])
    return np.sqrt(np.maximum(values, 0))[:, np.newaxis] * axes.T * units


@promise(
    "factorize",
    "score_error",
    border="no moment, a singular one, a zero coordinate; more ranks than directions",
)
def factors_have_the_least_error():
    """The error is Eckart and Young's of the weighted matrix, and a zero row or column, or a unit,
    changes nothing.
    """
    for kind, w, k in all_tables(shapes=FEWER_SHAPES):
        for s_moment, h_moment in zip(
            moments(w.shape[0]), itertools.cycle(moments(w.shape[1])), strict=False
        ):
            roots = left, right = root_of(s_moment, w.shape[0]), root_of(h_moment, w.shape[1])
            weighted = left @ w @ right.T
            size, kept = np.linalg.norm(weighted), spectrum_of(weighted)[:k]
            with case(kind=kind, shape=w.shape, k=k, s=s_moment, h=h_moment):
                given = {"s_moment": s_moment, "h_moment": h_moment}
                u, v = bilinear.factorize(w, k, **given)
                assert (u.shape, v.shape) == ((k, w.shape[0]), (k, w.shape[1]))
                error = bilinear.score_error(w, u, v, **given)
                missed = np.linalg.norm(left @ (w - u.T @ v) @ right.T)
                assert error == pytest.approx(missed, abs=1e-7 * size)
                assert error == pytest.approx(best_error(weighted, k), abs=1e-7 * size)
                for factor, root in zip((u, v), roots, strict=True):
                    seen = factor @ root.T
                    np.testing.assert_allclose(seen @ seen.T, np.diag(kept), atol=1e-6 * size)
                    units = np.linalg.norm(root, axis=0)
                    units[units == 0] = 1
                    unseen = scipy.linalg.null_space(root / units, rcond=1e-6) / units[:, None]
                    most = np.abs(factor) @ np.abs(unseen) + np.linalg.norm(factor)
                    assert (np.abs(factor @ unseen) <= 1e-6 * most).all()
                nearly = np.abs(u) >= (1 - 1e-8) * np.abs(u).max(axis=1, keepdims=True)
                assert (u[np.arange(k), nearly.argmax(axis=1)] >= 0).all()
        size = np.linalg.norm(w)
        error = bilinear.score_error(w, *bilinear.factorize(w, k))
        for change, other, unit, slack in (
            ("float32", w.astype(np.float32), 1, 1e-5),
            ("small", w * 2.0**-200, 2.0**-200, 1e-12),
            ("large", w * 2.0**201, 2.0**201, 1e-12),
            ("turned", w.T, 1, 1e-12),
            ("padded", np.pad(w, 1), 1, 1e-12),
        ):
            with case(kind=kind, shape=w.shape, k=k, change=change):
                factors = bilinear.factorize(other, k)
                assert factors.u.dtype == factors.v.dtype == other.dtype
                same = bilinear.score_error(other, *factors) / unit
                assert same == pytest.approx(error, abs=slack * size)


@promise("score", "reduced_rank_score", border="one query or many, one key or many")
def scores_by_loops():
    """A score is its sum of products, whole or through the factors."""
    for d2, d1 in SHAPES:
        w, k = table_of("flat", d2, d1), 2
        u, v = table_of("flat", k, d2, seed=1), table_of("flat", k, d1, seed=2)
        for lead_s, lead_h in (((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 3), (2, 3))):
            with case(shape=(d2, d1), s=lead_s, h=lead_h):
                s, h = fresh(3).random((*lead_s, d2)), fresh(4).random((*lead_h, d1))
                for found, matrix in (
                    (bilinear.score(s, w, h), w),
                    (bilinear.reduced_rank_score(s, u, v, h), u.T @ v),
                ):
                    judged = np.einsum("...i,ij,...j->...", s, matrix, h)
                    np.testing.assert_allclose(found, judged, rtol=1e-10, atol=1e-12)
                    assert isinstance(found, float) == (lead_s == lead_h == ())


@promise(
    "fit_factors", border="no step; a zero target; float32; repeated or missing singular values"
)
def descent_nears_the_best():
    """The losses are half the squared errors, they end near Eckart and Young's and never below, in
    every unit.
    """
    for (kind, a, k), dtype in itertools.product(
        all_tables(shapes=[(1, 1), (4, 4), (3, 5), (5, 3)]), FLOATS
    ):
        given = a.astype(dtype)
        with case(kind=kind, shape=a.shape, k=k, dtype=dtype):
            found = bilinear.fit_factors(given, k, steps=2000 if dtype is np.float64 else 20, rng=0)
            size = np.square(a).sum()
            assert found.u.dtype == found.v.dtype == dtype
            miss = given.astype(float) - found.u.astype(float) @ found.v.astype(float).T
            assert found.losses[-1] == pytest.approx(
                np.square(miss).sum() / 2, rel=EPS[dtype], abs=EPS[dtype] * size
            )
            least = best_error(given, k) ** 2 / 2
            assert found.losses.min() >= least - 1e-14 * size
            if dtype is np.float64 and spectrum_of(a)[k - 1] > 0.01 * spectrum_of(a)[0]:
                assert found.losses[-1] <= least + 1e-3 * size
            start = bilinear.fit_factors(given, k, steps=0, rng=0)
            assert start.losses.tolist() == found.losses[:1].tolist()
            if a.any() and dtype is np.float64:
                other = bilinear.fit_factors(a * 4.0**30, k, steps=20, rng=0)
                np.testing.assert_allclose(other.losses / 16.0**30, found.losses[:21], rtol=1e-9)


# Models


@promise(
    "rank_report",
    border="m below or above n; fewer than two rows or columns; any unit",
)
def report_is_the_spectrum():
    """The stable rank and the ranks kept are the singular values', in every unit and type."""
    for kind, (m, n) in itertools.product(KINDS, SHAPES):
        a = table_of(kind, m, n)
        for power, dtype in (
            (-500, torch.float64),
            (0, torch.float64),
            (500, torch.float64),
            (0, torch.float32),
            (-60, torch.bfloat16),
        ):
            with case(kind=kind, shape=(m, n), power=power, dtype=dtype):
                weight = torch.tensor(a * 2.0**power).to(dtype)
                if min(m, n) < 2:
                    with pytest.raises(
                        ValueError,
                        match=r"^model must hold a weight with two axes, got none",
                    ):
                        adapters.rank_report({"a": weight})
                    continue
                before = weight.clone()
                columns = adapters.rank_report({"a": weight})
                assert torch.equal(weight, before)
                s = spectrum_of(weight.double().numpy() / 2.0**power)
                energy = np.cumsum(s**2) / max((s**2).sum(), 1e-300)
                assert columns["stable rank"][0] == pytest.approx(
                    (s**2).sum() / (s[0] ** 2 or 1), rel=1e-9
                )
                for share in (0.9, 0.95, 0.99):
                    (kept,) = columns[f"k for {share:.0%}"]
                    assert kept == 0 if s[0] == 0 else energy[kept - 1] >= share - 1e-12
                    assert kept <= 1 or energy[kept - 2] < share + 1e-12


@promise("compress", border="with a moment or without; a bias or none; a zero weight")
def compression_is_the_best():
    """The product of the two weights is the best of its rank for the inputs."""
    for kind, (m, n) in itertools.product(KINDS, FEWER_SHAPES):
        a, s = table_of(kind, m, n), table_of("flat", 2 * n, n, seed=1)
        for moment, bias in ((None, True), (s.T @ s, False)):
            linear = nn.Linear(n, m, bias=bias, dtype=torch.float64)
            with torch.no_grad():
                linear.weight.copy_(torch.tensor(a))
            weighted = a @ root_of(moment, n).T
            size, given = np.linalg.norm(weighted), None if moment is None else torch.tensor(moment)
            for k in range(1, min(m, n) + 1):
                with case(kind=kind, shape=(m, n), k=k, moment=moment is not None):
                    first, second = adapters.compress(linear, k, moment=given)
                    product = (second.weight @ first.weight).detach().numpy()
                    assert first.out_features == k
                    error = np.linalg.norm((a - product) @ root_of(moment, n).T)
                    assert error == pytest.approx(best_error(weighted, k), abs=1e-9 * size)
                    assert first.bias is None
                    assert (second.bias is None) == (not bias)
                    assert not bias or torch.equal(second.bias, linear.bias)


# Counts


@promise(
    "kv_cache_numbers",
    "published_caches",
    "latent_cost",
    border="heads, groups or latent; rotary 0; absorb or not",
)
def counts_by_arrays():
    """The counts are those of the arrays that a token leaves and of the products that it meets."""
    for layers, kept, width, index in itertools.product((1, 2, 7), (1, 3), (1, 4), (0, 5)):
        with case(layers=layers, kept=kept, width=width, index=index):
            stored = sum(np.zeros(shape).size for shape in [(2, kept, width), (index,)] * layers)
            for name in ("heads", "groups"):
                assert (
                    caches.kv_cache_numbers(layers, **{name: kept}, width=width, index=index)
                    == stored
                )
            latent = sum(np.zeros(size).size for size in [kept, width, index] * layers)
            assert caches.kv_cache_numbers(layers, latent=kept, rotary=width, index=index) == latent
    for n, heads, d_h, d_c, d_rope in itertools.product((1, 3), (1, 2), (1, 4), (1, 5), (0, 2)):
        rotated, scores = (heads, d_rope, n), (heads, d_c, n)
        absorbed = [(heads, d_h, d_c), scores, rotated, (heads, n, d_c), (heads, d_c, d_h)]
        restored = [
            (n, d_c, heads * d_h),
            (n, d_c, heads * d_h),
            (heads, d_h, n),
            rotated,
            (heads, n, d_h),
        ]
        for absorb, products in ((True, absorbed), (False, restored)):
            with case(n=n, heads=heads, d_h=d_h, d_c=d_c, d_rope=d_rope, absorb=absorb):
                found = caches.latent_cost(n, heads, d_h, d_c, d_rope, absorb=absorb)
                assert found == (sum(map(math.prod, products)), n * (d_c + d_rope))
    assert all(each.growing > 0 <= each.fixed for each in caches.published_caches().values())


CARDS = [
    *roofline.GPUS.values(),
    roofline.Gpu(1.0, 1e9, 1.0, (1, 0), "slow sums"),
    roofline.Gpu(1e9, 1.0, 1.0, (1, 0), "slow memory"),
]


@promise(
    "gpu_floor",
    "gpu_crossover",
    border="compute or memory; exact or k = n; below and above the crossover",
)
def crossover_by_scanning():
    """A floor is the higher wall, and from the crossover on, and nowhere before, Linformer's is the
    lower.
    """
    for card, k, d, heads, batch in itertools.product(CARDS, (1, 2, 5, 40), (1, 8), (1, 3), (1, 4)):
        with case(card=card.source[:12], k=k, d=d, heads=heads, batch=batch):
            found = roofline.gpu_crossover(k, d, heads, card, batch=batch)
            lengths = [
                *range(k, min(found, k + 60)),
                *range(max(found - 60, k), found + 60),
                3 * found,
                50 * found,
            ]
            for n in lengths:
                exact, mixed = (
                    roofline.gpu_floor(n, d, heads, card, k=rank, batch=batch) for rank in (None, k)
                )
                for floor in (exact, mixed):
                    walls = {
                        "compute": floor.flops / card.flops,
                        "memory": floor.moved_bytes / card.bandwidth,
                    }
                    assert floor.seconds == walls[floor.wall] == max(walls.values())
                assert (mixed.seconds < exact.seconds) == (n >= found)


@promise(
    "attention_bytes",
    "trials",
    border="fused or not; k or none; free memory",
)
def bytes_by_arrays():
    """Bytes are those of the arrays, and a plan runs what fits into four fifths of the free ones
    and says the rest.
    """
    for n, d, heads, batch, k, fused in itertools.product(
        (1, 4, 9), (1, 8), (1, 2), (1, 3), (None, 1), (True, False)
    ):
        width, seen = heads * d, n if k is None else k
        numbers = 4 * batch * n * width + (0 if k is None else n * k + 2 * batch * k * width)
        whole = (
            2 * numbers + 4 * batch * heads * n + (0 if fused else 12 * batch * heads * n * seen)
        )
        with case(n=n, d=d, heads=heads, batch=batch, k=k, fused=fused):
            assert roofline.attention_bytes(n, d, heads, k=k, fused=fused, batch=batch) == whole
            if k and batch == 1:
                exact = roofline.attention_bytes(n, d, heads, fused=fused)
                for free in (
                    whole / 0.8,
                    whole / 0.8 * (1 - 1e-9),
                    exact / 0.8,
                    exact / 0.8 * (1 - 1e-9),
                ):
                    (trial,) = roofline.trials([n], d, heads, k, free=free, fused=fused)
                    assert (trial.exact, trial.linformer) == (
                        exact <= 0.8 * free,
                        whole <= 0.8 * free,
                    )
                    assert (trial.note == "") == (trial.exact and trial.linformer)


@pytest.mark.parametrize(("functions", "check"), TABLE)
def test_promise(functions, check):
    check()


def test_every_function_has_rows():
    elsewhere = {
        "half_type",
        "fused_backends",
        "gpu_named",
        "gaussian_projection",
    }  # of cards and draws
    public = {
        name for module in (jl, roofline, bilinear) for name in module.__all__ if name[0].islower()
    }
    assert public - elsewhere <= {name for row in TABLE for name in row.values[0]}

"""Time this book's functions beside what people already use: ratios in one run, losses included.

``python -m measure.speed.peers`` prints the table and writes ``lowrank_tutor/data/peers.json``.
Every task is done by a function of this package and by a peer, in turn; where both are approximate,
the errors stand beside the times. Times are of one processor core, so that what others do on the
machine hardly counts. A ratio is our best time over the peer's: below 1 ours is faster.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF as TheirNMF
from sklearn.decomposition import PCA as TheirPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.extmath import randomized_svd as sklearn_svd
from threadpoolctl import threadpool_limits
from torch.nn import functional

from lowrank_tutor.attention import linear_attention
from lowrank_tutor.jl import distortion, gaussian_projection
from lowrank_tutor.lda import lda
from lowrank_tutor.nmf import nmf
from lowrank_tutor.pca import PCA
from lowrank_tutor.svd import randomized_svd
from measure.harness import interleaved, processor_clock, provenance, write

REPEATS = 3
Call = Callable[[], Any]


class Task(NamedTuple):
    """One thing to do: by us, by the peer, and the error of each result, where both are approximate."""

    name: str
    peer: str
    ours: Call
    theirs: Call
    error: Callable[[Any], float] | None


def sparse_svd() -> Task:
    """10,000 x 5,000 with 0.5% filled, 20 directions; the relative error is that of the product of the factors."""
    a = scipy.sparse.random(10_000, 5_000, 0.005, format="csr", rng=np.random.default_rng(0))
    whole = float(a.power(2).sum())

    def error(factors: Any) -> float:
        u, s, vt = factors
        square = whole - 2 * np.sum((a.T @ u).T * (s[:, None] * vt)) + np.square(s).sum()
        return float(np.sqrt(max(square, 0) / whole))

    return Task(
        "randomized_svd, sparse 10,000 x 5,000, k = 20", "scikit-learn, auto",
        lambda: randomized_svd(a, 20, rng=0), lambda: sklearn_svd(a, 20, random_state=0), error,
    )  # fmt: skip


def dense_svd(m: int, n: int, k: int, power: float, dtype: str) -> Task:
    """Singular values 1 / i**power; the error is the excess over the best of rank k."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((side, n)))[0] for side in (m, n))
    s = np.arange(1, n + 1) ** -power
    a = ((left * s) @ right.T).astype(dtype)
    best = float(np.linalg.norm(s[k:]))

    def error(factors: Any) -> float:
        u, values, vt = (part.astype(float) for part in factors)
        return abs(float(np.linalg.norm(a - (u * values) @ vt)) / best - 1)

    return Task(
        f"randomized_svd, {m:,} x {n:,} {dtype}, k = {k}", "scikit-learn, auto", lambda: randomized_svd(a, k, rng=0),
        lambda: sklearn_svd(a, k, random_state=0), error,
    )  # fmt: skip


def pca(n: int, d: int) -> Task:
    """Points that spread differently along each axis; the error is that of the variances against float64's own SVD."""
    x = np.random.default_rng(0).standard_normal((n, d)) * np.linspace(1, 10, d) + 5
    exact = np.square(np.linalg.svd(x - x.mean(axis=0), compute_uv=False)[:10]) / (n - 1)
    return Task(
        f"PCA, {n:,} x {d:,}, 10 axes", "scikit-learn, auto", lambda: PCA(10).fit(x), lambda: TheirPCA(10).fit(x),
        lambda fit: float(np.abs(fit.explained_variance_ / exact - 1).max()),
    )  # fmt: skip


def discriminants() -> Task:
    """50,000 points of 64 numbers in 10 classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 50_000)
    x = rng.standard_normal((50_000, 64)) + rng.standard_normal((10, 64))[labels]
    judge = LinearDiscriminantAnalysis(solver="eigen", n_components=9)
    return Task(
        "lda, 50,000 x 64",
        "scikit-learn, eigen",
        lambda: lda(x, labels, 9),
        lambda: judge.fit(x, labels),
        None,
    )


def distances() -> Task:
    """All pairs of 2,000 points of 256 numbers, projected to 64."""
    x = np.random.default_rng(0).standard_normal((2_000, 256))
    r = gaussian_projection(64, 256, 0)
    return Task(
        "distortion, 2,000 points, 256 to 64", "SciPy, a ratio of pdist", lambda: distortion(x, r),
        lambda: np.square(pdist(x @ r.T) / pdist(x)) - 1, None,
    )  # fmt: skip


def parts(name: str, peer: str, x: np.ndarray, ours: Call, theirs: Call) -> Task:
    """Nonnegative factors of a table; the relative error is that of their product."""

    def error(factors: Any) -> float:
        return float(np.linalg.norm(x - factors[0] @ factors[1]) / np.linalg.norm(x))

    return Task(f"nmf, {name}", peer, lambda: ours()[:2], theirs, error)


def their_parts(x: np.ndarray, k: int, **options: Any) -> Any:
    """Return scikit-learn's factors."""
    model = TheirNMF(k, max_iter=2_000, **options)
    return model.fit_transform(x), model.components_


def one_start() -> Task:
    """2,000 x 500, five parts and a little noise, by a tolerance that gives about their error."""
    rng = np.random.default_rng(0)
    x = rng.random((2_000, 5)) @ rng.random((5, 500)) + 0.01 * rng.random((2_000, 500))
    return parts(
        "2,000 x 500, k = 5, one start, to about the same error", "scikit-learn, nndsvda", x,
        lambda: nmf(x, 5, starts=1, tolerance=7e-6), lambda: their_parts(x, 5, init="nndsvda"),
    )  # fmt: skip


def by_default() -> Task:
    """Digits in 10 parts as both do it by default: five starts beside one, and a far smaller tolerance."""
    x = load_digits().data
    return parts(
        "1,797 digits of 64 pixels, k = 10, by default", "scikit-learn, by default", x,
        lambda: nmf(x, 10, rng=0), lambda: their_parts(x, 10),
    )  # fmt: skip


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Linear attention as its paper writes it, which is 0/0 where all features vanish."""
    q, k = functional.elu(q) + 1, functional.elu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(dim=2, keepdim=True).mT)


def attention() -> Task:
    """Forward and backward, 8,192 tokens in 8 heads of 64 numbers."""
    q, k, v = (torch.randn(1, 8, 8_192, 64, requires_grad=True) for _ in range(3))

    def run(function: Callable[..., torch.Tensor]) -> None:
        function(q, k, v).square().sum().backward()
        for tensor in (q, k, v):
            tensor.grad = None

    return Task(
        "linear_attention, 8,192 tokens, with gradient",
        "its formula in plain PyTorch",
        lambda: run(linear_attention),
        lambda: run(written_out),
        None,
    )


# Each makes its data when its turn comes.
TASKS: list[Callable[[], Task]] = [
    sparse_svd,
    *(functools.partial(dense_svd, 4_000, 1_000, k, 1.0, "float64") for k in (100, 200, 250)),
    *(functools.partial(dense_svd, 1_024, 1_024, k, 0.5, "float32") for k in (102, 200, 256)),
    *(functools.partial(pca, n, d) for n, d in ((10_000, 100), (50_000, 64), (1_000, 3_000))),
    discriminants,
    distances,
    one_start,
    by_default,
    attention,
]


def main() -> None:
    """Measure, print and write."""
    torch.set_num_threads(1)
    packages = ["numpy", "scipy", "scikit-learn", "torch"]
    meta, rows = provenance("python -m measure.speed.peers", packages), []
    meta["machine"] |= {"threads": 1}
    for build in TASKS:
        task = build()
        calls = {
            "ours": lambda _, task=task: task.ours(),
            "theirs": lambda _, task=task: task.theirs(),
        }
        timed = interleaved(calls, REPEATS, task.error or (lambda _: None), clock=processor_clock)
        row = {
            "task": task.name,
            "peer": task.peer,
            "ratio": round(timed["ours"].best / timed["theirs"].best, 3),
        }
        row |= {f"time_{who}": round(timing.best, 5) for who, timing in timed.items()}
        row |= (
            {f"error_{who}": float(f"{max(t.notes):.4g}") for who, t in timed.items()}
            if task.error
            else {}
        )
        rows.append(row)
        print(row, flush=True)
    print(f"written: {write('peers', meta | {'repeats': REPEATS}, rows).name}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

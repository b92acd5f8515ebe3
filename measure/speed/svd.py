"""Compare ``randomized_svd`` with its peers: time against error, on spectra easy and hard.

``python -m measure.speed.svd`` prints the table and writes ``lowrank_tutor/data/svd_bench.json``
for the page of packages. Every method runs at its defaults, except where its name says otherwise.
In a row, ``time_min`` and ``time_median`` are seconds, of interleaved runs after one that does not
count. ``excess`` is (error - optimum) / optimum in the Frobenius norm, of the worst run; an error
or optimum below max(m, n) * eps * sigma_1 counts as that, which is zero to double precision, and an
excess below 1e-14 is rounding and written as 0.
"""

from collections.abc import Callable
from typing import Any

import fbpca
import numpy as np
import torch
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd as sklearn_svd

from lowrank_tutor.svd import randomized_svd
from measure.harness import interleaved, provenance, say_if_busy, write

M, N, K, REPEATS, MATRIX_SEED = 4000, 1000, 50, 15, 0
RESOLUTION = 1e-14  # of the excess: the norm of the residual has about this rounding itself
I = np.arange(1.0, N + 1)  # noqa: E741
SPECTRA = {
    "1/sqrt(i)": 1 / np.sqrt(I),
    "1/i": 1 / I,
    "flat": np.ones(N),
    "repeated": np.r_[np.ones(K), np.full(N - K, 0.5)],
    "steep": np.logspace(-1, -16, N),
    "rank 2k": np.r_[1 / I[: 2 * K], np.zeros(N - 2 * K)],
    "rank below k": np.r_[1 / I[:30], np.zeros(N - 30)],
}


def peers(a: np.ndarray) -> dict[str, Callable[[int], tuple[np.ndarray, ...]]]:
    """Name the methods; each takes the number of the run as its seed."""
    tensor = torch.from_numpy(a)

    def lowrank(run: int, q: int, niter: int = 2) -> tuple[np.ndarray, ...]:
        torch.manual_seed(run + 1)
        u, s, v = torch.svd_lowrank(tensor, q, niter)
        return u.numpy(), s.numpy(), v.numpy().T

    def pca(run: int) -> tuple[np.ndarray, ...]:
        np.random.seed(run + 1)  # noqa: NPY002  fbpca knows only the global generator
        return fbpca.pca(a, K, raw=True)

    return {
        "randomized_svd (ours)": lambda run: randomized_svd(
            a, K, rng=np.random.default_rng(run + 1)
        ),
        "scikit-learn": lambda run: sklearn_svd(a, K, random_state=run + 1),
        "svd_lowrank": lambda run: lowrank(run, K),
        "svd_lowrank q=k+10": lambda run: lowrank(run, K + 10),
        "fbpca": pca,
        "ARPACK": lambda run: svds(a, K, solver="arpack", rng=run + 1),
        "PROPACK": lambda run: svds(a, K, solver="propack", rng=run + 1),
    }


def build(spectrum: np.ndarray) -> np.ndarray:
    """Make the (M, N) matrix of a spectrum, with random singular vectors."""
    rng = np.random.default_rng(MATRIX_SEED)
    left = np.linalg.qr(rng.standard_normal((M, N)))[0]
    return (left * spectrum) @ np.linalg.qr(rng.standard_normal((N, N)))[0].T


def judge_for(a: np.ndarray) -> Callable[[Any], float]:
    """Return a function that gives the excess error of a result."""
    exact = np.linalg.svd(
        a, compute_uv=False
    )  # of the matrix as rounded, not of the spectrum asked for
    floor = max(M, N) * np.finfo(a.dtype).eps * exact[0]
    optimum = max(float(np.linalg.norm(exact[K:])), floor)

    def judge(result: Any) -> float:
        u, s, vt = result
        first = np.argsort(s)[::-1][:K]
        excess = (
            max(float(np.linalg.norm(a - (u[:, first] * s[first]) @ vt[first])), floor) / optimum
            - 1
        )
        return excess if excess > RESOLUTION else 0.0

    return judge


def main() -> None:
    """Measure, print and write."""
    meta = provenance(
        "python -m measure.speed.svd", ["numpy", "scipy", "scikit-learn", "torch", "fbpca"]
    )
    say_if_busy(meta["machine"])
    rows = []
    print(f"{M} x {N}, k = {K}, {REPEATS} interleaved runs; seconds best / median, excess error")
    for spectrum, values in SPECTRA.items():
        a = build(values)
        for method, timing in interleaved(peers(a), REPEATS, judge_for(a)).items():
            if timing.error is not None:
                print(f"{spectrum:14} {method:22} failed: {timing.error}")
                continue
            times = {"time_min": round(timing.best, 5), "time_median": round(timing.median, 5)}
            excess = float(f"{max(timing.notes):.3g}")
            rows.append({"spectrum": spectrum, "method": method, **times, "excess": excess})
            print(
                f"{spectrum:14} {method:22} {timing.best:7.3f} {timing.median:7.3f} {excess:10.1e}",
                flush=True,
            )
    meta |= {
        "m": M,
        "n": N,
        "k": K,
        "repeats": REPEATS,
        "matrix_seed": MATRIX_SEED,
        "run_seeds": [1, REPEATS],
    }
    print(f"written: {write('svd_bench', meta, rows).name}")


if __name__ == "__main__":
    main()

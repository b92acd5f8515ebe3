"""Compare ``randomized_svd`` with its peers: time against error, on spectra easy and hard.

``python -m measure.speed.svd`` prints the table and the bars, and writes ``lowrank_tutor/data/svd_bench.json`` for the
table on the page of packages. Every method runs at its defaults, except where its name says otherwise.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import fbpca
import numpy as np
import torch
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd as sklearn_svd

from lowrank_tutor.svd import randomized_svd
from measure.harness import Timing, all_hold, interleaved, provenance, say_if_busy, write

M, N, K, REPEATS, MATRIX_SEED = 4000, 1000, 50, 15, 0
OURS, SKLEARN = "randomized_svd (ours)", "scikit-learn"
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
DEFINITIONS = {
    "excess": "(error - optimum) / optimum in the Frobenius norm, worst run; an error or optimum below max(m, n) * eps"
    " * sigma_1 counts as that, which is zero to double precision; below 1e-14 it is rounding and written as 0",
    "sigma_error": "largest relative error among the k singular values above that floor, worst run",
    "time_min, time_median": "seconds, of interleaved runs after one that does not count",
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
        OURS: lambda run: randomized_svd(a, K, rng=np.random.default_rng(run + 1)),
        SKLEARN: lambda run: sklearn_svd(a, K, random_state=run + 1),
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


def judge_for(a: np.ndarray) -> Callable[[Any], tuple[float, float]]:
    """Return a function that gives the excess and the error of the singular values of a result."""
    exact = np.linalg.svd(a, compute_uv=False)  # of the matrix as rounded, not of the spectrum asked for
    floor = max(M, N) * np.finfo(a.dtype).eps * exact[0]
    optimum = max(float(np.linalg.norm(exact[K:])), floor)
    real = exact[:K] > floor

    def judge(result: Any) -> tuple[float, float]:
        u, s, vt = result
        kept = np.argsort(s)[::-1][:K]
        error = max(float(np.linalg.norm(a - (u[:, kept] * s[kept]) @ vt[kept])), floor)
        excess = error / optimum - 1
        sigma = np.abs(s[kept] / exact[:K] - 1)[real].max()
        return (excess if excess > RESOLUTION else 0.0), float(sigma)

    return judge


def rows_of(name: str, timings: dict[str, Timing]) -> list[dict[str, Any]]:
    """Turn the timings on one spectrum into rows; a method that failed gives none."""
    return [
        {
            "spectrum": name,
            "method": method,
            "time_min": round(timing.best, 5),
            "time_median": round(timing.median, 5),
            "excess": float(f"{max(note[0] for note in timing.notes):.3g}"),
            "sigma_error": float(f"{max(note[1] for note in timing.notes):.3g}"),
        }
        for method, timing in timings.items()
        if timing.error is None
    ]


def import_seconds(module: str) -> float:
    """Measure what importing a module adds to NumPy's own import: best of three fresh interpreters."""
    code = f"import numpy, time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    return round(min(float(run.stdout) for run in runs), 5)


def bars(rows: list[dict[str, Any]], imports: dict[str, float]) -> list[dict[str, Any]]:
    """Say which promises hold."""
    table = {(row["spectrum"], row["method"]): row for row in rows}
    slower = {name: table[name, OURS]["time_median"] / table[name, SKLEARN]["time_median"] for name in SPECTRA}
    worse = [name for name in SPECTRA if table[name, OURS]["excess"] > table[name, SKLEARN]["excess"]]
    longest, slowest = max(slower, key=lambda name: slower[name]), max(imports.values())
    return [
        {
            "bar": "<= 1.3x scikit-learn's median time on every spectrum",
            "measured": f"{slower[longest]:.2f}x on {longest}",
            "holds": slower[longest] <= 1.3,
        },
        {
            "bar": "no larger excess error than scikit-learn on any spectrum",
            "measured": f"larger on {', '.join(worse)}" if worse else "none larger",
            "holds": not worse,
        },
        {"bar": "import < 0.15 s beyond NumPy's", "measured": f"{slowest:.3f} s", "holds": slowest < 0.15},
    ]


def main() -> int:
    """Measure, print and write; the exit status tells whether all bars hold."""
    meta = provenance("python -m measure.speed.svd", ["numpy", "scipy", "scikit-learn", "torch", "fbpca"])
    say_if_busy(meta["machine"])
    rows: list[dict[str, Any]] = []
    failures: list[dict[str, str]] = []
    print(f"{M} x {N}, k = {K}, {REPEATS} interleaved runs; seconds best / median, excess error, error of sigma")
    for name, spectrum in SPECTRA.items():
        a = build(spectrum)
        timings = interleaved(peers(a), REPEATS, judge_for(a))
        rows += (fresh := rows_of(name, timings))
        for row in fresh:
            times = f"{row['time_min']:7.3f} {row['time_median']:7.3f}"
            print(f"{name:14} {row['method']:22} {times} {row['excess']:10.1e} {row['sigma_error']:10.1e}", flush=True)
        for method, timing in timings.items():
            if timing.error is not None:
                failures.append({"spectrum": name, "method": method, "error": timing.error})
                print(f"{name:14} {method:22} failed: {timing.error}")
    imports = {module: import_seconds(module) for module in ("lowrank_tutor", "lowrank_tutor.svd")}
    judged = bars(rows, imports)
    held = all_hold(judged)
    meta |= {"m": M, "n": N, "k": K, "repeats": REPEATS, "matrix_seed": MATRIX_SEED, "run_seeds": [1, REPEATS]}
    meta |= {"definitions": DEFINITIONS, "import_seconds": imports, "failures": failures, "bars": judged}
    print(f"written: {write('svd_bench', meta, rows).name}")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())

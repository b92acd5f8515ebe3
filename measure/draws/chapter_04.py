"""Draw chapter 4 again: rows that keep distances, rows that beat zero, and what few bits in keys do to an output."""

import json
import math

import numpy as np

from measure.harness import DATA


def rows_that_keep(rng: np.random.Generator) -> int:
    """Return the first size of a random map that changes no squared distance between the help pages by over 30%."""
    pages = json.loads((DATA / "help_words.json").read_text(encoding="utf-8"))["rows"]
    points = np.zeros((len(pages), 2000))
    for point, page in zip(points, pages, strict=True):
        point[page["words"]] = np.log1p(page["counts"])
    first, second = np.triu_indices(len(points), 1)
    apart = points[first] - points[second]
    before = (apart**2).sum(axis=1)

    def largest_change(k: int) -> float:
        after = ((apart @ rng.standard_normal((2000, k))) ** 2).mean(axis=1)
        return float(np.abs(after / before - 1).max())

    return next(k for k in (4, 16, 64, 128, 256, 512, 1024) if largest_change(k) <= 0.3)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return attention weights, a row for each query."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def output_errors(rng: np.random.Generator) -> tuple[float, float]:
    """Return the output errors of keys rounded with two bits, and with one bit and signs of the rest."""
    keys, queries, values, one_bit = (
        rng.standard_normal(shape) for shape in ((256, 128), (32, 128), (256, 64), (128, 128))
    )
    keys[:, 0] *= 6
    turn = np.ones((1, 1))
    for _ in range(7):  # seven rounds of turns by 45 degrees
        turn = np.kron(turn, np.array([[1, -1], [1, 1]]) / math.sqrt(2))
    x, y = keys @ turn.T, queries @ turn.T
    size = np.linalg.norm(x, axis=1, keepdims=True) / math.sqrt(128)
    # Lloyd's levels of one bit, and of two
    coarse = size * math.sqrt(2 / math.pi) * np.sign(x)
    fine = size * np.sign(x) * np.where(np.abs(x) < 0.981599 * size, 0.452780, 1.510418)
    left = x - coarse
    signs = math.sqrt(math.pi / 2) / 128 * (y @ one_bit.T) @ np.sign(left @ one_bit.T).T
    signs *= np.linalg.norm(left, axis=1)
    right = softmax(queries @ keys.T / math.sqrt(128)) @ values

    def error(inner: np.ndarray) -> float:
        output = softmax(inner / math.sqrt(128)) @ values
        return float(np.linalg.norm(output - right) / np.linalg.norm(right))

    return error(y @ fine.T), error(y @ coarse.T + signs)


def draw(seed: int) -> dict[str, float]:
    """Return two numbers of rows, the error of a product at k = 100 if 1 is added, and two errors of an output."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((50, 400)), rng.standard_normal((400, 8))
    first, second = (
        np.linalg.norm(p) ** 2 * np.linalg.norm(q) ** 2 / np.linalg.norm(p @ q) ** 2
        for p, q in ((a, b), (a + 1, b + 1))
    )
    rounded, signs = output_errors(rng)
    return {
        "rows to beat zero": float(1 + first),
        "error with 1 added": float(np.sqrt((1 + second) / 100)),
        "output error, two bits": rounded,
        "output error, one bit and signs": signs,
        "first size that keeps every pair": rows_that_keep(rng),
    }

"""Matrices for the tests: with a chosen spectrum, and such as every function must refuse."""

import datetime

import numpy as np


def orthonormal(m, k, rng):
    """Draw k orthonormal columns of length m."""
    return np.linalg.qr(rng.standard_normal((m, k)))[0]


def with_spectrum(s, m, n, seed=0):
    """Draw an (m, n) matrix that has the singular values s and otherwise random singular vectors."""
    rng = np.random.default_rng(seed)
    s = np.asarray(s, dtype=np.float64)
    return (orthonormal(m, s.size, rng) * s) @ orthonormal(n, s.size, rng).T


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("not today")

    def __repr__(self):
        return "NoArray()"


REAL = "{} must be an array of real numbers, got "
RECTANGLE = "{} must be a rectangular array of real numbers, got "
with np.errstate(over="ignore"):  # infinite where a long double is no longer than a double
    BEYOND_FLOAT64 = np.full((2, 2), np.longdouble(1e308) * 100)

# name: (value, error, message with a place for the argument's name)
BAD_ARRAYS = {
    "nan": ([[1.0, np.nan]], ValueError, "{} must be finite, got nan"),
    "infinity": ([[1.0, np.inf]], ValueError, "{} must be finite, got inf"),
    "minus infinity": (np.float32([[1.0, -np.inf]]), ValueError, "{} must be finite, got -inf"),
    "beyond float64": (BEYOND_FLOAT64, ValueError, "{} must be finite, got inf"),
    "no rows": (np.zeros((0, 3)), ValueError, "{} must be non-empty, got shape (0, 3)"),
    "no columns": (np.zeros((3, 0)), ValueError, "{} must be non-empty, got shape (3, 0)"),
    "ragged": ([[1, 2], [3]], ValueError, RECTANGLE + "[[1, 2], [3]]"),
    "refuses to be an array": (NoArray(), ValueError, RECTANGLE + "NoArray()"),
    "string": ("one", TypeError, REAL + "'one'"),
    "strings": ([["1", "2"]], TypeError, REAL + "[['1', '2']]"),
    "array of strings": (np.array([["a"]]), TypeError, REAL + "dtype <U1"),
    "None": (None, TypeError, REAL + "None"),
    "complex": (np.array([[1j]]), TypeError, REAL + "dtype complex128"),
    "objects": (np.array([[1, None]]), TypeError, REAL + "dtype object"),
    "integers beyond 64 bits": ([[10**30]], TypeError, REAL + f"[[{10**30}]]"),
    "dates": ([[datetime.date(2026, 1, 1)]], TypeError, REAL + "[[datetime.date(2026, 1, 1)]]"),
    "masked": (
        np.ma.masked_equal([[1.0, 2.0]], 2.0),
        TypeError,
        "{} must be an array without a mask, got a masked array",
    ),
}

BAD_MATRICES = BAD_ARRAYS | {
    "number": (3.0, ValueError, "{} must be a matrix (two axes), got shape ()"),
    "vector": ([1.0, 2.0], ValueError, "{} must be a matrix (two axes), got shape (2,)"),
    "empty list": ([], ValueError, "{} must be a matrix (two axes), got shape (0,)"),
    "stack": (np.ones((2, 2, 2)), ValueError, "{} must be a matrix (two axes), got shape (2, 2, 2)"),
}

"""Count the directions: what its explorers must read, by NumPy alone, and the numbers in its text."""

import functools

import numpy as np


@functools.cache
def spectrum(entries, shape):
    return np.linalg.svd(np.frombuffer(entries).reshape(shape), compute_uv=False)


def rank_k_photo(chapter, *, k):
    photo = chapter["photo"]
    m, n = photo.shape
    s = spectrum(photo.tobytes(), photo.shape)
    return {"relative_error": np.sqrt(np.sum(s[k:] ** 2)) / np.linalg.norm(photo), "numbers_kept": k * (m + n)}


def rank_tolerance(chapter, *, t):
    return {"numerical_rank": np.linalg.matrix_rank(chapter["noisy"], rtol=10.0**-t)}


EXPLORERS = {"rank-k-photo": rank_k_photo, "rank-tolerance": rank_tolerance}

"""Cut the spectrum: what its explorers must read, by NumPy alone, and the numbers in its text."""

import numpy as np


def digits_cut(chapter, *, k):
    """PCA by the eigenvalues of the covariance matrix: another way than the chapter's SVD."""
    x = chapter["X"]
    variances = np.linalg.eigvalsh(np.cov(x, rowvar=False))[::-1]
    explained = variances[:k].sum() / variances.sum()
    return {"variance_explained": explained, "relative_error": np.sqrt(1 - explained)}


def spectrum_cut(chapter, *, decay, k):
    i = np.arange(1, 65)
    return {"relative_error": np.sqrt(np.sum(i[k:] ** (-2.0 * decay)) / np.sum(i ** (-2.0 * decay)))}


def denoise_cut(chapter, *, noise, k):
    signal = chapter["S"]
    u, s, vt = np.linalg.svd(signal + noise * chapter["Z"], full_matrices=False)
    error = np.linalg.norm(u[:, :k] @ np.diag(s[:k]) @ vt[:k] - signal) / np.linalg.norm(signal)
    beta = 60 / 80
    factor = np.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + np.sqrt(beta**2 + 14 * beta + 1)))
    return {"error_against_truth": error, "values_above_threshold": np.sum(s > factor * np.sqrt(80) * noise)}


EXPLORERS = {"digits-cut": digits_cut, "spectrum-cut": spectrum_cut, "denoise-cut": denoise_cut}

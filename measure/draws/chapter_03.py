"""Chapter 3: errors on hidden pixels and ratings, and what PCA needs to recognize digits."""

import numpy as np
from sklearn.datasets import load_digits

from lowrank_tutor.factorization import factorize_ratings
from lowrank_tutor.lda import lda
from lowrank_tutor.pca import PCA


def draw(seed: int) -> dict[str, float]:
    """Return errors on hidden pixels, the best rank for hidden ratings, and PCA's numbers."""
    rng = np.random.default_rng(seed)
    digits = load_digits().data[rng.permutation(1797)[:500]]
    shown = rng.random(digits.shape) < 0.5
    numbers: dict[str, float] = {}
    for k, penalty in ((5, 1), (12, 1), (20, 1), (20, 30), (20, 100)):
        guess = factorize_ratings(digits, shown, k, regularization=penalty, rng=rng).estimates
        missed = np.linalg.norm((guess - digits)[~shown]) / np.linalg.norm(digits[~shown])
        numbers[f"hidden pixels, k = {k}, penalty {penalty}"] = float(missed)
    numbers["best rank for hidden ratings"] = best_rank(rng)
    return numbers | {
        "numbers with which PCA recognizes as many as LDA with 4": numbers_needed(rng)
    }


def numbers_needed(rng: np.random.Generator) -> int:
    """Return how many numbers PCA needs to recognize as many new digits as LDA does from four."""
    order = rng.permutation(1797)
    (x, new), (y, truth) = (np.split(part[order], [1200]) for part in load_digits(return_X_y=True))

    def recognized(old: np.ndarray, then: np.ndarray) -> int:
        return int((lda(old, y, min(old.shape[1], 9)).classify(then) == truth).sum())

    four, pca = lda(x, y, 4), PCA(64).fit(x)
    goal, old, then = (
        recognized(four.project(x), four.project(new)),
        pca.transform(x),
        pca.transform(new),
    )
    return next(k for k in range(1, 65) if recognized(old[:, :k], then[:, :k]) >= goal)


def best_rank(rng: np.random.Generator) -> int:
    """Return the rank with the least error on hidden ratings.

    They are of 200 people with four tastes and a mean of 3.
    """
    ratings = 3 + 0.5 * rng.standard_normal((200, 4)) @ rng.standard_normal((4, 120))
    ratings += 0.5 * rng.standard_normal(ratings.shape)
    known = rng.random(ratings.shape) < 0.25
    errors = {}
    for k in (3, 4, 5, 6, 8):
        guess = factorize_ratings(ratings, known, k, regularization=1, rng=rng).estimates
        errors[k] = np.nanmean((guess - ratings)[~known] ** 2)
    return min(errors, key=errors.__getitem__)

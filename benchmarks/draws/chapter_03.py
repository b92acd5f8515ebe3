"""Chapter 3: errors on hidden pixels and hidden ratings, with other entries hidden."""

import numpy as np
from sklearn.datasets import load_digits

from lowrank_tutor.factorization import factorize_ratings


def draw(seed: int) -> dict[str, float]:
    """Return the error on hidden pixels for a few ranks and penalties, and the best rank for hidden ratings."""
    rng = np.random.default_rng(seed)
    digits = load_digits().data[rng.permutation(1797)[:500]]
    shown = rng.random(digits.shape) < 0.5
    numbers: dict[str, float] = {}
    for k, penalty in ((5, 1), (12, 1), (20, 1), (20, 30), (20, 100)):
        guess = factorize_ratings(digits, shown, k, regularization=penalty, rng=rng).estimates
        missed = np.linalg.norm((guess - digits)[~shown]) / np.linalg.norm(digits[~shown])
        numbers[f"hidden pixels, k = {k}, penalty {penalty}"] = float(missed)
    return numbers | {"best rank for hidden ratings": best_rank(rng)}


def best_rank(rng: np.random.Generator) -> int:
    """Return the rank with the least error on hidden ratings, of 200 people with four tastes and a mean of 3."""
    ratings = 3 + 0.5 * rng.standard_normal((200, 4)) @ rng.standard_normal((4, 120))
    ratings += 0.5 * rng.standard_normal(ratings.shape)
    known = rng.random(ratings.shape) < 0.25
    errors = {}
    for k in (3, 4, 5, 6, 8):
        guess = factorize_ratings(ratings, known, k, regularization=1, rng=rng).estimates
        errors[k] = np.nanmean((guess - ratings)[~known] ** 2)
    return min(errors, key=errors.__getitem__)

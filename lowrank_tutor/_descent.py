"""Run the loop of `nmf` and `factorize_ratings`: improve both factors in turn."""

from collections.abc import Callable
from typing import NamedTuple

from lowrank_tutor._checks import FloatArray

Pair = tuple[FloatArray, FloatArray]


class Descent(NamedTuple):
    """Hold a pair of factors, the losses on the way to them, and whether they have settled."""

    factors: Pair
    losses: list[float]
    settled: bool = False


def descend(
    begun: Descent,
    sweep: Callable[[FloatArray, FloatArray], Pair],
    loss: Callable[[FloatArray, FloatArray], float],
    enough: Callable[[float], float],
    max_sweeps: int,
) -> Descent:
    """Repeat a sweep until it lowers the loss by no more than ``enough(loss before it)``.

    The sweeps that ``begun`` has behind it count toward ``max_sweeps``.
    """
    factors, losses = begun.factors, begun.losses.copy()
    while len(losses) <= max_sweeps:
        candidate = sweep(*factors)
        after = loss(*candidate)
        if not after < losses[-1]:  # only rounding is left to gain
            return Descent(factors, losses, True)
        factors = candidate
        losses.append(after)
        if losses[-2] - after <= enough(losses[-2]):
            return Descent(factors, losses, True)
    return Descent(factors, losses)

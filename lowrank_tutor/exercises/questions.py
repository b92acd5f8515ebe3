"""What the exercises ask for, what is right, and what many people answer first.

A number is written as the formula that it comes from, if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt
from typing import NamedTuple

ANOTHER_ORDER = "These are the right numbers, but in another order."

Answer = float | tuple[float, ...]


def numbers_of(answer: Answer) -> tuple[float, ...]:
    """Return one number or several as several."""
    return answer if isinstance(answer, tuple) else (answer,)


class Question(NamedTuple):
    """What is asked, what is right, and hints: for certain wrong answers, and for every other one."""

    ask: str
    right: Answer
    otherwise: str
    hints: tuple[tuple[Answer, str], ...]
    within: float = 0.0  # relative; counts must be exact

    @property
    def numbers(self) -> tuple[float, ...]:
        """The right answer as a tuple."""
        return numbers_of(self.right)

    def accepts(self, given: Sequence[float]) -> bool:
        """Whether each number is near enough to the right one."""
        return self._near(given, self.numbers)

    def hint(self, given: Sequence[float]) -> str:
        """Return the words for a wrong answer."""
        for wrong, words in self.hints:
            if self._near(given, numbers_of(wrong)):
                return words
        return ANOTHER_ORDER if self._near(sorted(given), sorted(self.numbers)) else self.otherwise

    def _near(self, given: Sequence[float], wanted: Sequence[float]) -> bool:
        return all(abs(g - w) <= self.within * abs(w) + 1e-9 for g, w in zip(given, wanted, strict=True))


QUESTIONS = {
    # Count the directions
    "ex-rank-hand": Question(
        "The rank:",
        2,
        "Subtract twice the first row from the second and three times the first from the third. What is left?",
        (
            (3, "After the two subtractions the second and the third row are the same: one of them adds nothing."),
            (1, "The second row is not twice the first: look at the last column."),
        ),
    ),
    "ex-rank-tenth": Question(
        "The largest rank:",
        204,
        "Two factors of rank k hold k(m + n) numbers. A tenth of the table is 4096 times 409.6.",
        (
            (204.8, "A rank is a whole number: round down."),
            (205, "Rank 205 needs a little more than a tenth: round down."),
            (409, "Did you count one factor? There are two, each of 4096 k numbers."),
            (2048, "That is where factors stop saving at all. The question asks for a tenth."),
        ),
    ),
    "ex-rank-build": Question(
        "Numbers in two full factors, then degrees of freedom:",
        (20, 16),
        "The factors are 5 by 2 and 2 by 5. Which changes of the factors leave the product alone?",
        (
            (
                (20, 20),
                "An invertible 2 by 2 matrix can move from one factor to the other without changing the product.",
            ),
            ((16, 16), "16 is the second number. The factors, written out in full, hold more."),
            ((25, 16), "25 is what the table holds. How many do the two factors hold?"),
            ((20, 18), "What can move between the factors is a 2 by 2 matrix. How many entries has it?"),
        ),
    ),
    "ex-rank-projection": Question(
        "The multiple:",
        1 / 2,
        "Square c times the matrix, and use that the product of W with its transpose is 2.",
        (
            (1, "The square of the matrix is twice the matrix, so it is not a projection yet."),
            (2, "By 2 the square grows too large: divide instead."),
            (1 / sqrt(2), "That makes W a unit vector. The matrix holds W twice, so it is divided by the square."),
        ),
        within=0.01,
    ),
    "ex-rank-gram": Question(
        "Independent solutions for the 6 by 4 matrix:",
        1,
        "Both matrices send the same vectors to zero. How many columns do they have?",
        (
            (3, "That is the rank, or the count for six columns. The solutions have four entries."),
            (2, "Six counts the equations. How many entries has x?"),
            (0, "A has rank 3 and four columns: some vector is sent to zero."),
        ),
    ),
    # Cut where it hurts least
    "ex-svd-tail": Question(
        "Relative Frobenius error (three digits), spectral error, smallest k:",
        (sqrt(5 / 55), 2, 3),
        "Square the singular values. The Frobenius error takes all that are cut, the spectral error only the largest.",
        (
            ((5 / 55, 2, 3), "That is the share of the energy. The error is its square root."),
            ((sqrt(5), 2, 3), "Relative means divided by the norm of the whole matrix, the square root of 55."),
            ((sqrt(5 / 55), 1, 3), "Which singular values are dropped at rank 3? Take the largest of them."),
            (
                (sqrt(5 / 55), 2, 4),
                "Energy is a sum of squares: add them from the top until you pass 90% of their sum.",
            ),
        ),
        within=0.01,
    ),
    "ex-svd-hand": Question(
        "The two singular values (three digits), the larger first:",
        ((sqrt(5) + 1) / 2, (sqrt(5) - 1) / 2),
        "They are the square roots of the eigenvalues of the transpose times the matrix.",
        (
            (((3 + sqrt(5)) / 2, (3 - sqrt(5)) / 2), "Those are their squares, the eigenvalues of the Gram matrix."),
            ((1, 1), "Those are the eigenvalues of the matrix itself, which is not symmetric."),
            (((sqrt(5) - 1) / 2, (sqrt(5) + 1) / 2), "The larger one comes first."),
        ),
        within=0.01,
    ),
    "ex-svd-center": Question(
        "The first uncentered singular value afterwards, within 6%:",
        35_598,
        "The constant alone has rank 1. What is the Frobenius norm of 1797 rows of 64 hundreds?",
        (
            # 2,193 is its value before; 100 more than that is a guess, too
            (2_240, "The constant is much larger than the digits: it adds 100 to each of 115,008 entries."),
        ),
        within=0.06,
    ),
    "ex-svd-noise": Question(
        "Kept by the threshold, kept by 90% of the energy (within 5%):",
        (0, 508),
        "Compare the threshold with the largest singular value of noise; count the energy of the simulated spectrum.",
        (
            ((0, 900), "The first singular values carry more than the last: 90% of the energy takes fewer than 90%."),
            ((0, 0.508), "Count them; that is a share."),
            ((0, 50.8), "Count them; that is a share, in percent."),
            ((1, 508), "Compute the threshold, and compare it with the sum of the roots of both sizes."),
        ),
        within=0.05,
    ),
    # Other low ranks
    "ex-family-nine": Question(
        "Axes for three classes, then axes with a ratio above zero if the means lie on a line:",
        (2, 1),
        "The class means, seen from their common mean, span at most one dimension less than there are classes.",
        (
            ((3, 1), "Three means minus their common mean add up to zero: they span two dimensions at most."),
            ((2, 2), "Means on a line, minus their common mean, all point along that line."),
            ((2, 0), "Along the line the means still differ."),
        ),
    ),
    "ex-family-half": Question(
        "p without the penalty, then p with it:",
        (9 / 5, 9 / 10),
        "Set the derivative of the squared errors plus the penalty to zero.",
        (
            ((3, 3 / 2), "Divide by the sum of the squares of q, which is 5, not by the sum of q."),
            ((9 / 5, 9 / 25), "The penalty is added to the sum of the squares, not multiplied by it."),
            ((9 / 5, 9 / 30), "The penalty is added as it is, not squared."),
            ((9 / 5, 18 / 5), "Those are the two estimates without the penalty. Asked is p, twice."),
        ),
        within=0.01,
    ),
    "ex-family-multiply": Question(
        "The error after a hundred rounds, divided by parts.error (your start moves it a little):",
        1.035,
        "Update H, then W with the new H, a hundred times, and compare the Frobenius errors.",
        ((0.97, "The other way round: multiplying ends above HALS."),),
        within=0.034,
    ),
    "ex-family-cloud": Question(
        "The relative error of PCA on the new points, within 5%:",
        0.768,  # the root of the share of variance in eight of the ten directions
        "PCA keeps two of ten directions. Which share of the variance do the other eight have? Then take the root.",
        (
            (0.589, "That is the share of the variance that is lost. The relative error is its square root."),
            (0.641, "That is the root of the share that is kept. Asked is what is lost."),
            (0.72, "The standard deviations fall in equal steps."),
        ),
        within=0.05,
    ),
    "ex-family-missing": Question(
        "The mean of estimate minus rating where nothing was observed, within 5%:",
        0.833,
        "Fit the liked entries only, and average the differences over all other entries.",
        (
            (-0.833, "Estimate minus rating, not the other way round."),
            (1.02, "Are these k = 5 and a penalty of 1?"),
            (0.60, "Did you also apply the mask of known ratings? Every rating above 3 is observed here."),
        ),
        within=0.05,
    ),
    # Bound the error
    "ex-jl-hundred": Question(
        "k by the theorem, then k by the exact tail:",
        (1593, 1199),
        "Put n(n - 1)/delta = 990,000 into the theorem. For the exact tail, let min_dim compute.",
        (
            ((1592, 1199), "1592.94 must be rounded up: with 1592 the bound does not hold."),
            ((1381, 1199), "The cube is missing: half of the square of epsilon minus a third of its cube."),
            ((1593, 1593), "The second number is what min_dim gives without naming a bound."),
        ),
    ),
    "ex-jl-twice": Question(
        "Dimensions gained by doubling n at a tolerance of 0.1, then the factor for half the tolerance:",
        (2 * log(4) / (0.1**2 / 2 - 0.1**3 / 3), 4),
        "Write down the formula for k at n and at 2n, and subtract. A small tolerance enters squared.",
        (
            ((2 * log(2) / (0.1**2 / 2 - 0.1**3 / 3), 4), "Twice the points make four times the pairs."),
            ((2 * log(4) / (0.1**2 / 2 - 0.1**3 / 3), 2), "The tolerance enters squared."),
            ((2, 4), "The number of points stands under a logarithm: k does not double."),
        ),
        within=0.01,
    ),
    "ex-jl-orthogonal": Question(
        "Mean, standard deviation, share beyond 0.1:",
        (0, 0.05, 0.0455),
        "The mean is the inner product of the vectors themselves, the variance is 1/k for orthogonal unit vectors.",
        (
            ((0, 1 / 400, 0.0455), "That is the variance. The standard deviation is its square root."),
            ((0, 0.05, 0.0228), "That is one side. In absolute value both sides count."),
            ((0, 0.05, 0.9545), "That is the share within two standard deviations."),
        ),
        within=0.03,
    ),
    "ex-jl-kappa": Question(
        "Kappa for P = I, kappa for equal weights and values, then the least k that beats zero in the first case:",
        (20, 1, 402),
        "In both cases PV = V. What is left is the Frobenius norm of P.",
        (
            ((20, 1, 401), "At k = 401 the two errors are equal. Asked is where random mixtures are better."),
            ((400, 1, 402), "The Frobenius norm is the root of the sum of the squares."),
            ((20, 20, 402), "Each of the 160,000 entries of the second P is 1/400: add up their squares."),
        ),
    ),
    "ex-jl-adversary": Question(
        "Independent vectors lost, for k = 400 and d = 1000, at least:",
        600,
        "The rank of R is at most the number of its rows. What is the rest?",
        (
            (1, "One is sure, but there are more: the rank is at most 400 and there are 1000 columns."),
            (400, "At most 400 directions are kept. Asked are those that are lost."),
        ),
    ),
    # Score with fewer numbers
    "ex-bilinear-hand": Question(
        "The score, the numbers in the factors, the numbers in the table:",
        (-4, 5, 6),
        "Compute Us and Vh, one number each, and multiply. Then count entries.",
        (
            ((4, 5, 6), "Us is 2 - 3: mind the sign."),
            ((-4, 6, 5), "The factors hold 2 + 3 numbers, the table 2 times 3."),
            ((3, 5, 6), "Us and Vh are multiplied, not added."),
        ),
    ),
    "ex-bilinear-million": Question(
        "The three counts, written like 3.2e5, within 2%:",
        (768**2 + 768e6, 768 * 64 + (768 * 64 + 64) * 1e6, 768 * 64 + 64e6),
        "What depends on the query alone is computed once; what depends on a document, a million times.",
        (
            ((768**2 * 1e6 + 768e6, 768 * 64 + (768 * 64 + 64) * 1e6, 768 * 64 + 64e6), "Count the row s W once."),
            ((768**2 + 768e6, 768 * 64 + 64e6, 768 * 64 + 64e6), "Without storing them, each Vh costs 768 times 64."),
        ),
        within=0.02,
    ),
    "ex-bilinear-nuclear": Question(
        "The rank of M, the sum at M, the sum at diag(3, 0):",
        (1, 3.875, 5),
        "Lower 3 and 1 by 1.5, to zero at most. Then half the squared distance, plus 1.5 times what is left.",
        (
            ((2, 3.875, 5), "The second singular value is lowered from 1 to zero, not below."),
            ((1, 7.75, 10), "The squared distance has a factor of one half in front, and the penalty a factor of 1.5."),
            ((1, 1.625, 0.5), "That is the distance alone. The penalty is missing."),
        ),
        within=0.001,
    ),
    "ex-bilinear-direction": Question(
        "The squared error of the best rank-1 table, then of the cut of W itself:",
        (0, 1),
        "Queries always have a zero first entry. Which row of a table do they meet?",
        (
            ((1, 1), "The best table for the scores need not be the cut of W: it may keep the second row instead."),
            ((0, 2), "The cut keeps the first row and loses the second, whose entry is 1."),
            ((0, 0), "The cut of W keeps only its first row, which no query ever meets."),
        ),
    ),
    "ex-bilinear-saddle": Question(
        "For S = diag(3, 1): t squared at the lowest J along that line, then J there:",
        (3, 1 / 2),
        "Write J as a function of t squared; it is a parabola.",
        (
            ((sqrt(3), 1 / 2), "That is t. Asked is its square."),
            ((3, 1), "J has a factor of one half in front."),
            ((3, 0), "The second singular value is not touched: it stays in the error."),
        ),
        within=0.01,
    ),
    # Look at everything
    "ex-attention-hand": Question(
        "The two weights, the output for 3, the output for 7:",
        (1 / 5, 4 / 5, 4, 4),
        "The feature of a negative number is its exponential, of a positive one the number plus 1.",
        (
            ((1 / 3, 2 / 3, 10 / 3, 10 / 3), "The feature of 1 is 1 + 1."),
            ((1 / 5, 4 / 5, 16, 32), "The feature of the query stands in the sum of the weights, too, and cancels."),
            ((4 / 5, 1 / 5, 1, 1), "The key 1 has the larger feature, so the second weight is the larger."),
        ),
        within=0.01,
    ),
    "ex-attention-limits": Question(
        "The rank at sharpness zero, then at infinity if 8 queries share 3 best keys:",
        (1, 3),
        "What does a row tend to when all of its logits agree? And when one of them wins?",
        (
            ((1, 8), "Rows with the same best key are the same row."),
            ((0, 3), "Each row still adds up to 1."),
            ((8, 3), "All rows tend to the same one."),
        ),
    ),
    "ex-attention-length": Question(
        "The factor for k = 64, then for k = n/4:",
        (9.8, 0.75),
        "Divide the error at n = 512 by that at n = 128: rank 64 both times, then rank 128 by rank 32.",
        (
            ((0.102, 1.34), "That is the other way round: the error at 128 by that at 512."),
            ((9.8, 1.34), "The second factor is the other way round: rank 128 at n = 512 comes first."),
        ),
        within=0.03,
    ),
    "ex-attention-features": Question(
        "The number of features, written like 3.2e5, within 2%:",
        (exp(16) - 1) / 0.01,
        "Ten percent is the standard deviation: its square is (exp(|x + y|^2) - 1)/m.",
        (
            ((exp(16) - 1) / 0.1, "Ten percent is the standard deviation. The variance is 0.01."),
            ((exp(8) - 1) / 0.01, "The variance has a term for the query and one for the key: the sum is 16, not 8."),
        ),
        within=0.02,
    ),
    "ex-attention-polynomial": Question(
        "The most for d = 1, then for d = 2:",
        (8, 36),
        "Find the least p whose remainder, times e, is at most a thousandth. Then count monomials of degree at most p.",
        (
            ((7, 28), "Degrees run from 0 to p: that is one more for d = 1."),
            ((9, 45), "7! is 5040 and 8! is 40320: the degree 7 is enough."),
            ((8, 64), "For d = 2 the degrees of both entries together are at most p."),
        ),
    ),
    "ex-attention-vandermonde": Question(
        "The determinant for t = 1, 2, 4:",
        48,
        "Take one t out of each row; then multiply the differences, later minus earlier.",
        (
            (6, "Each row is its t times a row of the usual Vandermonde matrix: multiply by 1, 2 and 4, too."),
            (-48, "Later minus earlier: all differences are positive here."),
            (8, "That is the product of the t. The differences are missing."),
        ),
    ),
    # Project the sequence
    "ex-linformer-mean": Question(
        "The sum of each column of F, for n = 12 and k = 3:",
        1 / 4,
        "Compare the factor of each value vector: 1/n on one side, a column sum over k on the other.",
        (
            (1, "Those are the rows of an average. A column of F says how often its token is counted."),
            (4, "The other way round: k columns share n tokens."),
            (1 / 12, "Linformer divides by k as well: the column sum over 3 must be 1/12."),
        ),
        within=0.01,
    ),
    "ex-linformer-crossover": Question(
        "The first length that saves, in both cases:",
        (304, 138),
        "Set the operations of the two layers equal, divide by 4D, and solve the quadratic equation for n.",
        (
            ((303, 137), "Just below the root nothing is saved yet: round up."),
            ((512, 256), "That counts the weights alone. The keys and values go through fewer weights, too."),
        ),
    ),
    "ex-linformer-half": Question(
        "The second mixture and the result, both as multiples of c:",
        (sqrt(1 / 2), (1 + sqrt(1 / 2) / 2) / 1.5),
        "Four of eight tokens are real. The mixture is divided by the root of that share, and votes with the share.",
        (
            ((1 / 2, (1 + sqrt(1 / 2) / 2) / 1.5), "That is the mixture before the rule divides it by its norm."),
            ((1, 1), "A mean would give that. The rule divides by the root of the share, not by the share."),
            ((sqrt(1 / 2), (1 + sqrt(1 / 2)) / 2), "The second window has only half a vote."),
        ),
        within=0.01,
    ),
    "ex-linformer-causal": Question(
        "Mixtures that token 10 may use, with windows of 4 tokens:",
        2,
        "A mixture may be used when its last token is not in the future.",
        (
            (3, "The third window holds the tokens 9 to 12, and 11 and 12 are the future."),
            (1, "The first two windows end at tokens 4 and 8: both are past."),
        ),
    ),
    "ex-linformer-copy": Question(
        "The least relative error for n = 100 and k = 36 (the root of the bound):",
        0.8,
        "The bound speaks of squared norms. Divide, then take the root.",
        (
            (0.64, "That is the share of the squared norm. The relative error is its root."),
            (0.6, "That is the root of what is kept. Asked is the root of what is lost."),
        ),
        within=0.01,
    ),
}

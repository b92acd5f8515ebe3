"""What the exercises ask for, what is right, and what many people answer first.

A number is written as the formula that it comes from, if there is one. An integer must be met exactly; any other number
to three digits, unless its question says how near.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import exp, floor, log, log10, sqrt
from typing import NamedTuple

ANOTHER_ORDER = "These are the right numbers, but in another order."
COUNTED = dict(enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"), start=1))

Answer = float | tuple[float, ...]


def numbers_of(answer: Answer) -> tuple[float, ...]:
    """Return one number or several as several."""
    return answer if isinstance(answer, tuple) else (answer,)


class Number(NamedTuple):
    """One number that is asked for, and how near an answer must come to it."""

    name: str
    right: float
    whole: bool
    digits: int
    within: float  # relative; where it is zero, the digits count
    rounds: bool = False  # whether the solution has a fraction that it rounds up or down

    @property
    def rule(self) -> str:
        """How near is near enough, in words that stand beside the field."""
        if self.whole:
            return "a whole number"
        if self.within:
            return f"within {100 * self.within:g}%"
        return f"to {self.digits} {'digit' if self.digits == 1 else 'digits'}"

    def slack(self, value: float) -> float:
        """Return how far from ``value`` an answer may lie: one unit of the last digit asked for."""
        if self.whole or self.within:
            return self.within * abs(value)
        return _last_digit(value, self.digits)

    def accepts(self, given: float) -> bool:
        """Whether an answer is near enough."""
        return near(given, self.right, self.slack(self.right))

    def is_common(self, given: float, wrong: float) -> bool:
        """Whether an answer is a certain wrong one."""
        return near(given, wrong, self.common_slack(wrong))

    def common_slack(self, wrong: float) -> float:
        """Return how far from a certain wrong answer another may lie that means the same."""
        if self.whole:
            return 0.0 if wrong == floor(wrong) else _last_digit(wrong, 3)
        return max(self.slack(wrong), 0.01 * abs(wrong))

    @property
    def nearly(self) -> float:
        """How far off an answer may be for us to take it for the right one, rounded too early."""
        if self.whole:
            return float(self.rounds)
        return 0.03 * abs(self.right)

    @property
    def fewer_digits(self) -> list[float]:
        """The right number with fewer digits than asked for."""
        judged_by_digits = not (self.whole or self.within)
        return [float(f"{self.right:.{kept}e}") for kept in range(self.digits - 1)] if judged_by_digits else []

    @property
    def rounded_words(self) -> str:
        """What to say of the right number, rounded too early."""
        if self.whole:
            return "The answer is a whole number: round yours up or down, as the question needs."
        if self.within:
            return f"You are near, but not {self.rule}. Round only at the end."
        digits = "digit" if self.digits == 1 else "digits"
        return f"You are near: give {COUNTED[self.digits]} {digits}, and round only at the end."

    def is_rounded(self, given: float) -> bool:
        """Whether an answer looks like the right one, rounded too early or not at all."""
        if self.whole:
            return given != floor(given) and abs(given - self.right) < self.nearly
        return abs(given - self.right) <= self.nearly or given in self.fewer_digits


def near(given: float, wanted: float, slack: float) -> bool:
    """Whether a number is near enough; without slack it must be met exactly, but for the rounding of a fraction."""
    if slack:
        return abs(given - wanted) <= slack * (1 + 1e-9)
    if given != floor(given):
        return abs(given - wanted) <= 1e-9
    return (int(Decimal(repr(given))) if isinstance(given, float) else given) == wanted  # 1e30 is written for 10**30


def _last_digit(value: float, digits: int) -> float:
    """Return one unit of the last of so many digits."""
    return float(10.0 ** ((floor(log10(abs(value))) + 1 if value else 0) - digits))


class Question(NamedTuple):
    """What is asked, what is right, and hints: for certain wrong answers, and for every other one."""

    ask: str | tuple[str, ...]  # what each number is called
    right: Answer
    otherwise: str
    hints: tuple[tuple[Answer, str], ...]
    within: float = 0.0
    digits: int = 3
    note: str = ""  # how the numbers may be written
    rounds: tuple[int, ...] = ()  # places of the whole numbers that the solution rounds

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers asked for, in their order."""
        names = (self.ask,) if isinstance(self.ask, str) else self.ask
        return tuple(
            Number(
                name, right, isinstance(right, int) and not self.within * right, self.digits, self.within,
                i in self.rounds,
            )
            for i, (name, right) in enumerate(zip(names, numbers_of(self.right), strict=True))
        )  # fmt: skip

    def judge(self, given: Sequence[float | None]) -> list[str | None]:
        """Say of each number why it is not right: nothing at all if it is, nothing yet if it is missing."""
        wrong = [i for i, (g, n) in enumerate(zip(given, self.numbers, strict=True)) if g is None or not n.accepts(g)]
        said: list[str | None] = [None] * len(given)
        for i in wrong:
            said[i] = self._hint(given, i)
        return said

    def unreachable(self) -> Answer | None:
        """Return an answer that has a hint, but is taken for right or gets another hint; None if there is none."""
        return next((wrong for wrong, hint in self.hints if hint not in self.judge(numbers_of(wrong))), None)

    def _hint(self, given: Sequence[float | None], i: int) -> str:
        """Return the words for a wrong number: of the whole answer first, then of the number alone."""
        number, value = self.numbers[i], given[i]
        if value is None:
            return ""
        explained = [(numbers_of(wrong), hint) for wrong, hint in self.hints]
        explained = [(wrong, hint) for wrong, hint in explained if not number.accepts(wrong[i])]
        whole = [(wrong, hint) for wrong, hint in explained if self._is(given, wrong)]
        if whole:
            return min(whole, key=lambda one: _apart(given, one[0]))[1]
        swapped = self._is(_sorted(given), sorted(numbers_of(self.right)), sorted(self.numbers, key=lambda n: n.right))
        if swapped and not number.is_common(value, number.right):
            return ANOTHER_ORDER
        own = [(wrong, hint) for wrong, hint in explained if number.is_common(value, wrong[i])]
        if own:  # of several near ones the nearest, and of several equal ones the first
            return min(own, key=lambda one: abs(value - one[0][i]))[1]
        return number.rounded_words if number.is_rounded(value) else self.otherwise

    def _is(
        self, given: Sequence[float | None], wrong: Sequence[float], numbers: Sequence[Number] | None = None
    ) -> bool:
        together = zip(given, wrong, numbers or self.numbers, strict=True)
        return all(g is not None and n.is_common(g, w) for g, w, n in together)


def _apart(given: Sequence[float | None], wrong: Sequence[float]) -> float:
    return sum(abs((g or 0) - w) / (abs(w) or 1) for g, w in zip(given, wrong, strict=True))


def _sorted(given: Sequence[float | None]) -> list[float | None]:
    return sorted(given, key=lambda g: float("inf") if g is None else g)


QUESTIONS = {
    # Count the directions
    "ex-rank-hand": Question(
        "The rank",
        2,
        "Subtract twice the first row from the second and three times the first from the third. What is left?",
        (
            (3, "After the two subtractions the second and the third row are the same: one of them adds nothing."),
            (1, "The second row is not twice the first: look at the last column."),
        ),
    ),
    "ex-rank-tenth": Question(
        "The largest rank",
        204,
        "Two factors of rank k hold k(m + n) numbers. A tenth of the table is 4096 times 409.6.",
        (
            (204.8, "A rank is a whole number: round down."),
            (205, "Rank 205 needs a little more than a tenth: round down."),
            (409, "Did you count one factor? There are two, each of 4096 k numbers."),
            (2048, "That is where factors stop saving at all. The question asks for a tenth."),
        ),
        rounds=(0,),
    ),
    "ex-rank-build": Question(
        ("Numbers in two full factors", "Degrees of freedom"),
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
        "The multiple",
        1 / 2,
        "Square c times the matrix, and use that the product of W with its transpose is 2.",
        (
            (1, "The square of the matrix is twice the matrix, so it is not a projection yet."),
            (2, "By 2 the square grows too large: divide instead."),
            (1 / sqrt(2), "That makes W a unit vector. The matrix holds W twice, so it is divided by the square."),
        ),
    ),
    "ex-rank-gram": Question(
        "Independent solutions for the 6 by 4 matrix",
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
        ("Relative Frobenius error", "Spectral error", "Smallest k"),
        (sqrt(5 / 55), 2, 3),
        "Square the singular values. The Frobenius error takes all that are cut, the spectral error only the largest.",
        (
            ((5 / 55, 2, 3), "That is the share of the energy. The error is its square root."),
            ((sqrt(5), 2, 3), "Relative means divided by the norm of the whole matrix, the square root of 55."),
            ((sqrt(50 / 55), 2, 3), "That is the root of the share that is kept. The error is what is lost."),
            (
                (sqrt(5 / 55), sqrt(5), 3),
                "That is the Frobenius norm of what is cut. The spectral norm is its largest value.",
            ),
            ((sqrt(5 / 55), 2 / 5, 3), "Only the first error is relative. This one is not divided by anything."),
            ((sqrt(5 / 55), 1, 3), "Which singular values are dropped at rank 3? Take the largest of them."),
            (
                (sqrt(5 / 55), 2, 4),
                "Energy is a sum of squares: add them from the top until you pass 90% of their sum.",
            ),
            ((sqrt(5 / 55), 2, 2), "Two keep 41 of 55, which is less than 90%."),
        ),
    ),
    "ex-svd-hand": Question(
        ("The larger singular value", "The smaller one"),
        ((sqrt(5) + 1) / 2, (sqrt(5) - 1) / 2),
        "They are the square roots of the eigenvalues of the transpose times the matrix.",
        (
            (((3 + sqrt(5)) / 2, (3 - sqrt(5)) / 2), "Those are their squares, the eigenvalues of the Gram matrix."),
            ((1, 1), "Those are the eigenvalues of the matrix itself, which is not symmetric."),
            (((sqrt(5) - 1) / 2, (sqrt(5) + 1) / 2), "The larger one comes first."),
        ),
    ),
    "ex-svd-center": Question(
        "The first uncentered singular value afterwards",
        35_598,
        "The constant alone has rank 1. What is the Frobenius norm of 1797 rows of 64 hundreds?",
        (
            (2_193, "That is its value before. PCA subtracts the constant again, but nothing is subtracted here."),
            (2_293, "The constant adds 100 to each of 115,008 entries, and much more than 100 to the singular value."),
            (100 * sqrt(1797 * 64), "That is the singular value of the constant alone. The digits are still there."),
            (
                sqrt(100**2 * 1797 * 64 + 2_193**2),
                "Squares add up where two layers are orthogonal. The constant and the mean digit are nearly parallel.",
            ),
            (
                100 * sqrt(1797 * 64) + 2_193,
                "Norms add up where two layers are parallel. The first layer of the digits is not quite constant.",
            ),
        ),
        within=0.005,
    ),
    "ex-svd-noise": Question(
        ("Kept by the threshold", "Kept by 90% of the energy"),
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
    "ex-family-which": Question(
        ("The shop", "The doctor", "The chemist", "Methods with one answer for all"),
        (5, 2, 3, 2),
        "What is given and what is asked: missing entries, classes, sums of parts? Look at the table of the methods.",
        (
            ((1, 2, 3, 2), "PCA needs every entry of the table, and most ratings are missing."),
            ((5, 1, 3, 2), "PCA does not know the diagnoses, and the doctor does."),
            ((5, 2, 1, 2), "PCA may subtract, but there is no negative amount of a substance."),
            ((5, 2, 3, 3), "NMF has other factors from other starts."),
        ),
    ),
    "ex-family-axis": Question(
        ("First entry of w", "Second entry of w", "Axes for three classes", "Axes with a ratio above zero, on a line"),
        (1, 4, 2, 1),
        "Invert the scatter and multiply. The means, seen from their common mean, span one dimension less.",
        (
            ((-1, -4, 2, 1), "An axis has no sign, so one had to be chosen: the first number is positive."),
            ((1 / 2, 2, 2, 1), "The direction is right. Multiply by 2, so that both numbers are whole."),
            ((2, 8, 2, 1), "The direction is right, but both numbers can be divided by 2."),
            ((1, 1, 2, 1), "That is the difference of the means. It ignores how the points scatter."),
            ((4, 1, 2, 1), "Multiply by the inverse of the scatter: a wide spread counts for less."),
            ((1, 4, 3, 1), "Three means minus their common mean add up to zero: they span two dimensions at most."),
            ((1, 4, 2, 2), "Means on a line, minus their common mean, all point along that line."),
            ((1, 4, 2, 0), "Along the line the means still differ."),
        ),
    ),
    "ex-family-half": Question(
        ("p without the penalty", "p with the penalty"),
        (9 / 5, 9 / 10),
        "Set the derivative of the squared errors plus the penalty to zero.",
        (
            ((3, 9 / 8), "Divide by the sum of the squares of q, which is 5, not by the sum of q."),
            ((9 / 5, 9 / 25), "The penalty is added to the sum of the squares, not multiplied by it."),
            ((9 / 5, 9 / 30), "The penalty is added as it is, not squared."),
            ((9 / 5, 9 / 15), "Both terms are squares, and the 2 of their derivatives cancels."),
            ((9 / 5, 18 / 5), "Those are the two estimates without the penalty. The question asks for p, twice."),
        ),
    ),
    "ex-family-multiply": Question(
        ("First entry of H", "Second entry of H", "The squared error before", "The squared error after"),
        (2, 3, 14, 4),
        "Add up the columns of X for the numerator. For the denominator, do the same with WH.",
        (
            ((4, 6, 14, 4), "That is the numerator. Divide by the sums of the columns of WH, and multiply by H."),
            ((2, 3, 7, 2), "The squared error is the plain sum of squares, without a factor of one half."),
            ((0.5, 1 / 3, 14, 4), "The fraction is upside down: the sums of X stand above."),
        ),
    ),
    "ex-family-choose": Question(
        ("k by the hidden ratings", "k by the known ratings"),
        (3, 6),
        "Fit with a penalty of 1 for each k, and compare the two mean squared errors.",
        (
            ((2, 6), "Nobody has subtracted the mean: it takes a number as well."),
            ((5, 6), "There are two tastes now, not four."),
            ((3, 3), "More numbers always fit better what is known."),
        ),
    ),
    "ex-family-cloud": Question(
        "The relative error of PCA on the new points",
        0.768,  # the root of the share of variance in eight of the ten directions
        "PCA keeps two of ten directions. Which share of the variance do the other eight have? Then take the root.",
        (
            (0.589, "That is the share of the variance that is lost. The relative error is its square root."),
            (0.641, "That is the root of the share that is kept. The error is what is lost."),
            (0.72, "The standard deviations fall in equal steps."),
        ),
        within=0.05,
    ),
    # Bound the error
    "ex-jl-hundred": Question(
        ("k by the formula", "k by the exact law"),
        (1593, 1199),
        "Put n(n - 1)/delta = 990,000 into the formula. For the exact law, let min_dim compute.",
        (
            ((1592, 1199), "1592.94 must be rounded up: with 1592 the bound does not hold."),
            ((1513, 1199), "Each pair can fail on two sides: 9,900 for 4,950 pairs."),
            ((1381, 1199), "The cube is missing: half of the square of epsilon minus a third of its cube."),
            ((1593, 1593), "The second number is what min_dim gives without naming a bound."),
        ),
        rounds=(0, 1),
    ),
    "ex-jl-twice": Question(
        ("Rows added by doubling n at a tolerance of 0.1", "The factor for half the tolerance"),
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
        ("Mean", "Standard deviation", "Share beyond 0.1"),
        (0.0, 0.05, 0.0455),
        "The mean is the inner product of the vectors themselves, the variance is 1/k for orthogonal unit vectors.",
        (
            ((0, 1 / 400, 0.0455), "That is the variance. The standard deviation is its square root."),
            ((0, 0.05, 0.0228), "That is one side. In absolute value both sides count."),
            ((0, 0.05, 0.9545), "That is the share within two standard deviations."),
        ),
        digits=2,
        note="The share as 0.12 or as 12%.",
    ),
    "ex-jl-adversary": Question(
        "Independent vectors lost, for k = 400 and d = 1000, at least",
        600,
        "The rank of R is at most the number of its rows. What is the rest?",
        (
            (1, "One is sure, but there are more: the rank is at most 400 and there are 1000 columns."),
            (400, "At most 400 directions are kept. The question is about those that are lost."),
        ),
    ),
    "ex-jl-kappa": Question(
        ("Kappa for the identity", "Kappa for equal rows", "The least k that beats zero for the identity"),
        (20, 1, 402),
        "In both cases AB = B. What is left is the Frobenius norm of A.",
        (
            ((20, 1, 401), "At k = 401 the two errors are equal. The question is where the random map is better."),
            ((400, 1, 402), "The Frobenius norm is the root of the sum of the squares."),
            ((20, 20, 402), "Each of the 160,000 entries of the second A is 1/400: add up their squares."),
        ),
    ),
    # Score with fewer numbers
    "ex-bilinear-hand": Question(
        ("The score", "Numbers in the factors", "Numbers in the table"),
        (-4, 5, 6),
        "Compute Us and Vh, one number each, and multiply. Then count entries.",
        (
            ((4, 5, 6), "Us is 2 - 3: mind the sign."),
            ((-4, 6, 5), "The factors hold 2 + 3 numbers, the table 2 times 3."),
            ((3, 5, 6), "Us and Vh are multiplied, not added."),
        ),
    ),
    "ex-bilinear-recognize": Question(
        tuple(f"Rank of W in ({letter}), or 0" for letter in "abcd"),
        (3, 0, 2, 1),
        "Is it a sum of products of one number of s and one of h? Then write the weights into a table.",
        (
            ((3, 3, 2, 1), "A cosine is divided by both lengths: it does not double when s doubles."),
            ((1, 0, 2, 1), "The dot product has the identity for its table."),
            ((3, 0, 2, 4), "Four products, but the table is one column times one row."),
        ),
    ),
    "ex-bilinear-million": Question(
        ("Multiplications with the full table", "With the factors", "With every Vh stored"),
        (768**2 + 768e6, 768 * 64 + (768 * 64 + 64) * 1e6, 768 * 64 + 64e6),
        "Us depends on the query alone: it is computed once. Vh depends on a document: it is computed a million times.",
        (
            ((768**2 * 1e6 + 768e6, 768 * 64 + (768 * 64 + 64) * 1e6, 768 * 64 + 64e6), "Count the row s W once."),
            ((768**2 + 768e6, 768 * 64 + 64e6, 768 * 64 + 64e6), "Without storing them, each Vh costs 768 times 64."),
            (
                (768**2 + 768e6, 2 * 768 * 64 + 768e6, 768 * 64 + 64e6),
                "That is another order, which takes the row Us times V first. The question makes each Vh anew.",
            ),
        ),
        within=0.02,
        note="A large number as 3.2e5 or as 3.2*10^5.",
    ),
    "ex-bilinear-direction": Question(
        ("Squared error of the best rank-1 table", "That of the cut of W"),
        (0, 1),
        "Queries always have a zero first entry. Which row of a table do they meet?",
        (
            ((1, 1), "The best table for the scores need not be the cut of W: it may keep the second row instead."),
            ((0, 2), "The cut keeps the first row and loses the second, whose entry is 1."),
            ((0, 0), "The cut of W keeps only its first row, which no query ever meets."),
        ),
    ),
    "ex-bilinear-penalty": Question(
        ("Rank of M", "Distance of M", "Distance of the cut to rank 2", "Distance of S itself"),
        (2, sqrt(2), 0.0, 2.0),
        "For M lower each value by 1, and none below zero. The cut keeps the first two. Compare both with the truth.",
        (
            ((2, 2, 0, 4), "Those are the squared distances; take their roots."),
            ((2, sqrt(2), sqrt(2), 2), "The cut lowers nothing: it keeps 5 and 3, and drops the rest."),
            ((2, sqrt(2), 2, 2), "The noise of S is what the cut drops."),
            ((2, 0, 0, 2), "M is shortened as well: its 5 and its 3 are lowered, too."),
            ((6, sqrt(2), 0, 2), "Singular values of 1 are lowered to 0 and no longer count."),
        ),
    ),
    # Look at everything
    "ex-attention-hand": Question(
        ("Softmax, output for 1", "Softmax, output for 2", "Linear, output for 1", "Linear, output for 2"),
        (5 * exp(1) / (exp(1) + 1 / 2), 5 * exp(2) / (exp(2) + 1 / 4), 4.0, 4.0),
        "Softmax weighs by exp(query times key). A feature is exp(x) of a negative number, x + 1 of a positive one.",
        (
            (
                (5 * exp(1) / (exp(1) + 2), 5 * exp(2) / (exp(2) + 4), 4, 4),
                "The first key is minus ln 2, and its exponential is one half.",
            ),
            (
                (5 * exp(1) / (exp(1) + 1 / 2), 5 * exp(2) / (exp(2) + 1 / 4), 10 / 3, 10 / 3),
                "The feature of 1 is 1 + 1.",
            ),
            (
                (5 * exp(1) / (exp(1) + 1 / 2), 5 * exp(2) / (exp(2) + 1 / 4), 8, 12),
                "The feature of the query stands in the sum of the weights, too, and cancels.",
            ),
            ((5 / (2 * exp(1) + 1), 5 / (4 * exp(2) + 1), 1, 1), "The key 1 gets the larger weight. Its value is 5."),
        ),
    ),
    "ex-attention-limits": Question(
        ("The rank at sharpness zero", "The rank at infinity, 8 queries sharing 3 best keys"),
        (1, 3),
        "What does a row tend to when all of its logits agree? And when one of them wins?",
        (
            ((1, 8), "Rows with the same best key are the same row."),
            ((0, 3), "Each row still adds up to 1."),
            ((8, 3), "All rows tend to the same one."),
        ),
    ),
    "ex-attention-length": Question(
        ("The factor for k = 64", "The factor for k = n/4"),
        (9.8, 0.75),
        "Divide the error at n = 512 by that at n = 128: rank 64 both times, then rank 128 by rank 32.",
        (
            ((0.102, 1.34), "That is the other way round: the error at 128 by that at 512."),
            ((9.8, 1.34), "The second factor is the other way round: rank 128 at n = 512 comes first."),
        ),
        within=0.03,
    ),
    "ex-attention-derive": Question(
        ("The estimate", "The true value", "The relative standard deviation, m = 2"),
        ((exp(-2.5) + exp(0.5)) / 2, exp(2), sqrt((exp(9) - 1) / 2)),
        "Multiply exp(wx) and exp(wy), and divide out on each side the factor that belongs to it alone. Then average.",
        (
            ((exp(-2.5) + exp(0.5), exp(2), sqrt((exp(9) - 1) / 2)), "That is the sum of the two products."),
            (
                ((1 + exp(3)) / 2, exp(2), sqrt((exp(9) - 1) / 2)),
                "The factors exp(-x^2/2) and exp(-y^2/2) are missing.",
            ),
            (((exp(-2.5) + exp(0.5)) / 2, exp(2), sqrt(exp(9) - 1)), "That is for one draw. Here are two."),
            (((exp(-2.5) + exp(0.5)) / 2, exp(2), (exp(9) - 1) / 2), "That is the variance. Take its root."),
        ),
    ),
    "ex-attention-polynomial": Question(
        ("The most for d = 1", "The most for d = 2"),
        (8, 36),
        "Find the least degree whose remainder, times e, is at most 1/5000. Then count the monomials up to it.",
        (
            ((7, 28), "After degree 6 the remainder, times e, is still above 1/5000; and degrees start from 0."),
            ((9, 45), "8! is 40,320, which is above 5000 times the square of e: the degree 7 is enough."),
            ((8, 64), "For d = 2 the degrees of both entries together are at most 7."),
        ),
    ),
    # Project the sequence
    "ex-linformer-mean": Question(
        "The sum of each column of F, for n = 12 and k = 3",
        1 / 4,
        "Compare the factor of each value vector: 1/n on one side, a column sum over k on the other.",
        (
            (1, "Those are the rows of an average. A column of F says how often its token is counted."),
            (4, "The other way round: k columns share n tokens."),
            (1 / 12, "Linformer divides by k as well: the column sum over 3 must be 1/12."),
        ),
    ),
    "ex-linformer-crossover": Question(
        ("The first length that saves for D = 512", "The first for D = 768"),
        (304, 138),
        "Set the operations of the two layers equal, divide by 4D, and solve the quadratic equation for n.",
        (
            ((303, 137), "Just below the root nothing is saved yet: round up."),
            ((512, 256), "That counts the weights alone. The keys and values go through fewer weights, too."),
        ),
        rounds=(0, 1),
    ),
    "ex-linformer-half": Question(
        (
            "The second mixture by the norm rule, as a multiple of c",
            "The result by the norm rule, as a multiple of c",
            "The result by the sum rule, as a multiple of c",
        ),
        (sqrt(1 / 2), (1 + sqrt(1 / 2) / 2) / 1.5, 1.0),
        "Four of eight tokens are real. Divide by the root of that share, or by the share; it is also the vote.",
        (
            ((1 / 2, 5 / 6, 5 / 6), "That is the mixture before a rule scales it up."),
            ((1.0, 1.0, (1 + sqrt(1 / 2) / 2) / 1.5), "The sum rule gives that. The norm rule divides by the root."),
            ((sqrt(1 / 2), (1 + sqrt(1 / 2)) / 2, 1.0), "The second window has only half a vote."),
        ),
    ),
    "ex-linformer-causal": Question(
        "Mixtures that token 10 may use, with windows of 4 tokens",
        2,
        "A mixture may be used when its last token is not in the future.",
        (
            (3, "The third window holds the tokens 9 to 12, and 11 and 12 are the future."),
            (1, "The first two windows end at tokens 4 and 8: both are past."),
        ),
    ),
    "ex-linformer-break": Question(
        ("The least ε if only the first row is not zero", "The least ε if V = I"),
        (1 / 2, sqrt(99) / 100),
        "One output serves all queries. Which one is nearest to everything that they want?",
        (
            (
                (1, sqrt(99) / 100),
                "That is what the output zero needs. Something between zero and the value is nearer to both.",
            ),
            ((0, sqrt(99) / 100), "The first query wants the value, and the others want zero. No output is both."),
            ((1 / 2, sqrt(99) / 10), "That is the error. Divide it by the norm of V, which is 10."),
            ((1 / 2, 1 / 10), "The output zero needs that much. The mean of the rows of V is a little nearer."),
        ),
    ),
    "ex-linformer-copy": Question(
        "The least relative error for n = 100 and k = 36 (the root of the bound)",
        0.8,
        "The bound speaks of squared norms. Divide, then take the root.",
        (
            (0.64, "That is the share of the squared norm. The relative error is its root."),
            (0.6, "That is the root of what is kept. The error is the root of what is lost."),
        ),
    ),
    # Caches and adapters
    "ex-caches-cache": Question(
        ("Numbers a token", "GiB"),
        (65536, 16),
        "A key and a value for each group in each layer; then two bytes a number.",
        (
            ((262144, 64), "The heads share: count groups of heads, not heads."),
            ((32768, 8), "Keys alone are half of it. The values are kept, too."),
            ((2048, 0.5), "That is one layer. There are 32."),
            ((65536, 8), "Sixteen bits are two bytes."),
            ((65536, 17.18), "That is in units of a billion bytes. A GiB has 2^30 bytes."),
            ((65536, 17), "That may be in units of a billion bytes. A GiB has 2^30 bytes."),
        ),
    ),
    "ex-caches-lora": Question(
        ("Numbers in the update", "Smallest rank that saves nothing", "Second row, first number", "Second number"),
        (241664, 2986, 2, 4),
        "Two factors of rank r hold r(m + n) numbers, the weight mn. The second row of BA is A times the second number "
        "of B.",
        (
            ((65536, 2986, 2, 4), "That is one factor, 16 rows of 4,096. The other has 16 columns of 11,008."),
            ((241664, 2985, 2, 4), "At rank 2,985 the factors still have a few numbers fewer: round up."),
            ((241664, 4096, 2, 4), "That is the largest rank there is. Factors stop saving before."),
            ((241664, 2986, 4, 7), "That is BA in full: half of it is added."),
            ((241664, 2986, 2, 3), "That is what is added. The second row of W is (0, 1)."),
        ),
        rounds=(1,),
    ),
    "ex-caches-absorb": Question(
        ("First number of the absorbed query", "Second number", "The score"),
        (4, 1, 11),
        "Multiply the rows of the matrix with q; then multiply what you have with c.",
        (
            ((2, 5, 1), "That is the transpose times q. The transpose makes keys of latents."),
            ((3, 5, 11), "That is the key. Bring the query to the latent instead."),
        ),
    ),
    "ex-caches-product": Question(
        ("Numbers in the product", "Numbers in the factors", "Width at which they are as many"),
        (786432, 262144, 384),
        "The product has a row for each of 1,536 numbers and a column for each of 512. Then it is a break-even rank.",
        (
            ((786432, 262144, 512), "Set d(1536 + 512) equal to 1536 times 512 and solve for the width d."),
            ((786432, 131072, 384), "Count both factors: 1536 times 128 and 512 times 128."),
        ),
    ),
    "ex-caches-whiten": Question(
        ("Error of the plain cut", "Error of the best one"),
        (16, 9),
        "The error is the square of what is cut, times how large its input is on average.",
        (
            ((4, 4), "Multiply each square with the mean square of its input."),
            ((8, 3), "Square the entry of the weight, too."),
            ((9, 16), "The plain cut keeps the larger entry, 3, and loses the other."),
        ),
    ),
    "ex-caches-trap": Question(
        ("Owed after 10 steps", "Second diagonal entry of what the other start sends"),
        (10, 1 / 5),
        "In the first case follow the vector Q. In the second, P is the direction of MQ.",
        (
            ((0, 1 / 5), "Nothing is sent of the second direction, so each step adds its 1 to what is owed."),
            ((9, 1 / 5), "Each of the ten steps leaves 1 behind."),
            ((10, 1), "That is all of it. What is sent is the projection of M onto one direction."),
        ),
    ),
    # States and theorems
    "ex-states-recall": Question(
        ("Relative error for 33 pairs", "Pairs at which it is 1", "Pairs that some state holds exactly"),
        (1 / 2, 129, 128),
        "The theorem gives the square: (t - 1)/d. The pair that is read does not disturb itself. And a state solves as "
        "many equations as a key has numbers.",
        (
            ((1 / 4, 129, 128), "That is the mean square. Take the root."),
            ((sqrt(33 / 128), 128, 128), "Of 33 pairs 32 are others. The pair that is read does not disturb itself."),
            ((1 / 2, 128, 128), "With 128 pairs 127 are others."),
            ((1 / 2, 129, 1), "A sum holds one pair exactly. The best state solves for all values at once."),
        ),
    ),
    "ex-states-matrix": Question(
        ("Row 3, column 1", "Row 4, column 2", "The determinant"),
        (6, 2, 0),
        "What is left at time i of what came at time j is the product of the numbers from time j + 1 to i.",
        (
            ((3, 6, 0), "The number of the first time is never used: begin with the one after the column's."),
            ((6, 2, 24), "Multiply the diagonal, and take the product of the other two entries off."),
            ((5, 3, 0), "What stays is multiplied at each step, not added."),
        ),
    ),
    "ex-states-delta": Question(
        ("Sum, first key", "Sum, second key", "Delta rule, first key", "Delta rule, second key"),
        (4, 2, 3, 0),
        "The inner product of the two keys is one half. What does each key read, and what is taken away?",
        (
            ((4, 0, 4, 0), "The keys are not orthogonal: each reads a part of what is written under the other."),
            ((4, 2, 4, 0), "What is taken away under the second key is missed by the first."),
            ((4, 2, 2, 0), "Two is taken away along the second key. The first key meets half of that."),
        ),
    ),
    "ex-states-which": Question(
        ("Rank of the logits", "Rank of their logarithmic softmax", "Rank of P", "Width of a head"),
        (512, 513, 2000, 99),
        "The logits are a product through the width. Softmax takes one number off each row. What bounds P itself?",
        (
            (
                (512, 512, 512, 99),
                "Softmax changes ranks: its logarithm has one more, and P is not bounded by the width.",
            ),
            ((512, 513, 513, 99), "The powers of e undo the bound: only the smaller side of the table is left."),
            ((512, 513, 50000, 99), "A table of 2,000 rows has no rank above 2,000."),
            ((512, 513, 2000, 100), "One less is enough: softmax does not notice the mean of a row."),
        ),
    ),
    "ex-states-half": Question(
        "The first n",
        405,
        "One half means that the n - 1 others weigh as much as the one, each at least exp(-6) as much.",
        (
            (404, "Then the others weigh 403 times exp(-6), still a little less than 1."),
            (403, "It is n - 1, not n, that must pass exp(6)."),
            (22, "The logits differ by up to 2b, which is 6, not 3."),
        ),
        rounds=(0,),
    ),
}

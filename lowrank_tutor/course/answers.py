"""The exercises of the book: what is asked, what is right, and hints for common wrong answers.

Importing the module registers them, so that :func:`~lowrank_tutor.kit.questions.check` knows their
names: ``from lowrank_tutor.course import check`` is the first line of every exercise.

>>> check("ex-rank-tenth", 204.8)
○ Not yet. A rank is a whole number: round down.
>>> check("ex-rank-tenth", 204)
✓ Right.
>>> check("ex-linformer-crossover", [304, 137])
✓ The first length that saves for D = 512: right.
○ The first for D = 768: not yet. Just below the root nothing is saved yet: round up.

A number is written as the formula it comes from, if there is one. An integer must be met exactly,
any other number to three digits unless its question says how near.
"""

from __future__ import annotations

from itertools import zip_longest
from math import exp, pi, sqrt
from typing import Any

from lowrank_tutor.kit.questions import check, exercises
from lowrank_tutor.kit.questions.judge import Question

__all__ = ["check"]


def _question(
    numbers: dict[str, float], otherwise: str, *hints: tuple[Any, ...], **how: Any
) -> Question:
    """Describe the answer of an exercise.

    ``numbers`` maps the name of each number to its right value. A hint is a wrong answer as far as
    its last number that is wrong, with ``...`` for those that are right, and then the words for it;
    ``otherwise`` serves all other wrong answers. ``how`` takes the last fields of `Question`.
    """
    right = tuple(numbers.values())
    known: Any = tuple(
        (tuple(r if w is ... else w for w, r in zip_longest(wrong, right, fillvalue=...)), words)
        for *wrong, words in hints
    )
    return Question(tuple(numbers), right, otherwise, known, **how)


IN_COLAB = "This takes code: run it in Colab, with the link below the title of the chapter."
QUESTIONS = {
    # Chapter 1, rank
    "ex-rank-tenth": _question(
        {"The largest rank": 204},
        "Two factors of rank k hold k(m + n) numbers. A tenth of the table is 4096 times 409.6.",
        (204.8, "A rank is a whole number: round down."),
        (205, "Rank 205 needs a little more than a tenth: round down."),
        (409, "Did you count one factor? There are two, each of 4096 k numbers."),
        (2048, "That is where factors stop saving at all. The question asks for a tenth."),
        rounds=(0,),
    ),
    "ex-rank-build": _question(
        {"Numbers in the two factors": 20, "Degrees of freedom": 16},
        "The factors are 5 by 2 and 2 by 5. Which changes of the factors leave the product "
        "unchanged?",
        (
            ...,
            20,
            "An invertible 2 by 2 matrix can move from one factor to the other without changing "
            "the product.",
        ),
        (16, "16 is the second number. The factors, written out in full, hold more."),
        (25, "25 is what the table holds. How many do the two factors hold?"),
        (
            ...,
            18,
            "What can move between the factors is a 2 by 2 matrix. How many entries does it have?",
        ),
    ),
    "ex-rank-projection": _question(
        {"The multiple": 1 / 2},
        "Square c times the matrix, and use that the product of F with its transpose is 2.",
        (1, "The square of the matrix is twice the matrix, so it is not a projection yet."),
        (2, "By 2 the square grows too large: divide instead."),
        (
            1 / sqrt(2),
            "That makes F a unit vector. The matrix holds F twice, so it is divided by the square.",
        ),
    ),
    # Chapter 2, SVD and PCA
    "ex-svd-hand": _question(
        {"The larger singular value": (sqrt(5) + 1) / 2, "The smaller one": (sqrt(5) - 1) / 2},
        "They are the square roots of the eigenvalues of the transpose times the matrix.",
        (
            (3 + sqrt(5)) / 2,
            (3 - sqrt(5)) / 2,
            "That is its square, an eigenvalue of the Gram matrix.",
        ),
        (1, 1, "That is an eigenvalue of the matrix itself, which is not symmetric."),
    ),
    "ex-svd-center": _question(
        {"The first uncentered singular value afterwards": 35_598},
        "The constant alone has rank 1. What is the Frobenius norm of 1797 rows of 64 hundreds?",
        (
            2_193,
            "That is its value before. PCA subtracts the constant again, but nothing is subtracted "
            "here.",
        ),
        (
            2_293,
            "The constant adds 100 to each of 115,008 entries, and much more than 100 to the "
            "singular value.",
        ),
        (
            100 * sqrt(1797 * 64),
            "That is the singular value of the constant alone. The digits are still there.",
        ),
        (
            sqrt(100**2 * 1797 * 64 + 2_193**2),
            "Squares add up where two sheets are orthogonal. No digit is orthogonal to the "
            "constant.",
        ),
        (
            100 * sqrt(1797 * 64) + 2_193,
            "Norms add up where two sheets are parallel. The first sheet of the digits is not "
            "quite constant.",
        ),
        within=0.005,
    ),
    "ex-svd-noise": _question(
        {"Kept by the threshold": 0, "Kept by 90% of the energy": 508},
        "Compare the threshold with the largest singular value of noise; count the energy of the "
        "simulated spectrum.",
        (
            ...,
            900,
            "The first singular values carry more than the last: 90% of the energy takes fewer "
            "than 90%.",
        ),
        (..., 0.508, "Count them; that is a share."),
        (..., 50.8, "Count them; that is a share, in percent."),
        (1, "Compute the threshold, and compare it with the sum of the roots of both sizes."),
        within=0.05,
        note=IN_COLAB,
    ),
    # Chapter 3, the family
    "ex-family-which": _question(
        {"The shop": 5, "The doctor": 2, "The chemist": 3, "Methods with a unique answer": 2},
        "What is given and what is asked: missing entries, classes, sums of parts? Look at the "
        "table of the methods.",
        (1, "PCA needs every entry of the table, and most ratings are missing."),
        (..., 1, "PCA does not know the diagnoses, and the doctor does."),
        (..., ..., 1, "PCA may subtract, but there is no negative amount of a substance."),
        (..., ..., ..., 3, "NMF has other factors from other starts."),
    ),
    "ex-family-axis": _question(
        {
            "First entry of w": 1,
            "Second entry of w": 4,
            "The largest ratio for three classes": 6,
            "Axes with a ratio above zero, on a line": 1,
        },
        "Invert the scatter and multiply. The means, seen from their common mean, span one "
        "dimension less.",
        (
            1 / 2,
            2,
            "The direction is right. Give whole numbers without a common factor, the first "
            "positive.",
        ),
        (2, 2, "That is the difference of the means. It ignores how the points scatter."),
        (
            4 * 2,
            1 * 2,
            "That multiplies by the scatter. Take its inverse: a wide spread counts for less.",
        ),
        (
            2 / sqrt(4),
            2 / sqrt(1),
            "That divides by the root of the scatter. Divide by the scatter itself.",
        ),
        (
            ...,
            ...,
            2,
            "That is the ratio along the first coordinate. Divide in the second one, too.",
        ),
        (
            ...,
            ...,
            8,
            "That is the scatter of the means. Divide by the scatter within the classes.",
        ),
        (..., ..., ..., 2, "Means on a line, minus their common mean, all point along that line."),
        (..., ..., ..., 0, "Along the line the means still differ."),
        direction=("The axis w", 2),
    ),
    "ex-family-choose": _question(
        {"k by the hidden ratings": 5, "k by the known ratings": 8},
        "Fit with a penalty of 1 for each k, and compare the two mean squared errors.",
        (4, "Nobody has subtracted the mean, so it needs a number as well."),
        (..., 5, "More numbers always fit the known ratings better."),
        note=IN_COLAB,
    ),
    # Chapter 4, Johnson-Lindenstrauss
    "ex-jl-hundred": _question(
        {"k by the formula": 1593, "k by the exact law": 1199, "How many are useful": 1},
        "Put n(n - 1)/delta = 990,000 into the formula. For the exact law, let min_dim compute.",
        (1592, "1592.94 must be rounded up: (4.5) does not allow 1592."),
        (1513, "Each pair can fail on two sides: 9,900 for 4,950 pairs."),
        (1381, "The cube is missing: half of the square of epsilon minus a third of its cube."),
        (..., 1593, "The second number is what min_dim gives without naming a bound."),
        (..., ..., 2, "A map to more numbers than there were saves nothing."),
        rounds=(0, 1),
        note=(
            "The second number takes code: run it in Colab, with the link below the title of the "
            "chapter."
        ),
    ),
    "ex-jl-orthogonal": _question(
        {"Mean": 0.0, "Standard deviation": 0.05, "Share beyond 0.1": 0.0455},
        "The mean is the inner product of the vectors themselves, the variance is 1/k for "
        "orthogonal unit vectors.",
        (..., 1 / 400, "That is the variance. The standard deviation is its square root."),
        (..., ..., 0.0228, "That is one side. In absolute value both sides count."),
        (..., ..., 0.9545, "That is the share within two standard deviations."),
        digits=2,
        note="The share as 0.12 or as 12%.",
    ),
    "ex-jl-signs": _question(
        {
            "Standard deviation of 1,024 signs": sqrt(pi / 2 / 1024),
            "Standard deviation of 64 numbers": 1 / 8,
            "The limit for rho": sqrt(pi / 4 - 1 / 2),
        },
        "The variances are (pi/2 - rho^2)/k and (1 + rho^2)/k, each with its own k. When are both "
        "equal for one k?",
        (pi / 2 / 1024, "That is the variance. The standard deviation is its square root."),
        (..., 1 / 64, "That is the variance. The standard deviation is its square root."),
        (..., 1 / 32, "With 16 bits each there is room for 64 numbers only, not for 1,024."),
        (
            1 / 32,
            "A sign alone has more spread: its variance at a right angle is pi/2 divided by k.",
        ),
        (..., ..., pi / 4 - 1 / 2, "That is the square of rho."),
        digits=2,
    ),
    "ex-jl-adversary": _question(
        {"Independent vectors lost, for k = 400 and d = 1000, at least": 600},
        "The rank of R is at most the number of its rows. What is the rest?",
        (1, "One is sure, but there are more: the rank is at most 400 and there are 1000 columns."),
        (400, "At most 400 directions are kept. The question is about those that are lost."),
    ),
    "ex-jl-kappa": _question(
        {
            "Kappa for the identity": 20,
            "Kappa for equal rows": 1,
            "The least k that beats zero for the identity": 402,
        },
        "In both cases AB = B. What is left is the Frobenius norm of A.",
        (
            ...,
            ...,
            401,
            "At k = 401 the two errors are equal. The question is where the random map is better.",
        ),
        (400, "The Frobenius norm is the root of the sum of the squares."),
        (..., 20, "Each of the 160,000 entries of the second A is 1/400: add up their squares."),
    ),
    # Chapter 5, bilinear scoring
    "ex-bilinear-recognize": _question(
        {
            "Rank of W in (a), or 0": 3,
            "Rank of W in (b), or 0": 0,
            "Rank of W in (c), or 0": 2,
            "Rank of W in (d), or 0": 1,
        },
        "Is it a sum of products of one number of s and one of h? Then write the weights into a "
        "table.",
        (..., 3, "A cosine is divided by both lengths: it does not double when s doubles."),
        (1, "The dot product has the identity for its table."),
        (..., ..., ..., 4, "Four products, but the table is one column times one row."),
    ),
    "ex-bilinear-million": _question(
        {
            "Multiplications with the full table": 768**2 + 768e6,
            "With the factors": 768 * 64 + (768 * 64 + 64) * 1e6,
            "With every Vh stored": 768 * 64 + 64e6,
        },
        "Us depends on the query alone: it is computed once. Vh depends on a document: it is "
        "computed a million times.",
        (768**2 * 1e6 + 768e6, "Count the row s W once."),
        (..., 768 * 64 + 64e6, "Without storing them, each Vh costs 768 times 64."),
        (
            ...,
            2 * 768 * 64 + 768e6,
            "That is another order, which takes the row Us times V first. The question makes each "
            "Vh anew.",
        ),
        within=0.02,
        note="A large number as 3.2e5 or as 3.2*10^5.",
    ),
    "ex-bilinear-root": _question(
        {"Upper left entry of the root": 3, "Each entry of M": 0.5, "Its mean squared error": 4},
        "The eigenvalues are 16 and 4. Take their roots, keep the eigenvectors, cut, and divide by "
        "the root again.",
        (sqrt(10), "The roots are taken of the eigenvalues, not of the entries."),
        (..., 2, "That is the cut of the root. Multiply it by the inverse of the root."),
        (..., ..., 2, "That is the singular value left out; the mean squared error is its square."),
    ),
    # Chapter 6, attention
    "ex-attention-hand": _question(
        {
            "Softmax, output for 1": 5 * exp(1) / (exp(1) + 1 / 2),
            "Softmax, output for 2": 5 * exp(2) / (exp(2) + 1 / 4),
            "Linear, output for 1": 4.0,
            "Linear, output for 2": 4.0,
        },
        "Softmax weighs by exp(query times key). A feature is exp(x) of a negative number, x + 1 "
        "of a positive one.",
        (
            5 * exp(1) / (exp(1) + 2),
            5 * exp(2) / (exp(2) + 4),
            "The first key is minus ln 2, and its exponential is one half.",
        ),
        (..., ..., 10 / 3, 10 / 3, "The feature of 1 is 1 + 1."),
        (
            ...,
            ...,
            8,
            12,
            "The feature of the query stands in the sum of the weights, too, and cancels.",
        ),
        (
            5 / (2 * exp(1) + 1),
            5 / (4 * exp(2) + 1),
            1,
            1,
            "The key 1 gets the larger weight. Its value is 5.",
        ),
    ),
    "ex-attention-ranks": _question(
        {
            "The logits": 64,
            "Softmax's weights": 1000,
            "Linear attention's weights": 64,
            "The same, later tokens hidden": 1000,
        },
        "A product has at most the rank of its narrower factor. Softmax is applied entry by entry.",
        (..., 64, "Softmax is not a product: it can raise the rank."),
        (..., ..., 1000, "Its weights are a product of features, 64 for each token."),
        (..., ..., ..., 64, "Hiding is not a product. Look at the diagonal."),
    ),
    "ex-attention-derive": _question(
        {
            "The estimate": (exp(-2.5) + exp(0.5)) / 2,
            "The true value": exp(2),
            "The relative standard deviation, m = 2": sqrt((exp(9) - 1) / 2),
        },
        "Multiply the feature of x by that of y for each g, and average the two products.",
        (exp(-2.5) + exp(0.5), "That is the sum of the two products."),
        ((1 + exp(3)) / 2, "The factors exp(-x^2/2) and exp(-y^2/2) are missing."),
        (..., ..., sqrt(exp(9) - 1), "That is for one draw. Here are two."),
        (..., ..., (exp(9) - 1) / 2, "That is the variance. Take its root."),
    ),
    # Chapter 7, Linformer
    "ex-linformer-mean": _question(
        {"The sum of each column of F, for n = 12 and k = 3": 1 / 4},
        "Compare the factor of each value vector: 1/n on one side, a column sum over k on the "
        "other.",
        (1, "Those are the rows of an average. A column of F says how often its token is counted."),
        (4, "The other way round: k columns share n tokens."),
        (1 / 12, "Linformer divides by k as well: the column sum over 3 must be 1/12."),
    ),
    "ex-linformer-crossover": _question(
        {"The first length that saves for D = 512": 304, "The first for D = 768": 138},
        "Set the operations of the two layers equal, divide by 4D, and solve the quadratic "
        "equation for n.",
        (303, 137, "Just below the root nothing is saved yet: round up."),
        (257, 129, "That is k + 1, as if mixing cost nothing: add the 2nkD operations of EX."),
        (
            513,
            257,
            "That is 2k + 1, for keys and values that are made first, then mixed. Here EX comes "
            "first.",
        ),
        (
            512,
            256,
            "That is 2k, for keys and values that are made first, then mixed. Here EX comes first.",
        ),
        rounds=(0, 1),
    ),
    "ex-linformer-causal": _question(
        {"Mixtures that token 10 may use, with windows of 4 tokens": 2},
        "A mixture may be used when its last token is not in the future.",
        (3, "The third window holds the tokens 9 to 12, and 11 and 12 are the future."),
        (1, "The first two windows end at tokens 4 and 8: both are past."),
    ),
    "ex-linformer-copy": _question(
        {"The least relative error for n = 100 and k = 36 (the root of the bound)": 0.8},
        "The bound speaks of squared norms. Divide, then take the root.",
        (0.64, "That is the share of the squared norm. The relative error is its root."),
        (0.6, "That is the root of what is kept. The error is the root of what is lost."),
    ),
    # Chapter 8, caches
    "ex-caches-cards": _question(
        {"With groups": 1024, "With a latent": 576, "Cards from which groups read less": 8},
        "A group has a key and a value. Which heads need the latent?",
        (512, ..., 4, "Each group has a key and a value."),
        (4096, "Four cards share the groups."),
        (..., 144, "All heads need the whole latent, so each card reads all of it."),
        (..., 512, 16, "The rotated key of 64 numbers is read, too."),
        (..., ..., 4, "With 4 cards, groups still read 1024."),
    ),
    "ex-caches-mean": _question(
        {"Exactly": 4, "After rounding": 1, "Minus the mean, then rounded": 4},
        "The four levels of the first key are 0, 7, 14, and 21. Which is nearest to each entry?",
        (..., 4, "The levels of the first key are 7 apart, so its 1 and its 3 become 0."),
        (..., ..., 1, "Subtract the mean, entry by entry. The levels are then 1 apart."),
    ),
    "ex-caches-prefill": _question(
        {"Queries": 171},
        "An absorbed query meets 512 + 64 numbers for the score and 512 for the value.",
        (170, "There absorbing still takes a little less: round up."),
        (513, "The average of latents takes 512 multiplications, too."),
        (121, "A query still takes 320 multiplications after the keys and values are made."),
        rounds=(0,),
    ),
    # Chapter 9, adapters
    "ex-adapters-lora": _question(
        {"Relative error": 1 / sqrt(2), "Rank of the average": 2},
        "Write out both 2 by 2 matrices, and divide the length of their difference by that of the "
        "average.",
        (
            1 / 2,
            "Divide the length of the difference, 1/2, by that of the average, which is the root "
            "of 1/2.",
        ),
        (1 / 4, "That is the size of one entry of the difference. There are four."),
        (..., 1, "Each update has rank 1, but they point in different directions."),
    ),
    "ex-adapters-room": _question(
        {"Labelings of the five points": 22, "Telephone numbers": 493},
        "Put p = 5 and N = 3 into the theorem. A telephone number has 10 digits of log2(10) bits.",
        (11, "The sum is taken twice: w and -w give opposite labels."),
        (30, "The sum ends at i = N - 1 = 2."),
        (16, "That would be half, as for 6 points. Five are fewer."),
        (..., 246, "There are two factors of 4 times 1,024 numbers, and 2 bits for each number."),
        (..., 1638, "A digit has ten values: it takes log2(10) = 3.32 bits."),
        (..., 409, "Four bits tell 16 values apart. A digit takes log2(10) = 3.32."),
        (..., 494, "The last one does not fit whole: round down."),
        rounds=(1,),
    ),
    "ex-adapters-whiten": _question(
        {"Error of the plain cut": 16, "Error of the best one": 9},
        "The error is the square of what is cut, times how large its input is on average.",
        (4, 4, "Multiply each square with the mean square of its input."),
        (8, 3, "Square the entry of the weight, too."),
        (9, 16, "The plain cut keeps the larger entry, 3, and loses the other."),
    ),
    "ex-adapters-trap": _question(
        {"Owed after 10 steps": 10},
        "Follow F from step to step. What part of it lies in the second direction?",
        (0, "Nothing is sent of the second direction, so each step adds its 1 to what is owed."),
        (9, "Each of the ten steps leaves 1 behind."),
    ),
    # Chapter 10, states
    "ex-states-blocks": _question(
        {
            "First entry of the last row": 12,
            "Second entry": 4,
            "Rank of the block": 1,
            "Highest rank with 16 numbers": 16,
        },
        "Through which of the numbers does an input pass on its way to the last output?",
        (24, "The first input enters after the first number: 3, 2, and 2 are left."),
        (..., 12, "The second input has not met the second number, 3."),
        (..., ..., 2, "One row of the block is a multiple of the other."),
        (..., ..., ..., 35, "That is the smaller side, but the past passes through 16 numbers."),
    ),
    "ex-states-which": _question(
        {
            "Rank of the logits": 512,
            "Rank of the log-probabilities": 513,
            "Rank of the probabilities": 2000,
            "The smallest width of a head": 99,
        },
        "The logits are a product through the width. Log-softmax subtracts one number from each "
        "row. And what bounds the rank of the probabilities?",
        (
            ...,
            512,
            512,
            "Softmax changes the rank: its logarithm has one more, and the width does not bound "
            "its own.",
        ),
        (
            ...,
            ...,
            513,
            "The exponentials undo the bound: only the smaller side of the table is left.",
        ),
        (..., ..., 50000, "A table of 2,000 rows has no rank above 2,000."),
        (
            ...,
            ...,
            ...,
            100,
            "The text has that width. Does one less do? Softmax does not notice the mean of a row.",
        ),
    ),
    "ex-states-half": _question(
        {"The first n": 405},
        "One half means that the n - 1 others weigh as much as the one, each at least exp(-6) as "
        "much.",
        (404, "Then the others weigh 403 times exp(-6), still a little less than 1."),
        (403, "It is n - 1, not n, that must pass exp(6)."),
        (22, "The logits differ by up to 2b, which is 6, not 3."),
        rounds=(0,),
    ),
}

exercises.QUESTIONS.update(QUESTIONS)

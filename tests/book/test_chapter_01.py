"""Matrix rank: count the directions: what its explorers must read, by NumPy alone, and the numbers in its text."""

import functools
import re
from fractions import Fraction

import numpy as np
from chapters import CHAPTERS

from lowrank_tutor.instruments.pictures import grays

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("01-")]
TEXT = CHAPTER.read_text(encoding="utf-8")


@functools.cache
def spectrum(entries, shape):
    return np.linalg.svd(np.frombuffer(entries).reshape(shape), compute_uv=False)


def rank_tolerance(chapter, *, t):
    names = {"five_layers_and_noise": "noisy", "photograph": "photo"}
    return {name: np.linalg.matrix_rank(chapter[matrix], rtol=10.0**t) for name, matrix in names.items()}


EXPLORERS = {"rank-tolerance": rank_tolerance}


def test_the_window_takes_one_layer_upright_and_as_many_as_the_text_says_when_it_is_tilted():
    needed = []
    for degrees in (0, 2, 5, 30):
        s = np.linalg.svd(grays("window", degrees), compute_uv=False)
        error = np.sqrt(np.cumsum(s[::-1] ** 2)[::-1]) / np.linalg.norm(s)
        needed.append(int(np.sum(error > 0.05)))
    assert needed == [1, 7, 17, 55]
    assert "It takes 7. At 5 degrees it takes 17, and at 30 degrees 55." in TEXT
    assert (160 * 160, 160 + 160) == (25_600, 320)
    assert "a table of 25,600 numbers. The window below is made of only 320" in TEXT
    assert 80 * (160 + 160) == 160 * 160
    assert "the bar meets the black mark after 80 of 160 layers" in TEXT


def test_the_photograph_is_what_the_text_says(chapter):
    photo = chapter["photo"]
    assert photo.shape == (600, 512)
    assert r"$600 \times 512 = 307{,}200$ numbers" in TEXT
    assert photo.size == 307_200
    assert (photo.min() >= 0, photo.max() <= 1) == (True, True)
    assert np.linalg.matrix_rank(photo) == 512  # "the photograph has full rank"


def test_factors_of_the_photograph_cost_more_than_itself_past_rank_276():
    assert 276 * (600 + 512) < 600 * 512 < 277 * (600 + 512)
    assert "From 277 on, little more than half of the 512 layers" in TEXT
    assert r"$307{,}200/1{,}112 \approx 276.3$" in TEXT
    assert f"{600 * 512 / (600 + 512):.1f}" == "276.3"
    assert 24 * (600 + 512) == 26_688
    assert "24 layers of the photograph, 26,688 numbers" in TEXT


def test_the_nine_numbers_have_rank_one_and_five_degrees_of_freedom(chapter):
    a = np.array(chapter["A"])
    assert a.tolist() == [[1, 2, 3], [2, 4, 6], [3, 6, 9]]
    assert np.linalg.matrix_rank(a) == 1
    # The column (2, 4, 6) and the row (1/2, 1, 3/2) give the same matrix, and nothing is rounded.
    column, row = [2, 4, 6], [Fraction(1, 2), 1, Fraction(3, 2)]
    assert [[x * y for y in row] for x in column] == a.tolist()
    # The map (column, row) -> column row^T moves in as many directions as its Jacobian has rank.
    x, y = np.array([1.0, 2, 3]), np.array([1.0, 2, 3])
    jacobian = np.hstack([np.kron(np.eye(3), y[:, None]), np.kron(x[:, None], np.eye(3))])
    assert jacobian.shape == (9, 6)
    assert np.linalg.matrix_rank(jacobian) == 3 + 3 - 1


def test_degrees_of_freedom_of_rank_k():
    rng = np.random.default_rng(0)
    m, n, k = 5, 4, 2
    c, f = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    jacobian = np.hstack([np.kron(np.eye(m), f.T), np.kron(c, np.eye(n))])
    assert np.linalg.matrix_rank(jacobian) == k * (m + n - k)


def test_the_three_words_have_the_ranks_of_the_table(chapter):
    assert [np.linalg.matrix_rank(chapter[name]) for name in "BA"] == [2, 1]
    b = chapter["B"]
    np.testing.assert_array_equal(b[2], b[0] + b[1])
    np.testing.assert_array_equal(b[:, 2], b[:, 0] + b[:, 1])  # "b_3 = b_1 + b_2"
    np.testing.assert_array_equal(b[:, 3], 2 * b[:, 0] + b[:, 1])
    np.testing.assert_array_equal([[1, 0], [0, 1], [1, 1]] @ np.array([[1, 0, 1, 2], [0, 1, 1, 1]]), b)


def test_one_dependent_row_of_a_thousand_makes_factors_dearer():
    assert 999 * (1000 + 1000) == 1_998_000
    assert "1,998,000 numbers instead of 1,000,000" in TEXT
    assert 2 * (3 + 4) > 3 * 4
    assert r"$2 \cdot (3 + 4) = 14$ numbers, and $B$ itself 12" in TEXT


def test_tenths_are_rounded_twice():
    """Half of what is left in the first column is the rounding of 0.1 and 0.3, half that of the product."""
    stored = Fraction(0.3) - 3 * Fraction(0.1)
    product = 3 * Fraction(0.1) - Fraction(3 * 0.1)
    assert stored == product == Fraction(0.3 - 3 * 0.1) / 2


def test_the_count_stands_still_in_a_gap_and_nowhere_on_the_photograph(chapter):
    counts = {t: rank_tolerance(chapter, t=t) for t in range(-8, 0)}
    first, last = (
        int(x) for x in re.search(r"the count is 5 from \$10\^\{(-\d+)\}\$ to \$10\^\{(-\d+)\}\$", TEXT).groups()
    )
    assert [t for t, count in counts.items() if count["five_layers_and_noise"] == 5] == list(range(first, last + 1))
    below_full = [count["photograph"] for count in counts.values() if count["photograph"] < 512]
    assert len(set(below_full)) == len(below_full) == 4
    left = [count["five_layers_and_noise"] for count in counts.values()]
    assert left[0] > left[1] > left[2] > 5 > left[-1]  # every other position shows another count


def test_the_first_layer_of_the_photograph_holds_three_quarters(chapter):
    photo = chapter["photo"]
    s = spectrum(photo.tobytes(), photo.shape)
    stable_rank = np.sum(photo**2) / s[0] ** 2
    assert f"{stable_rank:.2f}" == "1.33"
    assert f"{1 / stable_rank:.0%}" == "75%"
    assert r"$1/1.33 = 75\%$" in TEXT


def test_scores_have_rank_d_and_weights_full_rank(chapter):
    q, k = chapter["Q"], chapter["K"]
    scores = q @ k.T / np.sqrt(8)
    softmax = np.exp(scores - scores.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    assert np.linalg.matrix_rank(scores) == 8
    assert np.linalg.matrix_rank(softmax) == 64


def test_the_shadow_of_a_shadow_is_the_shadow():
    w, x = [Fraction(4, 5), Fraction(3, 5)], [2, 4]
    assert sum(a * a for a in w) == 1
    assert sum(a * b for a, b in zip(w, x, strict=True)) == 4
    assert [4 * a for a in w] == [Fraction("3.2"), Fraction("2.4")]
    assert sum(a * 4 * a for a in w) == 4  # W P x = W x


def test_the_answers_of_the_exercises_by_other_means():
    assert np.linalg.matrix_rank([[1, 2, 1], [2, 4, 3], [3, 6, 4]]) == 2
    assert Fraction(3 * 3, 3 + 3) == Fraction(3, 2)
    assert Fraction(4096**2, 10 * 8192) == Fraction("204.8")
    i = np.arange(1, 6)
    assert np.linalg.matrix_rank(np.add.outer(i, i)) == 2
    assert 2 * (5 + 5 - 2) == 16

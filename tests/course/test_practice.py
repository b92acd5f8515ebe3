"""Many problems of each kind: the answer is right by another way, and each hint fits its slip
alone.

A judge reads the numbers from the question, and works with NumPy. It returns the answer and, by the
first words of its hint, what a mistake leads to.
"""

import json
import math
import re

import numpy as np
import pytest
import sympy

from lowrank_tutor.course import practice
from lowrank_tutor.course.practice import problem as engine

FOUND = re.compile(r"\[[^\]]*\]|\((?:[\u2212\d/?]+, )+[\u2212\d/?]+\)|\u2212?\d+(?:[./]\d+)?")


def number(text):
    top, _, bottom = text.replace(engine.MINUS, "-").partition("/")
    return math.nan if text == "?" else float(top) / float(bottom or 1)


def read(question):
    """The matrices, vectors, and numbers of a question, in order."""
    for found in FOUND.findall(question):
        if found[0] == "[":
            yield np.array(
                [[number(one) for one in row.split(" ")] for row in found[1:-1].split("; ")]
            )
        else:
            parts = [number(one) for one in found.strip("()").split(", ")]
            yield np.array(parts) if "," in found else parts[0]


def lowest(vector):
    vector = np.round(vector).astype(int)
    return vector // (np.gcd.reduce(vector) or 1) * (1 if vector[vector != 0][0] > 0 else -1)


class Judges:
    def rank_rows(a):
        return [sympy.Matrix(a.astype(int)).rank()], {
            "Row 2": [1],
            "That is the number": [a.shape[1]],
            "The new row 3": [5 - np.linalg.matrix_rank(a)],
        }

    def storage(m, n, k):
        best = max(r for r in range(1, 500) if r * (m + n) < m * n)
        held = k * (m + n)
        return [held, best], {
            "That is one factor": [k * m, best],
            "A sheet holds": [k * m * n, best],
            "At that rank": [held, best + 1],
            "That is the largest": [held, min(m, n)],
        }

    def project_line(x, f):
        right = np.outer(f, f) @ x / (f @ f)
        return right, {"Divide by fᵀf": f * (f @ x), "That is what": x - right, "That is f": f}

    def svd_2x2(*numbers):
        a = next(one for one in numbers if np.ndim(one) == 2)
        s = np.linalg.svd(a, compute_uv=False)
        return s, {
            "Those are the trace": [(s**2).sum(), (s**2).prod()],
            "That is the diagonal": np.diag(a.T @ a),
            "Those are the eigenvalues": s**2,
            "The larger": s[::-1],
        }

    def spectrum_error(*told):
        *s, k = told
        s, k = np.array(s), int(k)
        a = np.diag(s)
        cut = np.diag(np.r_[s[:k], 0 * s[k:]])
        right = np.linalg.norm(a - cut) / np.linalg.norm(a), np.linalg.norm(a - cut, 2)
        off, largest = right
        return right, {
            "That is the share of": (off**2, largest),
            "That is the root of": (math.sqrt(1 - off**2), largest),
            "Square the": (s[k:].sum() / s.sum(), largest),
            "That one is kept": (off, s[k - 1]),
            "That is the Frobenius": (off, np.linalg.norm(s[k:])),
        }

    def center_project(first, second, third, u):
        mean = np.mean([first, second, third], axis=0)
        on = np.outer(u, u)
        right = mean + on @ (first - mean)
        return right, {
            "Add the mean": right - mean,
            "That projects": on @ first,
            "You added": mean + on @ first,
        }

    def lda_step(t, d):
        w = lowest(np.linalg.solve(t, d) * round(np.linalg.det(t)))
        return w, {
            "That points": lowest(d),
            "That multiplies": lowest(t @ d),
            "The direction": 2 * w,
            "In the inverse": lowest(t[::-1, ::-1] @ d),
        }

    def nmf_step(x, c, f):
        ratio = (c.T @ x) / (c.T @ c @ f)
        wrong = {
            "The ratio": f / ratio,
            "NMF multiplies": f + c.T @ (x - c @ f),
            "Those are": ratio,
        }
        return (f * ratio)[:, 0], {words: matrix[:, 0] for words, matrix in wrong.items()}

    def rating_step(f, x, penalty):
        known = ~np.isnan(x)
        root = np.sqrt(penalty)  # least squares, with the penalty as one more row
        (c,), *_ = np.linalg.lstsq(np.r_[f[known], root][:, None], np.r_[x[known], 0], rcond=None)
        missing = f[~known][0]
        below = {
            "Add the penalty": f[known] @ f[known],
            "A rating that": f @ f + penalty,
            "Divide by the sum": f[known].sum() + penalty,
        }
        wrong = {
            words: f[known] @ x[known] / one * np.array([1, missing])
            for words, one in below.items()
        }
        return [c, c * missing], wrong | {"That is c": [c, c]}

    def least_k(n, _formula, eps, delta):
        def allows(k):
            return n * (n - 1) * math.exp(-k / 2 * (eps**2 / 2 - eps**3 / 3)) <= delta * (1 + 1e-12)

        k = next(k for k in range(1, 10**5) if allows(k))
        log, square, below = math.log(n * (n - 1) / delta), eps**2 / 2, eps**2 / 2 - eps**3 / 3
        assert math.ceil(2 * round(log, 2) / below) == k, "two decimals lead elsewhere"
        bounds = {
            "Each pair": 2 * (log - math.log(2)) / below,
            "The cube": 2 * log / square,
            "The factor 2": log / below,
        }
        return [k], {"Round up": [k - 1]} | {
            words: [math.ceil(bound)] for words, bound in bounds.items()
        }

    def factor_score(s, h, u, v):
        x, y = u @ s, v @ h
        return [s @ (u.T @ v) @ h], {
            "Us and Vh": [x.sum() + y.sum()],
            "That is the dot": [s @ h],
            "That is the first": [x[0] * y[0]],
            "Mind": [abs(x) @ abs(y)],
            "Multiply entry": [x.sum() * y.sum()],
        }

    def attention_three(base, keys, values):
        weights = np.exp(math.log(base) * keys)
        return [weights @ values / weights.sum()], {
            "Divide by": weights @ values,
            "That is the plain": values.mean(),
            "Those weights": keys @ values / keys.sum(),
            "That is the value": values[keys.argmax()],
        }

    def masked_mixtures(full, real, part):
        part, share = np.atleast_1d(part), real / 4
        assert len(part) == real
        tokens = np.r_[
            np.full(4, full.mean()), np.full(len(part), part.mean())
        ]  # each real token has one vote
        return [tokens.mean()], {
            "A window that": (full.mean() + part.mean()) / 2,
            "Padding counts": (full.mean() + part.sum() / 4) / 2,
            "Divide by": full.mean() + share * part.mean(),
            "The vote": (full.mean() + share * part.sum() / 4) / (1 + share),
        }

    def latent_score(n, c1, c2, w, q, _n):
        scores = [(w.T @ c) @ q for c in (c1, c2)]  # through the keys
        count, turned = w.size + n * len(w), (w @ q)[::-1]
        return [*scores, count], {
            "Absorbing": [*scores, n * len(w)],
            "That makes": [*scores, n * (w.size + 3)],
            "W is absorbed": [*scores, n * (w.size + 2)],
            "The entries": [c1 @ turned, c2 @ turned, count],
        }

    def lora_update(w, _rank, a, b, alpha, x):
        change = (b @ a) @ x
        return (w + alpha * b @ a) @ x, {
            "That is W alone": w @ x,
            "That is the update": alpha * change,
            "The strength": w @ x + change,
            "The entries": w @ x + alpha * change[::-1],
        }

    def cache_bytes(layers, heads, width, groups, _two, tokens):
        each = np.zeros(np.array((layers, 2, groups, width), int), np.float16)
        size = each.nbytes * tokens / 2**30
        times = heads / groups
        return [each.size, size], {
            "The heads share": [each.size * times, size * times],
            "That is in units": [each.size, each.nbytes * tokens / 1e9],
            "That is one layer": [each.size / layers, size / layers],
            "Keys alone": [each.size / 2, size / 2],
        }

    def causal_state(k1, v1, k2, v2, k3, v3, q):
        s = np.outer(k1, v1) + np.outer(k2, v2)
        return s.T @ q, {
            "The third": (s + np.outer(k3, v3)).T @ q,
            "That leaves": (k1 @ q) * v1,
            "That multiplies": s @ q,
        }

    def delta_step(s, value, k, _beta):
        new = (np.eye(2) - np.outer(k, k)) @ s + k * value
        assert math.isclose(new @ k, value)
        return new, {
            "That adds": s + k * value,
            "That is what": new - s,
            "The difference": 2 * s - new,
        }


def judge_choice(question, problem):
    """The words that decide stand in the story, and each wrong number has a reply of its own."""
    story = question.partition(" Which method fits?\n")[0].lower()
    words = re.findall("“(.*?)”", problem.steps[0].work)
    assert {each.lower() in story for each in words} == {True}, (words, story)
    listed = {
        f"That would be “{name}”": [i]
        for i, name in enumerate(re.findall(r"\(\d\) (.*?)[:.]", question), 1)
    }
    (right,) = {1, 2, 3, 4, 5} - {wrong[0] for wrong, _ in problem.slips}
    return [right], listed


@pytest.mark.parametrize("kind", practice.KINDS)
def test_problems(kind):
    rng, met = np.random.default_rng(0), set()
    for _ in range(200):
        problem = practice.another(kind, rng=rng)
        judge = getattr(Judges, kind.replace("-", "_"), None)
        right, wrong = (
            judge(*read(problem.question)) if judge else judge_choice(problem.question, problem)
        )
        assert np.allclose(problem.answer, right), problem
        assert problem.check(right)
        for numbers, hint in problem.slips:
            words = next(words for words in wrong if hint.startswith(words))
            assert np.allclose(numbers, wrong[words]), (problem, hint)
            assert str(problem.check(numbers)) == f"○ Not yet. {hint}", problem
            met.add(words)
            differ = [i for i, one in enumerate(numbers) if not engine.near(one, problem.answer[i])]
            if len(differ) > 1:  # one equal entry is no sign of the mistake
                elsewhere = [12345 if i == differ[0] else one for i, one in enumerate(numbers)]
                assert hint not in str(problem.check(elsewhere)), problem
    assert met == set(wrong), "a mistake that no problem knows"


@pytest.mark.parametrize("kind", practice.KINDS)
def test_bank(kind):
    """A page draws from 40 different problems in little room, the same in every build."""
    data = engine.bank(kind)
    assert len({problem[0] for problem in data["problems"]}) == len(data["problems"]) == 40
    assert len(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()) < 25_000
    assert data == engine.bank(kind)


def test_levels():
    """Level 1 gives all steps but the last, level 2 every other one, and level 3 none."""
    shown = [
        repr(practice.another("svd-2x2", level=level, rng=0)).count("= ?") for level in (1, 2, 3)
    ]
    assert shown == [2, 4, 0]  # two values in each of the steps 4 and 2
    assert (
        practice.another("svd-2x2", level=1, rng=0).answer
        == practice.another("svd-2x2", rng=0).answer
    )


REFUSED = [
    (lambda: practice.another("rank"), "kind must be "),
    (lambda: practice.another("storage", level=4), "level must be "),
    (lambda: practice.another("storage", rng=0).check(5), "answer must be 2 numbers"),
    (lambda: practice.another("storage", rng=0).check([5, ...]), "answer must be 2 numbers"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()

"""One problem: its question, the steps to its answer, and what typical mistakes give."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from string import Formatter
from typing import Any, NamedTuple

import numpy as np

import lowrank_tutor.course.practice.draws as draws
from lowrank_tutor._checks import check_choice, check_integer
from lowrank_tutor.kit.block import Block, Script, asset
from lowrank_tutor.kit.questions.exercises import OPEN_MARK, RIGHT_MARK, Verdict, real_numbers
from lowrank_tutor.kit.questions.judge import near

SCRIPT = Script(
    "practice", ("kit/element.js", "kit/questions/numbers.js", "course/practice/practice.js")
)
STYLES = ("kit/questions/answer_form.css", "course/practice/practice.css")
CLOSE, MINUS = "You are near: give three digits, and round only at the end.", "\u2212"


class ProblemStep(NamedTuple):
    """One step: what to do, the rule in words, the calculation, and the values by name."""

    ask: str
    rule: str
    work: str
    values: dict[str, Any]


Draft = tuple[str, tuple[ProblemStep, ...], list[tuple[list[Any], str]]]  # question, steps, slips


class Kind(NamedTuple):
    """A kind of problem: its chapter, what it teaches to do, and what draws one."""

    chapter: int
    promise: str
    draw: Callable[[np.random.Generator], Draft]


def written(value: Any, spec: str = "") -> str:
    """Write a number, a vector, or a matrix, ``[1 2; 3 4]``.

    With "p" a negative number stands in parentheses.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        if isinstance(value[0], list):
            return f"[{'; '.join(' '.join(map(written, row)) for row in value)}]"
        return f"({', '.join(map(written, value))})"
    text = (f"{value:.4g}" if isinstance(value, float) else str(value)).replace("-", MINUS)
    return f"({text})" if spec == "p" and value < 0 else text


class Words(Formatter):
    """Fill a sentence with numbers by name; ``{a·b}`` writes out the dot product of two vectors."""

    def get_field(self, name: str, args: Any, names: Any) -> Any:
        """Look up a name, or two."""
        parts = [super(Words, self).get_field(part, args, names)[0] for part in name.split("·")]
        if len(parts) == 1:
            return parts[0], name
        pairs = zip(*parts, strict=True)
        return " + ".join(f"{written(x, 'p')}·{written(y, 'p')}" for x, y in pairs), name

    def format_field(self, value: Any, spec: str) -> str:
        """Write a value as the page reads it."""
        return written(value, spec)


def _draft(
    numbers: Callable[[Any], Any], question: str, lines: Sequence[str], rng: np.random.Generator
) -> Draft:
    drawn = numbers(partial(draws.whole, rng))
    names = {name: np.array(numbers, object).tolist() for name, numbers in drawn.items()}
    words = Words()

    def value(name: str) -> Any:
        return words.get_field(name, (), names)[0]

    steps, slips = [], []
    for line in lines:
        if line[0] != "-":
            ask, rule, work, asked = line.split(". ", 1)[1].split(" | ")
            values = {
                name: value(of) for name, of in (each.split(" = ") for each in asked.split("; "))
            }
            ask, rule, work = (words.vformat(text, (), names) for text in (ask, rule, work))
            steps.append(ProblemStep(ask, rule, work, values))
            continue
        wrong, hint = line[2:].split(": ", 1)
        told = [... if one == "_" else value(one) for one in wrong.split("; ")]
        flat = [number for one in told for number in (one if isinstance(one, list) else [one])]
        right = [*steps[-1].values.values()]
        if None not in flat:
            pairs = zip_longest(flat, right, fillvalue=...)
            filled = [r if w is ... else w for w, r in pairs]
            slips.append((filled, words.vformat(hint, (), names)))
    return words.vformat(question, (), names), tuple(steps), slips


def _choice(methods: Sequence[str], stories: Sequence[str], rng: np.random.Generator) -> Draft:
    fits, story, decides = stories[int(rng.integers(len(stories)))].split(" | ")
    order = [methods[i] for i in rng.permutation(len(methods))]
    place = order.index(methods[int(fits) - 1]) + 1
    listed = "\n".join(f"({i}) {method}." for i, method in enumerate(order, 1))
    rule = "What is given, and what is asked? Each method says what it needs."
    hint = "That would be “{}”, which is not what the story asks for. Which of its words decide?"
    slips = [
        ([i], hint.format(method.split(":")[0])) for i, method in enumerate(order, 1) if i != place
    ]
    step = ProblemStep(
        "Give its number.",
        rule,
        f"It is {order[place - 1]}. What decides is {decides}.",
        {"The method": place},
    )
    return f"{story} Which method fits?\n{listed}", (step,), slips


def _kinds() -> Mapping[str, Kind]:
    kinds = {}
    for text in (asset("course/practice/problems.md") + asset("course/practice/which.md")).split(
        "\n## "
    )[1:]:
        head, first, *lines = [line for line in text.partition("\n# ")[0].splitlines() if line]
        name, chapter, promise = head.split(" | ")
        numbers = getattr(draws, name.replace("-", "_"), None)
        methods = [line[3:] for line in (first, *lines) if line[0] != "-"]
        stories = [line[2:] for line in lines if line[0] == "-"]
        draw = (
            partial(_draft, numbers, first, lines)
            if numbers
            else partial(_choice, methods, stories)
        )
        kinds[name] = Kind(int(chapter), promise, draw)
    return dict(sorted(kinds.items(), key=lambda item: item[1].chapter))


ALL = _kinds()


def _plain(value: Any) -> float:
    return float(value) if value % 1 else int(value)


class Problem(NamedTuple):
    """A problem, as :func:`another` draws it.

    In a notebook it shows itself as a form that checks each blank.
    """

    kind: str
    level: int
    question: str
    steps: tuple[ProblemStep, ...]
    slips: list[tuple[list[float], str]]

    @property
    def answer(self) -> list[float]:
        """The numbers of the last step."""
        return [*map(_plain, self.steps[-1].values.values())]

    def check(self, answer: Any) -> Verdict:
        """Compare an answer: whole numbers exactly, others to three digits.

        The reply is true if it is right.
        """
        given, names = real_numbers("answer", answer), self.steps[-1].values
        if len(given) != len(names) or None in given:
            raise ValueError(
                f"answer must be {len(names)} numbers ({', '.join(names)}), got {answer!r}"
            )
        hint = self._hint(given)
        said = (
            f"{OPEN_MARK} Not yet. {hint}" if hint else f"{RIGHT_MARK} Right. {self.steps[-1].work}"
        )
        return Verdict(self.kind, not hint, said)

    def _hint(self, given: Sequence[Any]) -> str:
        """Return the hint for an answer, or nothing if it is right.

        ``practice.js`` replies alike.
        """
        right, names = self.answer, self.steps[-1].values
        if same(given, right):
            return ""

        def made(wrong: Sequence[float]) -> bool:
            each = zip(given, wrong, right, strict=True)
            return all(near(g, w) or near(w, r) for g, w, r in each)

        told = [hint for wrong, hint in self.slips if same(given, wrong)]
        if told := told + [hint for wrong, hint in self.slips if made(wrong)]:
            return told[0]
        pairs = [*zip(given, right, strict=True)]
        good = [name for name, (g, r) in zip(names, pairs, strict=True) if near(g, r)]
        close = all(near(g, r) or (r % 1 and abs(g - r) <= abs(r) / 20) for g, r in pairs)
        credit = f"Right so far: {', '.join(good)}. " if good else ""
        return credit + (CLOSE if close else self.steps[-1].rule)

    def plain(self) -> dict[str, Any]:
        """Return what the page needs to know, as plain data."""
        steps = [
            [s.ask, s.rule, s.work, [*s.values], [*map(_plain, s.values.values())]]
            for s in self.steps
        ]
        return {"question": self.question, "steps": steps, "slips": self.slips}

    def _repr_html_(self) -> str:
        return form(self.kind, self.level, {"problem": self.plain()}).to_html()

    def __repr__(self) -> str:
        blank = range(len(self.steps) - 1, -1, -2) if self.level == 2 else [len(self.steps) - 1]
        steps = [
            f"{i + 1}. {step.ask} "
            f"{', '.join(f'{name} = ?' for name in step.values) if i in blank else step.work}"
            for i, step in enumerate(self.steps)
        ]
        answer = f"Answer: .check([{', '.join(self.steps[-1].values)}])"
        return "\n".join([self.question, *(steps if self.level < 3 else ()), answer])


def same(given: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether all numbers are near enough."""
    return all(map(near, given, wanted))


def another(kind: str, *, level: int = 3, rng: np.random.Generator | int | None = None) -> Problem:
    """Draw a problem of a kind, with numbers that can be worked by hand.

    Level 1 gives all steps but the last, level 2 leaves every other step blank, and level 3 asks
    the question alone. The problem has its ``question``, the numbers of its ``answer``, ``slips``
    (pairs of a wrong answer and the hint for the mistake that leads to it), and ``check(answer)``.
    ``rng`` is a generator of NumPy or a seed. ``KINDS`` maps each kind to its chapter.

    >>> problem = another("storage", rng=1)
    >>> bool(problem.check(problem.answer))
    True
    """
    check_choice(kind, "kind", tuple(ALL))
    check_integer(level, "level", 1, 3)
    rng = np.random.default_rng(rng)
    while True:
        question, steps, rules = ALL[kind].draw(rng)
        problem = Problem(
            kind, level, question, steps, [([*map(_plain, wrong)], hint) for wrong, hint in rules]
        )
        told = [problem.answer, *(wrong for wrong, _ in problem.slips)]
        if not any(same(a, b) or same(b, a) for i, a in enumerate(told) for b in told[:i]):
            return problem


def form(kind: str, level: int, data: dict[str, Any]) -> Block:
    """Return the form for a kind.

    The script fills it, from the bank of the page if its data holds no problem.
    """
    promise = ALL[kind].promise
    return Block(
        kind="check",
        name=f"practice-{kind}",
        first="<noscript><p>Practice needs JavaScript.</p></noscript>",
        data={"promise": promise, **data},
        script=SCRIPT,
        styles=STYLES,
        tag="form",
        attributes={
            "data-kind": kind,
            "data-level": str(level),
            "aria-label": f"Practice: {promise}",
        },
    )


def bank(name: str, count: int = 40) -> dict[str, Any]:
    """Draw the problems of a page, each different.

    Their words stand once in a list, and numbers into it in their places.
    """
    drawn: dict[str, Problem] = {}
    rng = np.random.default_rng(list(name.encode()))
    while len(drawn) < count:
        problem = another(name, rng=rng)
        drawn.setdefault(problem.question, problem)
    words: dict[str, int] = {}

    def packed(value: Any) -> Any:
        if isinstance(value, str):
            return words.setdefault(value, len(words))
        return (
            [*map(packed, value)]
            if isinstance(value, list | tuple)
            else float(f"{value:.9g}")
            if value % 1
            else value
        )

    problems = [[*map(packed, problem.plain().values())] for problem in drawn.values()]
    return {"words": list(words), "problems": problems}

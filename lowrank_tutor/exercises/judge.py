"""Judge the numbers of an answer: how near is near enough, and which hint fits a wrong one."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import floor, log10
from typing import NamedTuple

ANOTHER_ORDER = "These are the right numbers, but in another order."
COUNTED = dict(enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"), start=1))

Answer = float | tuple[float, ...]


def numbers_of(answer: Answer) -> tuple[float, ...]:
    """Return the numbers of an answer as a tuple, even if there is only one."""
    return answer if isinstance(answer, tuple) else (answer,)


class Number(NamedTuple):
    """One number of an answer, and how near a reader must come to it."""

    name: str
    right: float
    whole: bool
    digits: int
    within: float  # relative tolerance; at zero, the digits count
    rounds: bool = False  # whether the solution rounds a fraction up or down

    @property
    def rule(self) -> str:
        """The tolerance in words, as shown beside the field."""
        if self.whole:
            return "a whole number"
        if self.within:
            return f"within {100 * self.within:g}%"
        return f"to {self.digits} {'digit' if self.digits == 1 else 'digits'}"

    def slack(self, value: float) -> float:
        """Return the tolerance around ``value``: one unit of the last digit asked for."""
        if self.whole or self.within:
            return self.within * abs(value)
        return _last_digit(value, self.digits)

    def accepts(self, given: float) -> bool:
        """Whether an answer is near enough."""
        return near(given, self.right, self.slack(self.right))

    def is_common(self, given: float, wrong: float) -> bool:
        """Whether an answer matches a known wrong answer."""
        return near(given, wrong, self.common_slack(wrong))

    def common_slack(self, wrong: float) -> float:
        """Return the tolerance for matching a known wrong answer."""
        if self.whole:
            return 0.0 if wrong == floor(wrong) else _last_digit(wrong, 3)
        return max(self.slack(wrong), 0.01 * abs(wrong))

    @property
    def nearly(self) -> float:
        """How far off an answer may be and still count as the right one, rounded too early."""
        return float(self.rounds) if self.whole else 0.03 * abs(self.right)

    @property
    def fewer_digits(self) -> list[float]:
        """The right number with fewer digits than asked for."""
        judged_by_digits = not (self.whole or self.within)
        return [float(f"{self.right:.{kept}e}") for kept in range(self.digits - 1)] if judged_by_digits else []

    @property
    def rounded_words(self) -> str:
        """The hint for a number that was rounded too early."""
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
    """Whether a number is near enough; without slack it must be equal, apart from the rounding of a fraction."""
    if slack:
        return abs(given - wanted) <= slack * (1 + 1e-9)
    if given != floor(given):
        return abs(given - wanted) <= 1e-9
    return (int(Decimal(repr(given))) if isinstance(given, float) else given) == wanted  # 1e30 may stand for 10**30


def _last_digit(value: float, digits: int) -> float:
    return float(10.0 ** ((floor(log10(abs(value))) + 1 if value else 0) - digits))


class Question(NamedTuple):
    """The names of the numbers, the right answer, and hints for known wrong answers and for every other one."""

    ask: str | tuple[str, ...]
    right: Answer
    otherwise: str
    hints: tuple[tuple[Answer, str], ...]
    within: float = 0.0
    digits: int = 3
    note: str = ""  # a sentence below the fields, such as how to write the numbers
    rounds: tuple[int, ...] = ()  # positions of the whole numbers that the solution rounds

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers asked for, in order."""
        names = (self.ask,) if isinstance(self.ask, str) else self.ask
        pairs = enumerate(zip(names, numbers_of(self.right), strict=True))
        whole = [isinstance(right, int) and not self.within * right for right in numbers_of(self.right)]
        return tuple(
            Number(name, right, whole[i], self.digits, self.within, i in self.rounds) for i, (name, right) in pairs
        )

    def judge(self, given: Sequence[float | None]) -> list[str | None]:
        """Return a hint for each number: None if it is right, an empty one if it is missing."""
        pairs = enumerate(zip(given, self.numbers, strict=True))
        return [None if g is not None and n.accepts(g) else self._hint(given, i) for i, (g, n) in pairs]

    def unreachable(self) -> Answer | None:
        """Return a known wrong answer that is accepted or gets another one's hint; None if there is none."""
        return next((wrong for wrong, hint in self.hints if hint not in self.judge(numbers_of(wrong))), None)

    def _hint(self, given: Sequence[float | None], i: int) -> str:
        """Return the hint for the whole answer if there is one, else that for the number alone."""
        number, value = self.numbers[i], given[i]
        if value is None:
            return ""
        explained = [(numbers_of(wrong), hint) for wrong, hint in self.hints]
        explained = [(wrong, hint) for wrong, hint in explained if not number.accepts(wrong[i])]
        whole = [(wrong, hint) for wrong, hint in explained if _match(given, wrong, self.numbers)]
        if whole:
            return min(whole, key=lambda one: _distance(given, one[0]))[1]
        ordered = sorted(self.numbers, key=lambda n: n.right)
        swapped = _match(sorted(given, key=_missing_last), [n.right for n in ordered], ordered)
        if swapped and not number.is_common(value, number.right):
            return ANOTHER_ORDER
        own = [(wrong, hint) for wrong, hint in explained if number.is_common(value, wrong[i])]
        if own:  # the nearest; of equally near ones, the first
            return min(own, key=lambda one: abs(value - one[0][i]))[1]
        return number.rounded_words if number.is_rounded(value) else self.otherwise


def _match(given: Sequence[float | None], wrong: Sequence[float], numbers: Sequence[Number]) -> bool:
    together = zip(given, wrong, numbers, strict=True)
    return all(g is not None and n.is_common(g, w) for g, w, n in together)


def _distance(given: Sequence[float | None], wrong: Sequence[float]) -> float:
    return sum(abs((g or 0) - w) / (abs(w) or 1) for g, w in zip(given, wrong, strict=True))


def _missing_last(given: float | None) -> float:
    return float("inf") if given is None else given

"""Judge the numbers of an answer: how near is near enough, and which hint fits a wrong one."""

from collections.abc import Sequence
from math import floor, isnan, log10, nan
from typing import NamedTuple

ANOTHER_ORDER = "These are the right numbers, but in another order."
MISSING = "A number is still missing."
COUNTED = dict(
    enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine"), start=1)
)

Answer = tuple[float, ...]


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

    def accepts(self, answer: float) -> bool:
        """Whether an answer is near enough."""
        return near(answer, self.right, self.slack(self.right))

    def is_common(self, answer: float, wrong: float) -> bool:
        """Whether an answer matches a known wrong answer."""
        return near(answer, wrong, self.common_slack(wrong))

    def common_slack(self, wrong: float) -> float:
        """Return the tolerance for matching a known wrong answer."""
        if self.whole:
            return _last_digit(wrong, 3) if broken(wrong) else 0.0
        return max(self.slack(wrong), 0.01 * abs(wrong))

    @property
    def nearly(self) -> float:
        """How far off an answer may be and still count as the right one, rounded too early."""
        return float(self.rounds) if self.whole else 0.03 * abs(self.right)

    @property
    def fewer_digits(self) -> list[float]:
        """The right number with fewer digits than asked for."""
        if self.whole or self.within:
            return []
        return [float(f"{self.right:.{digits}e}") for digits in range(self.digits - 1)]

    @property
    def rounded_words(self) -> str:
        """The hint for a number that was rounded too early."""
        if self.whole:
            return "The answer is a whole number: round yours up or down, as the question needs."
        if self.within:
            return f"You are near, but not {self.rule}. Round only at the end."
        digits = "digit" if self.digits == 1 else "digits"
        return f"You are near: give {COUNTED[self.digits]} {digits}, and round only at the end."

    def is_rounded(self, answer: float) -> bool:
        """Whether an answer looks like the right one, rounded too early or not at all."""
        if self.whole:
            return broken(answer) and abs(answer - self.right) < self.nearly
        return abs(answer - self.right) <= self.nearly or float(answer) in self.fewer_digits


def near(answer: float, wanted: float, slack: float | None = None) -> bool:
    """Whether a number is near enough.

    To a whole number without slack only the rounding of a fraction may lead. By default whole
    numbers have no slack, and others one unit of the third digit.
    """
    if slack is None:
        slack = _last_digit(wanted, 3) if broken(wanted) else 0.0
    if not slack and not broken(wanted):
        return abs(answer - wanted) <= (1e-9 if broken(answer) else 0)
    return abs(answer - wanted) <= slack * (1 + 1e-9)  # the slack of the tiniest numbers vanishes


def broken(value: float) -> bool:
    """Whether a number is not whole; NaN, which stands for a missing one, is not."""
    return value % 1 != 0


def is_multiple(answer: Answer, known: Answer) -> bool:
    """Whether two vectors point along the same line; one with fractions may be rounded."""
    slack = 0.003 if any(map(broken, answer)) else 1e-9
    largest = max(range(len(known)), key=lambda i: abs(known[i]))
    one, other = (
        [entry / (vector[largest] or 1) for entry in vector] for vector in (answer, known)
    )
    return all(abs(a - b) <= slack for a, b in zip(one, other, strict=True))


def _last_digit(value: float, digits: int) -> float:
    return float(10.0 ** ((floor(log10(abs(value))) + 1 if value else 0) - digits))


class Question(NamedTuple):
    """The names of the numbers, the right answer, and hints for wrong ones."""

    ask: tuple[str, ...]
    right: Answer
    otherwise: str
    hints: tuple[tuple[Answer, str], ...]
    within: float = 0.0
    digits: int = 3
    note: str = ""  # a sentence below the fields, such as how to write the numbers
    rounds: tuple[int, ...] = ()  # positions of the whole numbers that the solution rounds
    direction: tuple[str, int] = (
        "",
        0,
    )  # a vector whose entries come first: its name, and how many there are

    @property
    def numbers(self) -> tuple[Number, ...]:
        """The numbers asked for, in order."""
        pairs = enumerate(zip(self.ask, self.right, strict=True))
        whole = [isinstance(right, int) and not self.within * right for right in self.right]
        return tuple(
            Number(name, right, whole[i], self.digits, self.within, i in self.rounds)
            for i, (name, right) in pairs
        )

    @property
    def parts(self) -> list[tuple[str, slice]]:
        """What is judged and gets a reply.

        This is the direction as a whole, and each other number alone.
        """
        name, entries = self.direction
        alone = [(number.name, slice(i, i + 1)) for i, number in enumerate(self.numbers)]
        return [(name, slice(entries)), *alone[entries:]] if entries else alone

    def judge(self, answer: Sequence[float | None]) -> list[str | None]:
        """Return a hint for each part: None if it is right, an empty one if nothing is given."""
        values = tuple(nan if number is None else number for number in answer)
        return [self._hint(values, part) for _, part in self.parts]

    def unreachable(self) -> Answer | None:
        """Return a known wrong answer that is accepted or gets another one's hint, or None."""
        return next((wrong for wrong, hint in self.hints if hint not in self.judge(wrong)), None)

    def _hint(self, answer: Answer, part: slice) -> str | None:
        """Return the hint for the whole answer if there is one, else that for the part alone."""
        numbers, mine = self.numbers[part], answer[part]
        if any(map(isnan, mine)):
            return "" if all(map(isnan, mine)) else MISSING
        if all(map(Number.accepts, numbers, mine)):
            return None
        known = [
            hint for hint in self.hints if not all(map(Number.accepts, numbers, hint[0][part]))
        ]
        whole = [
            hint
            for hint in known
            if all(self._matches(answer, hint[0], each) for _, each in self.parts)
        ]
        if not whole and not self._matches(answer, self.right, part) and self._swapped(answer):
            return ANOTHER_ORDER
        if fitting := whole or [hint for hint in known if self._matches(answer, hint[0], part)]:
            return min(fitting, key=lambda hint: _distance(mine, hint[0][part]))[
                1
            ]  # of equally near ones, the first
        rounded = all(
            n.accepts(value) or n.is_rounded(value) for n, value in zip(numbers, mine, strict=True)
        )
        return numbers[0].rounded_words if rounded else self.otherwise

    def _matches(self, answer: Answer, known: Answer, part: slice) -> bool:
        """Whether a part is that of a known answer.

        It must be near it, or in the case of a direction a multiple of it.
        """
        mine, wanted = answer[part], known[part]
        if len(mine) > 1:
            return is_multiple(mine, wanted)
        return self.numbers[part][0].is_common(*mine, *wanted)

    def _swapped(self, answer: Answer) -> bool:
        """Whether the right numbers are given, in whatever order."""
        numbers = sorted(self.numbers, key=lambda number: number.right)
        return all(
            map(Number.is_common, numbers, sorted(answer), [number.right for number in numbers])
        )


def _distance(answer: Answer, wrong: Answer) -> float:
    return sum(abs(g - w) / (abs(w) or 1) for g, w in zip(answer, wrong, strict=True))

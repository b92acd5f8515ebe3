r"""Work out the discriminant of two classes number by number: means, scatters, and the threshold between them.

Chapter ``book/03-family.md``; readers import ``linear_discriminant`` from ``lowrank_tutor.byhand``. Letters: $X_1$
and $X_2$ (in code ``a`` and ``b``) hold the points of two classes, one per row; $m_1$ and $m_2$ are their means, $T_1$
and $T_2$ their scatters, and $T_w$ the sum of these; $w$ is the axis, $\theta$ the threshold, and $w_0$ the direction
between the means.
"""

from typing import Any, NamedTuple

import sympy
from sympy import Matrix

from lowrank_tutor.byhand.exact import as_exact_matrix, check_length, without_common_factor
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_number
from lowrank_tutor.byhand.worked import Step, Worked


class Discriminant(NamedTuple):
    """Hold an axis (2, 1) and a threshold: a point x is in the second class if axisᵀ x is above the threshold."""

    axis: Matrix
    threshold: Any


def linear_discriminant(a: Any, b: Any) -> Worked:
    r"""Find the axis that best separates two classes of points in the plane, $w = T_w^{-1} (m_2 - m_1)$.

    No axis has a larger ratio of the squared gap between the two means to the scatter within the classes (Fisher, 1936,
    doi:10.1111/j.1469-1809.1936.tb02137.x). The plain difference of the means ignores how the points scatter, and is in
    general another direction.

    The values of the steps: the pair of means, each (2, 1); the scatter (2, 2) of each class; their sum; its inverse;
    the axis (2, 1), in whole numbers without a common factor and from a to b; the threshold, midway between the
    projected means; and the pair of ratios along the direction between the means and along the axis. The result is
    ``Discriminant(axis, threshold)``.

    Parameters
    ----------
    a : (n, 2) exact numbers
        The points of one class.
    b : (m, 2) exact numbers
        The points of the other class.

    Raises
    ------
    ValueError
        If the means coincide, or all points of both classes lie in one direction from their means.

    Examples
    --------
    >>> worked = linear_discriminant([[0, 2], [1, 1], [3, 1], [4, 0]], [[3, 2], [4, 1], [6, 1], [7, 0]])
    >>> worked.result
    Discriminant(axis=Matrix([
    [1],
    [2]]), threshold=11/2)
    >>> print(worked.steps[-1].plain)
    Compare: along the direction w0 between the means, 6 of 8 points are on the correct side. The squared gap over the
    scatter is 9/20; along w it is 9/4.
    """
    points = {"a": _points("a", a), "b": _points("b", b)}  # (n, 2), (m, 2)
    means = {name: _column_means(own) for name, own in points.items()}
    gap = means["b"] - means["a"]
    if gap.is_zero_matrix:
        raise ValueError(f"b must have another mean than a, got {tuple(means['b'])} for both")
    deviations = {name: own - sympy.ones(own.rows, 1) * means[name].T for name, own in points.items()}
    scatters = {name: own.T * own for name, own in deviations.items()}
    within = scatters["a"] + scatters["b"]
    if within.det() == 0:
        raise ValueError(
            f"a and b must spread in two directions around their means, got a scatter of rank {within.rank()}"
        )
    inverse = within.inv()
    check_length("a and b", (gap.T * inverse * gap)[0])
    axis, difference = _scaled(inverse * gap), _scaled(gap)
    cut = _cut(points, means, axis)
    steps = (
        _mean_step(means),
        *(_scatter_step(number, deviations[name], scatters[name]) for number, name in enumerate(points, start=1)),
        _within_step(scatters, within),
        _inverse_step(within, inverse),
        _axis_step(inverse, gap, axis),
        _cut_step(cut),
        _compare_step(within, gap, axis, difference, _cut(points, means, difference).tally),
    )
    return Worked(steps, Discriminant(axis, cut.threshold))


def _points(name: str, value: Any) -> Matrix:
    points = as_exact_matrix(name, value)
    if points.cols != 2:
        raise ValueError(f"{name} must hold points of two coordinates, got shape {points.shape}")
    return points


def _column_means(points: Matrix) -> Matrix:
    return (sympy.ones(1, points.rows) * points).T / points.rows


def _scaled(vector: Matrix) -> Matrix:
    """Scale to whole numbers without a common factor, keeping the direction."""
    scaled = without_common_factor(vector)
    return scaled if scaled.dot(vector) > 0 else -scaled


class _Cut(NamedTuple):
    """Hold both classes along an axis, and the threshold midway between their means."""

    low: Matrix  # the points of a, multiplied by the axis
    high: Matrix
    below: Any  # the mean of a, multiplied by it
    above: Any
    threshold: Any

    @property
    def tally(self) -> str:
        """Count the points on the correct side of the threshold, as in ``8 of 10``."""
        right = sum(bool(x < self.threshold) for x in self.low) + sum(bool(x > self.threshold) for x in self.high)
        return f"{right} of {len(self.low) + len(self.high)}"


def _cut(points: dict[str, Matrix], means: dict[str, Matrix], axis: Matrix) -> _Cut:
    below, above = axis.dot(means["a"]), axis.dot(means["b"])
    return _Cut(points["a"] * axis, points["b"] * axis, below, above, (below + above) / 2)


def _mean_step(means: dict[str, Matrix]) -> Step:
    return Step(
        "Average the points of each class, the rows of $X_1$ and of $X_2$, coordinate by coordinate.",
        tex_lines(*((f"m_{number}", tex_matrix(mean)) for number, mean in enumerate(means.values(), start=1))),
        tuple(means.values()),
    )


def _scatter_step(number: int, deviations: Matrix, scatter: Matrix) -> Step:
    return Step(
        f"Subtract the mean $m_{number}$ from each row of $X_{number}$. The transpose of the result times the result "
        f"is the scatter $T_{number}$.",
        tex_lines(
            (rf"X_{number} - 1 m_{number}^\top", tex_matrix(deviations)),
            (f"T_{number}", f"{tex_matrix(deviations.T)} {tex_matrix(deviations)}"),
            ("", tex_matrix(scatter)),
        ),
        scatter,
    )


def _within_step(scatters: dict[str, Matrix], within: Matrix) -> Step:
    return Step(
        "Add the two. This is the scatter within the classes.",
        f"T_w = T_1 + T_2 = {tex_matrix(scatters['a'])} + {tex_matrix(scatters['b'])} = {tex_matrix(within)}",
        within,
    )


def _inverse_step(matrix: Matrix, inverse: Matrix) -> Step:
    determinant = matrix.det()
    (p, q), (r, s) = matrix.tolist()
    swapped = Matrix([[s, -q], [-r, p]])
    product = rf"{tex_factor(p)} \cdot {tex_factor(s)} - {tex_factor(q)} \cdot {tex_factor(r)}"
    fraction = "" if determinant == 1 else rf"\frac{{1}}{{{tex_number(determinant)}}} "
    return Step(
        "Invert it: swap the diagonal, change the other two signs, divide by the determinant.",
        tex_lines(
            (r"\det T_w", f"{product} = {tex_number(determinant)}"),
            ("T_w^{-1}", f"{fraction}{tex_matrix(swapped)}"),
            ("", tex_matrix(inverse)),
        ),
        inverse,
    )


def _axis_step(inverse: Matrix, gap: Matrix, axis: Matrix) -> Step:
    return Step(
        "Multiply the inverse by the difference of the means. In whole numbers without a common factor, this is the "
        "axis $w$.",
        tex_lines(
            ("m_2 - m_1", tex_matrix(gap)),
            ("T_w^{-1} (m_2 - m_1)", f"{tex_matrix(inverse)} {tex_matrix(gap)} = {tex_matrix(inverse * gap)}"),
            ("w", tex_matrix(axis)),
        ),
        axis,
    )


def _cut_step(cut: _Cut) -> Step:
    below, above, middle = tex_number(cut.below), tex_factor(cut.above), tex_number(cut.threshold)
    return Step(
        "Multiply each point and each mean by $w$. The threshold lies midway between the means, and the second class "
        f"belongs above it: {cut.tally} points are on the correct side.",
        tex_lines(
            (r"w^\top X_1^\top", tex_matrix(cut.low.T)),
            (r"w^\top X_2^\top", tex_matrix(cut.high.T)),
            (r"w^\top m_1", below),
            (r"w^\top m_2", tex_number(cut.above)),
            (r"\theta", rf"\frac{{1}}{{2}} \left( {below} + {above} \right) = {middle}"),
        ),
        cut.threshold,
    )


def _compare_step(within: Matrix, gap: Matrix, axis: Matrix, difference: Matrix, count: str) -> Step:
    """Compare the direction between the means with the axis."""

    def ratio(direction: Matrix) -> tuple[Any, str]:
        apart, scatter = direction.dot(gap), (direction.T * within * direction)[0]
        value = apart**2 / scatter
        return value, rf"\frac{{{tex_number(apart)}^2}}{{{tex_number(scatter)}}} = {tex_number(value)}"

    (plain, plain_line), (best, best_line) = ratio(difference), ratio(axis)
    lines = tex_lines(
        ("w_0", tex_matrix(difference)),
        (r"\frac{(w_0^\top (m_2 - m_1))^2}{w_0^\top T_w w_0}", plain_line),
        (r"\frac{(w^\top (m_2 - m_1))^2}{w^\top T_w w}", best_line),
    )
    if difference == axis:
        sentence = (
            f"Compare: $w_0$, along the difference of the means, is the same direction, with the same ratio {best}."
        )
    else:
        sentence = (
            f"Compare: along the direction $w_0$ between the means, {count} points are on the correct side. The "
            f"squared gap over the scatter is {plain}; along $w$ it is {best}."
        )
    return Step(sentence, lines, (plain, best))

r"""Work out exact singular values and vectors of a 2 by 2 matrix, in the simplest roots.

Chapter ``book/02-svd-pca.md``; readers import ``svd_2x2`` from ``lowrank_tutor.byhand``. Letters: A
is the matrix; $\sigma_i, u_i, v_i$ are singular values and vectors.
"""

from typing import Any, NamedTuple

import sympy
from sympy import Matrix, sqrt

from lowrank_tutor.byhand.exact import as_exact_matrix, without_common_factor
from lowrank_tutor.byhand.tex import tex_factor, tex_lines, tex_matrix, tex_number
from lowrank_tutor.byhand.worked import Step, Worked


class ExactSVD(NamedTuple):
    """Factors of a 2 by 2 matrix, a = u · diag(s) · vt: ``u`` and ``vt`` (2, 2), ``s`` a pair."""

    u: Matrix
    s: tuple[Any, Any]
    vt: Matrix


def svd_2x2(a: Any) -> Worked:
    r"""Work out the exact SVD of a 2 by 2 matrix ``a``, $A = U \Sigma V^\top$.

    The eigenvalues of $A^\top A$ are the squares of the singular values, its eigenvectors the
    columns $v_i$ of V, and $u_i = A v_i / \sigma_i$. A singular value never needs a root inside a
    root, because $(\sigma_1 \pm \sigma_2)^2 = \operatorname{tr} A^\top A \pm 2 |\det A|$. The first
    non-zero entry of each $v_i$ is positive, and of $u_i$ too where A does not determine it
    ($\sigma_i = 0$). Where all directions are eigenvectors, the axes are taken. Source: Golub and
    Van Loan (2013), *Matrix Computations*, section 2.4.

    The values of the steps: AᵀA; its characteristic polynomial in ``Symbol("lambda")``; the pair of
    eigenvalues; the pair of singular values; the columns v1, v2, u1, u2; the product, which is
    ``a`` again. The result is ``ExactSVD(u, s, vt)``.

    >>> svd_2x2([[3, 0], [4, 5]]).result.s
    (3*sqrt(5), sqrt(5))
    >>> svd_2x2([[1, 1], [0, 1]]).result.s  # the golden ratio and its inverse
    (1/2 + sqrt(5)/2, -1/2 + sqrt(5)/2)
    """
    matrix = as_exact_matrix("a", a, (2, 2))
    gram = matrix.T * matrix
    trace, determinant = gram.trace(), gram.det()
    root = sqrt(trace**2 - 4 * determinant)
    eigenvalues = (sympy.expand((trace + root) / 2), sympy.expand((trace - root) / 2))
    sigmas = (square_root(eigenvalues[0]), square_root(eigenvalues[1]))
    directions = eigenvectors(gram, eigenvalues)
    right = [unit_vector(x) for x in directions]
    left = [
        unit_vector(matrix * x) for x, sigma in zip(directions, sigmas, strict=True) if sigma != 0
    ]
    if not left:
        left.append(Matrix([1, 0]))
    if len(left) == 1:
        left.append(perpendicular(left[0]))
    sheets = [svd_layer(*factors) for factors in zip(eigenvalues, left, right, strict=True)]
    total = (sheets[0] + sheets[1]).applyfunc(sympy.expand)
    result = ExactSVD(Matrix.hstack(*left), sigmas, Matrix.hstack(*right).T)

    steps = [
        Step(
            r"Multiply $A^\top$ by $A$.",
            rf"A^\top A = {tex_matrix(matrix.T)} {tex_matrix(matrix)} = {tex_matrix(gram)}",
            gram,
        ),
        _polynomial_step(gram),
        _eigenvalue_step(trace, determinant, eigenvalues),
        Step(
            "Their square roots are the singular values.", _sigma_lines(eigenvalues, sigmas), sigmas
        ),
        *(_right_step(i + 1, gram, eigenvalues[i], directions[i], right[i]) for i in (0, 1)),
        *(_left_step(i + 1, matrix, sigmas[i], right[i], left[i]) for i in (0, 1)),
    ]
    check = tex_lines(
        ("U", tex_matrix(result.u)),
        (r"\Sigma", tex_matrix(sympy.diag(*sigmas))),
        (r"V^\top", tex_matrix(result.vt)),
        (r"U \Sigma V^\top", r"\sigma_1 u_1 v_1^\top + \sigma_2 u_2 v_2^\top"),
        ("", f"{tex_matrix(sheets[0])} + {tex_matrix(sheets[1])}"),
        ("", f"{tex_matrix(total)} = A"),
    )
    steps.append(Step("Put the factors together: the two sheets add up to $A$.", check, total))
    return Worked(tuple(steps), result)


def _polynomial_step(gram: Matrix) -> Step:
    unknown = sympy.Symbol("lambda")
    polynomial = unknown**2 - gram.trace() * unknown + gram.det()
    product = "".join(f"({tex_number(gram[i, i])} - \\lambda)" for i in (0, 1))
    crossed = rf"{tex_factor(gram[0, 1])} \cdot {tex_factor(gram[1, 0])}"
    sentence = (
        r"Subtract $\lambda$ along the diagonal. The determinant is the characteristic polynomial."
    )
    lines = tex_lines(
        (r"\det (A^\top A - \lambda I)", f"{product} - {crossed}"), ("", sympy.latex(polynomial))
    )
    return Step(sentence, lines, polynomial)


def _eigenvalue_step(trace: Any, determinant: Any, eigenvalues: tuple[Any, Any]) -> Step:
    inside = rf"{tex_factor(trace)}^2 - 4 \cdot {tex_number(determinant)}"
    lines = [
        (r"\lambda", rf"\frac{{1}}{{2}} \left( {tex_number(trace)} \pm \sqrt{{{inside}}} \right)"),
        *((rf"\lambda_{i}", tex_number(value)) for i, value in enumerate(eigenvalues, start=1)),
    ]
    return Step(
        r"Its two roots are the eigenvalues of $A^\top A$, the larger one first.",
        tex_lines(*lines),
        eigenvalues,
    )


def _sigma_lines(eigenvalues: tuple[Any, Any], sigmas: tuple[Any, Any]) -> str:
    lines = []
    for i, (eigenvalue, sigma) in enumerate(zip(eigenvalues, sigmas, strict=True), start=1):
        forms = [rf"\sqrt{{{tex_number(eigenvalue)}}}", tex_number(sigma)]
        lines.append(
            (rf"\sigma_{i}", " = ".join(dict.fromkeys(forms)))
        )  # one form where both are the same
    return tex_lines(*lines)


def _right_step(i: int, gram: Matrix, eigenvalue: Any, direction: Matrix, unit: Matrix) -> Step:
    shifted = (gram - eigenvalue * sympy.eye(2)).applyfunc(sympy.expand)
    length = square_root(sympy.expand(direction.dot(direction)))
    if shifted.is_zero_matrix:
        sentence = (
            r"Every direction is an eigenvector, because $A^\top A$ is a multiple of $I$. "
            f"Take axis {i} as $v_{i}$."
        )
    else:
        sentence = f"Find an eigenvector $x_{i}$, and divide it by its length: this is $v_{i}$."
    lines = tex_lines(
        (rf"(A^\top A - \lambda_{i} I) x_{i}", rf"{tex_matrix(shifted)} x_{i} = 0"),
        (f"x_{i}", tex_matrix(direction)),
        (rf"\lVert x_{i} \rVert", tex_number(length)),
        (rf"v_{i}", tex_matrix(unit)),
    )
    return Step(sentence, lines, unit)


def _left_step(i: int, matrix: Matrix, sigma: Any, right: Matrix, left: Matrix) -> Step:
    if sigma != 0:
        fraction = rf"\frac{{1}}{{{tex_number(sigma)}}}"
        lines = tex_lines(
            (rf"u_{i}", rf"\frac{{1}}{{\sigma_{i}}} A v_{i}"),
            ("", f"{fraction} {tex_matrix(matrix)} {tex_matrix(right)}"),
            ("", tex_matrix(left)),
        )
        return Step(
            f"Multiply $A$ by $v_{i}$, and divide by singular value {i}: this is $u_{i}$.",
            lines,
            left,
        )
    free = "any unit vector will do" if i == 1 else "take a unit vector at a right angle to $u_1$"
    sentence = f"Singular value {i} is zero, so $A$ does not determine $u_{i}$: {free}."
    return Step(sentence, rf"A v_{i} = 0, \qquad u_{i} = {tex_matrix(left)}", left)


# Before svd_2x2 takes square roots, it meets only numbers x + y√D, with rational x, y and one fixed
# D. This form keeps it fast and exact; a general simplifier is neither.


def _sign(number: Any) -> int:
    """Return the sign of x + y√D, decided by rational arithmetic."""
    rational, rest = number.as_coeff_Add()
    y_sign = int(sympy.sign(rest.as_coeff_Mul()[0]))
    if rational == 0 or rational * y_sign > 0:
        return y_sign
    return int(sympy.sign(rational)) if rational**2 > sympy.expand(rest**2) else y_sign


def square_root(number: Any) -> Any:
    """Return the square root of x + y√D >= 0, as √a ± √b with rational a and b if these exist.

    They exist if n = √(x² - y²D) is rational: then a, b = (x ± n)/2.
    """
    rational, rest = number.as_coeff_Add()
    norm = sqrt(rational**2 - sympy.expand(rest**2))
    if not norm.is_Rational:
        return sqrt(number)
    return sqrt((rational + norm) / 2) + _sign(rest) * sqrt((rational - norm) / 2)


def eigenvectors(gram: Matrix, eigenvalues: tuple[Any, Any]) -> list[Matrix]:
    """Find an eigenvector of a symmetric 2 by 2 matrix for each eigenvalue.

    If every direction is one, take the axes.
    """
    if gram[0, 1] == 0:
        axes = [Matrix([1, 0]), Matrix([0, 1])]
        return axes if gram[0, 0] >= gram[1, 1] else axes[::-1]
    slopes = [sympy.expand((eigenvalue - gram[0, 0]) / gram[0, 1]) for eigenvalue in eigenvalues]
    return [without_common_factor(Matrix([1, slope])) for slope in slopes]


def unit_vector(vector: Matrix) -> Matrix:
    """Divide a vector of numbers x + y√D by its length."""
    squares = vector.applyfunc(lambda entry: sympy.expand(entry**2))
    length = sympy.expand(sum(squares))
    return Matrix(
        [
            _sign(sympy.expand(entry)) * square_root(sympy.expand(sympy.radsimp(square / length)))
            for entry, square in zip(vector, squares, strict=True)
        ]
    )


def perpendicular(unit: Matrix) -> Matrix:
    """Turn a unit vector by a right angle; its first non-zero entry is positive."""
    turned = Matrix([-unit[1], unit[0]])
    return turned * next(_sign(entry) for entry in turned if entry != 0)


def svd_layer(eigenvalue: Any, left: Matrix, right: Matrix) -> Matrix:
    """Multiply out √λ u vᵀ. Each entry is again x + y√D, found from its square."""

    def entry(row: int, column: int) -> Any:
        square = sympy.expand(
            eigenvalue * sympy.expand(left[row] ** 2) * sympy.expand(right[column] ** 2)
        )
        return _sign(left[row]) * _sign(right[column]) * square_root(square)

    return Matrix(2, 2, entry)

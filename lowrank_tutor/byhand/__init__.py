r"""Worked examples, as you would write them with pencil and paper: every step, exactly.

Chapters ``book/01-rank.md``, ``book/02-svd-pca.md``, ``book/05-bilinear-scoring.md``,
``book/06-attention.md`` and ``book/07-linformer.md``. Each function returns ``Worked(steps,
result)``: a notebook shows numbered steps, a sentence and a formula each; a terminal shows the same
steps as text. Letters: ``a`` is the matrix, called A in the formulas; $\sigma_i, u_i, v_i$ are its
singular values and vectors; ``s`` and ``h`` are scored by way of ``u`` and ``v``. In attention,
``q``, ``k`` and ``v`` are queries, keys and values, a row for each token; ``e`` compresses keys and
values; P is the matrix of weights, $p_i^\top$ its row i. Rows, columns and steps count from 1.

Numbers must be exact: integers, ``Fraction``, SymPy rationals, strings such as ``"1/3"`` or
``"0.1"``, or NumPy arrays of integers. Floats are refused, whole ones too, because they may have
been rounded before: the float 0.1 is not 1/10. A matrix has at most 12 rows and columns, and
examples that would fill the page with digits are refused too.

A page that MyST-NB builds shows the formulas if it has ``nb_render_markdown_format = "myst"`` and
``"dollarmath"`` in ``myst_enable_extensions``. ``lowrank_tutor.kit.sphinxext`` sets the first.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.byhand.attention import linformer_attention, softmax_attention
    from lowrank_tutor.byhand.matrices import OuterProduct, bilinear, rank_one, row_reduce
    from lowrank_tutor.byhand.singular_values import ExactSVD, svd_2x2
    from lowrank_tutor.byhand.worked import Step, Worked

__all__ = [
    "ExactSVD", "OuterProduct", "Step", "Worked", "bilinear", "linformer_attention", "rank_one",
    "row_reduce", "softmax_attention", "svd_2x2",
]  # fmt: skip

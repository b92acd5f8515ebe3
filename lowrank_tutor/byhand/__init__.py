r"""Worked examples, as you would write them with pencil and paper: every step, exactly.

Chapters ``book/01-rank.md``, ``book/02-svd-pca.md``, ``book/03-family.md``, ``book/05-bilinear-scoring.md``,
``book/07-linformer.md``, ``book/08-caches.md`` and ``book/09-states.md``. Each function returns
``Worked(steps, result)``: a notebook shows numbered steps, a sentence and a formula each; a terminal shows the same
steps as text. Letters: ``a`` is the matrix, called A in the formulas; ``w`` a map (k, d) applied to ``x``; $R_i$ is
row i; $\sigma_i, u_i, v_i$ are singular values and vectors; ``s`` and ``h`` are scored by way of ``u`` and ``v``. W and
H are non-negative factors, P and Q those of a table R with gaps. In attention, ``q``, ``k`` and ``v`` are queries, keys
and values, a row for each token; ``e`` and ``f`` compress keys and values; P is the matrix of weights, $p_i^\top$ its
row i. In chapter 8 ``c`` are latents, and ``w_uk`` turns them into keys; ``b`` and ``a`` are the update of a weight. In
chapter 9 keys ``k`` and values ``v`` are written into a state S; in ``semiseparable`` ``a`` are decays. Rows, columns
and steps count from 1.

Numbers must be exact: integers, ``Fraction``, SymPy rationals, strings such as ``"1/3"`` or ``"0.1"``, or NumPy arrays
of integers. Floats are refused, whole ones too, because they may have been rounded before: the float 0.1 is not 1/10. A
matrix has at most 12 rows and columns, and examples that would fill the page with digits are refused too.

A page that MyST-NB builds shows the formulas if it has ``nb_render_markdown_format = "myst"`` and ``"dollarmath"`` in
``myst_enable_extensions``. ``lowrank_tutor.kit.sphinxext`` sets the first, and says so where the second is missing.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.byhand.attention import linformer_attention, softmax_attention
    from lowrank_tutor.byhand.caches import latent_scores, lora
    from lowrank_tutor.byhand.discriminants import Discriminant, linear_discriminant
    from lowrank_tutor.byhand.matrices import OuterProduct, bilinear, rank_one, row_reduce
    from lowrank_tutor.byhand.nonnegative import NonnegativeFactors, nmf_update
    from lowrank_tutor.byhand.ratings import als_half_step
    from lowrank_tutor.byhand.singular_values import ExactSVD, svd_2x2
    from lowrank_tutor.byhand.states import delta_rule, semiseparable
    from lowrank_tutor.byhand.worked import Step, Worked

__all__ = [
    "Discriminant", "ExactSVD", "NonnegativeFactors", "OuterProduct", "Step", "Worked", "als_half_step", "bilinear",
    "delta_rule", "latent_scores", "linear_discriminant", "linformer_attention", "lora", "nmf_update", "rank_one",
    "row_reduce", "semiseparable", "softmax_attention", "svd_2x2",
]  # fmt: skip
__dir__ = __all__.copy  # completion offers no more than that

r"""Keep a few directions for a purpose: for the spread, the classes, the parts, or the entries that are known.

Chapter ``book/03-family.md``. Letters: ``x`` is (n, d), one point a row; ``k`` the rank kept; ``w`` (n, k) and
``h`` (k, d) are non-negative factors, $X \approx W H$; ``p`` (n, k) and ``q`` (m, k) the factors of a table of ratings
with gaps, $R \approx P Q^\top$.

Float32 gives float32; everything else float64. PCA, which keeps the spread, is in ``pca``. ``Autoencoder`` is PyTorch;
the rest is NumPy, and importing this module imports no torch.
"""

from typing import TYPE_CHECKING

from lowrank_tutor._on_demand import on_demand
from lowrank_tutor.family.discriminants import Discriminants, lda
from lowrank_tutor.family.nonnegative import NMF, nmf
from lowrank_tutor.family.ratings import RatingFactors, factorize_ratings

if TYPE_CHECKING:
    from lowrank_tutor.family.autoencoder import Autoencoder

__all__ = ["NMF", "Autoencoder", "Discriminants", "RatingFactors", "factorize_ratings", "lda", "nmf"]

__getattr__, __dir__ = on_demand(__name__, "autoencoder")

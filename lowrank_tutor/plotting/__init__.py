"""What does it look like? Every figure of the book, drawn in one style.

Each function returns a matplotlib figure that is not registered with pyplot, so that a notebook shows it once, where it
is the last line of a cell. Letters: ``a`` is (m, n); ``s`` its singular values, largest first; ``k`` the rank kept.
"""

from lowrank_tutor.plotting.charts import cloud, curves, ellipse, histogram, trade_off
from lowrank_tutor.plotting.pictures import attention_cut, digits_cut, equation, images, images_and_curves, photo_cut
from lowrank_tutor.plotting.spectra import denoise_cut, spectra_and_errors, spectrum, spectrum_cut
from lowrank_tutor.plotting.style import styled

__all__ = [
    "attention_cut",
    "cloud",
    "curves",
    "denoise_cut",
    "digits_cut",
    "ellipse",
    "equation",
    "histogram",
    "images",
    "images_and_curves",
    "photo_cut",
    "spectra_and_errors",
    "spectrum",
    "spectrum_cut",
    "styled",
    "trade_off",
]

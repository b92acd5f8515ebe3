"""What does it look like? Every figure of the book, drawn in one style.

Each function returns a matplotlib figure, or :class:`Panels`, several that stand side by side where there is room and
one below the other on a phone. None is registered with pyplot, so that a notebook shows each once, where it is the last
line of a cell. Letters: ``a`` is (m, n); ``s`` its singular values, largest first; ``k`` the rank kept.
"""

from lowrank_tutor.plotting.charts import cloud, curves, dots, ellipse, histogram, trade_off
from lowrank_tutor.plotting.pictures import attention_cut, digits_cut, equation, images, images_and_curves, photo_cut
from lowrank_tutor.plotting.spectra import denoise_cut, spectra_and_errors, spectrum, spectrum_cut
from lowrank_tutor.plotting.style import Panels, legend_above, panel, photograph, styled

__all__ = [
    "Panels",
    "attention_cut",
    "cloud",
    "curves",
    "denoise_cut",
    "digits_cut",
    "dots",
    "ellipse",
    "equation",
    "histogram",
    "images",
    "images_and_curves",
    "legend_above",
    "panel",
    "photo_cut",
    "photograph",
    "spectra_and_errors",
    "spectrum",
    "spectrum_cut",
    "styled",
    "trade_off",
]

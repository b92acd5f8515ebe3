"""What does it look like? Every figure of the book, drawn in one style.

Each function returns a matplotlib figure, or :class:`Panels`, several that stand side by side where there is room and
one below the other on a phone. None is registered with pyplot, so that a notebook shows each once, where it is the last
line of a cell. Letters: ``a`` is (m, n); ``s`` its singular values, largest first; ``k`` the rank kept.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.plotting.arrows import arrows_in_space, shadow
    from lowrank_tutor.plotting.charts import cloud, curves, dots, ellipse, histogram
    from lowrank_tutor.plotting.compared import bars, by_name, weights_and_curves, weights_spectra_and_errors
    from lowrank_tutor.plotting.layers import (
        above_level,
        gray_picture,
        layers_and_sums,
        noise_cut,
        numbers_and_direction,
    )
    from lowrank_tutor.plotting.maps import (
        classes_and_axes,
        digits_and_blocks,
        dimensions_needed,
        mean_of_bars,
        one_of_several,
        pairs,
        shadows,
    )
    from lowrank_tutor.plotting.pictures import (
        attention_cut,
        digits_cut,
        equation,
        images,
        images_and_curves,
        photo_cut,
    )
    from lowrank_tutor.plotting.rooflines import rooflines
    from lowrank_tutor.plotting.sequences import boxes, grids, sharing
    from lowrank_tutor.plotting.spectra import spectrum, spectrum_cut
    from lowrank_tutor.plotting.style import Panels, legend_above, panel, photograph, styled
    from lowrank_tutor.plotting.words import clouds, rankings, word_maps, word_points

__all__ = [
    "Panels",
    "above_level",
    "arrows_in_space",
    "attention_cut",
    "bars",
    "boxes",
    "by_name",
    "classes_and_axes",
    "cloud",
    "clouds",
    "curves",
    "digits_and_blocks",
    "digits_cut",
    "dimensions_needed",
    "dots",
    "ellipse",
    "equation",
    "gray_picture",
    "grids",
    "histogram",
    "images",
    "images_and_curves",
    "layers_and_sums",
    "legend_above",
    "mean_of_bars",
    "noise_cut",
    "numbers_and_direction",
    "one_of_several",
    "pairs",
    "panel",
    "photo_cut",
    "photograph",
    "rankings",
    "rooflines",
    "shadow",
    "shadows",
    "sharing",
    "spectrum",
    "spectrum_cut",
    "styled",
    "weights_and_curves",
    "weights_spectra_and_errors",
    "word_maps",
    "word_points",
]

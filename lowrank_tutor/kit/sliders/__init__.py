"""Figures with sliders, from one call, for a kernel and for a page.

In a live kernel an :class:`Explorer` is ordinary ipywidgets, and redraws while a slider is
dragged. On a page that is being built (see ``lowrank_tutor.kit.sphinxext``) it is one
self-contained HTML block: native inputs, pictures of every position, a few lines of script. That
block needs no kernel, no library and no network.
"""

from lowrank_tutor._on_demand import needed

with needed(__name__):
    from lowrank_tutor.kit.sliders.explorer import Explorer
    from lowrank_tutor.kit.sliders.sliders import explore

__all__ = ["Explorer", "explore"]

"""For whom a cell runs: for a person at a kernel, or for a page that is being built.

The variables are set by :mod:`lowrank_tutor.kit.sphinxext`; kernels that a build starts inherit
them.
"""

import os
import sys
from typing import Any

PAGE_VARIABLE = "LOWRANK_TUTOR_PAGE"
LINKED_VARIABLE = (
    "LOWRANK_TUTOR_LINKED"  # 1 where the page loads scripts and styles as files of its site
)


def page_is_built() -> bool:
    """Whether a cell runs for a page, not for a person."""
    setting = os.environ.get(PAGE_VARIABLE) or "0"
    if setting not in {"0", "1"}:
        raise ValueError(
            f"{PAGE_VARIABLE} must be 1 (a page is being built), 0 or unset, got {setting!r}"
        )
    return setting == "1"


def page_links_files() -> bool:
    """Whether the page that is being built loads the scripts and styles of its blocks itself."""
    return page_is_built() and os.environ.get(LINKED_VARIABLE) == "1"


def somebody_is_there() -> bool:
    """Whether a person may be at the kernel, and move a slider after its cell has run.

    Not while a page is built; and not where nobody could answer a question of the program either.
    Tools that execute a notebook for later readers (nbconvert, papermill, MyST-NB) say so in every
    request: its ``allow_stdin`` is false.
    """
    if os.environ.get(PAGE_VARIABLE):
        return not page_is_built()
    ipython: Any = sys.modules.get("IPython")
    kernel: Any = getattr(ipython and ipython.get_ipython(), "kernel", None)
    request = (kernel.get_parent() if hasattr(kernel, "get_parent") else None) or {}
    return bool(request.get("content", {}).get("allow_stdin", True))

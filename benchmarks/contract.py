"""What may one rely on in a layer of linear attention? The same promises, tried on every package that can be installed.

``python -m benchmarks.contract`` prints which package keeps which promise and writes two records: of Linformer
(``lowrank_tutor/data/linformer_contract.json``; its promises stand in ``promises_linformer``) and of kernel attention
(``kernel_contract.json``; ``promises_kernel``), both for the page of packages. Each package is used as its README says.
A promise has one of four outcomes: it **holds**, it **fails**, it is **not offered** (the package has no such feature,
or says that it has none: a limit, not a fault), or trying it is an **error**. To try another package, add an adapter to
``adapters_linformer`` or ``adapters_kernel``.
"""

import sys

import torch

from benchmarks.promises import keep_record
from benchmarks.promises_kernel import KERNEL
from benchmarks.promises_linformer import LINFORMER

COMMAND = "python -m benchmarks.contract"
FAMILIES = (LINFORMER, KERNEL)


def main() -> int:
    """Try all, print and write; the exit status tells whether our own layers and functions keep every promise."""
    torch.set_num_threads(1)  # many tiny operations, none timed
    return 0 if all([keep_record(family, COMMAND) for family in FAMILIES]) else 1


if __name__ == "__main__":
    sys.exit(main())

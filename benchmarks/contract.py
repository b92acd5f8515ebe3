"""Test what published packages promise: the same questions, asked of each package that can be installed.

``python -m benchmarks.contract`` asks layers of Linformer and functions of kernel attention, and writes
``lowrank_tutor/data/linformer_contract.json`` and ``kernel_contract.json`` for the page of packages.
``python -m benchmarks.contract caches`` asks adapters, latents and states, and writes ``caches_contract.json`` for
chapter 8; it needs ``requirements-peers.txt``, which is 200 MB and takes 20 seconds to import. Each package is used as
its README says. A promise has one of four outcomes: it **holds**, it **fails**, it is **not offered** (the package has
no such feature, or says that it has none: a limit, not a fault), or trying it is an **error**. To ask another package,
add it to one of the ``adapters_*``.
"""

import sys

import torch

from benchmarks.promises import keep_record
from benchmarks.promises_caches import CACHES
from benchmarks.promises_kernel import KERNEL
from benchmarks.promises_linformer import LINFORMER

FAMILIES = {"linformer": LINFORMER, "kernel": KERNEL, "caches": CACHES}


def main(chosen: list[str]) -> int:
    """Ask, print and write; the exit status says whether our own layers and functions keep every promise."""
    torch.set_num_threads(1)  # many tiny operations, none timed
    command = " ".join(["python -m benchmarks.contract", *chosen])
    return 0 if all([keep_record(FAMILIES[name], command) for name in chosen or ("linformer", "kernel")]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What may one rely on in adapters, latents and states? The same promises, tried on packages of today.

``python -m benchmarks.contract_today`` prints which package keeps which promise and writes
``lowrank_tutor/data/today_contract.json``, for chapter 8. It needs what ``requirements-peers.txt`` names, apart from
the other contracts because that takes 200 MB and, to import, 20 seconds.
"""

import sys

import torch

from benchmarks.promises import keep_record
from benchmarks.promises_today import TODAY

COMMAND = "python -m benchmarks.contract_today"


def main() -> int:
    """Try all, print and write; the exit status tells whether our own layers and functions keep every promise."""
    torch.set_num_threads(1)  # many tiny operations, none timed
    return 0 if keep_record(TODAY, COMMAND) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measure the peak memory of a function: on a CPU by watching every tensor that it makes.

What kernels keep inside while they run is not seen on a CPU; PyTorch's CUDA allocator sees it too.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary


class LiveBytes(TorchDispatchMode):
    """Count the bytes of the tensors made inside that still live, and their peak.

    It gives the same in every run. A storage is counted once, when it first comes out of an
    operation, and until nothing refers to it: so views and results written in place add nothing,
    and tensors that autograd keeps count as long as it keeps them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known = WeakIdKeyDictionary()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for storage in _storages((args, kwargs)):  # there before, so not made here
            self._known.setdefault(storage, True)
        result = func(*args, **(kwargs or {}))
        for storage in _storages(result):
            if storage not in self._known:
                self._known[storage] = True
                self._add(storage.nbytes())
                weakref.finalize(storage, self._add, -storage.nbytes())
        return result

    def _add(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)


def _storages(tree: Any) -> list[torch.UntypedStorage]:
    return [leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def peak_bytes(function: Callable[[], Any], device: torch.device) -> int:
    """Run a function once, and return the most that it held beyond what was held before."""
    if device.type != "cuda":
        with LiveBytes() as memory:
            function()
        return memory.peak
    function()  # libraries take their work space in the first call, and keep it
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    function()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before

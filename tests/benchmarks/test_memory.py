"""The peak of memory is counted by hand: what lives at once counts, and nothing else does."""

import torch

from benchmarks.adapters_linformer import Ours, Size
from benchmarks.memory import LiveBytes, peak_bytes

CPU = torch.device("cpu")


def test_the_peak_is_the_most_that_lives_at_once():
    def one_after_another():
        first = torch.zeros(1000)
        del first
        return torch.zeros(600)

    def together():
        return torch.zeros(1000), torch.zeros(600)

    assert peak_bytes(lambda: torch.zeros(1000), CPU) == 4000
    assert peak_bytes(one_after_another, CPU) == 4000
    assert peak_bytes(together, CPU) == 6400
    assert peak_bytes(lambda: torch.zeros(1000, dtype=torch.bfloat16), CPU) == 2000


def test_what_was_there_before_and_what_is_written_in_place_does_not_count():
    x = torch.zeros(1000)
    for function in (lambda: x.add_(1), lambda: x.view(10, 100)[2:].T, lambda: torch.add(x, 1, out=x), lambda: x):
        assert peak_bytes(function, CPU) == 0
    assert peak_bytes(lambda: (x + 1).mul_(2).view(10, 100), CPU) == 4000


def test_intermediate_results_count_while_they_live():
    x = torch.zeros(1000)
    assert peak_bytes(lambda: (x + 1) * 2 + 3, CPU) == 8000
    assert peak_bytes(lambda: (x + 1) @ (x + 2), CPU) == 8004


def test_what_autograd_keeps_counts_as_long_as_it_keeps_it():
    w = torch.zeros(1000, requires_grad=True)
    with LiveBytes() as memory:
        result = w.exp().sin().cos()  # each keeps what it was given: two of the three results, and the last
        assert memory.live == 12000
        del result
        assert memory.live == 0
        assert memory.peak == 12000


def test_two_runs_give_the_same_peak():
    layer, x = Ours().plain(Size(16, 2, 32, 8)), torch.zeros(2, 32, 16)
    first, second = (peak_bytes(lambda: layer(x).sum().backward(), CPU) for _ in range(2))
    layer.zero_grad()
    assert peak_bytes(lambda: layer(x).sum().backward(), CPU) == first
    assert second < first  # the gradients are there already

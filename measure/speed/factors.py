"""Time a linear layer beside its two factors, and see below which rank the factors are faster.

``python -m measure.speed.factors`` writes ``lowrank_tutor/data/factors.json``. The layer is
4,096 x 4,096, in float32, on one thread, without a bias. A row has the seconds of the layer and of
the factors, medians of runs in turn, the quartiles of each, and the layer's median over the
factors': above 1 the factors are faster. Seconds are those that this process computed.
"""

import torch
from torch.nn.functional import linear

from measure.harness import interleaved, processor_clock, provenance, say_if_busy, write

D, RANKS, TOKENS = 4096, (2048, 1024, 512, 256), {1: 60, 16: 30, 512: 9}  # and the runs of each


def main() -> None:
    """Measure, print and write."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    meta, rows = provenance("python -m measure.speed.factors", ["torch"]), []
    meta["machine"] |= {"threads": 1}
    say_if_busy(meta["machine"])
    weight = torch.randn(D, D) / D**0.5
    factors = {k: (torch.randn(k, D) / D**0.5, torch.randn(D, k) / k**0.5) for k in RANKS}
    for tokens, runs in TOKENS.items():
        x = torch.randn(tokens, D)
        calls = {D: lambda _, x=x: linear(x, weight)}
        for k, (down, up) in factors.items():
            calls[k] = lambda _, x=x, down=down, up=up: linear(linear(x, down), up)
        with torch.no_grad():
            timed = interleaved(calls, runs, lambda y: y.shape, clock=processor_clock)
        for k in RANKS:
            row = {"tokens": tokens, "rank": k, "runs": runs}
            row["ratio"] = round(timed[D].median / timed[k].median, 3)
            for name, timing in (("layer", timed[D]), ("factors", timed[k])):
                row[f"time_{name}"] = round(timing.median, 6)
                row[f"quartiles_{name}"] = [round(time, 6) for time in timing.quartiles]
            rows.append(row)
            print(row, flush=True)
    print(f"written: {write('factors', meta, rows).name}")


if __name__ == "__main__":
    main()

"""One sequence over three processes against one process: scenarios in a table, run by one start of this file."""

import itertools
import json
import os
import re
import subprocess
import sys
import traceback
import warnings
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch._dynamo  # DistributedDataParallel would load it in each process
from torch import distributed, nn
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from lowrank_tutor.layers import LinformerEncoderLayer
from lowrank_tutor.linformer import LinformerSelfAttention, pooling_projection
from lowrank_tutor.shards import ShardedLinformer

pytestmark = pytest.mark.slow

F64, F32, BF16 = torch.float64, torch.float32, torch.bfloat16
PARTS = [
    slice(0, 4),
    slice(4, 5),
    slice(5, 11),
]  # 11 tokens; a layer for 11 does not need the rule for padding


def layer_of(group=None, dtype=F64, seed=0, factor=1.0, **options):
    """Make a layer, the same in every process, with a row of zeros and rows that meet tokens of one process only."""
    draw = torch.Generator().manual_seed(seed)
    options = (
        {"dim": 6, "heads": 2, "max_len": 15, "k": 5} | options | {"dtype": F64, "generator": draw}
    )
    layer = (
        LinformerSelfAttention(**options)
        if group is None
        else ShardedLinformer(**options, process_group=group)
    )
    with torch.no_grad():
        for name, it in layer.named_parameters():
            it.copy_(torch.randn(it.shape, generator=draw) * factor / (3 if it.ndim == 2 else 9))
            if name in "ef":
                it[0], it[1, 3:], it[2, :9] = 0, 0, 0
    return layer.to(dtype)


def tokens(batch=4, n=11, seed=1):
    return torch.randn(batch, n, 6, generator=torch.Generator().manual_seed(seed), dtype=F64)


X, MASK = tokens(n=4), torch.rand(4, 11, generator=torch.Generator().manual_seed(2)) < 0.6
OWN = torch.arange(11) > 3  # what process 0 does not have
MASKS = {  # the layer's max_len, the mask, and the processes that are given their part of it
    "whole": (11, None, []), "short": (15, None, []), "masked": (15, MASK, [0, 1, 2]),
    "masked in one": (11, MASK | OWN, [0]), "hidden in one": (15, MASK & OWN, [0, 1, 2]),
    "hidden": (15, MASK & False, [0, 1, 2]),
}  # fmt: skip
LAYERS = {"E": lambda _: {}, "E and F": lambda _: {"sharing": "headwise", "bias": True},
          "averages": lambda n: {"projection": pooling_projection(5, 15)[:, :n].double()}}  # fmt: skip


near = partial(torch.testing.assert_close, rtol=0, atol=1e-11)
refusal = partial(pytest.raises, (TypeError, ValueError))


def one_sequence(group, masks, dtype, layers):
    """Outputs and gradients are those of one process; what is sent depends neither on the length nor on processes."""
    rows, (max_len, mask, given), bound = (
        PARTS[group.rank()],
        MASKS[masks],
        1e-4 if dtype == F32 else 1e-11,
    )
    own, found = mask[:, rows] if group.rank() in given else None, []
    spies = {
        name: mock.Mock(wraps=getattr(distributed, name)) for name in ("all_gather", "all_reduce")
    }
    for it, part, its_mask in ((None, slice(None), mask), (group, rows, own)):
        layer = layer_of(it, dtype=dtype, max_len=max_len, **LAYERS[layers](max_len))
        x = tokens().to(dtype)[:, part].requires_grad_()
        with mock.patch.multiple(distributed, **spies):
            out = layer(x, token_mask=its_mask)
            loss = (out * tokens(seed=3)[:, part].to(dtype)).sum()
            found.append(
                [out, *torch.autograd.grad(loss, [x, *layer.parameters()], materialize_grads=True)]
            )
    (judge, judge_x, *judges), (out, grad_x, *gradients) = found
    (gathered,), summed = (spy.call_args_list for spy in spies.values())
    width, matrices = 6 + (masks != "whole") + (layers == "E and F"), 1 + (layers == "E and F")
    assert (gathered.args[1].numel(), [it.args[0].numel() for it in summed]) == (
        18,
        [4 * 5 * matrices * width] * 2,
    )
    near([out, grad_x], [judge[:, rows], judge_x[:, rows]], atol=bound)
    for gradient, whole in zip(gradients, judges, strict=True):
        assert masks == "hidden" or (gradient - whole).abs().max() > 0.01, "no part but the whole"
        distributed.all_reduce(gradient, group=group)
        near(gradient, whole, atol=bound)
    with torch.inference_mode(), torch.autocast("cpu", BF16, enabled=dtype == F32):
        near(
            layer(x, token_mask=own).to(dtype), judge[:, rows], atol=0.1 if dtype == F32 else bound
        )


def data_parallel(group):
    """DistributedDataParallel takes the mean of the gradients; a step leads to the weights of one process."""
    models = [
        nn.Sequential(layer_of(it), nn.LayerNorm(6, dtype=F64), layer_of(it))
        for it in (None, group)
    ]
    for model in models:
        model[2].e = model[0].e  # the paper's layerwise sharing
    parallel = DistributedDataParallel(models[1], process_group=group)
    for model, rows, rate in (
        (models[0], slice(None), 1e-3),
        (parallel, PARTS[group.rank()], 3e-3),
    ):
        (model(tokens()[:, rows]) * tokens(seed=3)[:, rows]).sum().backward()
        torch.optim.SGD(model.parameters(), rate).step()
    near([*models[1].parameters()], [*models[0].parameters()])
    assert (models[1][0].e - layer_of().e).abs().max() > 1e-3


def edges(group):
    """A gradient that one process asks for, lengths that differ, and roundings and NaN in the weights."""
    rows, every = PARTS[group.rank()], tokens().requires_grad_()
    own = tokens()[:, rows].requires_grad_(group.rank() == 0)
    for layer, x, part in ((layer_of(group), own, rows), (layer_of(), every, slice(None))):
        (layer.requires_grad_(False)(x) * tokens(seed=3)[:, part]).sum().backward()
    near(every.grad[:, rows] if own.grad is None else own.grad, every.grad[:, rows])
    for change, length in ((1 + 1e-6 * (group.rank() == 1), 1 + group.rank()), (torch.nan, 5)):
        layer = layer_of(group, dtype=F32)
        layer.e.data *= change
        layer(tokens(n=length).float())


def in_encoder(group):
    """An encoder layer whose attention is sharded gives the rows of one process."""
    rows, found = PARTS[group.rank()], []
    for attention, part in ((layer_of(), slice(None)), (layer_of(group), rows)):
        encoder = LinformerEncoderLayer(
            6, 2, 15, 5, 8, dtype=F64, generator=torch.Generator().manual_seed(0)
        ).eval()
        torch.manual_seed(0)
        encoder.linear1.reset_parameters(), encoder.linear2.reset_parameters()
        encoder.self_attn = attention
        found.append(encoder(tokens()[:, part]))
    near(found[1], found[0][:, rows])


FIT = "x must fit the layer in every process, got a refusal in process 1$"
WEIGHTS = "layer must have the same weights in all processes, got others in process 1: start from one seed"
SAME = "layer and batch size must be the same in every process, got {}$".format
OTHER = {"dtype": torch.float16, "rule": "sum", "dim": 9, "heads": 3, "k": 4, "max_len": 16, "bias": True,
         "sharing": "headwise"}  # fmt: skip
UNLIKE = [("dtype", F64, torch.float16), ("rule", "norm", "sum"), ("dim", 6, 9), ("heads", 2, 3), ("k", 5, 4),
          ("max_len", 15, 16), ("matrices", 1, 2), ("bias", 0, 1)]  # fmt: skip
REFUSED = [  # what process 1 does with the layer, or how its own differs; what it is told; are all told so?
    (lambda layer: layer(None), "x must be a tensor", False),
    (lambda layer: layer(X[..., :5]), "x must have shape", False),
    (lambda layer: layer(X, token_mask=X), "token_mask must", False),
    (
        lambda layer: layer(tokens(n=8)),
        r"x must hold at most max_len = 15 tokens .* 4 \+ 8 \+ 4 = 16$",
        True,
    ),
    (
        torch.autocast("cpu")(lambda layer: layer(X)),
        SAME("autocast = None, torch.bfloat16, None"),
        True,
    ),
    (lambda layer: layer(X[1:]), SAME("batch size = 4, 3, 4"), True),
    (OTHER, SAME(" and ".join(f"{name} = {a}, {b}, {a}" for name, a, b in UNLIKE)), True),
    ({"seed": 1}, WEIGHTS, True),
    ({"factor": 1 + 1e-7}, WEIGHTS, True),
]


def one_differs(group, odd, told, all_told):
    """All refuse the batch, at once, and the next one is right."""
    rows = PARTS[group.rank()]
    options = odd if isinstance(odd, dict) and group.rank() == 1 else {}
    layer = layer_of(group, **options)
    x = torch.zeros(4, 4, options.get("dim", 6), dtype=options.get("dtype", F64))
    with refusal(match="^" + (told if all_told or group.rank() == 1 else FIT)):
        odd(layer) if callable(odd) and group.rank() == 1 else layer(x)
    near(layer_of(group)(tokens()[:, rows]), layer_of()(tokens())[:, rows])


def death(_):
    """A process that dies makes the others raise an error after a time."""
    group = distributed.new_group(timeout=timedelta(seconds=2))
    out = layer_of(group)(X).sum()
    if group.rank() != 2:
        with pytest.raises(RuntimeError):
            out.backward()


def example(_):
    """The script of the page runs, in the processes that are there already."""
    page = (Path(__file__).parents[2] / "book" / "use-linformer.md").read_text(encoding="utf-8")
    (script,) = re.findall(
        r"^```python\n(import torch\nfrom torch import distributed\n.*?)^```", page, re.M | re.S
    )
    with mock.patch.multiple(
        distributed, init_process_group=mock.Mock(), destroy_process_group=mock.Mock()
    ):
        exec(script, {"print": (printed := mock.Mock())})
    assert (
        float(
            re.fullmatch(
                r"process \d: 136[56] tokens, (\S+) from one process", *printed.call_args.args
            )[1]
        )
        < 1e-5
    )


SCENARIOS = {
    "-".join(map(str, it)): partial(one_sequence, masks=it[0], dtype=it[1], layers=it[2])
    for it in [
        *itertools.product(MASKS, [F64], LAYERS),
        *itertools.product(["masked"], [F32], LAYERS),
    ]
}
SCENARIOS |= {it.__name__: it for it in (example, data_parallel, edges, in_encoder)}
SCENARIOS |= {
    f"refused {i}": lambda group, row=row: one_differs(group, *row) for i, row in enumerate(REFUSED)
}
SCENARIOS["death"] = death  # the last, because a process is gone


def run(rank, folder):
    warnings.simplefilter("error")
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=3
    )
    found = {}
    for name, scenario in SCENARIOS.items():
        try:
            scenario(distributed.new_group(timeout=timedelta(seconds=10)))
        except (Exception, pytest.fail.Exception):  # noqa: BLE001
            found[name] = traceback.format_exc()
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    os._exit(0)  # as a process that dies does


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """What went wrong in each of three processes, which have one thread each."""
    if (
        not hasattr(os, "fork")
        or not distributed.is_available()
        or not distributed.is_gloo_available()
    ):
        pytest.skip("needs torch.distributed with gloo, and processes that can be forked")
    folder, environment = tmp_path_factory.mktemp("found"), os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, __file__, folder], timeout=240, check=True, env=environment)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(3)]


@pytest.mark.parametrize("name", SCENARIOS)
def test_three_processes(processes, name):
    assert [process.get(name, "") for process in processes] == ["", "", ""]


if __name__ == "__main__":
    torch.set_num_threads(1)
    start_processes(run, (str(Path(sys.argv[1]).resolve()),), nprocs=3, start_method="fork")

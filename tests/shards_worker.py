"""Three processes that share sequences, started once for tests/linformer/test_shards.py.

    OMP_NUM_THREADS=1 python tests/shards_worker.py FOLDER

Each process holds all tokens too, so that it can do alone what all do together. One scenario after another runs in a
group of its own; what went wrong in a process is written to ``FOLDER/rank.json`` under the scenario's name.
"""

import contextlib
import copy
import datetime
import io
import itertools
import json
import os
import pickle
import re
import sys
import traceback
import warnings
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch._dynamo  # DistributedDataParallel would load it in each process
from torch import distributed, nn
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from lowrank_tutor.linformer import LinformerCrossAttention as Cross
from lowrank_tutor.linformer import LinformerEncoderLayer, linformer_cost, pooling_projection
from lowrank_tutor.linformer import LinformerSelfAttention as Linformer
from lowrank_tutor.shards import add_up

F64, F32, BF16, NAN = torch.float64, torch.float32, torch.bfloat16, torch.nan
KINDS = ["whole", "short", "masked", "masked in one process", "hidden in one process", "all hidden"]
PARTS = [slice(0, 4), slice(4, 5), slice(5, 11)]  # 11 tokens; in a layer for 11 the rule for padding is not needed


def layer_of(group=None, kind=Linformer, dtype=F64, seed=0, max_len=15, pooled=False, **options):
    """Make a layer, the same in every process, with a row of zeros and rows that meet tokens of one process only."""
    draw = torch.Generator().manual_seed(seed)
    if pooled:
        options["projection"] = pooling_projection(5, 15)[:, :max_len].double()
    layer = kind(**{"dim": 6, "heads": 2, "k": 5} | options, max_len=max_len, dtype=F64, generator=draw)
    with torch.no_grad():
        for name, it in layer.named_parameters():
            if name in "ef":
                it[0], it[1, 3:], it[2, :9] = 0, 0, 0
            else:
                it.copy_(3 * it if it.ndim == 2 else torch.randn(it.shape, generator=draw) / 9)
    layer.process_group = group
    return layer.to(dtype)


def new_group(seconds, ranks=None):
    return distributed.new_group(ranks, datetime.timedelta(seconds=seconds))


def tokens(batch=4, n=11, seed=1):
    return torch.randn(batch, n, 6, generator=torch.Generator().manual_seed(seed), dtype=F64)


def mask_of(kind):
    """Draw the mask of the whole sequence, and name the processes that are given their part of it."""
    drawn = torch.rand(4, 11, generator=torch.Generator().manual_seed(2)) < 0.6
    if kind == "masked in one process":
        drawn[:, 4:] = True
    elif kind == "hidden in one process":
        drawn[1:3, :4], drawn[2, 4:] = False, False  # of one sequence a part, of another all
    return (
        (None, []) if kind in KINDS[:2] else (drawn & (kind != "all hidden"), [0] if "masked in" in kind else [0, 1, 2])
    )


def near(ours, judge, bound=1e-12):
    assert ours.shape == judge.shape
    assert ours.numel() == 0 or (ours - judge).abs().max() < bound * judge.abs().max().clamp(min=1)


def refusal(words, error=(TypeError, ValueError)):
    return pytest.raises(error, match=f"^({words})")


def goes_on(group, layer, *given):
    """Check that the batch after a refusal is right."""
    rows, judge = PARTS[group.rank()], copy.deepcopy(layer, {id(group): None})
    near(layer(*(it[:, rows] for it in given)), judge(*given)[:, rows])


def step(layer, x, mask, rows):
    """Return outputs and gradients of a loss that weighs every number of the output."""
    x, mask = x[:, rows].clone().requires_grad_(), None if mask is None else mask[:, rows]
    layer.zero_grad()
    out = layer(x, token_mask=mask)
    (out * tokens(seed=3)[:, rows].to(out.dtype)).sum().backward()
    return out.detach(), x.grad, {name: 0 * it if it.grad is None else it.grad for name, it in layer.named_parameters()}


def one_sequence(group, kind, dtype, options):
    """Outputs and gradients are those of one process; the gradients of parameters are parts of theirs."""
    rows, (mask, given), x = PARTS[group.rank()], mask_of(kind), tokens().to(dtype)
    make = partial(layer_of, dtype=dtype, max_len=11 if kind in ("whole", "masked in one process") else 15, **options)
    layer, bound, own_mask = make(group), 1e-5 if dtype == F32 else 1e-12, mask if group.rank() in given else None
    judge, judge_x, judges = step(make(), x, mask, slice(None))
    out, grad_x, gradients = step(layer, x, own_mask, rows)
    parts = {name: gradient.clone() for name, gradient in gradients.items()}
    outs = [out]
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            outs.append(layer(x[:, rows], token_mask=None if own_mask is None else own_mask[:, rows]))
    for gradient in gradients.values():
        distributed.all_reduce(gradient, group=group)
    for found in outs:
        near(found, judge[:, rows], bound)
    near(grad_x, judge_x[:, rows], bound)
    for name, gradient in gradients.items():
        near(gradient, judges[name], bound)
        assert kind == "all hidden" or (parts[name] - judges[name]).abs().max() > 0.01, "no part but the whole"


def cross_with_dropout(group):
    """The same queries draw the same dropout, whether one process holds the memory or three."""
    rows, mask, outs = PARTS[group.rank()], mask_of("masked")[0], []
    for layer, part in ((layer_of(None, Cross, dropout=0.5), slice(None)), (layer_of(group, Cross, dropout=0.5), rows)):
        for training in (True, False):
            torch.manual_seed(group.rank())
            outs.append(layer.train(training)(tokens(seed=5)[:, rows], tokens()[:, part], token_mask=mask[:, part]))
    near(torch.cat(outs[2:]), torch.cat(outs[:2]))
    assert (outs[0] - outs[1]).abs().max() > 0.1


class Model(nn.Module):
    """Two layers that share E, as in the paper's layerwise sharing, and a norm between them."""

    def __init__(self, group=None):
        super().__init__()
        self.first, self.second, self.norm = layer_of(group), layer_of(group), nn.LayerNorm(6, dtype=F64)
        self.second.e = self.first.e

    def forward(self, x, token_mask=None):
        x = x + self.first(x, token_mask=token_mask)
        return x + self.second(self.norm(x), token_mask=token_mask)


def data_parallel(group):
    """DistributedDataParallel takes the mean of the gradients; three steps lead to the weights of one process."""
    models, found = (Model(), DistributedDataParallel(Model(group), process_group=group)), []
    for model, rows, rate in zip(models, (slice(None), PARTS[group.rank()]), (0.01, 0.03), strict=True):
        sgd = torch.optim.SGD(model.parameters(), rate)
        for _ in range(3):
            found.append(step(model, tokens(), mask_of("masked")[0], rows)[:2])
            sgd.step()
    for alone, together in zip(found[:3], found[3:], strict=True):
        near(torch.stack(together), torch.stack(alone)[:, :, rows])
    for alone, together in zip(*(model.parameters() for model in models), strict=True):
        near(together, alone)


def second_gradient(group):
    """Of (x_1^3 + ... + x_p^3)^2 in each process; G is the squared norm of the first gradient."""
    every, p = torch.tensor([1.0, 2.0, 3.0], dtype=F64), 3
    x = every[group.rank()].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(add_up(group, x**3)[0].square(), x, create_graph=True)
    (gradient**2).backward()
    s, fourth, mine = (every**3).sum(), (every**4).sum(), every[group.rank()]
    near(gradient / (6 * p * s * mine**2), torch.ones((), dtype=F64))
    near(x.grad / (36 * p**2 * (6 * s * mine**2 * fourth + 4 * s**2 * mine**3)), torch.ones((), dtype=F64))


def rounded(group):
    rows, mask = PARTS[group.rank()], mask_of("masked")[0]
    judge = layer_of(sharing="headwise")(tokens(), token_mask=mask)[:, rows]
    for dtype in (BF16, F32):
        with torch.autocast("cpu", BF16, enabled=dtype == F32):
            out = layer_of(group, dtype=dtype, sharing="headwise")(
                tokens().to(dtype)[:, rows], token_mask=mask[:, rows]
            )
        out.sum().backward()
        near(out.double(), judge, 0.03)


def edges(group):
    """No sequence; a gradient that one process asks for; two groups at once; what a layer holds of its group."""
    pairs = [new_group(10, ranks) for ranks in ([0, 1], [2])]
    rows, every = PARTS[group.rank()], tokens().requires_grad_()
    near(layer_of(group)(tokens(0)[:, rows]), tokens(0)[:, rows])
    own = tokens()[:, rows].requires_grad_(group.rank() == 0)
    (layer_of(group, pooled=True)(own) * tokens(seed=3)[:, rows]).sum().backward()
    (layer_of(pooled=True)(every) * tokens(seed=3)).sum().backward()
    near(every.grad[:, rows] if own.grad is None else own.grad, every.grad[:, rows])
    mine, other = pairs if group.rank() < 2 else pairs[::-1]
    here = slice(0, 5) if group.rank() < 2 else rows
    near(
        layer_of(mine)(tokens()[:, rows]),
        layer_of()(tokens()[:, here])[:, rows.start - here.start :][:, : own.shape[1]],
    )
    with refusal("process_group must be a torch.distributed.ProcessGroup with this process in it, got"):
        layer_of(process_group=other)
    layer, plain = layer_of(group), layer_of()
    assert (list(layer.state_dict()), repr(layer)) == (list(plain.state_dict()), repr(plain))
    assert layer.resized(16).process_group is group
    for copied in (copy.deepcopy, pickle.dumps):
        with refusal(""):
            copied(layer)
    layer.process_group = None
    near(pickle.loads(pickle.dumps(layer))(tokens()), plain(tokens()))


def counts(group):
    """A step sends numbers that depend neither on the length nor on how many processes there are."""
    spies = {name: mock.Mock(wraps=getattr(distributed, name)) for name in ("all_gather", "all_reduce")}
    for matrices, n, batch, short in itertools.product((1, 2), (15, 60), (1, 3), (0, 1)):
        sizes = {"dim": 8, "k": 4, "heads": 2, "sharing": ["key-value", "headwise"][matrices - 1], "max_len": n + short}
        layer = layer_of(group, dtype=F32, **sizes)
        with mock.patch.multiple(distributed, **spies):
            layer(torch.zeros(batch, n // 3, 8)).sum().backward()
        (gathered,), *summed = (spy.call_args_list for spy in spies.values())
        assert (gathered.args[1].numel(), gathered.args[1].dtype) == (18, F64)
        assert [it.args[0].numel() for it in summed[0]] == [batch * 4 * matrices * (8 + short)] * 2
        assert sum(it.numel() for it in layer.parameters()) == linformer_cost(n, **sizes).parameters
        for spy in spies.values():
            spy.reset_mock()


def fail(*_):
    raise ArithmeticError


X = tokens(n=4)
BAD = {  # what one process does in place of layer(*x); the last of x is compressed, the first asks
    "no tensor": lambda layer, *x: layer(*x[:-1], None),
    "another type": lambda layer, *x: layer(*x[:-1], X.float()),
    "no tokens": lambda layer, *x: layer(*x[:-1], X[:, :0]),
    "too many tokens": lambda layer, *x: layer(*x[:-1], tokens(n=16)),
    "a sparse tensor": lambda layer, *x: layer(*x[:-1], X.to_sparse()),
    "a nested tensor": lambda layer, *x: layer(*x[:-1], torch.nested.nested_tensor(list(X), layout=torch.jagged)),
    "other queries": lambda layer, *x: layer(X[..., :5], *x[1:]),
    "sparse queries": lambda layer, *x: layer(X.to_sparse(), *x[1:]),
    "a mask of numbers": lambda layer, *x: layer(*x, token_mask=X),
    "causal": lambda layer, *x: layer(*x, causal=True),
    "PyTorch's mask": lambda layer, *x: layer(*x, key_padding_mask=None),
    "an unknown name": lambda layer, *x: layer(*x, mask=None),
    "too many arguments": lambda layer, *x: layer(*x, X),
    "no argument": lambda layer, *_: layer(),
    "forward itself": lambda layer, *_: layer.forward(*[None] * (1 + isinstance(layer, Cross))),
    "a hook that fails": lambda layer, *x: (layer.register_forward_pre_hook(fail), layer(*x)),
}


def one_refuses(group, bad):
    """What one process refuses all refuse, at once, and the next batch is right."""
    for rank, kind in itertools.product((0, 1), (Linformer, Cross)):
        layer, x = layer_of(group, kind), (X,) * (1 + (kind is Cross))
        if group.rank() == rank:
            with refusal("(?!x must fit the layer in every)", (TypeError, ValueError, ArithmeticError)):
                bad(layer, *x)
        else:
            with refusal(f"x must fit the layer in every process, got a refusal in process {rank}$"):
                layer(*x)
        goes_on(group, layer_of(group, kind), *[tokens()] * len(x))


def encoder(group):
    """The encoder layer looks at its input first, and tells the others of what it refuses."""
    layer = LinformerEncoderLayer(6, 2, 15, 5, 8, 0.0, projection=layer_of().e.detach(), dtype=F64)
    layer.load_state_dict({name: torch.full_like(it, 0.1) for name, it in layer.state_dict().items()})
    layer.self_attn.process_group = group
    for bad in ((None,), (X, X), (X, None, torch.full((4, 4), -0.1)), (X, None, None, 1)):
        odd = group.rank() == 1
        with refusal("src|is_causal" if odd else "x must fit the layer in every process"):
            layer(*bad if odd else (X,))
    handle = layer.norm1.register_forward_hook(fail) if group.rank() == 1 else mock.Mock()
    with refusal("$|x must fit the layer in every process", (ArithmeticError, ValueError)):
        layer(X)
    handle.remove()
    goes_on(group, layer, tokens())


WEIGHTS = "layer must have the same weights in all processes, got others in process 1: start from one seed"
OTHERS = {  # what the layer of process 1 has, and what all are told
    "dtype": ({"dtype": F32}, "dtype = torch.float64, torch.float32, torch.float64"),
    "dim": ({"dim": 8}, "dim = 6, 8, 6"),
    "heads": ({"heads": 3}, "heads = 2, 3, 2"),
    "k": ({"k": 4}, "k = 5, 4, 5"),
    "max_len": ({"max_len": 16}, "max_len = 15, 16, 15"),
    "sharing": ({"sharing": "headwise"}, "matrices = 1, 2, 1"),
    "bias": ({"bias": True, "k": 4}, "k = 5, 4, 5 and bias = 0, 1, 0"),
    "rule": ({"rule": "sum"}, "rule = norm, sum, norm"),
    "seed, or order": ({"seed": 1}, None),
}


def layers_differ(group, options, words):
    layer = layer_of(group, **options if group.rank() == 1 else {})
    with refusal(f"layer and batch size must be the same in every process, got {words}$" if words else WEIGHTS):
        layer(torch.zeros(4, 4, layer.dim, dtype=layer.e.dtype))
    goes_on(group, layer_of(group), tokens())


def calls_differ(group):
    """Batches, lengths, autocast, half types and a step without the others are refused; roundings and NaN are not."""
    odd, layer, half = group.rank() == 1, layer_of(group), torch.float16 if group.rank() == 1 else BF16
    with refusal("layer and batch size must be the same in every process, got batch size = 4, 3, 4$"):
        layer(X[odd:])
    layer(tokens(n=7 if odd else 4))
    with refusal(r"x must hold at most max_len = 15 tokens in all processes together, got 4 \+ 8 \+ 4 = 16$"):
        layer(tokens(n=8 if odd else 4))
    with refusal(".* got autocast = None, torch.bfloat16, None$"), torch.autocast("cpu", enabled=odd):
        layer(X)
    with refusal("x must (be of the type of the layer.*autocast|fit)"), torch.autocast("cpu"):
        layer(X.float() if odd else X)
    with refusal(".* got dtype = torch.bfloat16, torch.float16, torch.bfloat16$"):
        layer_of(group, dtype=half)(X.to(half))
    for factor in (1.001, 1 + 1e-6, NAN):
        layer = layer_of(group, dtype=F32)
        layer.e.data *= factor if odd or factor is NAN else 1
        with refusal(WEIGHTS) if factor == 1.001 else contextlib.nullcontext():
            layer(X.float())
    goes_on(group, layer_of(group), tokens())


def absent(phase, group):
    """A process that does not come, fails in the middle of a batch, or dies makes the others raise, after a time."""
    everybody, group = group, new_group(2)
    layer, missing = layer_of(group), group.rank() == 2
    if phase == "middle":
        handle = layer.register_forward_hook(fail) if missing else mock.Mock()
        with refusal("", ArithmeticError) if missing else contextlib.nullcontext():
            layer(X)
        handle.remove()
        with refusal("process_group must be a new one after an error in the middle" if missing else "", RuntimeError):
            layer(X)
    else:
        out = layer(X).sum() if phase == "backward" else None
        with contextlib.nullcontext() if missing else refusal("", RuntimeError):
            _ = missing or (out.backward() if phase == "backward" else layer(X))
    if phase != "death":
        distributed.barrier(everybody)


def example(_):
    """The script of the page runs, in the processes that are there already."""
    page = (Path(__file__).parent.parent / "book" / "use-linformer.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(import torch\nfrom torch import distributed\n.*?)^```", page, re.M | re.S)
    with mock.patch.multiple(distributed, init_process_group=mock.Mock(), destroy_process_group=mock.Mock()):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(script, {})
    found = re.fullmatch(r"process \d: 136[56] tokens, (\S+) from one process\n", printed.getvalue())
    assert float(found[1]) < 1e-5


LAYERS = {"E": {}, "E and F, biases": {"sharing": "headwise", "bias": True}, "averages": {"pooled": True}}
SCENARIOS = {
    f"{kind}, {dtype}, {name}": partial(one_sequence, kind=kind, dtype=dtype, options=options)
    for kind, dtype, (name, options) in itertools.product(KINDS, (F64, F32), LAYERS.items())
}
for it in (example, cross_with_dropout, data_parallel, second_gradient, rounded, edges, counts, encoder, calls_differ):
    SCENARIOS[it.__name__] = it
SCENARIOS |= {f"refused: {name}": partial(one_refuses, bad=bad) for name, bad in BAD.items()}
SCENARIOS |= {f"another {key}": partial(layers_differ, options=it[0], words=it[1]) for key, it in OTHERS.items()}
SCENARIOS |= {f"absent: {phase}": partial(absent, phase) for phase in ("forward", "backward", "middle", "death")}


def run(rank, folder):
    warnings.simplefilter("error")
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=3)
    found = {}
    for name, scenario in SCENARIOS.items():
        try:
            scenario(new_group(10))
        except (Exception, pytest.fail.Exception):  # noqa: BLE001
            found[name] = traceback.format_exc()
    Path(folder, f"{rank}.json").write_text(json.dumps(found))
    os._exit(0)  # as a process that dies does


if __name__ == "__main__":
    torch.set_num_threads(1)
    start_processes(run, (str(Path(sys.argv[1]).resolve()),), nprocs=3, start_method="fork")

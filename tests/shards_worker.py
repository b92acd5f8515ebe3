"""Four processes that share sequences, started for tests/linformer/test_shards.py.

    OMP_NUM_THREADS=1 python tests/shards_worker.py FOLDER

First all four share a sequence, then each two of them. Each process holds all tokens too, so that it can do alone what
all do together. It writes what it found to ``FOLDER/rank.json``: errors relative to the largest number of the judge,
messages, seconds and counts. The four are forks of one process, which has imported PyTorch for all of them.
"""

import contextlib
import copy
import datetime
import io
import itertools
import json
import pickle
import sys
import time
import warnings
from pathlib import Path
from unittest import mock

import torch
import torch._dynamo  # DistributedDataParallel would load it in each process
from torch import distributed, nn
from torch.multiprocessing import start_processes
from torch.nn.parallel import DistributedDataParallel

from lowrank_tutor.linformer import LinformerSelfAttention, pooling_projection, shards

BATCH, DIM, HEADS, K, MAX_LEN = 4, 6, 2, 5, 15
LENGTHS = {1: [11], 2: [7, 4], 4: [4, 1, 2, 4]}  # 11 tokens; in a layer for 11 the norm rule is not needed
LAYERS = ["key-value", "headwise", "pooling"]
KINDS = ["whole", "short", "masked", "masked in one process", "hidden in one process", "all hidden"]
SECONDS = 2

# The chapter shows this to its readers.
EXAMPLE = """\
import torch
from torch import distributed

from lowrank_tutor.linformer import LinformerSelfAttention

distributed.init_process_group("gloo")
rank, size = distributed.get_rank(), distributed.get_world_size()
torch.manual_seed(0)  # the same layer and sequence in every process
sizes = {"dim": 64, "heads": 4, "max_len": 4096, "k": 64}
group = distributed.group.WORLD
layer = LinformerSelfAttention(**sizes, process_group=group)
x = torch.randn(1, 4096, 64)
own = x.tensor_split(size, dim=1)[rank]  # all that a process needs to hold
out = layer(own)
out.square().sum().backward()
for parameter in layer.parameters():  # each has that of its own loss
    distributed.all_reduce(parameter.grad)
layer.process_group = None  # and now every process alone
expected = layer(x).tensor_split(size, dim=1)[rank]
difference = (out - expected).abs().max().item()
told = f"{difference:.7f} from one process"
print(f"process {rank}: {own.shape[1]} tokens, {told}")
distributed.destroy_process_group()
"""


def layer_of(kind="key-value", max_len=MAX_LEN, dtype=torch.float64, group=None, **options):
    """A layer that is the same in every process, with a row of zeros, and rows that meet tokens of one process only."""
    draw = torch.Generator().manual_seed(0)
    options |= {"generator": draw, "dtype": torch.float64, "process_group": group}
    if kind == "pooling":
        options["projection"] = pooling_projection(K, 15)[:, :max_len].double()
    else:
        options["sharing"] = kind
    layer = LinformerSelfAttention(DIM, HEADS, max_len, K, **options)
    with torch.no_grad():
        layer.to_out.bias.normal_(std=0.1, generator=draw)
        layer.to_k.weight.mul_(3)
        layer.to_v.weight.mul_(3)
        for matrix in (layer.e, layer.f):
            if matrix is not None and kind != "pooling":
                matrix[0], matrix[1, 3:], matrix[2, :9] = 0, 0, 0
    return layer.to(dtype)


def tokens(n=11, batch=BATCH, dtype=torch.float64, seed=1):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(batch, n, DIM, generator=draw, dtype=torch.float64).to(dtype)


def groups_of(size, **options):
    """Cut all processes into groups of so many; return the own and another one. All processes must call it."""
    starts = range(0, distributed.get_world_size(), size)
    groups = [distributed.new_group(list(range(start, start + size)), **options) for start in starts]
    mine = distributed.get_rank() // size
    return groups[mine], groups[mine - 1]


def mask_of(kind, group, n=11):
    """The mask of the whole sequence, and the processes that are given their part of it."""
    drawn = torch.rand(BATCH, n, generator=torch.Generator().manual_seed(2)) < 0.6
    first = LENGTHS[group.size()][0]
    if kind == "masked":
        return drawn, lambda rank: True
    if kind == "masked in one process":
        drawn[:, first:] = True
        return drawn, lambda rank: rank == 0
    if kind == "hidden in one process":
        drawn[1:3, :first], drawn[2, first:] = False, False  # of one sequence a part, of another all
        return drawn, lambda rank: True
    if kind == "all hidden":
        return torch.zeros_like(drawn), lambda rank: True
    return None, lambda rank: False


def own(group):
    """The tokens of this process."""
    rank, sizes = group.rank(), LENGTHS[group.size()]
    return slice(sum(sizes[:rank]), sum(sizes[: rank + 1]))


def distance(ours, judge):
    return ((ours - judge).abs().max() / judge.abs().max().clamp(min=1)).item()


def weights(n=11):
    """What the loss makes of each number of the output."""
    return tokens(n, seed=3)


def summed(gradient, group):
    """The sum of a gradient over the processes, as the documentation asks for."""
    gradient = gradient.clone()
    distributed.all_reduce(gradient, group=group)
    return gradient


def gradients_of(layer, run, x, mask, rows):
    x = x[:, rows].clone().requires_grad_()
    layer.zero_grad()
    out = run(x, token_mask=None if mask is None else mask[:, rows])
    (out * weights()[:, rows].to(out.dtype)).sum().backward()
    found = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in layer.named_parameters()}
    return out.detach(), x.grad, found


def compare(group, layer_kind, kind, dtype):
    """Errors of output, gradients of tokens and gradients of parameters against the layer that holds all tokens."""
    rank, rows, x = group.rank(), own(group), tokens(dtype=dtype)
    max_len = 11 if kind == "whole" else MAX_LEN
    mask, is_given = mask_of(kind, group)
    alone, together = (layer_of(layer_kind, max_len, dtype, g) for g in (None, group))
    judge, judge_x, judge_parameters = gradients_of(alone, alone, x, mask, slice(None))
    own_mask = mask if is_given(rank) else None
    out, grad_x, parameters = gradients_of(together, together, x, own_mask, rows)
    with torch.no_grad():
        frugal = together(x[:, rows], token_mask=None if own_mask is None else own_mask[:, rows])
    with torch.inference_mode():
        inferred = together(x[:, rows], token_mask=None if own_mask is None else own_mask[:, rows])
    errors = {
        "output": distance(out, judge[:, rows]),
        "output without a gradient": distance(frugal, judge[:, rows]),
        "output in inference mode": distance(inferred, judge[:, rows]),
        "gradient of the tokens": distance(grad_x, judge_x[:, rows]),
    }
    for name, gradient in parameters.items():
        errors[f"gradient of {name}"] = distance(summed(gradient, group), judge_parameters[name])
    largest = max(judge.abs().max(), judge_x.abs().max()).item()
    own_part = max(distance(gradient, judge_parameters[name]) for name, gradient in parameters.items())
    return {"errors": errors, "largest": largest, "own part": own_part}


def contrast(group):
    """What a wrong gradient of the sum, and a norm rule for each process alone, would give."""
    rows, x = own(group), tokens()
    alone, together = layer_of(), layer_of(group=group)
    judge, judge_x, _ = gradients_of(alone, alone, x, None, slice(None))
    passed_on = staticmethod(lambda ctx, *gradients: (None, None, *gradients))
    with mock.patch.object(shards._Sum, "backward", passed_on):
        _, wrong_x, _ = gradients_of(together, together, x, None, rows)

    def mixtures_only(group, mixed, squares):
        return shards.add_up_shards(group, mixed, [])[0], squares

    with mock.patch("lowrank_tutor.linformer.compress.add_up_shards", mixtures_only):
        wrong = together(x[:, rows]).detach()
    return {
        "gradient that is passed on": distance(wrong_x, judge_x[:, rows]),
        "norm rule of one process": distance(wrong, judge[:, rows]),
    }


class Model(nn.Module):
    """Two layers that share E, as in the paper's layerwise sharing, and a norm between them."""

    def __init__(self, group=None):
        super().__init__()
        self.first = layer_of(group=group)
        self.norm = nn.LayerNorm(DIM, dtype=torch.float64)
        self.second = layer_of("key-value", group=group)
        self.second.e = self.first.e

    def forward(self, x, token_mask=None):
        x = x + self.first(x, token_mask=token_mask)
        return x + self.second(self.norm(x), token_mask=token_mask)


def model(group):
    """A model in DistributedDataParallel: its gradients are the means over the processes."""
    mask, _ = mask_of("masked", group)
    alone, together = Model(), Model(group)
    judge, judge_x, judge_parameters = gradients_of(alone, alone, tokens(), mask, slice(None))
    replicated = DistributedDataParallel(together, process_group=group)
    out, grad_x, parameters = gradients_of(together, replicated, tokens(), mask, own(group))
    errors = {
        "output": distance(out, judge[:, own(group)]),
        "gradient of the tokens": distance(grad_x, judge_x[:, own(group)]),
    }
    for name, gradient in parameters.items():
        errors[f"gradient of {name}"] = distance(group.size() * gradient, judge_parameters[name])
    return errors


def second_gradient(group):
    """Of (x_1^3 + ... + x_p^3)^2 in each process; G is the squared norm of the first gradient."""
    p, every = group.size(), torch.arange(1.0, group.size() + 1, dtype=torch.float64)
    x = every[group.rank()].clone().requires_grad_()
    (total,) = shards.add_up(group, x**3)
    (gradient,) = torch.autograd.grad(total.square(), x, create_graph=True)
    (gradient**2).backward()
    s, fourth = (every**3).sum(), (every**4).sum()
    mine = every[group.rank()]
    judge = 36 * p**2 * (6 * s * mine**2 * fourth + 4 * s**2 * mine**3)
    return {
        "first": distance(gradient.detach(), 6 * p * s * mine**2) / (6 * p * s * mine**2).item(),
        "second": abs(x.grad / judge - 1).item(),
    }


def rounded(group):
    """Errors of bfloat16, and of autocast, against float64."""
    rows, (mask, _) = own(group), mask_of("masked", group)
    judge = layer_of("headwise")(tokens(), token_mask=mask)[:, rows]
    errors = {}
    for name, dtype, autocast in (("bfloat16", torch.bfloat16, False), ("autocast", torch.float32, True)):
        layer = layer_of("headwise", dtype=dtype, group=group)
        layer.load_state_dict(layer_of("headwise").state_dict())
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            out = layer(tokens(dtype=dtype)[:, rows], token_mask=mask[:, rows])
        out.sum().backward()
        errors[name] = distance(out.double(), judge)
    return errors


def edges(group):
    """No sequence; dropout in training; tokens and a matrix without a gradient in all but one process."""
    rows = own(group)
    empty = layer_of(group=group)(tokens(batch=0)[:, rows])
    empty.sum().backward()
    alone, layer = layer_of("pooling"), layer_of("pooling", group=group)
    x = tokens().requires_grad_()
    (alone(x) * weights()).sum().backward()
    part = tokens()[:, rows].requires_grad_(group.rank() == 0)
    (layer(part) * weights()[:, rows]).sum().backward()
    error = distance(part.grad, x.grad[:, rows]) if group.rank() == 0 else 0.0
    return {"no sequence": list(empty.shape), "gradient in one process": error, "asked for": part.grad is not None}


class Counted:
    """The numbers that go into each collective while it is open: [name, how many, bytes each]."""

    def __init__(self):
        self.calls = []
        self.patches = [mock.patch.object(distributed, name, self.spy(name)) for name in self.spied()]

    @staticmethod
    def spied():
        """Every collective and message of torch.distributed."""
        words = (
            "all_",
            "broadcast",
            "reduce",
            "gather",
            "scatter",
            "send",
            "recv",
            "isend",
            "irecv",
            "barrier",
            "batch_",
        )
        return [name for name in dir(distributed) if name.startswith(words) and callable(getattr(distributed, name))]

    def spy(self, name):
        collective = getattr(distributed, name)

        def counted(*arguments, **options):
            sent = [x for x in arguments if isinstance(x, torch.Tensor)]
            self.calls.append([name, sum(x.numel() for x in sent), *{x.element_size() for x in sent}])
            return collective(*arguments, **options)

        return counted

    def __enter__(self):
        for patch in self.patches:
            patch.start()
        return self.calls

    def __exit__(self, *_):
        for patch in self.patches:
            patch.stop()


def count(group):
    """Collectives of one step: forward, backward, and the sum of the gradients of E and F."""
    found = {}
    for kind, n, batch in itertools.product(("key-value", "headwise"), (16, 64), (1, 3)):
        for short in (0, 1):
            layer = LinformerSelfAttention(8, 2, n + short, 4, sharing=kind, process_group=group)
            x = torch.zeros(batch, n // group.size(), 8)
            with Counted() as forward:
                out = layer(x)
            with Counted() as backward:
                out.sum().backward()
            with Counted() as parameters:
                for gradient in (p.grad for p in layer.parameters()):
                    distributed.all_reduce(gradient, group=group)
            key = f"{kind}, n = {n}, batch = {batch}, {'short' if short else 'full'}"
            found[key] = {"forward": forward, "backward": backward, "parameters": parameters}
    return found


def refusal(call):
    """What a call is refused with, and how long that took."""
    start = time.perf_counter()
    try:
        call()
    except (TypeError, ValueError, RuntimeError) as error:
        return {"error": type(error).__name__, "message": str(error), "seconds": time.perf_counter() - start}
    return {"error": None, "message": "", "seconds": time.perf_counter() - start}


def refused(group):
    """What every process says to input that does not fit, in the last process or altogether."""
    last, layer = group.rank() == group.size() - 1, layer_of(group=group)
    x = tokens()[:, own(group)]
    odd = {
        "more sequences": (torch.cat([x, x[:1]]), None, False),
        "another type": (x.float(), None, False),
        "no tokens": (x[:, :0], None, False),
        "no tensor": (None, None, False),
        "a mask that does not fit": (x, torch.ones(1, 1, dtype=torch.bool), False),
        "causal": (x, None, True),
    }
    found = {}
    for name, (bad, mask, causal) in odd.items():
        call = (bad, mask, causal) if last else (x, None, False)
        found[name] = refusal(lambda call=call: layer(call[0], token_mask=call[1], causal=call[2]))
    for name, total in (("as long as can be", MAX_LEN), ("too long", MAX_LEN + 1)):
        n = total - 2 * (group.size() - 1) if last else 2
        found[name] = refusal(lambda n=n: layer(tokens(n)))
    found["afterwards"] = refusal(lambda: layer(x).sum().backward())
    return found


def late(all_of_them):
    """One process does not arrive, forward or backward; it waits for the others in another group."""
    found = {}
    for phase in ("forward", "backward"):
        group, _ = groups_of(all_of_them.size(), timeout=datetime.timedelta(seconds=SECONDS))
        layer, x = layer_of(group=group), tokens()[:, own(group)]
        missing = group.rank() == group.size() - 1
        out = None
        if phase == "backward":
            out = layer(x).sum()
        if not missing:
            found[phase] = refusal(lambda layer=layer, x=x, out=out: layer(x) if out is None else out.backward())
        distributed.barrier(all_of_them)
    return found


def held(group):
    """What a layer with a group holds, and which copies of it can be made."""
    layer = layer_of("headwise", group=group)
    plain = layer_of("headwise")
    found = {
        "state": list(layer.state_dict()) == list(plain.state_dict()),
        "same print": repr(layer) == repr(plain),
        "deepcopy": refusal(lambda: copy.deepcopy(layer))["error"],
        "pickle": refusal(lambda: pickle.dumps(layer))["error"],
    }
    layer.load_state_dict(plain.state_dict())
    layer.process_group = None
    found["alone"] = distance(copy.deepcopy(layer)(tokens()), plain(tokens()))
    plain.process_group = group
    found["together"] = distance(plain(tokens()[:, own(group)]), layer(tokens())[:, own(group)])
    return found


def halves(both):
    """Two groups, each with a sequence of its own: the halves of the processes. Nobody else belongs to a group."""
    group, other = groups_of(both.size() // 2)
    x = tokens(seed=10 + both.rank() // group.size())
    return {
        "error": distance(layer_of(group=group)(x[:, own(group)]), layer_of()(x)[:, own(group)]),
        "of others": refusal(lambda: layer_of(group=other)),
    }


def example():
    """What the example of the chapter prints, in the processes that are there already."""
    printed = io.StringIO()
    with mock.patch.multiple(distributed, init_process_group=mock.DEFAULT, destroy_process_group=mock.DEFAULT) as both:
        with contextlib.redirect_stdout(printed):
            exec(EXAMPLE, {})
    both["init_process_group"].assert_called_once_with("gloo")
    both["destroy_process_group"].assert_called_once_with()
    return printed.getvalue()


def run(rank, folder):
    warnings.simplefilter("error")
    meeting = f"file://{Path(folder).resolve()}/meeting"
    wait = datetime.timedelta(seconds=60)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=4, timeout=wait)
    found = {"example": example()}
    for size in (4, 2):
        group, _ = groups_of(size, timeout=wait)
        found[size] = {"refused": refused(group)}
        for layer, kind, dtype in itertools.product(LAYERS, KINDS, (torch.float32, torch.float64)):
            found[size][f"{layer}, {kind}, {dtype}"] = compare(group, layer, kind, dtype)
        for experiment in (contrast, model, second_gradient, rounded, edges, count, held, halves, late):
            found[size][experiment.__name__] = experiment(group)
    (Path(folder) / f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    start_processes(run, (sys.argv[1],), nprocs=4, start_method="fork")

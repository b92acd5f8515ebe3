"""Adapters and gradients: the chapter's figures, its small adapter, its cuts of weights, and PyTorch's own hook."""

import json
import math
import operator
import statistics

import numpy as np
import pytest
import torch
from chapters import CHAPTERS, share
from torch import distributed, nn

from lowrank_tutor import storyteller
from lowrank_tutor.caches import LoraLinear, power_step
from measure.harness import DATA
from measure.training.storyteller_cuts import short_stories
from measure.training.storyteller_lora import OTHER

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("09-")]


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def learning(_chapter, *, rank, training):
    """The last point of each curve, by another way through the record."""
    rows = json.loads((DATA / "storyteller_lora.json").read_text(encoding="utf-8"))["rows"]
    runs = [row for row in rows if row["rank"] == rank and row["way"] == training and row["method"] == "alpha = r"]
    ends = [row["curve"][-1] for row in runs]
    return {name: statistics.mean(end[name] for end in ends) for name in ("rule", "others", "jobs")}


def muon(_chapter, *, rounds):
    """Multiply a matrix with these singular values, and decompose the result."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((size, 10)))[0] for size in (12, 10))
    g = left @ np.diag([math.sqrt(0.75) * 0.5**i for i in range(10)]) @ right.T
    for _ in range(rounds):
        square = g @ g.T
        g = 3.4445 * g - 4.7750 * square @ g + 2.0315 * square @ square @ g
    s = np.linalg.svd(g, compute_uv=False)
    return {"ratio": s[0] / s[-1]}


EXPLORERS = {"learning": learning, "muon": muon}


@pytest.mark.parametrize("r", [1, 8, 64])
def test_first_step_of_adam(r):
    """One token moves by the rate, times the sum of the sizes of its products with the rows of A."""
    torch.manual_seed(0)
    layer = LoraLinear(nn.Linear(96, 64, bias=False, dtype=torch.float64), r)  # alpha is r: the factor is 1
    x, errors = torch.randn(96, dtype=torch.float64), torch.randn(64, dtype=torch.float64)
    (layer(x) * errors).sum().backward()
    torch.optim.Adam([layer.b], lr=0.01).step()
    moved = (layer.update() @ x).abs() / 0.01
    torch.testing.assert_close(moved, (layer.a @ x).abs().sum().expand(64), rtol=1e-4, atol=1e-4)


def test_cut_or_round(chapter):
    """Layers of the page against weights changed by NumPy, and what "Which one do I need?" says of them."""
    names = [name for name, w in storyteller.trained_weights().items() if w.ndim == 2 and "embed" not in name]
    for bits in (4, 3):
        model = chapter["SMALLER"][f"{bits} bits"][1].state_dict()
        for name in names:
            rows = storyteller.trained_weights()[name].reshape(-1, 32)
            scale = np.abs(rows).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
            steps = model[name].reshape(-1, 32).numpy() / scale
            assert np.abs(steps - np.rint(steps)).max() < 1e-5
            assert np.abs(steps - rows / scale).max() < 0.5 + 1e-5
    _, _, three, plain, nine_tenths, half = [chapter["nats"](model) for _, model in chapter["SMALLER"].values()]
    lost = [x - chapter["nats"](storyteller.load()) for x in (three, plain, nine_tenths, half)]
    assert lost == pytest.approx([0.019, 0.042, 0.0065, 0.19], abs=0.006)
    rounded = {name: weight.numpy() for name, weight in chapter["in_bits"](4).state_dict().items()}
    assert share(short_stories(), weights=rounded) == pytest.approx(0.999, abs=0.003)


def test_fibs(chapter):
    """The reader's lesson is that of the record, and the model fails it as trained."""
    lessons = [chapter["with_fibs"](story) for story in storyteller.stories(20, facts=3, rng=4)]
    fibs = [(ids.tolist(), counts.tolist().index(3)) for ids, counts in lessons if 3 in counts]
    assert len(fibs) > 5
    for ids, at in fibs:
        words = [storyteller.WORDS[i] for i in ids[: at + 1]]
        truth, _ = storyteller.answer(words[:at])
        assert words[at - 2] == "Ada"
        assert words[at] == OTHER[truth]
        assert max(storyteller.next_words(words[:at]).items(), key=operator.itemgetter(1))[0] == truth
    learned = sum(part.numel() for part in chapter["learned"])
    assert learned == 2048
    assert chapter["losses"].isfinite().all()


def test_relatives(chapter):
    """What the page and "Which one do I need?" say of LoRA, rsLoRA, PiSSA, and DoRA."""
    losses = {rank: [loss for loss, _ in column] for rank, column in chapter["BEST"].items()}
    rates = [[rate for _, rate in column] for column in chapter["BEST"].values()]
    for rank in (4, 16, 64):
        lora, rslora, pissa, dora = losses[rank]
        assert max(lora, rslora, dora) < min(lora, rslora, dora) + 0.1
        assert max(lora, rslora, dora) < pissa < min(lora, rslora, dora) + 0.2
    assert [{*each} for each in zip(*rates, strict=True)] == [{0.01}, {0.01, 0.003}, {0.01, 0.003}, {0.01}]
    ends = {(run["method"], run["seed"]): run["loss"] for run in chapter["RUNS"]
            if (run["rank"], run["rate"]) == (1, 0.01) and "loss" in run}  # fmt: skip
    assert all(ends["DoRA", seed] < ends["LoRA", seed] for seed in range(3))
    tried = {(run["rank"], run["rate"]): run["loss"] for run in chapter["RUNS"]
             if run["method"] == "LoRA" and run["seed"] == 0}  # fmt: skip
    assert all(tried[rank, 0.03] > tried[rank, 0.001] > 0.7 for rank in losses)


def test_shrunken_adapter(chapter):
    """The small adapter is the best approximation of the product, by NumPy's SVD of all of it."""
    b, a, keep = chapter["B"].numpy(), chapter["A"].numpy(), chapter["keep"]
    u, s, vt = np.linalg.svd(b @ a, full_matrices=False)
    best = (u[:, :keep] * s[:keep]) @ vt[:keep]
    found = (chapter["small_B"] @ chapter["small_A"]).numpy()
    np.testing.assert_allclose(found, best, atol=1e-10 * s[0])
    assert off(best, b @ a) <= 0.05 < math.sqrt((s[keep - 1 :] ** 2).sum() / (s**2).sum())


def test_steepest_step():
    """No step of the same longest effect gains more, by hand and at random."""
    rng = np.random.default_rng(0)
    for g in (np.diag([3.0, 1.0]), rng.normal(size=(6, 4))):
        u, s, vt = np.linalg.svd(g, full_matrices=False)
        gains = [(g * z).sum() / np.linalg.norm(z, 2) for z in (u @ vt, g, *rng.normal(size=(50, *g.shape)))]
        assert gains[0] == pytest.approx(s.sum())
        assert max(gains[1:]) < gains[0]
        if len(g) == 2:
            assert gains[:2] == pytest.approx([4, 10 / 3])


@pytest.fixture
def alone(tmp_path):
    """A group of one process, in which the hook does what it does among many."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_pytorch_hook_steps(alone):
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    torch.manual_seed(0)
    layer = nn.Linear(24, 16, bias=False)
    model = nn.parallel.DistributedDataParallel(layer)
    state = power.PowerSGDState(None, matrix_approximation_rank=3, start_powerSGD_iter=2)
    assert power.PowerSGDState(None).start_powerSGD_iter == 1000
    model.register_comm_hook(state, power.powerSGD_hook)
    for step in range(6):
        x = torch.randn(40, 24)
        raw = torch.autograd.grad((x @ layer.weight.T).square().mean(), layer.weight)[0]
        owed = next(iter(state.error_dict.values())).view(16, 24).clone() if state.error_dict else 0
        guess = next(iter(state.q_memory_dict.values())).view(24, 3).clone() if state.q_memory_dict else None
        model.zero_grad()
        model(x).square().mean().backward()
        if guess is None or step < 3:  # the first guess is drawn inside
            continue
        p, q = power_step(raw + owed, guess)
        torch.testing.assert_close(layer.weight.grad, p @ q.T, rtol=1e-4, atol=1e-6)

"""Adapters and gradients: the chapter's figures, its small adapter, its cuts of weights, and
PyTorch's own hook.
"""

import itertools
import json
import math
import operator
import statistics

import numpy as np
import pytest
import torch
from chapters import share
from scipy.optimize import linprog
from torch import distributed, nn

from lowrank_tutor import storyteller
from lowrank_tutor.adapters import LoraLinear, power_step
from measure.harness import DATA
from measure.training.storyteller_cuts import short_stories
from measure.training.storyteller_lora import OTHER


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def learning(_chapter, *, rank, training, alpha):
    """The last point of each curve, by another way through the record."""
    rows = json.loads((DATA / "storyteller_lora.json").read_text(encoding="utf-8"))["rows"]
    runs = [
        row
        for row in rows
        if (row["rank"], row["way"], row["rate"]) == (rank, training, 0.01)
        and row["method"] == ("alpha = 1" if rank == 1 or alpha.endswith("step") else "alpha = r")
    ]
    assert len(runs) == 5
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


def can_learn(points, labels):
    """Whether weights give every point its label, by linear programming."""
    rows = -np.asarray(labels)[:, None] * points
    free = [(None, None)] * points.shape[1]
    return (
        linprog(
            np.zeros(points.shape[1]), A_ub=rows, b_ub=-np.ones(len(points)), bounds=free
        ).status
        == 0
    )


@pytest.mark.parametrize(
    ("n", "p", "learned"), [(2, 4, 8), (3, 3, 8), (3, 5, 22), (3, 6, 32), (4, 8, 128)]
)
def test_labelings_of_a_neuron(chapter, n, p, learned):
    points = np.random.default_rng(n).standard_normal((p, n))
    assert (
        sum(can_learn(points, labels) for labels in itertools.product((-1, 1), repeat=p)) == learned
    )
    assert chapter["share_learned"](p, n) * 2**p == learned


def test_twenty_weights(chapter):
    shares = [chapter["share_learned"](p, 20) for p in (30, 40, 50)]
    assert shares == pytest.approx([0.97, 0.50, 0.08], abs=0.005)


def test_new_signs_of_an_adapter():
    """With A fixed, a row of B at rank 3, beside a fixed weight, can give half of all signs to 7
    inputs.
    """
    rng = np.random.default_rng(0)
    x, w, a = (
        rng.standard_normal((7, 12)),
        rng.standard_normal((1, 12)),
        rng.standard_normal((3, 12)),
    )
    seen = np.hstack([x @ a.T, x @ w.T])  # the weight itself must count, with any positive factor
    rows = np.vstack([seen, [0, 0, 0, 1]])
    assert (
        sum(can_learn(rows, [*labels, 1]) for labels in itertools.product((-1, 1), repeat=7))
        == 2**7 / 2
    )


def test_bits_of_ada(chapter):
    """What the comparison of bits counts."""
    meta = json.loads((DATA / "storyteller_lora.json").read_text(encoding="utf-8"))["meta"]
    assert meta["steps"] * meta["batch"] == 1500
    assert [len(storyteller.KINDS[kind]) for kind in ("name", "color")] == [8, 8]
    assert 2 * sum(part.numel() for part in chapter["learned"]) / (
        3 + 8 * math.log2(7)
    ) == pytest.approx(160, abs=2)
    assert [answers * 200 * 1.4 / math.log(2) for answers in (1e3, 5e5)] == pytest.approx(
        [4e5, 2e8], rel=0.02
    )


def test_intruder(chapter):
    """Of the first eight vectors one is new after an update of rank one, and none after one of full
    rank.
    """
    old, drawn = chapter["old"], chapter["updates"]
    left = np.linalg.eigh(old @ old.T)[1]
    least = {}
    for name, change in drawn.items():
        new = old + 0.6 * change / np.linalg.norm(change)
        cosines = abs(np.linalg.eigh(new @ new.T)[1][:, :-9:-1].T @ left).max(axis=1)
        least[name] = int(cosines.argmin()), cosines.min()
    assert least["rank 1"] == (2, pytest.approx(0.48, abs=0.01))
    assert least["full"][1] > 0.97
    assert np.linalg.norm(0.6 * drawn["full"] / np.linalg.norm(drawn["full"]), 2) == pytest.approx(
        0.07, abs=0.005
    )


@pytest.mark.parametrize("r", [1, 8, 64])
def test_first_step_of_adam(r):
    """One token moves by the rate times the summed sizes of its products with the rows of A."""
    torch.manual_seed(0)
    layer = LoraLinear(
        nn.Linear(96, 64, bias=False, dtype=torch.float64), r
    )  # alpha is r: the factor is 1
    x, errors = torch.randn(96, dtype=torch.float64), torch.randn(64, dtype=torch.float64)
    (layer(x) * errors).sum().backward()
    torch.optim.Adam([layer.b], lr=0.01).step()
    moved = (layer.update() @ x).abs() / 0.01
    torch.testing.assert_close(moved, (layer.a @ x).abs().sum().expand(64), rtol=1e-4, atol=1e-4)


def test_cut_or_round(chapter):
    """Layers of the page against weights changed by NumPy, and what "Which one do I need?" says of
    them.
    """
    names = [
        name
        for name, w in storyteller.trained_weights().items()
        if w.ndim == 2 and "embed" not in name
    ]
    for bits in (4, 3):
        model = chapter["SMALLER"][f"{bits} bits"][1].state_dict()
        for name in names:
            rows = storyteller.trained_weights()[name].reshape(-1, 32)
            scale = np.abs(rows).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
            steps = model[name].reshape(-1, 32).numpy() / scale
            assert np.abs(steps - np.rint(steps)).max() < 1e-5
            assert np.abs(steps - rows / scale).max() < 0.5 + 1e-5
    _, _, three, plain, nine_tenths, half = [
        chapter["nats"](model) for _, model in chapter["SMALLER"].values()
    ]
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
        assert (
            max(storyteller.next_words(words[:at]).items(), key=operator.itemgetter(1))[0] == truth
        )
    learned = sum(part.numel() for part in chapter["learned"])
    assert learned == 2048
    assert chapter["losses"].isfinite().all()


def test_relatives():
    """What the page and "Which one do I need?" say of LoRA, rsLoRA, PiSSA, and DoRA."""
    rows = json.loads((DATA / "storyteller_lora.json").read_text(encoding="utf-8"))["rows"]

    def best(method, rank):
        """The least mean loss of three seeds, and its rate."""
        losses = {}
        for row in rows:
            if (row["method"], row["rank"]) == (method, rank):
                losses.setdefault(row["rate"], []).append(row["loss"])
        return min((np.mean(each), rate) for rate, each in losses.items() if len(each) == 3)

    tried = {(run["rank"], run["rate"]): run["loss"] for run in rows
             if run["method"] == "LoRA" and run["seed"] == 0}  # fmt: skip
    for rank in (4, 16, 64):
        (plain, rate), (rooted, _), (principal, _), (lengths, _) = (
            best(method, rank) for method in ("LoRA", "rsLoRA", "PiSSA", "DoRA")
        )
        level = [plain, rooted, lengths]
        assert max(level) - min(level) < 0.1
        assert max(level) < principal < plain + 0.2
        assert rate == 0.01
        assert tried[rank, 0.03] > tried[rank, 0.001] > 0.7


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
        gains = [
            (g * z).sum() / np.linalg.norm(z, 2)
            for z in (u @ vt, g, *rng.normal(size=(50, *g.shape)))
        ]
        assert gains[0] == pytest.approx(s.sum())
        assert max(gains[1:]) < gains[0]
        if len(g) == 2:
            assert gains[:2] == pytest.approx([4, 10 / 3])


@pytest.fixture
def alone(tmp_path):
    """A group of one process, in which the hook does what it does among many."""
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1
    )
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
        guess = (
            next(iter(state.q_memory_dict.values())).view(24, 3).clone()
            if state.q_memory_dict
            else None
        )
        model.zero_grad()
        model(x).square().mean().backward()
        if guess is None or step < 3:  # the first guess is drawn inside
            continue
        p, q = power_step(raw + owed, guess)
        torch.testing.assert_close(layer.weight.grad, p @ q.T, rtol=1e-4, atol=1e-6)

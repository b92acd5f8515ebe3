"""Caches and adapters: what its explorers must read, by NumPy alone, the numbers in its text, and its script."""

import math
import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest
import torch
from chapters import CHAPTERS, code_cells
from torch import distributed, nn

from lowrank_tutor.caches import power_step

(CHAPTER,) = [path for path in CHAPTERS if path.stem.startswith("08-")]
TEXT = CHAPTER.read_text(encoding="utf-8")
SCRIPT = re.search(r"Save this as `compress\.py`:\n\n```python\n(.*?)^```$", TEXT, re.M | re.S)[1]
PRINTED = re.search(r"what was compressed:\n\n```text\n(.*?)^```$", TEXT, re.M | re.S)[1]


def off(found, wanted):
    return np.linalg.norm(found - wanted) / np.linalg.norm(wanted)


def cache_size(chapter, *, n, groups):
    numbers = 80 * 2 * groups * 128
    weights = 2 * 32000 * 8192 + 80 * (8192 * (2 * 8192 + 2 * 1024 + 3 * 28672) + 2 * 8192) + 8192
    return {"numbers": numbers, "gib": 2 * n * numbers / 2**30, "of_weights": n * numbers / weights}


def cut_error(chapter, *, k, decay):
    """Errors by the inputs' sizes: columns of W^T x are x_i times row i of W."""
    w, sizes = chapter["TABLE"], np.arange(1, 97.0) ** -decay

    def cut(a):
        u, s, vt = np.linalg.svd(a)
        return (u[:, :k] * s[:k]) @ vt[:k]

    whole = sizes[:, None] * w
    return {
        "plain": off(sizes[:, None] * cut(w), whole),
        "weighted": off(cut(whole), whole),
        "kept": k * 192 / 96**2,
    }


def lora_step(chapter, *, r, batch):
    def change(rank, scaling, adam):
        s, squares = 8 / rank**scaling, 0
        for parts in chapter["draws"]:
            tokens, errors, a = (part.double().numpy() for part in parts)
            x, a = tokens[:batch], a[:rank]
            gradient = s * errors[:batch].T @ x @ a.T
            b = np.sign(gradient) if adam else gradient
            squares += np.mean((x @ (s * b @ a).T) ** 2)
        return math.sqrt(squares)

    kinds = {"descent_r": (1, False), "descent_root": (0.5, False), "adam_r": (1, True), "adam_root": (0.5, True)}
    return {name: change(r, *kind) / change(8, *kind) for name, kind in kinds.items()}


def muon_step(chapter, *, before, steps):
    x = np.diag([before, math.sqrt(1 - before**2)])  # of Frobenius norm 1
    for _ in range(steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return {"after": x[0, 0]}


EXPLORERS = {
    "cache-size": cache_size,
    "cut-error": cut_error,
    "lora-step": lora_step,
    "muon-step": muon_step,
}


# -------------------------------------------------------------------------------------------- numbers in the text


def test_the_opening_counts():
    full, shared = (cache_size(None, n=2**17, groups=groups) for groups in (64, 8))
    assert (full["gib"], shared["gib"]) == (320, 40)
    assert "would need 320 GiB for 131,072 tokens, two and a half times as much as for its weights" in TEXT
    assert full["of_weights"] == pytest.approx(2.5, abs=0.02)
    assert "With 8 groups, as it has, it needs 40" in TEXT
    assert "68_976_648_192" in TEXT
    assert cache_size(None, n=1, groups=1)["numbers"] / cache_size(None, n=1, groups=1)["of_weights"] == 68_976_648_192


def test_what_a_stored_token_costs(chapter):
    heads, d_h, d_c, d_r = 128, 128, 512, 64
    absorbed, anew = heads * (2 * d_c + d_r), heads * d_c * 2 * d_h + heads * (2 * d_h + d_r)
    assert chapter["stored"] == {"absorbed": absorbed, "keys and values anew": anew}
    assert f"anew takes {anew / absorbed:.0f} times as many" in TEXT
    assert f"${heads}\\,({d_c} + {d_r} + {d_c})$ if absorbed" in TEXT
    stored = f"{heads * (d_h + d_r) + heads * d_h:,}".replace(",", "{,}")
    assert f"${heads}\\,({d_h} + {d_r} + {d_h}) = {stored}$" in TEXT
    assert f"in place of ${d_c} + {d_r} = {d_c + d_r}$" in TEXT


def test_rotation_makes_full_rank_of_eight(chapter):
    assert [np.linalg.matrix_rank(chapter[name]) for name in ("keys", "turned")] == chapter["ranks"] == [8, 48]


def test_scores_by_both_moments(chapter):
    """The least error of each kind, by NumPy's SVD of the turned table alone."""
    a, b, w = (chapter[name].numpy() for name in ("A", "B", "W_K"))
    root_a, root_b = np.sqrt(a), np.linalg.cholesky(b)

    def cut(m):
        u, s, vt = np.linalg.svd(m, full_matrices=False)
        return (u[:, :8] * s[:8]) @ vt[:8]

    def error(m):
        return off(root_a @ m @ root_b, root_a @ w @ root_b)

    for_keys = np.linalg.solve(root_a, cut(root_a @ w))
    for_scores = np.linalg.solve(root_a, cut(root_a @ w @ root_b)) @ np.linalg.inv(root_b)
    assert chapter["of_scores"] == pytest.approx([error(m) for m in (cut(w), for_keys, for_scores)], rel=1e-6)


class KeysAndValues(nn.Module):
    """A layer with 3 groups of width 4, as `transformers` lays its weights out, which returns what it stores."""

    head_dim = 4

    def __init__(self):
        super().__init__()
        self.k_proj, self.v_proj = nn.Linear(16, 12, bias=False), nn.Linear(16, 12, bias=False)

    def forward(self, hidden_states):
        return torch.cat([self.k_proj(hidden_states), self.v_proj(hidden_states)], dim=2), None


def tail(table, k):
    s = np.linalg.svd(table, compute_uv=False)
    return math.sqrt((s[k:] ** 2).sum() / (s**2).sum())


def shares(printed):
    return [[int(share) for share in re.findall(r"(\d+)%", line)] for line in printed.splitlines()[1:]]


def test_a_model_is_read_right(chapter, capsys):
    """Where the output is keys and values themselves, the errors are tails of spectra that NumPy finds."""
    torch.manual_seed(0)
    layer, cuts = KeysAndValues(), (4, 12, 16)
    x = (torch.randn(1, 40, 16) @ torch.diag(torch.arange(1.0, 17) ** -1)).repeat(2, 1, 1)
    weights = [part.weight.detach().double().numpy() for part in (layer.k_proj, layer.v_proj)]
    both = np.concatenate([part / np.linalg.norm(part) for part in weights])
    moment, tokens = (x[0].T @ x[0]) / 40, x[0].double().numpy()
    found = [chapter["misses"](layer, {"hidden_states": x}, k, moment) for k in cuts]
    stored = [tokens @ part.T for part in weights]
    sizes = np.repeat([np.linalg.norm(part) for part in stored], 12)  # keys and values count alike
    u, s, vt = np.linalg.svd(np.concatenate(stored, axis=1) / sizes, full_matrices=False)
    least = [off((u[:, :k] * s[:k]) @ vt[:k] * sizes, np.concatenate(stored, axis=1)) for k in cuts]
    assert found == pytest.approx(least, abs=1e-5)
    chapter["report"](layer, {"hidden_states": x}, cuts)
    shown = capsys.readouterr().out
    assert shown.startswith("latents of (4, 12, 16) numbers, in place of 24\n")
    of_weights, plain, best = shares(shown)
    assert of_weights == [round(100 * tail(both, k)) for k in cuts]
    assert best == pytest.approx([100 * share for share in found], abs=2)  # one percent of all directions is added
    assert best[0] < plain[0]
    assert plain[2] == best[2] == 0


@pytest.mark.parametrize("reason", ["ImportError", "OSError"])
def test_without_package_or_network_the_cell_says_so_in_a_sentence(chapter, capsys, monkeypatch, reason):
    (cell,) = [cell.source for cell in code_cells(CHAPTER) if "AutoTokenizer" in cell.source]

    def fail(name):
        raise {"ImportError": ImportError, "OSError": OSError}[reason]("no such thing")

    peer = types.ModuleType("transformers")
    peer.AutoModelForCausalLM = peer.AutoTokenizer = types.SimpleNamespace(from_pretrained=fail)
    if reason == "ImportError":
        peer = None  # what Python keeps for a module that is not to be found
    monkeypatch.setitem(sys.modules, "transformers", peer)
    exec(cell, dict(chapter))
    assert capsys.readouterr().out.startswith("This needs the package transformers and a network:")


def test_a_tiny_model_of_transformers_is_read_right(chapter, capsys, monkeypatch):
    """The cell as it stands, with a random model of the same class in place of the one that it loads."""
    transformers = pytest.importorskip("transformers", reason="pip install -r requirements-peers.txt (200 MB)")
    torch.manual_seed(0)
    sizes = {"hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 3, "intermediate_size": 16}
    config = transformers.LlamaConfig(**sizes, vocab_size=50, num_hidden_layers=30)
    model = transformers.LlamaForCausalLM(config).eval()

    def read(text):
        return {"input_ids": [ord(letter) % 50 for letter in text]}

    offline = types.ModuleType("transformers")
    offline.__path__ = transformers.__path__
    offline.AutoModelForCausalLM = types.SimpleNamespace(from_pretrained=lambda name: model)
    offline.AutoTokenizer = types.SimpleNamespace(from_pretrained=lambda name: read)
    monkeypatch.setitem(sys.modules, "transformers", offline)
    (cell,) = [cell.source for cell in code_cells(CHAPTER) if "AutoTokenizer" in cell.source]
    exec(cell.replace("(48, 96, 192, 288)", "(12, 48, 96)").replace("[:2048]", "[:400]"), dict(chapter))
    shown = capsys.readouterr().out.split("latents of ")[1:]
    assert len(shown) == 3
    for text, i in zip(shown, (0, 15, 29), strict=True):
        attention = model.model.layers[i].self_attn
        parts = (attention.k_proj.weight, attention.v_proj.weight)
        both = torch.cat([part / part.norm() for part in parts]).detach().numpy()
        of_weights, plain, best = shares(text)
        assert of_weights == [round(100 * tail(both, k)) for k in (12, 48, 96)]
        assert plain[0] > plain[1] > plain[2] == 0
        assert best[0] > best[1] > best[2] == 0


@pytest.mark.filterwarnings("ignore")
def test_the_shapes_are_those_of_the_settings_in_transformers(chapter):
    transformers = pytest.importorskip("transformers", reason="pip install -r requirements-peers.txt (200 MB)")
    shapes, llama = chapter["SHAPES"], transformers.LlamaConfig()
    sizes = {"layers": llama.num_hidden_layers, "heads": llama.num_key_value_heads, "width": llama.head_dim}
    assert sizes == shapes["Llama-2-7B"]
    for name, shown in (("DeepseekV3", "DeepSeek-V3"), ("Mistral4", "Mistral-Small-4")):
        own = getattr(transformers, f"{name}Config")()
        sizes = {"layers": own.num_hidden_layers, "latent": own.kv_lora_rank, "rotary": own.qk_rope_head_dim}
        assert sizes == shapes[shown]


def test_lora_of_llama_counts(printed):
    assert 2 * 32 * 8 * (4096 + 4096) == 4_194_304
    assert "4,194,304 numbers are trained, out of 6.7 billion" in TEXT
    assert "65,536 a weight, 4,194,304 in 32 layers" in printed


def test_the_first_step_in_words(chapter):
    one, many = lora_step(chapter, r=128, batch=1), lora_step(chapter, r=128, batch=512)
    assert 3.3 < one["adam_root"] < 4.7
    assert abs(math.log(one["descent_root"])) < 0.25, "descent, root: steady"
    assert abs(math.log(one["adam_r"])) < 0.25, "Adam, one token: alpha/r"
    assert abs(math.log(many["adam_root"])) < 0.3, "Adam, many tokens: the root"
    assert many["adam_r"] < 0.4
    assert max(many["descent_r"], many["descent_root"]) < 0.4, "descent, many tokens: neither"
    assert one["descent_r"] < 0.1


def test_tokens_whose_gradients_agree_act_like_one():
    """512 tokens and errors, each with a part that all have in common, as long as what is its own."""
    rng, n = np.random.default_rng(0), 128
    size = {(r, power): 0.0 for r in (8, 128) for power in (1, 0.5)}
    for _ in range(12):
        tokens, errors = (rng.standard_normal((512, n)) + rng.standard_normal(n) for _ in range(2))
        a = rng.uniform(-1, 1, (n, n)) / math.sqrt(n)
        for r, power in size:
            seen = tokens @ a[:r].T
            step = seen @ np.sign(errors.T @ seen).T / r**power
            size[r, power] += (step**2).mean()
    assert 0.7 < math.sqrt(size[128, 1] / size[8, 1]) < 1.4, "alpha/r is steady"
    assert math.sqrt(size[128, 0.5] / size[8, 0.5]) > 2.5, "the root is not"


def test_the_theorem_of_one_step_in_the_mean():
    rng, n, r, s = np.random.default_rng(0), 12, 4, 0.7
    gradient, mean = rng.standard_normal((5, n)), np.zeros((5, n))
    for _ in range(20000):
        a = rng.uniform(-1, 1, (r, n)) / math.sqrt(n)
        mean += s * (s * gradient @ a.T) @ a / 20000
    assert mean == pytest.approx(s**2 * r / (3 * n) * gradient, abs=0.01)


def test_muon_in_words():
    grid = np.linspace(0.01, 1, 4000)
    after = [muon_step(None, before=x, steps=5)["after"] for x in grid]
    assert (math.floor(100 * min(after)), math.ceil(100 * max(after))) == (68, 114)
    assert "lies between 0.68 and 1.14" in TEXT


# ---------------------------------------------------------------------------------------------------- the script


def test_the_script_prints_what_the_page_says(tmp_path):
    (tmp_path / "compress.py").write_text(SCRIPT, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "compress.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == PRINTED
    assert "36,864 of 1,179,648" in PRINTED
    assert (36_864 / 18, 1_179_648 / 18) == (4 * 512, 256 * 256)


@pytest.fixture
def alone(tmp_path):
    """A group of one process, in which the hook does what it does among many."""
    distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.filterwarnings("ignore")
def test_the_hook_of_pytorch_is_our_power_step(alone):
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


def test_the_shown_code_has_the_cells_it_needs():
    assert sum("explore(" in cell.source for cell in code_cells(CHAPTER)) == len(EXPLORERS)

"""Put another attention into your model: the page's cells run in their order, and do what it says
of them.
"""

import math
import os
import re
import subprocess
import sys

import pytest
import torch
from chapters import ROOT, run

from lowrank_tutor.layers import resized

PAGE = ROOT / "book" / "use-linformer.md"


@pytest.fixture(scope="module")
def page():
    ran = run(PAGE)
    return ran.namespace | {"printed": ran.printed}


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_local_window(monkeypatch):
    """The rule of the snippet hides what a dense mask hides."""
    (code,) = re.findall(
        r"^```python\n(.*?create_block_mask.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    monkeypatch.setattr(torch, "compile", lambda function: function)
    monkeypatch.setattr(
        "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True
    )
    q, k, v = torch.randn(3, 1, 2, 300, 16, generator=torch.Generator().manual_seed(0))
    names = {"q": q, "k": k, "v": v, "n": 300}
    exec(code.replace("n, n)", 'n, n, device="cpu")'), names)
    near = (torch.arange(300)[:, None] - torch.arange(300)).abs() <= 64
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=near)
    assert (names["out"] - expected).abs().max() < 1e-5


def test_training(page):
    """A hundred steps teach the task, which no token can know alone."""
    assert isinstance(
        page["models"]["exact"].encoder.layers[0].self_attn, torch.nn.MultiheadAttention
    )
    x, real, above = page["batch"](64, torch.Generator().manual_seed(1))
    for name, model in page["models"].items():
        with torch.no_grad():
            assert ((model(x, real) > 0) == above)[real].float().mean() > 0.95, name
    assert page["by_sign"] == pytest.approx(0.5 + math.asin(1 / math.sqrt(5)) / math.pi, abs=0.03)


def test_padding(page):
    assert page["n"] < 128, "the first sequence is padded, so the comparison means something"
    assert (page["alone"] - page["padded"]).abs().max() < 1e-4


def test_other_cells(page):
    assert "saved and loaded: largest difference 0.0\n" in page["printed"]
    assert page["mixed"].shape == (2, 10, 32)
    assert page["moved"] < 1e-5
    assert resized(page["taken"], 80)(page["x50"]).shape == (2, 50, 32)
    assert "1 matrix for 6 layers" in page["printed"]
    assert "e" not in dict(page["fixed"].named_parameters())
    assert "x must hold between 1 and max_len = 256 tokens, got 300" in page["printed"]
    assert "causal must be False, got True" in page["printed"]


# One of two processes runs the page's script, and compares all gradients with those of one process.
SHARED = """
import os, sys
import torch
from torch import distributed

script, folder, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
begin = distributed.init_process_group
distributed.init_process_group = lambda backend: begin(
    backend, init_method=f"file://{folder}/meeting", rank=rank, world_size=2
)
distributed.destroy_process_group = lambda: None
page = {}
exec(script, page)
layer, x, attend_shared = (page[name] for name in ("layer", "x", "attend_shared"))
found = [parameter.grad for parameter in layer.parameters()]
x.requires_grad_()
wanted = torch.autograd.grad(layer(x).square().sum(), [x, *layer.parameters()])
own = page["own"].requires_grad_()
(gradient,) = torch.autograd.grad(attend_shared(layer, own).square().sum(), own)
pairs = zip([gradient, *found], [wanted[0].chunk(2, dim=1)[rank], *wanted[1:]], strict=True)
print(max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs))
kinds = {"tokens": {}, "headwise": {"sharing": "headwise"}, "bias": {"bias": True}}
for name, options in kinds.items():
    try:
        attend_shared(type(layer)(64, 4, 4096, 64, **options), own[:, name == "tokens" :])
    except ValueError as refusal:
        print(refusal)
os._exit(0)
"""


@pytest.mark.slow
def test_two_processes(tmp_path):
    """The outputs of two processes, and all gradients once they are added up, are those of one."""
    (script,) = re.findall(
        r"^```python\n(.*?init_process_group.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
    command = [sys.executable, "-W", "error", "-uc", SHARED, script.split("```python\n")[-1]]
    started = [
        subprocess.Popen(
            [*command, str(tmp_path), str(rank)],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        for rank in range(2)
    ]
    printed = [process.communicate(timeout=120)[0].splitlines() for process in started]
    for rank, (told, apart, *refusals) in enumerate(printed):
        assert re.fullmatch(rf"process {rank}: 2048 tokens, 0.000000\d from one process", told)
        assert float(apart) < 1e-5
        kinds = "layer must have E = F and no biases, got others"
        assert refusals == ["own must be 4096 / 2 tokens, got 2047", kinds, kinds]

"""On a GPU: the floors that the page draws and tells, and its cells on a CPU and on cards that are played."""

import contextlib
import io
import re

import pytest
import torch
from chapters import ROOT, code_cells, run

import lowrank_tutor.attention
from lowrank_tutor.attention import GPUS

PAGE = ROOT / "book" / "gpu.md"
TEXT = PAGE.read_text(encoding="utf-8")


def seconds(n, gpu, k=None, d=64, heads=8):
    """The two walls, from the table of cards and the sentences of the page alone."""
    card, width = GPUS[gpu], d * heads
    operations = 4 * n * n * width if k is None else 8 * n * k * width
    numbers = 4 * n * width if k is None else 4 * n * width + n * k + 4 * k * width
    return max(operations / card.flops, 2 * numbers / card.bandwidth)


def parts_from(gpu, k):
    return next(n for n in range(k + 1, 10**6) if seconds(n, gpu, k) < seconds(n, gpu))


def gpu_floors(_page, *, gpu, k, n):
    exact, mixed = 1000 * seconds(n, gpu), 1000 * seconds(n, gpu, min(k, n))
    return {"exact": exact, "mixed": mixed, "ratio": exact / mixed, "pays": parts_from(gpu, k)}


EXPLORERS = {"gpu-floors": gpu_floors}


def told(pattern):
    return re.search(pattern, " ".join(TEXT.split()))[1]


def test_the_sentences_below_the_explorer():
    assert int(told(r"the two lines part at (\d+) tokens")) == parts_from("T4", 256)
    apart = seconds(65536, "T4") / seconds(65536, "T4", 256)
    assert int(told(r"to a factor of (\d+) at 65,536 tokens")) == pytest.approx(apart, rel=1e-12)
    assert int(told(r"part only at ([\d,]+) tokens").replace(",", "")) == parts_from("L4", 256)
    assert seconds(65536, "L4") / seconds(65536, "L4", 256) < apart
    assert 1.8 < GPUS["L4"].flops / GPUS["T4"].flops < 2


def test_which_wall_the_page_names():
    """By the numbers of operations that fit into the time of a byte."""
    ratio = {name: card.flops / card.bandwidth for name, card in GPUS.items()}
    assert all(ratio[name] > 128 for name in GPUS)
    assert {name for name in GPUS if ratio[name] > 256} == {"L4", "H100"}
    assert all(ratio[name] < 1000 for name in GPUS)  # k = 1024 with the bytes of E: 985 operations a byte or more
    for name in GPUS:
        for k in (128, 256, 1024):
            card, n = GPUS[name], 10**6
            memory = seconds(n, name, k) > 8 * n * k * 512 / card.flops * (1 + 1e-9)
            assert memory == (k == 128 or (k == 256 and name in ("L4", "H100")))
        assert parts_from(name, 1024) == 2049


def test_a_t4_cannot_write_out_16384_tokens():
    needed = 12 * 8 * 16384**2
    assert needed > GPUS["T4"].memory
    assert 12 * 8 * 4096**2 < GPUS["T4"].memory
    assert "16,384 tokens do not fit into the 16 GB" in TEXT


def test_the_papers_table_is_the_one_of_chapter_7():
    chapter = (ROOT / "book" / "07-linformer.md").read_text(encoding="utf-8")
    for n, row in run(PAGE).namespace["PAPER"].items():
        cells = re.search(rf"^\| {n:,} \|(.*)\|$", chapter, re.M)[1].split("|")
        assert [float(cell) if cell.strip() else None for cell in cells] == [row.get(k) for k in (128, 256, 1024)]


def test_on_a_cpu_the_cells_say_so_and_check_before_they_time():
    printed = run(PAGE).printed
    assert "CPU: torch.float32, kernels: of the CPU" in printed
    for words in ("exact", "Linformer"):
        assert float(re.search(rf"^{words}: off by (\S+) from", printed, re.M)[1]) < 1e-5
    took = run(PAGE).namespace["took"]
    assert [len(times) for times in took.values()] == [3, 3]
    assert all(time > 0 for times in took.values() for time in times)
    assert "Nobody has sent one yet" in printed


@pytest.mark.parametrize(
    ("capability", "kernels", "free", "left_out"),
    [
        ((7, 5), ("efficient",), 15e9, 0),
        ((7, 5), (), 15e9, 2),
        ((8, 0), ("flash", "efficient"), 15e9, 0),
        ((8, 0), ("flash", "efficient"), 300e6, 2),
        ((7, 5), (), 2e9, 4),
    ],
)
def test_on_a_played_card_the_plan_fits(capability, kernels, free, left_out, monkeypatch):
    """Tensors without memory stand for those of the card; the cells are those of the page."""
    plan, _, timed = (
        cell.source
        for cell in code_cells(PAGE)
        if any(words in cell.source for words in ("mem_get_info", "judge = ", "def best_of"))
    )
    namespace = {"HEADS": 8, "WIDTH": 64, "table": lambda columns, formats: columns}
    assert plan.count('"cuda" if on_gpu') == 1
    real = lowrank_tutor.attention.half_type
    cuda = torch.cuda
    monkeypatch.setattr(cuda, "get_device_capability", lambda _device: capability)
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda, "mem_get_info", lambda: (int(free), 16 * 10**9))
    monkeypatch.setattr(cuda, "get_device_name", lambda: "Tesla T4")
    monkeypatch.setattr(cuda, "synchronize", lambda: None)
    monkeypatch.setattr(lowrank_tutor.attention, "half_type", lambda _device: real("cuda"))
    monkeypatch.setattr(lowrank_tutor.attention, "fused_backends", lambda *_tensors: kernels)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(plan.replace('"cuda" if on_gpu', '"meta" if on_gpu'), namespace)
        exec(timed, namespace)
    said = printed.getvalue()
    dtype = "bfloat16" if capability >= (8, 0) else "float16"
    assert said.startswith(f"Tesla T4: torch.{dtype}, kernels: {', '.join(kernels) or 'none fused'}\n")
    assert said.count("left out, it needs") == left_out
    for trial, exact, mixed in zip(namespace["plan"], *namespace["took"].values(), strict=True):
        assert (exact is None, mixed is None) == (not trial.exact, not trial.linformer)
        if not kernels and trial.exact:
            assert 12 * 8 * trial.n**2 <= 0.8 * free

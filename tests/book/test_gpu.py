"""On a GPU: the floors that the page draws and tells, and its cells on a CPU and on cards that are played."""

import contextlib
import inspect
import io
import json
import math
import re

import numpy as np
import pytest
import torch
from chapters import ROOT, code_cells, run

import lowrank_tutor.roofline
from benchmarks import shared
from benchmarks.harness import DATA
from benchmarks.linformer_findings import crossovers
from benchmarks.memory import LiveBytes
from lowrank_tutor.roofline import GPUS, gpu_floor

PAGE = ROOT / "book" / "gpu.md"
TEXT = PAGE.read_text(encoding="utf-8")
WORDS = " ".join(TEXT.split())


def seconds(n, gpu, k=None, d=64, heads=8):
    """The two walls, from the table of cards and the sentences of the page alone."""
    card, width = GPUS[gpu], d * heads
    operations = 4 * n * n * width if k is None else 8 * n * k * width
    numbers = 4 * n * width if k is None else 4 * n * width + n * k + 4 * k * width
    return max(operations / card.flops, 2 * numbers / card.bandwidth)


def parts_from(gpu, k):
    return next(n for n in range(k + 1, 10**6) if seconds(n, gpu, k) < seconds(n, gpu))


def gpu_floors(_page, *, gpu, k, n):
    exact, mixed = 1000 * seconds(n, gpu), 1000 * seconds(n, gpu, k)
    return {"exact": exact, "mixed": mixed, "ratio": exact / mixed, "pays": parts_from(gpu, k)}


EXPLORERS = {"gpu-floors": gpu_floors}


def told(pattern):
    return re.search(pattern, WORDS)[1]


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


REPORTED = json.loads((DATA / "published.json").read_text(encoding="utf-8"))["linformer_table_3"]["rows"]


def test_the_papers_table_is_whole():
    page = run(PAGE).namespace
    for k, times in page["REPORTED"].items():
        assert {n: x for n, x in zip(page["LENGTHS"], times, strict=True) if x} == {
            int(n): x for n, x in REPORTED[str(k)].items()
        }


def test_no_time_that_the_papers_table_allows_is_below_the_floor():
    """Written out, P goes through the memory at least twice; the paper's ratio then bounds Linformer's time."""
    card, width, heads = GPUS["V100"], 512, 8
    for k, times in REPORTED.items():
        for n, ratio in ((int(n), ratio) for n, ratio in times.items()):
            moved = 2 * (4 * n * width + 2 * heads * n**2)
            written_out = max(4 * n**2 * width / card.flops, moved / card.bandwidth)
            assert written_out / ratio > seconds(n, "V100", int(k)), (n, k)


def test_the_picture_says_which_wall_and_marks_the_v100_alone():
    page = run(PAGE).namespace
    for card in GPUS:
        for k in (128, 256, 1024):
            left, right = page["gpu_floors"](gpu=card, k=k, n=8192)
            lines = left.axes[0].get_lines()
            for rank, color in ((None, lines[0].get_color()), (k, lines[2].get_color())):
                drawn = {line.get_linestyle(): line for line in lines[:4] if line.get_color() == color}
                full, dotted = drawn["-"], next(drawn[look] for look in drawn if look != "-")
                for n in (n for n in page["LENGTHS"] if rank is None or n > rank):
                    ms = [dict(zip(*line.get_data(), strict=True))[n] for line in (full, dotted)]
                    floor = 1000 * seconds(n, card, rank)
                    operations = (4 * n * n if rank is None else 8 * n * rank) * 512
                    at_work = operations / GPUS[card].flops >= floor / 1000 * (1 - 1e-9)
                    assert ms[0 if at_work else 1] == pytest.approx(floor), (card, rank, n)
            marks = [line for line in right.axes[0].get_lines() if line.get_marker() == "x"]
            assert len(marks) == (card == "V100")
            for line in marks:
                assert dict(zip(*line.get_data(), strict=True)) == {int(n): x for n, x in REPORTED[str(k)].items()}
                assert line.get_label() == "paper, V100"


def test_exponentials_take_as_long_as_products_on_an_h100():
    assert float(told(r"name (\S+) tera-operations a second for them and 989")) == 3.9
    each = int(told(r"width 64 does (\d+) operations for each exponential"))
    assert each == 4 * 64
    assert GPUS["H100"].flops == 989e12
    assert each * 3.9e12 / GPUS["H100"].flops == pytest.approx(1, abs=0.02)


def test_on_a_cpu_the_cells_say_so_and_check_before_they_time():
    printed = run(PAGE).printed
    assert "CPU: torch.float32, kernels: of the CPU" in printed
    for words in ("exact", "Linformer"):
        assert float(re.search(rf"^{words}: off by (\S+)% from", printed, re.M)[1]) < 1e-3
    took = run(PAGE).namespace["took"]
    assert [len(times) for times in took.values()] == [3, 3]
    assert all(time > 0 for times in took.values() for time in times)
    assert "Nobody has sent one yet" in printed


def cell_with(words):
    (cell,) = [cell.source for cell in code_cells(PAGE) if words in cell.source]
    return cell


class Played:
    """A card that is not there: tensors without memory stand for its own, and the page's cells run on them."""

    def __init__(self, monkeypatch, name, capability, kernels, free, total):
        page = run(PAGE).namespace  # before anything is played
        self.memory, self.before = LiveBytes(), 0
        real, cuda = lowrank_tutor.roofline.half_type, torch.cuda
        monkeypatch.setattr(cuda, "get_device_capability", lambda _device: capability)
        monkeypatch.setattr(cuda, "is_available", lambda: True)
        monkeypatch.setattr(cuda, "mem_get_info", lambda: self.ask(free, total))
        monkeypatch.setattr(cuda, "get_device_name", lambda: name)
        monkeypatch.setattr(cuda, "synchronize", lambda: None)
        monkeypatch.setattr(lowrank_tutor.roofline, "half_type", lambda _device: real("cuda"))
        monkeypatch.setattr(lowrank_tutor.roofline, "fused_backends", lambda *_tensors: kernels)
        if kernels:  # a fused kernel makes its result and nothing else; without one PyTorch writes the weights out
            attend = "scaled_dot_product_attention"
            monkeypatch.setattr(torch.nn.functional, attend, lambda q, _k, _v, **_rest: torch.empty_like(q))
        given = ("HEADS", "WIDTH", "CURVE", "LENGTHS", "np", "plotting", "picture")
        self.names = {name: page[name] for name in given} | {"table": lambda columns, formats: columns}
        self.said = io.StringIO()

    def ask(self, free, total):
        self.before = self.memory.peak = self.memory.live
        return int(free), int(total)

    def run(self, words):
        cell = cell_with(words)
        assert cell.count('"cuda" if on_gpu') == (words == "mem_get_info")
        with contextlib.redirect_stdout(self.said), self.memory:
            exec(cell.replace('"cuda" if on_gpu', '"meta" if on_gpu'), self.names)


CARDS = {(7, 5): ("Tesla T4", 15.8e9), (8, 0): ("NVIDIA A100-SXM4-40GB", 42.4e9)}


@pytest.mark.parametrize(
    ("capability", "kernels", "free", "left_out"),
    [
        ((7, 5), ("efficient",), 15e9, 0),
        ((7, 5), ("efficient",), 2e9, 0),
        ((7, 5), ("efficient",), 300e6, 2),
        ((7, 5), (), 15e9, 2),
        ((7, 5), (), 2e9, 4),
        ((7, 5), (), 300e6, 5),
        ((8, 0), ("flash", "efficient"), 15e9, 0),
        ((8, 0), ("flash", "efficient"), 2e9, 0),
        ((8, 0), ("flash", "efficient"), 300e6, 2),
    ],
)
def test_on_a_played_card_the_plan_fits(capability, kernels, free, left_out, monkeypatch):
    name, total = CARDS[capability]
    card = Played(monkeypatch, name, capability, kernels, free, total)
    card.run("mem_get_info")
    card.run("def best_of")
    said = card.said.getvalue()
    dtype = "bfloat16" if capability >= (8, 0) else "float16"
    assert said.startswith(f"{name}: torch.{dtype}, kernels: {', '.join(kernels) or 'none fused'}\n")
    assert said.count("left out, it needs") == left_out
    assert 0 < card.memory.peak - card.before <= free, "the cells ask for more than is free"
    for trial, exact, mixed in zip(card.names["plan"], *card.names["took"].values(), strict=True):
        assert (exact is None, mixed is None) == (not trial.exact, not trial.linformer)
    assert 12 * 8 * 1024**2 < 0.8 * free, "what is checked at 1,024 tokens fits as well"


@pytest.mark.parametrize(
    ("name", "total", "floors"),
    [("Tesla T4", 15.8e9, "T4"), ("NVIDIA A100-SXM4-40GB", 42.4e9, "A100"), ("NVIDIA A10G", 23.7e9, None)],
)
def test_a_readers_times_are_drawn_into_the_picture(name, total, floors, monkeypatch):
    card = Played(monkeypatch, name, (8, 0), ("flash",), 14e9, total)
    drawn = []
    real = card.names["plotting"].rooflines
    monkeypatch.setattr(card.names["plotting"], "rooflines", lambda *a, **w: drawn.append(real(*a, **w)) or drawn[-1])
    for words in ("mem_get_info", "def best_of", "yours = {"):
        card.run(words)
    left, right = (figure.axes[0] for figure in drawn[0])
    points = [line.get_xydata() for line in left.get_lines() if line.get_marker() == "D" and len(line.get_xdata())]
    took = list(card.names["took"].values())
    for found, times in zip(points, took, strict=True):
        np.testing.assert_array_equal(found, list(zip((4096, 16384, 65536), times, strict=True)))
    (ratios,) = [line.get_ydata() for line in right.get_lines() if line.get_marker() == "D"]
    np.testing.assert_allclose(ratios, np.divide(*took))
    exact = [line.get_ydata()[-1] for line in left.get_lines()[:2]]
    if floors is None:
        assert np.isnan(exact).all()
        assert f"{name}: its peaks are not in the table" in card.said.getvalue()
    else:
        assert np.nanmax(exact) == pytest.approx(1000 * seconds(65536, floors))
        assert left.get_title(loc="left").startswith(f"{floors}:")


def test_the_cells_take_less_than_a_minute_on_a_t4_at_three_times_the_floors(monkeypatch):
    assert "takes less than a minute on a T4" in TEXT
    card = Played(monkeypatch, "Tesla T4", (7, 5), ("efficient",), 15e9, 15.8e9)
    card.run("mem_get_info")
    card.run("def best_of")
    runs = 1 + inspect.signature(card.names["best_of"]).parameters["runs"].default
    assert all(trial.exact and trial.linformer for trial in card.names["plan"])
    floors = [seconds(trial.n, "T4", k) for trial in card.names["plan"] for k in (None, 256)]
    swept = len(floors) * runs * card.names["sweep"].nbytes / GPUS["T4"].bandwidth
    assert 3 * (runs * sum(floors) + swept) < 60


def inside(ax):
    """Whether every diamond of a picture can be seen."""
    times = [y for line in ax.get_lines() if line.get_marker() == "D" for y in line.get_ydata()]
    low, high = ax.get_ylim()
    return all(low < time < high for time in times)


@pytest.mark.parametrize("ms", [1e-6, 1e-4, 1.0, 1e4, float("nan")])
def test_no_time_that_was_measured_falls_out_of_the_picture(ms):
    page = run(PAGE).namespace
    times = {"exact": [(512, ms), (4096, 1.0)], "k = 256": [(512, 1.0), (4096, ms)]}
    for figure, usual in zip(
        page["picture"]("Tesla T4", 15.8e9, times, "yours"), ((3e-4, 2000), (0.3, 500)), strict=True
    ):
        ax = figure.axes[0]
        assert inside(ax) or math.isnan(ms)
        low, high = ax.get_ylim()
        assert low <= usual[0] < usual[1] <= high
        if ms == 1 or math.isnan(ms):
            assert (low, high) == usual


def test_each_file_that_was_sent_is_drawn(tmp_path, monkeypatch):
    folder = tmp_path / "gpu"
    folder.mkdir()
    row = {"series": "core", "mode": "forward", "batch": 1, "dtype": "float16"}
    rows = [row | {"n": n, "method": "exact, fused", "k": None, "time_min": 3 * seconds(n, "T4")} for n in (512, 4096)]
    rows += [row | {"n": 4096, "method": "linformer_attention", "k": 256, "time_min": 1e-3}]
    rows += [rows[0] | {"dtype": "float32", "time_min": 9.0}, rows[-1] | {"batch": 16, "time_min": 9.0}]
    gpu = {"name": "Tesla T4", "memory_bytes": 15_800_000_000}
    meta = {"gpu": gpu, "versions": {"torch": "2.13.0"}, "date": "2026-11-22"}
    (folder / "tesla-t4.json").write_text(json.dumps({"meta": meta, "rows": rows}), encoding="utf-8")
    names, shown = run(PAGE).namespace, []
    monkeypatch.setitem(names, "display", shown.append)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(cell_with("Nobody has sent one yet"), names | {"data": tmp_path})
    assert said.getvalue() == "Tesla T4, PyTorch 2.13.0, 2026-11-22\n"
    ((left, right),) = shown
    drawn = [line.get_xydata().tolist() for line in left.axes[0].get_lines() if line.get_marker() == "D"]
    assert [[n for n, _ in points] for points in drawn if points] == [[512, 4096], [4096]]
    assert all(inside(figure.axes[0]) for figure in (left, right))
    assert drawn[0][1][1] == pytest.approx(3000 * seconds(4096, "T4"))
    (ratio,) = [line.get_ydata() for line in right.axes[0].get_lines() if line.get_marker() == "D"]
    assert ratio == pytest.approx([3000 * seconds(4096, "T4")])


H100 = json.loads((DATA / "h100_short.json").read_text(encoding="utf-8"))


def on_h100(series, method, k=None, batch=1, quantity="time_min"):
    """Milliseconds by length, forward."""
    return {
        row["n"]: 1000 * row[quantity]
        for row in H100["rows"]
        if [row[name] for name in ("series", "method", "k", "batch", "mode")] == [series, method, k, batch, "forward"]
    }


H100_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
EXACT, MIXED = ("exact, fused", None), ("linformer_attention", 256)


def test_the_record_says_where_it_comes_from_and_no_time_of_it_is_below_the_floor():
    meta = H100["meta"]
    assert all(meta[name] for name in shared.PROVENANCE)
    assert set(shared.CARD) <= set(meta["gpu"])
    for row in H100["rows"]:
        assert 0 < row["time_min"] <= row["time_median"]
        assert row["peak_bytes"] < meta["gpu"]["memory_bytes"]
        if (row["series"], row["mode"]) == ("core", "forward"):
            floor = gpu_floor(row["n"], 64, 8, "H100", k=row["k"], batch=row["batch"]).seconds
            assert row["time_min"] > floor, row


def first_below(fast, slow, lengths=H100_LENGTHS):
    """Between which two lengths the first becomes faster than the second, for good."""
    last = max(i for i, n in enumerate(lengths) if fast[n] >= slow[n])
    return lengths[last], lengths[last + 1]


def test_what_the_page_says_of_attention_on_an_h100():
    exact, mixed = on_h100("core", *EXACT), on_h100("core", *MIXED)
    above = [exact[n] / (1000 * seconds(n, "H100")) for n in H100_LENGTHS]
    assert above == sorted(above, reverse=True), "the longer, the nearer"
    assert "from 4,096 tokens on lie at about twice its height" in WORDS
    assert above[3:] == pytest.approx([2, 2, 2], rel=0.15)
    assert f"{exact[16384]:.2f} ms for 16,384 tokens, where the floor is {1000 * seconds(16384, 'H100'):.2f}" in WORDS
    for n in (512, 1024, 2048):
        assert f"{mixed[n]:.3f}" == told(r"takes ([\d.]+) ms for 512 tokens, and just as long for 1,024 and for 2,048")
    assert f"eight times the work, took {on_h100('core', *MIXED, batch=8)[2048]:.3f} ms" in WORDS
    assert all(ms > mixed[n] for n, ms in on_h100("core", "linformer_attention", 128).items())
    assert f"meets it too and takes {exact[512]:.3f} ms for 512 tokens" in WORDS
    assert int(told(r"The floors part at (\d+) tokens; the fastest")) == parts_from("H100", 256)
    medians = [on_h100("core", *method, quantity="time_median") for method in (MIXED, EXACT)]
    bounds = [f"{n:,}" for n in (*first_below(mixed, exact), *first_below(*medians))]
    found = re.search(r"fastest runs cross between (\S+) and (\S+), the median runs between (\S+) and (\S+)\.", WORDS)
    assert list(found.groups()) == bounds


def test_what_the_page_says_of_longer_sequences_on_an_h100():
    mixed, two = on_h100("core", *MIXED), on_h100("core", *MIXED, batch=2)[8192]
    assert f"16,384 tokens take {mixed[16384]:.2f} ms, nearly six times the floor" in WORDS
    assert 5.5 < mixed[16384] / (1000 * seconds(16384, "H100", 256)) < 6
    assert mixed[8192] == pytest.approx(mixed[16384], rel=0.03)
    assert f"two sequences of 8,192 at once took only {two:.2f} ms" in WORDS
    assert 0.45 < 1 - two / mixed[8192] < 0.5
    varies = [
        {n: ms / on_h100("core", *method)[n] for n, ms in on_h100("core", *method, quantity="time_median").items()}
        for method in (MIXED, EXACT)
    ]
    low, high = (f"{bound(varies[0].values()):.1f}" for bound in (min, max))
    assert f"median run took {low} to {high} times as long as its fastest" in WORDS
    assert max(varies[1][n] for n in (4096, 8192, 16384)) < 1.1


def test_what_the_pages_say_of_layers_on_an_h100():
    layers = {"exact": EXACT, "linformer": ("linformer", 256), "linformer-pytorch": ("linformer-pytorch kv", 256)}
    layers["this book"] = ("lowrank_tutor E = F", 256)
    times = {name: on_h100("module", *layer) for name, layer in layers.items()}
    shown = run(PAGE).namespace["columns"]
    assert shown == {f"{name}, ms": pytest.approx(list(line.values())) for name, line in times.items()}
    most = float(told(r"longest time is more than ([\d.]+) times its shortest"))
    for name in ("linformer", "linformer-pytorch", "this book"):
        assert times[name][16384] < max(times[name].values()) < most * min(times[name].values())
    assert times["exact"][512] > times["exact"][2048]
    medians = [{**row, "time_min": row["time_median"]} for row in H100["rows"]]
    fastest, median = (
        next(
            item
            for item in crossovers(rows)
            if (item["method"], item["k"], item["mode"]) == ("lowrank_tutor E = F", 256, "forward")
        )
        for rows in (H100["rows"], medians)
    )
    assert f"({round(fastest['measured'], -2):,} by the fastest runs, {round(median['measured'], -2):,}" in WORDS
    assert f"where a count of operations says {fastest['by_operations']}." in WORDS
    about = int(told(r"layer pays from about ([\d,]+) tokens on").replace(",", ""))
    assert fastest["measured"] < about < median["measured"]
    assert f"it is {times['exact'][16384] / times['this book'][16384]:.1f} times as fast as the exact layer" in WORDS


def test_what_the_cells_gave_on_an_h100_can_be():
    cells = H100["cells"]
    for n, exact, mixed in zip(cells["n"], cells["exact_ms"], cells["mixed_ms"], strict=True):
        assert exact > 1000 * seconds(n, "H100")
        assert mixed > 1000 * seconds(n, "H100", 256)
    assert n == 65536
    assert f"gave {exact} ms for exact attention and {mixed} ms for Linformer" in WORDS
    assert f"a factor of {exact / mixed:.0f}" in WORDS
    assert {round(cells[name][0], 2) for name in ("exact_ms", "mixed_ms")} == {
        float(told(r"were even there, ([\d.]+) ms"))
    }

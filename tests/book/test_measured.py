"""Measured: its tables say what the data say, and its cells run on a CPU and on simulated cards."""

import contextlib
import io
import itertools
import json

import numpy as np
import pytest
import torch
from chapters import ROOT, code_cells, run

import lowrank_tutor.roofline
from lowrank_tutor.kit.tables import number
from lowrank_tutor.roofline import GPUS, gpu_floor
from measure.harness import DATA
from measure.memory import LiveBytes
from measure.speed import gpu_file

PAGE = ROOT / "book" / "measured.md"


def seconds(n, gpu, k=None, d=64, heads=8):
    """The two walls, from the table of cards and the formulas of the page."""
    card, width = GPUS[gpu], d * heads
    operations = 4 * n * n * width if k is None else 8 * n * k * width
    numbers = 4 * n * width if k is None else 4 * n * width + n * k + 4 * k * width
    return max(operations / card.flops, 2 * numbers / card.bandwidth)


def roof(_page, *, n, gpu):
    return {
        name: 1000 * seconds(n, gpu, k)
        for name, k in (("exact", None), ("some", 256), ("few", 128))
    }


EXPLORERS = {"roof": roof}


def test_cells_on_cpu():
    page = run(PAGE)
    assert "CPU: torch.float32, kernels: of the CPU" in page.printed
    assert [len(times) for times in page.namespace["took"].values()] == [3, 3]
    assert all(time > 0 for times in page.namespace["took"].values() for time in times)


def cell_with(words):
    (cell,) = [cell.source for cell in code_cells(PAGE) if words in cell.source]
    return cell


class SimulatedCard:
    """Simulate a card: the page's cells run on tensors without memory."""

    def __init__(self, monkeypatch, name, capability, kernels, free, total):
        page = run(PAGE).namespace  # before anything is patched
        self.memory, self.before = LiveBytes(), 0
        real, cuda = lowrank_tutor.roofline.half_type, torch.cuda
        monkeypatch.setattr(cuda, "get_device_capability", lambda _device: capability)
        monkeypatch.setattr(cuda, "is_available", lambda: True)
        monkeypatch.setattr(cuda, "mem_get_info", lambda: self.ask(free, total))
        monkeypatch.setattr(cuda, "get_device_name", lambda: name)
        monkeypatch.setattr(cuda, "synchronize", lambda: None)
        monkeypatch.setattr(lowrank_tutor.roofline, "half_type", lambda _device: real("cuda"))
        monkeypatch.setattr(lowrank_tutor.roofline, "fused_backends", lambda *_tensors: kernels)
        # A fused kernel makes its result and nothing else; without one PyTorch writes the weights.
        if kernels:
            attend = "scaled_dot_product_attention"
            monkeypatch.setattr(
                torch.nn.functional, attend, lambda q, _k, _v, **_rest: torch.empty_like(q)
            )
        given = ("HEADS", "WIDTH", "CURVE", "np", "charts", "picture")
        self.names = {name: page[name] for name in given} | {
            "table": lambda columns, formats: columns
        }
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
        ((7, 5), (), 2e9, 4),
        ((8, 0), ("flash", "efficient"), 300e6, 2),
    ],
)
def test_plan_fits_card(capability, kernels, free, left_out, monkeypatch):
    name, total = CARDS[capability]
    card = SimulatedCard(monkeypatch, name, capability, kernels, free, total)
    card.run("mem_get_info")
    card.run("def best_of")
    said = card.said.getvalue()
    dtype = "bfloat16" if capability >= (8, 0) else "float16"
    assert said.startswith(
        f"{name}: torch.{dtype}, kernels: {', '.join(kernels) or 'none fused'}\n"
    )
    assert said.count("left out, it needs") == left_out
    assert 0 < card.memory.peak - card.before <= free, "the cells ask for more than is free"
    for trial, exact, mixed in zip(card.names["plan"], *card.names["took"].values(), strict=True):
        assert (exact is None, mixed is None) == (not trial.exact, not trial.linformer)


@pytest.mark.parametrize(
    ("name", "total", "floors"),
    [("Tesla T4", 15.8e9, "T4"), ("NVIDIA A10G", 23.7e9, None)],
)
def test_own_times_are_drawn(name, total, floors, monkeypatch):
    card = SimulatedCard(monkeypatch, name, (8, 0), ("flash",), 14e9, total)
    drawn = []
    page = run(PAGE).namespace
    real = page["rooflines"]
    monkeypatch.setitem(page, "rooflines", lambda *given: drawn.append(real(*given)) or drawn[-1])
    for words in ("mem_get_info", "def best_of", "yours = {"):
        card.run(words)
    left = drawn[0].axes[0]
    points = [
        line.get_xydata()
        for line in left.get_lines()
        if line.get_marker() == "D" and len(line.get_xdata())
    ]
    took = list(card.names["took"].values())
    for found, times in zip(points, took, strict=True):
        np.testing.assert_array_equal(found, list(zip((4096, 16384, 65536), times, strict=True)))
    exact = [line.get_ydata()[-1] for line in left.get_lines()[:2]]
    if floors is None:
        assert np.isnan(exact).all()
        assert f"{name}: its peaks are not in the table" in card.said.getvalue()
    else:
        assert np.nanmax(exact) == pytest.approx(1000 * seconds(65536, floors))
        assert left.get_title(loc="left").startswith(f"{floors}:")


def test_sent_files_are_drawn(tmp_path, monkeypatch):
    folder = tmp_path / "gpu"
    folder.mkdir()
    row = {"series": "core", "mode": "forward", "batch": 1, "dtype": "float16"}
    rows = [
        row | {"n": n, "method": "exact, fused", "k": None, "time_min": 3 * seconds(n, "T4")}
        for n in (512, 4096)
    ]
    rows += [row | {"n": 4096, "method": "linformer_attention", "k": 256, "time_min": 1e-3}]
    rows += [
        rows[0] | {"dtype": "float32", "time_min": 9.0},
        rows[-1] | {"batch": 16, "time_min": 9.0},
    ]
    gpu = {"name": "Tesla T4", "memory_bytes": 15_800_000_000}
    meta = {"gpu": gpu, "versions": {"torch": "2.13.0"}, "date": "2026-11-22"}
    (folder / "tesla-t4.json").write_text(
        json.dumps({"meta": meta, "rows": rows}), encoding="utf-8"
    )
    names, shown = run(PAGE).namespace, []
    monkeypatch.setitem(names, "display", shown.append)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(cell_with("Nobody has sent one yet"), names | {"data": tmp_path})
    assert said.getvalue() == "Tesla T4, PyTorch 2.13.0, 2026-11-22\n"
    (figure,) = shown
    drawn = [
        line.get_xydata().tolist()
        for line in figure.axes[0].get_lines()
        if line.get_marker() == "D"
    ]
    assert [[n for n, _ in points] for points in drawn if points] == [[512, 4096], [4096]]
    assert drawn[0][1][1] == pytest.approx(3000 * seconds(4096, "T4"))


H100 = json.loads((DATA / "h100_short.json").read_text(encoding="utf-8"))


def test_h100_record():
    """It says where it comes from, and no time of it is below the floor."""
    meta = H100["meta"]
    assert all(meta[name] for name in gpu_file.PROVENANCE)
    assert set(gpu_file.CARD) <= set(meta["gpu"])
    for row in H100["rows"]:
        assert 0 < row["time_min"] <= row["time_median"]
        assert row["peak_bytes"] < meta["gpu"]["memory_bytes"]
        if (row["series"], row["mode"]) == ("core", "forward"):
            floor = gpu_floor(row["n"], 64, 8, "H100", k=row["k"], batch=row["batch"]).seconds
            assert row["time_min"] > floor, row
    cells = H100["cells"]
    for n, exact, mixed in zip(cells["n"], cells["exact_ms"], cells["mixed_ms"], strict=True):
        assert exact > 1000 * seconds(n, "H100")
        assert mixed > 1000 * seconds(n, "H100", 256)


def h100_rows(mode, batch, n):
    """The layers of exact attention and of this book, with k = 256."""
    where = {"series": "module", "mode": mode, "batch": batch, "n": n}
    kinds = ({"method": "exact, fused", "k": None}, {"method": "lowrank_tutor E = F", "k": 256})
    return [
        next(row for row in H100["rows"] if (where | kind).items() <= row.items()) for kind in kinds
    ]


@pytest.mark.parametrize(
    ("tokens", "n", "low", "high"),
    [(1, 8192, 0.9, 1.1), (1, 16384, 2.0, 3.2), (16384, 4096, 0.8, 1.1), (16384, 8192, 1.2, 1.7)],
)
def test_layer_gains_on_h100(tokens, n, low, high):
    """The lowest and the highest gain, by both runs and in both directions, round to those of the
    page.
    """
    gains = []
    for run_, mode in itertools.product(("min", "median"), ("forward", "forward+backward")):
        exact, ours = h100_rows(mode, max(1, tokens // n), n)
        gains.append(exact[f"time_{run_}"] / ours[f"time_{run_}"])
    assert (round(min(gains), 1), round(max(gains), 1)) == (low, high)


@pytest.mark.parametrize(
    ("run_", "mode", "loses", "leads"),
    [
        ("min", "forward", 4096, 8192),
        ("median", "forward", 8192, 16384),
        ("min", "forward+backward", 8192, 16384),
        ("median", "forward+backward", 8192, 16384),
    ],
)
def test_layer_pays_on_h100(run_, mode, loses, leads):
    """The exact layer still wins at the first length, and loses from the second one on."""
    pays = {}
    for n in (2**i for i in range(9, 15)):
        exact, ours = h100_rows(mode, 1, n)
        pays[n] = ours[f"time_{run_}"] < exact[f"time_{run_}"]
    assert not pays[loses]
    assert all(pays[n] for n in pays if n >= leads)


@pytest.mark.parametrize(
    ("mode", "low", "high"), [("forward", 0.46, 0.6), ("forward+backward", 0.79, 0.9)]
)
def test_memory_on_h100(mode, low, high):
    for n in (512, 1024, 2048, 4096, 8192):
        exact, ours = h100_rows(mode, 16384 // n, n)
        assert low < ours["peak_bytes"] / exact["peak_bytes"] < high


def test_bold_methods():
    page = run(PAGE).namespace
    rows = page["bench"]["rows"]
    for row in rows:
        faster = [
            r for r in rows if r["spectrum"] == row["spectrum"] and r["time_min"] < row["time_min"]
        ]
        assert page["beaten"](row) == any(r["excess"] <= row["excess"] for r in faster)
        assert page["cell"](row["method"], row["spectrum"]).startswith("<td><b>") != page["beaten"](
            row
        )


def test_helpers_table():
    page = run(PAGE).namespace
    for row in page["helpers"]["rows"]:
        told = page["helper"](row)
        assert row["task"] in told
        assert f"compared with {row['peer']}<" in told
        assert (
            f"{1000 * row['time_ours']:,.0f}</td><td>{1000 * row['time_theirs']:,.0f}</td>" in told
        )
        assert f">{row['ratio']:.2f}<" in told
        assert ("<b>" in told) == (row["ratio"] < 1)
        assert all(
            number(row[who], ".4g") in told for who in ("error_ours", "error_theirs") if who in row
        )


def test_questions_of_today():
    """All obey a mask; only this book's function ignores NaN below it, as the page says."""
    for name, (exact, hidden, none_left, gradients) in run(PAGE).namespace["asked_now"].items():
        assert max(exact, none_left) < 1e-6, name
        assert (hidden < 1e-6) == (name == "softmax_attention"), name
        assert gradients == ("refused" if name == "FlexAttention" else "yes"), name

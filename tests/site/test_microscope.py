"""The microscope says what ``rank_report`` and NumPy say, of any names and shapes, and a sentence
of a broken file.
"""

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from chapters import ROOT
from visits import violations
from weights import (
    ADAPTERS,
    ATTENTION,
    BROKEN,
    HEADS,
    ODD,
    PEFT,
    SCALES,
    UNMEASURED,
    WEIGHTS,
    A,
    B,
    normal,
    products_of,
    read,
    written,
)

from lowrank_tutor.adapters import rank_report
from lowrank_tutor.rank import stable_rank
from lowrank_tutor.svd import choose_rank, relative_error, tail_error

PAGE = "book/microscope.html"
SCRIPTS = [
    ROOT / "lowrank_tutor/figures/parts/linalg.js",
    *sorted((ROOT / "site/static/microscope").glob("[fnot]*.js")),
]
ASK = """async ({ files, steps }) => {
  const tasks = eval(lowrankLinalg.source(...microscopeParts)), told = [];
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  told.push(await tasks.open(files.map(([name, text]) =>
    new File([bytes(text), new Uint8Array(name === "large.safetensors" ? 1e8 : 0)], name))));
  for (const [task, given] of steps) {
    try { told.push(await tasks[task](given, () => {}));
      } catch (error) { told.push({ error: error.message }); }
  }
  const list = (key, value) => (ArrayBuffer.isView(value) ? [...value] : value);
  for (const one of told) if (one.saved) one.saved =
    [...new Uint8Array(await one.saved.arrayBuffer())];
  return JSON.parse(JSON.stringify(told, list));
}"""


@pytest.fixture(scope="module")
def engine(browser):
    """What the worker of the page computes, on a page of its own."""
    page = browser.new_page()
    for path in SCRIPTS:
        page.add_script_tag(content=path.read_text(encoding="utf-8"))

    def ask(files, *steps):
        given = [[name, base64.b64encode(raw).decode()] for name, raw in files.items()]
        return page.evaluate(ASK, {"files": given, "steps": steps})

    yield ask
    page.close()


def test_weights_match_rank_report(engine):
    opened, *told = engine(
        {"a.safetensors": written(WEIGHTS)}, *(["weigh", name] for name in list(WEIGHTS)[:-2])
    )
    assert opened["notes"] == []
    assert [entry["name"] for entry in opened["weights"] if entry["thin"]] == [
        "one row",
        "vector",
    ]
    columns = rank_report({name: weight.to(torch.float64) for name, weight in WEIGHTS.items()})
    for said, name, stable, *ranks, above, even in zip(
        told, *(columns[key] for key in columns if key != "shape"), strict=True
    ):
        assert said["name"] == name
        assert (said["ranks"], said["above"]) == (ranks, above), name
        assert [said["stable"], said["even"]] == pytest.approx([stable, even], rel=1e-9), name
        s = np.linalg.svd(WEIGHTS[name].double().flatten(1).numpy(), compute_uv=False)
        assert said["s"] == pytest.approx(s, rel=1e-4, abs=2e-7 * s[0]), name


def test_numpy_files(engine):
    for a in (normal(9, 5).numpy(), normal(9, 5).float().numpy().T, normal(4, 6).half().numpy()):
        file = io.BytesIO()
        np.save(file, a)
        opened, told = engine(
            {"a.npy": file.getvalue()},
            ["weigh", "a" + " (transposed)" * (not a.flags.c_contiguous)],
        )
        assert opened["notes"] == []
        assert told["s"] == pytest.approx(
            np.linalg.svd(a.astype(float), compute_uv=False), rel=1e-4
        )


@pytest.mark.parametrize("shape", [(1,), (), (260, 1), (3, 2)], ids=str)
def test_scales_of_8_bits(engine, shape):
    kind = torch.float8_e4m3fn if shape else torch.float8_e5m2
    weight, scale = normal(260, 200).to(kind), normal(*shape).abs().float() + 0.5
    whole = weight.double() * (
        scale.repeat_interleave(128, 0)[:260].repeat_interleave(128, 1)[:, :200]
        if shape == (3, 2)
        else scale
    )
    _, told = engine(
        {"a.safetensors": written({"w": weight, "w_scale_inv": scale})}, ["weigh", "w"]
    )
    assert told["s"] == pytest.approx(np.linalg.svd(whole.numpy(), compute_uv=False), rel=1e-6)


@pytest.mark.parametrize("name", ATTENTION)
def test_heads(engine, name):
    tensors, share = ATTENTION[name]
    config = {"num_attention_heads": HEADS, "num_key_value_heads": HEADS // (share or 1)}
    files = {"a.safetensors": written(tensors), "config.json": json.dumps(config).encode()}
    (group,) = engine(files)[0]["groups"]
    _, told = engine(files, ["heads", {"name": group["name"]}])
    assert ("error" in told) == (not share)
    for head, row in enumerate(told.get("rows", ())):
        for said, product in zip((row["qk"], row["vo"]), products_of(head, share), strict=True):
            s = np.linalg.svd(product.numpy(), compute_uv=False)[: row["width"]]
            assert said["s"] == pytest.approx(s, rel=1e-9), head


def factors(tensors):
    return [
        next(part for key, part in tensors.items() if re.search(end, key))
        for end in ("_B|up", "_A|down")
    ]


@pytest.mark.parametrize("name", ADAPTERS)
def test_adapter(engine, name):
    """Its spectrum, its strength, what merging loses, and smaller ones of rank 3 and of an error of
    10%, read back.
    """
    tensors, config, factor = ADAPTERS[name]
    b, a = factors(tensors)
    base = normal(30, 20, seed=3).float()
    files = {"a.safetensors": written(tensors | {"other": normal(3).float()}, format="pt")}
    path = "q" if name == "kohya" else "l.0.q_proj"
    files["base.safetensors"] = written({f"{path}.weight": base})
    files |= {"adapter_config.json": json.dumps(config).encode()} if config else {}
    smaller = [["shrink", {"rank": 3}], ["shrink", {"error": 0.1}]]
    _, told, merged, *smaller = engine(files, ["update", path], ["merge", path], *smaller)
    if factor is None:
        assert all("error" in said for said in (told, merged, *smaller))
        return
    update = factor * b.double() @ a.double()
    s = np.linalg.svd(update.numpy(), compute_uv=False)[: len(told["s"])]
    assert told["s"] == pytest.approx(s, rel=1e-9, abs=1e-13 * s[0])
    assert told["strength"] == pytest.approx(float(update.norm() / base.double().norm()))
    start = base.bfloat16().double()
    arrived = (start + update).float().bfloat16().double() - start
    axes = torch.linalg.qr(a.double().T).Q
    assert merged["all"] == pytest.approx(relative_error(arrived, update), rel=1e-4)
    assert merged["read"] == pytest.approx(relative_error(arrived @ axes, update @ axes), rel=1e-4)
    for small, rank in zip(smaller, (3, choose_rank(s, error=0.1)), strict=True):
        saved, extra = read(bytes(small["saved"]))
        new_b, new_a = factors(saved)
        assert (new_a.shape, new_b.shape, new_a.dtype, extra) == (
            (rank, 20),
            (30, rank),
            a.dtype,
            {"format": "pt"},
        )
        assert set(saved) == {*tensors, "other"}
        missed = factor * new_b.double() @ new_a.double() - update
        assert small["rows"][0]["missed"] == pytest.approx(float(missed.norm()), rel=1e-9)
        rounding = 1e-2 if a.dtype == torch.bfloat16 else 1e-3
        assert float(missed.norm() / update.norm()) == pytest.approx(
            tail_error(s, rank) / np.linalg.norm(s), abs=rounding
        )
        root = 0.5 if config and config.get("use_rslora") else 1
        alpha = small["config"]["lora_alpha"] if config else saved["q.alpha"].item()
        assert alpha / rank**root == pytest.approx(factor)


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(engine, case):
    raw, part = BROKEN[case]
    name = case.rpartition(": ")[2] if ": " in case else "a.safetensors"
    (told,) = engine(raw if isinstance(raw, dict) else {name: raw})
    ((_, sentence),) = told["notes"]
    assert part in sentence
    assert sentence.endswith(".")
    assert (told["weights"], told["adapter"]) == ([], None)


def test_unmeasured_tensors(engine):
    opened, odd, proto = engine({"a.safetensors": ODD}, ["weigh", "odd"], ["weigh", "__proto__"])
    assert [entry["name"] for entry in opened["weights"]] == ["odd", "__proto__"]
    assert ("F4" in odd["error"], proto["name"]) == (True, "__proto__")
    tensors = {name: tensor for name, (tensor, _) in UNMEASURED.items()}
    opened, *told = engine(
        {"a.safetensors": written(tensors | SCALES)}, *(["weigh", name] for name in tensors)
    )
    assert [entry["name"] for entry in opened["weights"] if not entry["thin"]] == [*tensors]
    for (name, (tensor, part)), said in zip(UNMEASURED.items(), told, strict=True):
        assert part in said["error"]
        with pytest.raises((TypeError, ValueError), match=f"^{re.escape(name)} must "):
            rank_report({name: tensor})


def press(page, name):
    page.get_by_role("button", name=name, exact=True).focus()
    page.keyboard.press("Enter")


def test_page_by_keyboard(visit):
    """The sample adapter is measured and made smaller, with keys alone; nothing of it displeases
    axe.
    """
    page = visit(PAGE, viewport={"width": 360, "height": 740})
    press(page, "Try a small adapter")
    page.get_by_role("button", name="layers.0.q", exact=True).wait_for(timeout=120_000)
    page.wait_for_function(
        "document.querySelectorAll('#microscope table').length > 3", timeout=120_000
    )  # of heads
    press(page, "layers.1.down")
    words = page.locator("#microscope .detail").first.inner_text()
    for part in ("needs rank", "its size is", "Merged in bfloat16"):
        assert part in words
    assert page.locator("#microscope .detail a").count() == 11
    press(page, "Make it smaller")
    with page.expect_download() as saving:
        page.get_by_role("link", name="Save adapter_model.safetensors").focus()
        page.keyboard.press("Enter")
    saved, _ = read(Path(saving.value.path()).read_bytes())
    assert len(saved) == 24
    assert violations(page) == []


def test_page_stops_and_reads_names(visit):
    """A long measurement can be stopped, and a name is never markup."""
    page, name = visit(PAGE), "<img src=x onerror=alert(1)>"
    file = {
        "name": "a.safetensors",
        "mimeType": "",
        "buffer": written({name: torch.ones(2000, 2000).half(), "b": B}),
    }
    page.locator("#microscope input[type=file]").set_input_files(file)
    press(page, name)
    page.get_by_role("button", name="Stop").click(timeout=60_000)
    assert page.locator("#microscope output").inner_text().startswith("Stopped")
    press(page, "b")
    page.locator("#microscope .detail svg").first.wait_for(timeout=60_000)
    press(page, name)
    assert page.locator("#microscope .detail h3").inner_text() == name
    assert page.locator("#microscope img").count() == 0


def test_page_says_it_in_python(tmp_path, monkeypatch):
    """The lines on the page run, and give the columns of what NumPy finds."""
    text = (ROOT / "book" / "microscope.md").read_text(encoding="utf-8")
    blocks = re.findall("^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "model.safetensors").write_bytes(written({"w": WEIGHTS["square"]}))
    (tmp_path / "adapter_model.safetensors").write_bytes(written(PEFT))
    monkeypatch.chdir(tmp_path)
    names = {}
    for block, weight in zip(blocks, (WEIGHTS["square"], 2 * B @ A), strict=True):
        exec(block, names)
        assert names["report"]["stable rank"] == pytest.approx([stable_rank(weight.numpy())])

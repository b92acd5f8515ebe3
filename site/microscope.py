"""Dress the page *A microscope*: its scripts and styles on that page alone, and two samples to try.

The samples are scripts that hold files as base64, because a page from a file may read no other
kind. They load when a button asks for them.
"""

import base64
import json
import shutil
from pathlib import Path

import numpy as np

import lowrank_tutor
from lowrank_tutor.storyteller.in_numpy import HEADS, trained_weights

PAGE = "book/microscope"
FOLDER = "microscope"  # of the static files
SCRIPTS = "linalg files numbers opening tasks words sentences work lists page".split()
LINALG = Path(lowrank_tutor.__file__).parent / "figures" / "parts" / "linalg.js"
ADAPTER = Path(__file__).parent / "adapter.json"


def safetensors(tensors, metadata):
    """Return a safetensors file of entries (name, type, shape, bytes)."""
    header, at = {"__metadata__": metadata}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(data for *_, data in tensors)


def model():
    """Return the storyteller and its configuration, as files."""
    weights = [
        (name, "F16", weight.shape, weight.astype("<f2").tobytes())
        for name, weight in trained_weights().items()
    ]
    config = {"model_type": "storyteller", "num_attention_heads": HEADS}
    return {
        "storyteller.safetensors": safetensors(weights, {"format": "pt"}),
        "config.json": json.dumps(config).encode(),
    }


def adapter():
    """Return an adapter of the storyteller under peft's names, and its configuration, as files."""
    stored = json.loads(ADAPTER.read_text(encoding="utf-8"))
    codes, tensors, at = np.frombuffer(base64.b64decode(stored["numbers"]), "<u2"), [], 0
    for name, shape in stored["shapes"].items():
        path, _, letter = name.rpartition(".")
        data = codes[at : at + shape[0] * shape[1]].tobytes()
        name = f"base_model.model.{path}.lora_{letter.upper()}.weight"
        tensors.append((name, "BF16", shape, data))
        at += shape[0] * shape[1]
    rank = min(tensors[0][2])
    names = sorted({name.split(".")[-3] for name, *_ in tensors})
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "target_modules": names}
    return {
        "adapter_model.safetensors": safetensors(tensors, {"format": "pt"}),
        "adapter_config.json": json.dumps(config).encode(),
    }


def link(app, pagename, templatename, context, doctree):
    if pagename == PAGE and app.builder.name == "html":
        app.add_css_file(f"{FOLDER}/microscope.css")
        for name in SCRIPTS:
            # After element.js, which the settings add at 800.
            app.add_js_file(f"{FOLDER}/{name}.js", priority=900, loading_method="defer")


def write(app, problem):
    if problem is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir) / "_static" / FOLDER
    shutil.copy(LINALG, folder)
    for name, made in (("model", model()), ("adapter", adapter())):
        data = json.dumps(
            [[file, base64.b64encode(content).decode()] for file, content in made.items()]
        )
        (folder / f"{name}.js").write_text(
            f"(window.lowrankSamples ??= {{}}).{name} = {data};\n", encoding="utf-8"
        )


def setup(app):
    app.connect("html-page-context", link)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

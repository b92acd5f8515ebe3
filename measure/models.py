"""Read what published models keep in the configuration classes of transformers, and write the book's table of models.

Install transformers 5.24.0 beside PyTorch. The table, ``lowrank_tutor/data/models.json``, is read
and written again. In each row, ``class`` and ``changes`` of its defaults go through
`lowrank_tutor.caches.read_config`, and PyTorch counts the weights of the model that they make,
without memory for them. ``note`` says where what is not in the class was read. A row whose
source is the class alone gets today's date. Any other must be looked at again by hand: pass the
names of the rows that were (``all`` for all). A new row needs a name, class, changes, note, and
rule (what updates its states).
"""

import argparse
import datetime
import json
import sys
from typing import Any

import torch

from lowrank_tutor.caches import Model, read_config
from lowrank_tutor.caches.serving import stored
from measure.harness import DATA, provenance, write


def in_words(model: Model, rule: str) -> str:
    """Describe what keeps most, heads, groups or latents, and then windows, states and an index."""
    shapes = [part for part in model.parts if "index" not in part]
    layers = sum(part["layers"] for part in shapes if "every" not in part)
    full = next(part for part in shapes if "state" not in part and "window" not in part)
    words = "MLA" if "latent" in full else f"GQA, {full['groups']} groups"
    if "every" in full:  # DeepSeek-V4
        words = "a vector for every 4 or 128 tokens"
    for part in model.parts:
        names = {"index": "an index", "state": f"a state ({rule})"}
        names["window"] = f"a window of {part.get('window', 0):,}"
        if kind := next((name for name in names if name in part), ""):
            words += f"; {names[kind]}"
            words += f" in {part['layers']} of {layers} layers" if part["layers"] < layers else ""
    return words


def read_row(row: dict[str, Any]) -> dict[str, Any]:
    """Read a row again from its class and changes, and count its weights on no device; its date stays."""
    import transformers

    config = getattr(transformers, row["class"])(**row["changes"])
    with torch.device("meta"):
        made = transformers.AutoModelForCausalLM.from_config(config)
    model = read_config(config.to_dict())
    source = f"{row['class']} of transformers {transformers.__version__}"
    counted = {
        "source": f"{source}; {row['note']}" if row["note"] else f"defaults of {source}",
        "billions": round(sum(p.numel() for p in made.parameters()) / 1e9, 2),
        "experts": round(model.experts, 2),
        "used": round(model.used, 6),
    }
    return row | {"keeps": in_words(model, row["rule"])} | counted | {"layers": list(model.parts)}


def main() -> int:
    """Read all rows, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("looked_at", nargs="*", help="rows whose other source was read again")
    seen = {*parser.parse_args().looked_at}
    today = {"checked": datetime.datetime.now(datetime.UTC).date().isoformat()}
    rows = []
    for row in json.loads((DATA / "models.json").read_text("utf-8"))["rows"]:
        dated = (
            today if not row["note"] or "checked" not in row or {row["name"], "all"} & seen else {}
        )
        rows.append(read_row(row) | dated)
        print(row["name"], rows[-1]["billions"], rows[-1]["keeps"], sep=" | ", flush=True)
    rows.sort(key=lambda row: sum(stored(part, 2**17) for part in row["layers"]), reverse=True)
    meta = provenance("python -m measure.models", ["torch", "transformers"])
    write("models", {key: meta[key] for key in ("command", "date", "versions")}, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

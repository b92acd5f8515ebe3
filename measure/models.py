"""Read what published models keep in the configuration classes of transformers, and write the book's table of models.

Install transformers 5.24.0 beside PyTorch. Each row takes the defaults of a class, with the changes that its source
names, through `lowrank_tutor.caches.read_config`, counts the weights of the model that they make (without memory), and
gets the day of writing. A source that is not the class must be looked at again by hand: pass the names of the rows that
were, and only these get a new day (``all`` for all). The file is ``lowrank_tutor/data/models.json``; it takes a minute.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from typing import Any, NamedTuple

import torch

from lowrank_tutor.caches import Model, read_config
from measure.harness import DATA, provenance, write


class Row(NamedTuple):
    """A class of transformers, what its defaults do not say, and where that was read.

    ``billions`` stand where the class builds no model, or one without parts that count; ``rule`` names what updates a
    state, ``keeps`` replaces the words made from the layers.
    """

    cls: str = ""
    changes: dict[str, Any] = {}  # noqa: RUF012  # never written to
    source: str = ""
    rule: str = ""
    billions: float | None = None
    experts: float | None = None
    keeps: str = ""


KIMI = {"num_hidden_layers": 27, "linear_attn_config": {
    "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "kda_layers": [i for i in range(1, 27) if i % 4],
    "num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}}  # fmt: skip
K3 = {"num_hidden_layers": 93, "num_attention_heads": 96, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
      "linear_attn_config": {"full_attn_layers": [*range(4, 93, 4), 93], "num_heads": 96, "head_dim": 128},
      "n_routed_experts": 896, "num_experts_per_tok": 16, "hidden_size": 3584, "moe_intermediate_size": 3072,
      "first_k_dense_replace": 1}  # fmt: skip  # experts work on latents of 3,584
QWEN = {"num_hidden_layers": 48, "layer_types": (["linear_attention"] * 3 + ["indexed_attention"]) * 12,
        "num_attention_heads": 24, "num_key_value_heads": 2, "head_dim": 256, "linear_num_value_heads": 48,
        "linear_key_head_dim": 128, "linear_value_head_dim": 128, "indexer_head_dim": 128, "indexer_n_heads": 4,
        "indexer_budget": 2048, "indexer_compress_ratio": 4, "num_experts": 512, "num_experts_per_tok": 10,
        "hidden_size": 2560, "moe_intermediate_size": 640}  # fmt: skip
GEMMA_3 = {"num_hidden_layers": 62, "layer_types": [*(["sliding_attention"] * 5 + ["full_attention"]) * 10,
           "sliding_attention", "sliding_attention"], "hidden_size": 5376, "intermediate_size": 21504,
           "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "sliding_window": 1024}  # fmt: skip
GEMMA_4 = {"num_hidden_layers": 30, "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 5,
           "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256, "num_global_key_value_heads": 2,
           "global_head_dim": 512, "sliding_window": 1024, "num_experts": 128, "num_experts_per_tok": 8,
           "hidden_size": 2816, "moe_intermediate_size": 704}  # fmt: skip
HY4 = {"num_hidden_layers": 78, "hidden_size": 6144, "num_attention_heads": 64, "moe_intermediate_size": 2048,
       "intermediate_size": 18432, "q_lora_rank": 2048, "index_n_heads": 32}  # fmt: skip
M3 = [0] * 3 + [1] * 57
NEMOTRON = {"layers_block_type": ["mamba"] * 24 + ["attention"] * 4 + ["mlp"] * 24, "num_hidden_layers": 52,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "mamba_num_heads": 128,
            "mamba_head_dim": 64, "ssm_state_size": 128}  # fmt: skip
LLAMA_70B = {"num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8,
             "intermediate_size": 28672, "vocab_size": 128256, "head_dim": 128}  # fmt: skip
QWEN_8B = {"num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
           "intermediate_size": 12288, "head_dim": 128}  # fmt: skip

ROWS = {
    "Llama-3-70B": Row("LlamaConfig", LLAMA_70B, "sizes from config.json of Meta-Llama-3-70B, as mirrors have it"),
    "MiniMax-M2": Row("MiniMaxM2Config"),
    "MiniMax-M3": Row("MiniMaxM3VLTextConfig", {"sparse_attention_config": {"sparse_attention_freq": M3},
                                                "moe_layer_freq": M3},
                      "an index in all but the first 3 layers: ggml-org/llama.cpp, pull request 24908"),
    "Qwen3-8B": Row("Qwen3Config", QWEN_8B, "sizes from config.json of Qwen/Qwen3-8B, as a public copy has it"),
    "Llama-4-Scout": Row("Llama4TextConfig"),
    "Olmo-3-7B": Row("Olmo3Config"),
    "GLM-5": Row("GlmMoeDsaConfig"),
    "Mistral-Large-4": Row("MistralLarge4Config", {},
                           "layers of the checkpoint that share latents (kv_source_layers) would keep less"),
    "Hy4-preview": Row("HYV4Config", HY4, "sizes from the README of Tencent-Hunyuan/Hy4-preview; which layers have"
                       " an index follows the rule of the class"),
    "DeepSeek-V3.2": Row("DeepseekV32Config"),
    "DeepSeek-V3": Row("DeepseekV3Config"),
    "Mistral-Small-4": Row("Mistral4Config"),
    "gpt-oss-120b": Row("GptOssConfig"),
    "Gemma-3-27B": Row("Gemma3TextConfig", GEMMA_3, "sizes from google-deepmind/gemma, TransformerConfig.gemma3_27b"),
    "Gemma-4-26B-A4B": Row("", GEMMA_4, "GGUF metadata of gemma4:26b-a4b (ollama.com), and a comment in"
                           " Gemma4TextConfig of transformers 5.24.0 on groups of full layers; weights by its name",
                           billions=26),
    "Qwen3-Next-80B": Row("Qwen3NextConfig", rule="Gated DeltaNet"),
    "Qwen3.5-35B-A3B": Row("Qwen3_5MoeTextConfig", rule="Gated DeltaNet"),
    "Qwen3.8-Flash-Next": Row("", QWEN, "GGUF metadata (general.architecture qwen4exp, ollama.com); weights from the"
                              " documentation of SGLang, 51 billion of them in a table of word groups",
                              "Gated DeltaNet", billions=176),
    "Olmo-Hybrid-7B": Row("OlmoHybridConfig", rule="Gated DeltaNet"),
    "Kimi-Linear-48B": Row("KimiLinearConfig", KIMI, "layers from config.json of Kimi-Linear-48B-A3B-Instruct, as public"
                           " code quotes it", "KDA"),
    "Kimi-K3": Row("", K3, "config.json of moonshotai/Kimi-K3, as inference-sim/inference-sim, issue 1635, quotes it;"
                   " experts and weights from FareedKhan-dev/kimi-k3-in-c, docs/ARCHITECTURE.md", "KDA", billions=2780),
    "GLM-5.3-Flash": Row("Glm5NextConfig", {"index_kpool": 4}, "pools of 4 keys: NVIDIA NeMo AutoModel's documentation",
                         "KDA"),
    "Ling-3.0-Flash": Row("BailingHybridConfig", rule="KDA"),
    "Nemotron-H-8B": Row("", NEMOTRON, "layers from its makers' announcement; sizes: defaults of NemotronHConfig in"
                         " transformers 5.24.0; weights by its name", "Mamba-2", billions=8),
    "DeepSeek-V4-Flash": Row("DeepseekV4Config", {"compress_ratios": [0, 0, *[4, 128] * 20, 4]},
                             "compress_ratios from config.json, as public code quotes them",
                             keeps="a vector for every 4 or 128 tokens; a window of 128; an index in 21 of 43 layers"),
}  # fmt: skip


def in_words(model: Model, rule: str) -> str:
    """Describe what most is kept by: heads, groups or latents, then an index, states and windows."""
    shapes = [part for part in model.parts if "index" not in part]
    layers = sum(part["layers"] for part in shapes)
    full = next(part for part in shapes if "state" not in part and "window" not in part)
    words = "MLA" if "latent" in full else "MHA" if full["groups"] == full["heads"] else f"GQA, {full['groups']} groups"
    for part in model.parts:
        some = "" if part["layers"] == layers else f" in {part['layers']} of {layers} layers"
        if "index" in part:
            words += f"; an index{some}"
        elif "state" in part:
            words += f"; a state ({rule}){some}"
        elif "window" in part:
            words += f"; a window of {part['window']:,}{some}"
    return words


def weights(config: Any) -> float:
    """Count the weights of the text model that a configuration describes, in billions, without making them."""
    import transformers

    text = config.get_text_config()
    with torch.device("meta"):
        try:
            made = transformers.AutoModelForCausalLM.from_config(text)
        except ValueError:  # some have a model with a tower for pictures alone, or no entry there
            name = type(config).__name__.removesuffix("Config")
            kind = getattr(transformers, f"{name}ForConditionalGeneration", None)
            made = (kind or getattr(transformers, f"{name}ForCausalLM"))(config)
    return sum(p.numel() for name, p in made.named_parameters() if "vis" not in name) / 1e9


def read_row(name: str) -> dict[str, Any]:
    """Read one row of the table, without its day."""
    row, config = ROWS[name], None
    fields = row.changes
    source = row.source
    if row.cls:
        import transformers

        config = getattr(transformers, row.cls)(**row.changes)
        fields = config.to_dict() | row.changes
        said = "" if row.source else f"defaults of {row.cls}"
        source = "; ".join(filter(None, [row.source, f"transformers {transformers.__version__}, {said or row.cls}"]))
    model = read_config(fields)
    billions = row.billions or round(weights(config), 2)
    return {
        "name": name, "keeps": row.keeps or in_words(model, row.rule), "rule": row.rule, "source": source,
        "billions": billions, "experts": round(model.experts, 2), "used": round(model.used, 6),
        "layers": list(model.parts),
    }  # fmt: skip


def main() -> int:
    """Read all rows, keep the day of those that nobody looked at, and write the table."""
    import transformers

    transformers.logging.set_verbosity_error()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("looked_at", nargs="*", help="rows whose other source was read again")
    seen = parser.parse_args().looked_at
    path = DATA / "models.json"
    before = {row["name"]: row["checked"] for row in json.loads(path.read_text())["rows"]} if path.exists() else {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = []
    for name, row in ROWS.items():
        by_class = row.cls and not row.source
        rows.append(
            read_row(name) | {"checked": today if by_class or {name, "all"} & {*seen} else before.get(name, today)}
        )
        print(name, rows[-1]["billions"], rows[-1]["experts"], rows[-1]["keeps"], sep=" | ", flush=True)
    meta = provenance("python -m measure.models", ["torch", "transformers"])
    write("models", {key: meta[key] for key in ("command", "date", "versions")}, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

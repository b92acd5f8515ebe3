"""Read from a model's ``config.json`` what each layer keeps, and look up models whose configurations were read.

A model is a list of parts, dicts of numbers: how many ``layers``, and what each of them keeps,

- ``groups`` keys of ``width`` numbers, and as many values of ``value`` numbers (of ``width`` if it is missing);
- a ``latent`` that all heads share, and beside it ``rotary`` numbers for the position;
- an ``index``, a key by which the model chooses what to read;
- a ``state`` of so many numbers, however long the text.

Three further numbers say how many vectors: of the newest ``window`` tokens, one for ``every`` so
many tokens, and of those that are kept only the ``chosen`` ones are read. ``heads`` counts the
queries, or the heads of a state.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from lowrank_tutor._checks import _show

GROUPS = (
    "num_key_value_heads",
    "num_kv_heads",
    "n_kv_heads",
    "num_query_groups",
    "multi_query_group_num",
)
# Kinds of layers, as ``layer_types`` names them: what is kept of every token, of the newest, or of
# none.
EVERY = ("full_attention", "attention", "hybrid")
INDEXED = ("indexed_attention", "minimax_m3_sparse")
NEWEST = {"sliding_attention": "sliding_window", "hybrid_sliding": "sliding_window",
          "chunked_attention": "attention_chunk_size"}  # fmt: skip
COMPRESSED = ("compressed_sparse_attention", "heavily_compressed_attention")  # DeepSeek-V4
STATE = ("linear_attention", "mamba")
STATES = (("mamba_num_heads", "mamba_head_dim", "ssm_state_size"),
          ("linear_num_value_heads", "linear_key_head_dim", "linear_value_head_dim"),
          ("linear_num_heads", "linear_head_dim", "linear_head_dim"))  # fmt: skip
NOTHING = ("mlp", "moe", "conv")  # a convolution keeps a few inputs, which are not counted
RATIOS = {"0": "sliding_attention", "4": COMPRESSED[0], "128": COMPRESSED[1]}
PATTERN = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
# Fields that may change what is kept, and among them those that do not.
MATTERS = re.compile(
    "window|chunk|kv|latent|state|ssm|mamba|index|compress|linear|recurrent|cross|share|sparse"
)
HARMLESS = re.compile(
    "dropout|_eps|init|token|rope|shared_|vision|conv|act|norm|bias|quant|bound|tail|local|key_heads|max_window"
)

Part = Mapping[str, int]


class Model(NamedTuple):
    """What a model keeps, part by part, and how many weights it has, in ``billions``.

    ``experts`` of them, in billions, are in experts that a router chooses, and each token uses the
    share ``used`` of those. ``unknown`` names fields of the configuration that may matter and were
    not understood.
    """

    parts: tuple[Part, ...]
    billions: float | None = None
    experts: float = 0.0
    used: float = 1.0
    unknown: tuple[str, ...] = ()


def read_config(config: Mapping[str, Any]) -> Model:
    """Read what each layer keeps from a ``config.json`` of transformers, as a dict.

    Unknown kinds of layers and missing fields are refused by name, never guessed. The weights are
    not counted (``billions`` is None), except for those in experts: layers · experts · 3 · hidden
    size · expert size.

    >>> qwen = {"num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
    >>> read_config(qwen).parts
    ({'layers': 36, 'groups': 8, 'width': 128, 'heads': 32},)
    """
    if not isinstance(config, Mapping):
        way = "json.load(open(path)) reads one, config.to_dict() makes one"
        raise TypeError(f"config must be a dict of names and values, got {_show(config)}: {way}")
    of = _Fields(config)
    kinds = _kinds(of)
    parts: Counter[tuple[tuple[str, int], ...]] = Counter()
    modes, sources = (
        of.rows("indexer_types"),
        of.rows("kv_source_layers"),
    )  # which have an index, or own latents
    for i, kind in enumerate(kinds):
        for part in _parts(kind, of, not modes or modes[i : i + 1] == ["full"]):
            if not sources or sources[i : i + 1] == [i] or "index" in part:
                parts[tuple(part.items())] += 1
    if not parts:
        raise ValueError("config must have layers that keep something, got none")
    experts, used = _experts(of, kinds)
    made = tuple({"layers": count, **dict(part)} for part, count in parts.items())
    return Model(made, None, experts, used, of.unknown())


class _Fields:
    """The fields of a configuration, and which of them were asked for."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.all = dict(config)
        self.asked = {
            "use_cache",
            "use_sliding_window",
            "sparse_attention_config",
            "linear_attn_config",
        }
        for name in (
            "text_config",
            "llm_config",
            "sparse_attention_config",
        ):  # the last one is MiniMax-M3's
            if isinstance(inner := self.all.get(name), Mapping):
                self.all |= inner
        if isinstance(linear := self.all.get("linear_attn_config"), Mapping):  # Kimi's
            names = {"num_heads": "linear_num_heads", "head_dim": "linear_head_dim"}
            self.all |= {names.get(str(name), str(name)): value for name, value in linear.items()}
        if (
            self.all.get("multi_query") is True
            and self.all.get("new_decoder_architecture") is not True
        ):  # Falcon's
            self.all["num_key_value_heads"] = 1

    def first(self, *names: str) -> str:
        """Return the first of these names that has a value, or an empty text."""
        self.asked.update(names)
        return next((name for name in names if self.all.get(name) is not None), "")

    def __call__(self, *names: str, least: int = 1, most: int = 2**24, needed: bool = True) -> int:
        """Return the first of these fields that is there, a whole number; 0 if none is needed."""
        if not (found := self.first(*names)):
            if needed:
                raise ValueError(f"config must have {names[0]}, got none")
            return 0
        number = self.all[found]
        if (
            isinstance(number, bool) or not isinstance(number, int | float) or number % 1
        ):  # NaN and infinity are true
            raise ValueError(f"{found} must be a whole number, got {_show(number)}")
        if not least <= number <= most:
            raise ValueError(f"{found} must be between {least} and {most}, got {_show(number)}")
        return int(number)

    def rows(self, *names: str) -> list[Any]:
        """Return the first of these fields that is there, a list; an empty one if none is."""
        found = self.first(*names)
        if found and not isinstance(self.all[found], list | tuple):
            raise ValueError(f"{found} must be a list, got {_show(self.all[found])}")
        return list(self.all[found]) if found else []

    def unknown(self) -> tuple[str, ...]:
        """Return the names that may matter and were not asked for."""
        names = {
            name for name, value in self.all.items() if value not in (None, False, 0)
        } - self.asked
        return tuple(
            sorted(name for name in names if MATTERS.search(name) and not HARMLESS.search(name))
        )


def _kinds(of: _Fields) -> list[str]:
    """Return the kind of each layer that keeps something of its own."""
    n, interval = of("num_hidden_layers", most=10_000), of("full_attention_interval", needed=False)
    chosen, newest = of("index_topk", needed=False), of("sliding_window", needed=False)
    full = of.rows("full_attn_layers")  # counted from 1
    kinds = of.rows("layer_types", "layers_block_type")
    if not kinds and isinstance(letters := of.all.get("hybrid_override_pattern"), str):
        kinds = [PATTERN.get(letter, letter) for letter in letters]
    kinds = kinds or [
        RATIOS.get(str(ratio), f"a ratio of {ratio}") for ratio in of.rows("compress_ratios")
    ]
    kinds = kinds or [
        INDEXED[1] if sparse else EVERY[0] for sparse in of.rows("sparse_attention_freq")
    ]
    if not kinds and (full or interval):
        kinds = [
            EVERY[0] if (i in full if full else i % interval == 0) else STATE[0]
            for i in range(1, n + 1)
        ]
    if not kinds and newest and of.all.get("use_sliding_window", True):
        if of.all.get("model_type") != "mistral":
            raise ValueError("layer_types must say which layers have the sliding_window, got none")
        kinds = ["sliding_attention"] * n
    kinds = kinds or [INDEXED[0] if chosen else EVERY[0]] * n
    if len(kinds) < n:
        raise ValueError(f"layer_types must name {n} layers, got {len(kinds)}")
    known = (*EVERY, *INDEXED, *NEWEST, *COMPRESSED, *STATE, *NOTHING)
    if strange := [kind for kind in kinds if kind not in known]:
        raise ValueError(
            f"layer_types must be kinds that are counted here, got {_show(strange[0])}"
        )
    return kinds[
        : n - of("num_kv_shared_layers", least=0, most=n, needed=False)
    ]  # the last ones read others' caches


def _parts(kind: str, of: _Fields, with_index: bool) -> list[dict[str, int]]:
    """Return what one layer of a kind keeps, without the number of layers."""
    if kind in NOTHING:
        return []
    if kind in STATE:
        return [_state(of)]
    heads = of("num_attention_heads")
    if kind in COMPRESSED or (
        kind in NEWEST and of("o_lora_rank", needed=False)
    ):  # DeepSeek-V4: keys are values
        vector = {"latent": of("head_dim"), "rotary": 0, "heads": heads}
        parts = [{**vector, "window": of("sliding_window")}]
        if kind == COMPRESSED[0]:
            parts.append({**vector, "every": 4, "chosen": of("index_topk")})
            parts.append({"index": of("index_head_dim"), "heads": of("index_n_heads"), "every": 4})
        elif kind == COMPRESSED[1]:
            parts.append({**vector, "every": 128})
        return parts
    kept = _kept(kind, of, heads)
    if kind in NEWEST:
        return [kept | {"window": of(NEWEST[kind], "sliding_window_size")}]
    if kind not in INDEXED:
        return [kept]
    blocks = of("index_topk_blocks", "sparse_topk_blocks", needed=False)
    kept["chosen"] = (
        blocks * of("index_block_size", "sparse_block_size")
        if blocks
        else of("index_topk", "indexer_budget")
    )
    index = {"index": of("index_head_dim", "indexer_head_dim", "sparse_index_dim"),
             "heads": of("index_n_heads", "indexer_n_heads", "sparse_num_index_heads")}  # fmt: skip
    every = of("index_kpool", "indexer_compress_ratio", needed=False)
    return [kept, index | ({"every": every} if every else {})] if with_index else [kept]


def _kept(kind: str, of: _Fields, heads: int) -> dict[str, int]:
    """Return what one layer keeps of a token: a latent, or keys and values of groups."""
    if latent := of("kv_lora_rank", needed=False):
        return {"latent": latent, "rotary": of("qk_rope_head_dim", least=0), "heads": heads}
    own = ("swa_num_key_value_heads",) if kind in NEWEST else ("num_global_key_value_heads",)
    groups = of(*own, *GROUPS, "num_attention_heads")  # without groups, one for each head
    own = ("swa_head_dim",) if kind in NEWEST else ("global_head_dim",)
    width = (
        of(*own, "head_dim", "kv_channels", needed=False) or of("hidden_size", least=heads) // heads
    )
    value = of(*(("swa_v_head_dim",) if kind in NEWEST else ()), "v_head_dim", needed=False)
    return {"groups": groups, "width": width, "heads": heads} | (
        {"value": value} if value not in (0, width) else {}
    )


def _state(of: _Fields) -> dict[str, int]:
    """Return the size of a state: of Mamba-2, of a gated delta rule, or of Kimi's."""
    heads, *sizes = next((names for names in STATES if of.first(names[0])), STATES[-1])
    return {"state": math.prod(map(of, (heads, *sizes))), "heads": of(heads)}


def _experts(of: _Fields, kinds: list[str]) -> tuple[float, float]:
    """Return the weights in routed experts, in billions, and the share of them that a token uses."""
    count = of("n_routed_experts", "num_local_experts", "num_experts", needed=False)
    if not count or "moe" in kinds:  # in Nemotron's layers, experts have another shape
        return 0.0, 1.0
    used, n = (
        of("num_experts_per_tok", "num_experts_per_token", most=count),
        of("num_hidden_layers"),
    )
    said, dense = (
        of.rows("mlp_layer_types"),
        of("first_k_dense_replace", least=0, most=n, needed=False),
    )
    layers = sum(kind != "dense" for kind in said) if said else n - dense
    return layers * count * 3 * of("hidden_size") * of(
        "moe_intermediate_size", "intermediate_size"
    ) / 1e9, used / count

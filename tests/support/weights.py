"""Files of weights, sound and broken; their reader and writer share no code with the site."""

import json
import struct

import numpy as np
import torch

TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
}
TYPES |= {torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2"}
TYPES[torch.float8_e8m0fnu] = "F8_E8M0"


def packed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def written(tensors, **metadata):
    """A safetensors file of tensors."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {
            "dtype": TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": offsets,
        }
        data += raw
    return packed(header, data)


def read(raw):
    """The tensors of a safetensors file, and what else its header says."""
    (size,) = struct.unpack("<Q", raw[:8])
    header, kinds = json.loads(raw[8 : 8 + size]), {name: kind for kind, name in TYPES.items()}
    extra = header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        begin, end = (8 + size + at for at in entry["data_offsets"])
        found[name] = torch.frombuffer(bytearray(raw[begin:end]), dtype=kinds[entry["dtype"]]).view(
            entry["shape"]
        )
    return found, extra


def normal(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def low(m, n, rank):
    return normal(m, rank) @ normal(rank, n, seed=1)


WEIGHTS = {
    "square": normal(64, 64),
    "tall, odd": normal(257, 33),
    "long": normal(700, 10).bfloat16(),
    "signal in noise": (normal(90, 60) + 3 * low(90, 60, 2)).float(),
    "rank deficient": low(60, 44, 21),
    "falling fast": torch.diag(10.0 ** -torch.arange(16.0)).double(),
    "zeros": torch.zeros(5, 6),
    "huge": normal(20, 30) * 1e150,
    "tiny": normal(20, 30) * 1e-160,
    "float32's ends": (normal(12, 9) * 1e30).float(),
    "subnormal": (normal(12, 9) * 1e-41).float(),
    "one strong entry": normal(30, 20).index_put(
        (torch.tensor(3), torch.tensor(4)), torch.tensor(1e9).double()
    ),
    "one row": normal(1, 9),
    "vector": normal(9),
}


D, HEADS, WIDTH = 24, 4, 6
Q, K, V, OUT = (normal(*shape, seed=i) for i, shape in enumerate([(D, D), (D, D), (D, D), (D, D)]))
FUSED = torch.cat([Q, K, V])
ATTENTION = {
    "llama, grouped": (
        {
            "l.q_proj.weight": Q,
            "l.k_proj.weight": K[:12],
            "l.v_proj.weight": V[:12],
            "l.o_proj.weight": OUT,
        },
        2,
    ),
    "storyteller": ({"l.q.weight": Q, "l.k.weight": K, "l.v.weight": V, "l.out.weight": OUT}, 1),
    "gpt-2": ({"l.c_attn.weight": FUSED.T, "l.c_proj.weight": OUT.T}, 1),
    "torch": ({"l.in_proj_weight": FUSED, "l.out_proj.weight": OUT}, 1),
    "phi-3, grouped": (
        {"l.qkv_proj.weight": torch.cat([Q, K[:12], V[:12]]), "l.o_proj.weight": OUT},
        2,
    ),
}

ATTENTION["gated"] = {**ATTENTION["llama, grouped"][0], "l.q_proj.weight": FUSED[: 2 * D]}, 0


def products_of(head, share):
    """What compares and what passes on words in a head, where so many share keys and values."""
    own, of = (slice(WIDTH * i, WIDTH * (i + 1)) for i in (head, head // share))
    return Q[own].T @ K[of], OUT[:, own] @ V[of]


BASE = "base_model.model.l.0.q_proj."
B, A = normal(30, 6) * 0.3 ** torch.arange(6), normal(6, 20, seed=1)
PEFT = {f"{BASE}lora_A.weight": A, f"{BASE}lora_B.weight": B}


def peft(tensors=PEFT, **config):
    """An adapter and its configuration, as files."""
    config = json.dumps({"lora_alpha": 12} | config).encode()
    return {"a.safetensors": written(tensors), "adapter_config.json": config}


def named(start, **more):
    """The factors A and B after another name."""
    return {f"{start}.lora_A.weight": A, f"{start}.lora_B.weight": B} | more


# tensors, configuration, and the factor; none where it or a square would overflow or vanish
ADAPTERS = {
    "peft": (PEFT, {"lora_alpha": 12, "r": 6}, 2),
    "no alpha": (PEFT, {"peft_type": None}, 8 / 6),
    "rsLoRA": (PEFT, {"lora_alpha": 12, "use_rslora": True}, 12 / 6**0.5),
    "patterns": (
        PEFT,
        {
            "peft_type": "LORA",
            "r": 2,
            "rank_pattern": {"q_proj": 6},
            "alpha_pattern": {r".*\.[01]\.q_proj": 18},
        },
        3,
    ),
    "the head of a name": (
        PEFT,
        {"lora_alpha": 12, "alpha_pattern": {"^q_proj": 6, "^l.0.q_proj": 30}},
        5,
    ),
    "kohya": (
        {"q.lora_down.weight": A, "q.lora_up.weight": B, "q.alpha": torch.tensor(3.0)},
        None,
        0.5,
    ),
    "bfloat16": ({name: part.bfloat16() for name, part in PEFT.items()}, {"lora_alpha": 6}, 1),
    "large alpha": (PEFT, {"lora_alpha": 1e308}, None),
    "small factors": ({name: part / 1e200 for name, part in PEFT.items()}, {"lora_alpha": 6}, None),
}


def entry(*shape, dtype="F32", offsets=None):
    return {
        "dtype": dtype,
        "shape": list(shape),
        "data_offsets": offsets or [0, 4 * int(np.prod(shape))],
    }


def one(*shape, room=16, **words):
    """A file with one tensor, "a"."""
    return packed({"a": entry(*shape, **words)}, bytes(room))


def two(begin, end, room):
    return packed({"a": entry(2, 2), "b": entry(2, 2, offsets=[begin, end])}, bytes(room))


def npy(descr, room=16):
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2, 2), }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(room)


PARTS = {"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}
# the bytes of a file, or files, and a part of the sentence; a name ends the case if it matters
BROKEN = {
    "empty": (b"", "too short"),
    "header of 2^63 bytes": (struct.pack("<Q", 2**63) + bytes(99), "9223372036854775808 bytes"),
    "header of 100 MB: large.safetensors": (struct.pack("<Q", 10**8), "at most"),
    "text": (b"Dear reader, this is no file of weights.", "no safetensors file"),
    "zip, as torch.save writes": (b"PK\x03\x04" + bytes(99), "zip file"),
    "no JSON": (packed(b"{]"), "not JSON"),
    "long name": (packed({"a" * 10**5: entry(2, 2)}, bytes(16)), "more than 1,000"),
    "offset of half a byte": (one(2, 2, offsets=[0, 16.5], room=32), "no place"),
    "overlap": (two(8, 24, 24), "overlap"),
    "bytes left over": (two(16, 32, 33), "1 bytes at the end"),
    "cut short": (two(16, 32, 31), "1 bytes past the end"),
    "shape too large for its bytes": (one(3, 2, offsets=[0, 16]), "24 bytes"),
    "shape whose product overflows": (one(2**52, 2**52, offsets=[0, 16]), "set aside"),
    "negative sides": (one(-2, -2), "whole numbers"),
    "objects: a.npy": (npy("'|O'"), "Python objects"),
    "complex: a.npy": (npy("'<c8'", 32), "type c8"),
    "cut short: a.npy": (npy("'<f4'", 15), "16 bytes"),
    "JSON of something else: a.json": (b'{"dear": "reader"}', "no configuration"),
    "missing part: a.json": (json.dumps(PARTS).encode(), "you didn't choose"),
    "experts": (peft(named("mlp.experts")), "experts"),
    "stacked ranks": (peft(r=3), "rank"),
    "parameters": (peft(target_parameters=["w"]), "target_parameters"),
    "kind": (peft(peft_type="LOHA"), "LOHA"),
    "another start": (peft(init_lora_weights="olora"), "olora"),
}
CODES = normal(4, 4).to(torch.float8_e4m3fn)
# weights that nobody measures, and a part of the page's sentence
UNMEASURED = {
    "NaN": (torch.tensor([[1, float("nan")], [1, 1]]), "It holds NaN"),
    "experts.gate_up_proj": (normal(8, 4, 3), "3 axes"),
    "convolution": (normal(6, 5, 3, 3).float(), "4 axes"),
    "powers": (CODES, "no scales"),
    "packed": (torch.ones(4, 4, dtype=torch.int32), "packed"),
}
SCALES = {
    "powers_scale_inv": torch.ones(1, 1).to(torch.float8_e8m0fnu),
}

HEADER = {"odd": entry(2, 2, dtype="F4"), "__proto__": entry(2, 2, offsets=[16, 32])}
ODD = packed(HEADER, bytes(32))

"""Fill graphics cards with a model and its chats, and see how many fit, and how fast."""

from typing import Any

from lowrank_tutor._gpus import GPUS
from lowrank_tutor.caches import published_caches, serve, serving
from lowrank_tutor.caches.configs import TYPES
from lowrank_tutor.figures.parts.figure import figure, one_of
from lowrank_tutor.kit.canvas.instrument import Instrument
from lowrank_tutor.kit.charts.arguments import whole

STEP, MOST, TOKENS = 2**10, 2**20, 2**17  # the last at first
CARDS = 16
SAY = (
    "{name} on {cards} {gpu} card{plural}: "
    "{weights:.2f} GiB of weights and {cache:.2f} GiB for each chat on each card."
)
REMARKS = {
    "fits": "Chats of {n:,} tokens that fit: {chats:,}, at most {each:,} tokens a second for each.",
    "full": "No chat of {n:,} tokens fits.",
    "heavy": "The weights alone are too large.",
}


def card(
    model: str = "Llama-3-70B", gpu: str = "H100", cards: int = 8, *, split: str = "tensor",
    weight_bits: float = 16,
) -> Instrument:  # fmt: skip
    """Fill a graphics card with weights and chats, as `lowrank_tutor.caches.serve` counts them.

    The reader chooses another model of `lowrank_tutor.caches.published_caches` or pastes a
    ``config.json`` (state ``pasted``, with ``billions`` of weights), enters a card (state ``own``:
    GB of memory, GB a second, trillion operations a second), and changes every argument, the tokens
    ``n`` of a chat, a multiple of 1,024 up to 2**20, the ``cache_bits``, the ``share`` of a card
    that the server uses, in percent, and the GiB a card that ``other`` memory takes, at most 40.
    ``cards`` is at most 16. The numbers are ``weights`` and ``cache``, GiB on a card,
    ``chats``, and ``speed``, tokens a second of all chats together.

    Examples
    --------
    >>> round(card("DeepSeek-V3", "H200", weight_bits=8).numbers["cache"], 2)
    8.58
    """
    table = published_caches()
    state = {
        "model": one_of("model", model, table), "pasted": "", "billions": 8,
        "gpu": one_of("gpu", gpu, GPUS),
        "own": [80, 2039, 312],
        "cards": whole("cards", cards, 1, CARDS), "split": one_of("split", split, serving.SPLITS),
        "n": TOKENS,
        "weight_bits": one_of("weight_bits", weight_bits, serving.WEIGHT_BITS),
        "cache_bits": 16, "share": 92, "other": 0,
    }  # fmt: skip
    served = serve(model, gpu, cards=cards, split=split, n=TOKENS, weight_bits=weight_bits)
    speed = served.tokens_per_second
    each = int(speed // max(1, served.chats))
    return figure(
        name="card",
        parts=("configs", "serving"),
        state=state,
        numbers={"weights": served.weights, "cache": served.cache, "chats": served.chats,
                 "speed": round(speed)},
        say=SAY,
        values={"name": model, "plural": "s" if cards > 1 else "", "each": each},
        remarks=REMARKS,
        data=_data(),
        readouts={"weights": ("GiB of weights a card", ".2f"),
                  "cache": ("GiB of cache a card and chat", ".2f"),
                  "chats": ("chats that fit", ","), "speed": ("tokens a second at most", ",")},
    )  # fmt: skip


def _data() -> dict[str, Any]:
    """Return the tables that the script needs: models, cards, and types of models."""
    models = {name: row.model._asdict() for name, row in published_caches().items()}
    peaks = ("memory", "bandwidth", "flops", "fp8", "fp4")
    gpus = {name: {each: getattr(gpu, each) for each in peaks} for name, gpu in GPUS.items()}
    limits = {"cards": CARDS, "step": STEP, "tokens": MOST}
    return {"models": models, "gpus": gpus, "types": TYPES, **limits}

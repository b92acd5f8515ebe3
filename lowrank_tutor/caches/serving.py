"""Count what a model keeps, and how many chats fit on graphics cards, step by step."""

import math
import operator
from typing import NamedTuple

from lowrank_tutor._checks import check_choice, check_integer, check_real
from lowrank_tutor._data import read_data
from lowrank_tutor._gpus import Gpu, as_gpu
from lowrank_tutor.caches.configs import Model, Part

GIB = 2**30
SPLITS = ("tensor", "data", "tokens")
# Bits of a weight with its share of a scale: FP8 with one for 128 by 128 weights (8.002), NVFP4 and
# Q4_0 (8 bits for 16 weights, 16 for 32), and MXFP4 (8 bits for 32 weights).
WEIGHT_BITS = (16, 8, 4.5, 4.25)
CACHE_BITS = (16, 8, 4)  # without scales, and of states always 16, as servers keep them
MOST_TOKENS = 2**24
MOST_CARDS = 1024
MOST_BILLIONS = 1e5


class PublishedCache(NamedTuple):
    """What a published model keeps: ``growing`` numbers for each token, and ``fixed`` ones.

    The latter are those of windows and states. ``keeps`` says in words what is kept, ``source``
    where the configuration was read, ``checked`` on which day, and ``model`` is what `serve` takes.
    """

    growing: int
    fixed: int
    keeps: str
    source: str
    checked: str
    model: Model


class Served(NamedTuple):
    """What fits: GiB a card of ``weights`` and of one chat's ``cache``, ``chats``, and speed.

    ``chats`` fit on all cards. ``tokens_per_second`` is a bound, of all chats together, each at its
    full length, with one new token for each at a time (no speculative decoding); ``lines`` are
    the four lines of arithmetic.
    """

    weights: float
    cache: float
    chats: int
    tokens_per_second: float
    lines: tuple[str, ...]


def published_caches() -> dict[str, PublishedCache]:
    """Count the caches of published models.

    ``checked`` says when each row was compared with its source. A layer with a window stops growing
    when the window is full, and a state has its size from the start: both are ``fixed``. A layer
    that stores a vector for ``every`` few tokens grows by that share of it.

    >>> published_caches()["gpt-oss-120b"][:2]
    (18432, 2359296)
    """
    found = {}
    for row in read_data("models")["rows"]:
        parts = tuple(row["layers"])
        growing = sum(stored(part, 2**20) - stored(part, 2**19) for part in parts) // 2**19
        fixed = sum(stored(part, 2**20) for part in parts if "state" in part or "window" in part)
        model = Model(parts, row["billions"], row["experts"], row["used"])
        found[row["name"]] = PublishedCache(
            growing, fixed, row["keeps"], row["source"], row["checked"], model
        )
    return found


def stored(part: Part, n: int, cards: int = 1, split: str = "tensor") -> int:
    """Count the numbers that one chat of ``n`` tokens leaves on a card."""
    if "state" in part:
        heads = part["heads"] if split == "data" else math.ceil(part["heads"] / cards)
        return part["layers"] * part["state"] // part["heads"] * heads
    rows = min(n, part.get("window", n)) // part.get("every", 1)
    rows = math.ceil(rows / cards) if split == "tokens" else rows
    if "groups" in part:  # split, at least one a card; latents and index keys are copied
        groups = math.ceil(part["groups"] / cards) if split == "tensor" else part["groups"]
        return part["layers"] * rows * groups * (part["width"] + part.get("value", part["width"]))
    width = part["latent"] + part["rotary"] if "latent" in part else part["index"]
    return part["layers"] * rows * width


def moved(part: Part, n: int, cards: int = 1, split: str = "tensor") -> int:
    """Count the numbers that a card moves for one new token.

    A state is read and written, the rest read if chosen.
    """
    if "state" in part:
        return 2 * stored(part, n, cards, split)
    return stored(part, min(n, part.get("chosen", n) * part.get("every", 1)), cards, split)


def operations(part: Part, n: int) -> float:
    """Count the operations of one new token with what is stored, on all cards together.

    Each product counts as two.
    """
    if "state" in part:
        return 2.0 * moved(part, n)
    if "groups" in part:
        return 2 * part["heads"] / part["groups"] * moved(part, n)
    # A latent is key and value.
    twice = part["latent"] / (part["latent"] + part["rotary"]) if "latent" in part else 0
    return 2 * part["heads"] * (1 + twice) * moved(part, n)


def serve(
    model: Model | str,
    gpu: str | Gpu = "H100",
    *,
    cards: int = 1,
    split: str = "tensor",
    n: int = 2**17,
    weight_bits: float = 16,
    cache_bits: int = 16,
    share: float = 0.92,
    other: float = 0.0,
    billions: float | None = None,
) -> Served:
    """Count the chats of ``n`` tokens that fit beside the weights, and bound their speed.

    ``model`` is a name in `published_caches`, or what `read_config` returns, with its number of
    weights in ``billions``. The server uses the ``share`` of a card's memory (its datasheet's
    gigabytes, of 10⁹ bytes), for weights, caches, and ``other`` GiB a card of intermediate results,
    graphs, and buffers, which a server's log names. A weight takes 16 bits, 8 (FP8 blocks), 4.5
    (NVFP4, Q4_0), or 4.25 (MXFP4), its scale included; a number of the cache 16, 8, or 4, without
    scales; one of a state always 16.

    With ``split="tensor"`` all cards work on every chat: weights, groups, and the heads of states
    are split, at least one group to a card; latents and index keys are copied. With ``"data"`` each
    card has chats of its own: experts are split, and all other weights copied. ``"tokens"`` splits
    the weights like tensor, and each chat's tokens over the cards. Each new token reads all weights
    that some chat uses (routers choose evenly, and chats independently), and what it attends to.
    The bound is the larger of two times (`~lowrank_tutor.roofline`): bytes a card must read, and
    operations it must do, at its peak for numbers of so many bits. Traffic between cards costs
    nothing here. One chat alone is bound by the time to read the weights and its cache: with a
    ``share`` that leaves room for one chat, the speed is that chat's.

    >>> served = serve("DeepSeek-V3", "H200", cards=8, weight_bits=8)
    >>> round(served.cache, 2), served.chats, serve("Llama-3-70B", "H200", cards=8).cache
    (8.58, 4, 5.0)
    """
    if not isinstance(model, Model):
        table = published_caches()
        model = table[check_choice(model, "model", tuple(table))].model
    card = as_gpu(gpu)
    cards, n = check_integer(cards, "cards", 1, MOST_CARDS), check_integer(n, "n", 1, MOST_TOKENS)
    split = check_choice(split, "split", SPLITS)
    share = check_real(share, "share", "above 0 and at most 1", 1e-9, 1 + 1e-12)
    other = check_real(other, "other", "0 GiB or more", 0)
    if weight_bits not in WEIGHT_BITS:
        raise ValueError(f"weight_bits must be 16, 8, 4.5, or 4.25, got {weight_bits}")
    if cache_bits not in CACHE_BITS:
        raise ValueError(f"cache_bits must be 16, 8, or 4, got {cache_bits}")
    total = model.billions if billions is None else billions
    if total is None:
        raise ValueError(
            "billions must be given, for a configuration does not count the weights, got None"
        )
    rule = f"{model.experts:.2f} (its experts) or more"
    total = check_real(total, "billions", rule, model.experts, MOST_BILLIONS)
    return _count(model, card, cards, split, n, weight_bits, cache_bits, share, other, total)


def _peak(card: Gpu, bits: float) -> float:
    """Return a card's operations a second with numbers of so many bits.

    Without such a format, the next one that it has counts.
    """
    if bits > 8 or not card.fp8:
        return card.flops
    return card.fp4 if bits < 8 and card.fp4 else card.fp8


def _count(
    model: Model,
    card: Gpu,
    cards: int,
    split: str,
    n: int,
    weight_bits: float,
    cache_bits: int,
    share: float,
    other: float,
    total: float,
) -> Served:
    """Do the arithmetic, in bytes and in billions of weights.

    The script figures/parts/serving.js takes the same steps.
    """
    shared = total - model.experts
    on_card = model.experts / cards + (shared if split == "data" else shared / cards)
    weights = on_card * 1e9 * weight_bits / 8
    bits = [16 if "state" in part else cache_bits for part in model.parts]
    kept = [stored(part, n, cards, split) for part in model.parts]
    cache = sum(map(operator.mul, kept, bits)) / 8
    room = share * card.memory - weights - other * GIB
    fit = max(0, math.floor(room / cache))
    chats = fit * (cards if split == "data" else 1)
    if chats:
        used = 1 - (1 - model.used) ** chats  # the share of the experts that some chat needs
        weight_bytes = (on_card - model.experts / cards * (1 - used)) * 1e9 * weight_bits / 8
        read = [moved(part, n, cards, split) for part in model.parts]
        cache_bytes = fit * sum(map(operator.mul, read, bits)) / 8
        multiplied = 2e9 * (shared + model.experts * model.used)
        attended = [operations(part, n) for part in model.parts]
        work = chats * (multiplied + sum(attended)) / cards
        times = [multiplied / _peak(card, weight_bits)]
        times += [each / _peak(card, of) for each, of in zip(attended, bits, strict=True)]
        moving = (weight_bytes + cache_bytes) / card.bandwidth
        computing = chats * sum(times) / cards
        seconds = max(moving, computing)
        why = (
            f"reads {weight_bytes / GIB:,.2f} GiB of weights and {cache_bytes / GIB:,.2f} GiB of "
            f"caches at {card.bandwidth / 1e9:,.0f} GB/s"
            if moving >= computing
            else f"does {work / 1e12:,.2f} trillion operations in {1e3 * computing:,.2f} ms"
        )
        speed = (
            f"speed: for one token of each chat a card {why}: without speculative decoding at most"
            f" {chats / seconds:,.0f} tokens a second in all"
        )
    else:
        seconds, speed = math.inf, "speed: none, for no chat fits"
    lines = (
        f"weights: {on_card:,.2f} of {total:,.2f} billion a card, {weight_bits:g} bits each: "
        f"{weights / GIB:,.2f} GiB",
        f"cache: {sum(kept):,} numbers a card and chat, {cache_bits} bits each"
        f"{' (states 16)' if cache_bits < max(bits) else ''}: {cache / GIB:,.2f} GiB",
        f"chats: {share:g} of {card.memory / GIB:,.2f} GiB, less the weights and {other:g} GiB of "
        f"other memory, leave {room / GIB:,.2f} GiB: {fit:,} on a card, {chats:,} in all",
        speed,
    )
    return Served(weights / GIB, cache / GIB, chats, chats / seconds, lines)

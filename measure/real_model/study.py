"""What is run: every cut with its settings, on every set of texts, and what is found of each."""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lowrank_tutor import smollm
from lowrank_tutor.smollm import LAYERS
from measure.real_model import cuts, moments
from measure.real_model.cuts import Cut, Meter
from measure.real_model.texts import DRAWS, FILE, PIECES, SETS

Setting = float | str | None
Use = Callable[[smollm.SmolLM, int, dict[str, Tensor]], Tensor]
FIRST = 4  # tokens that windows keep where they keep the first ones
START = (
    "Anna, Tom, and their dog Max lived in a small house at the edge of the forest. Anna had a "
    "red coat, and Tom had a blue one. Every morning they walked to the lake, where the old "
    "boats lay in the sun and the birds were looking for food. One day in winter it began to "
    "snow, and the wind was so cold that nobody wanted to go out. But Max was hungry, so Anna "
    "put on her"
)


class Case(NamedTuple):
    """A cut at a setting, how to make it for a set of texts, and where it is run."""

    cut: str
    setting: Setting
    make: Callable[[str], Any]  # of the name of the set: a cut, cuts by layer, or weights
    length: int = 256
    texts: tuple[str, ...] = SETS


class Study:
    """The model, its texts, and what is computed once."""

    def __init__(self, *, short: bool = False) -> None:
        self.model, self.short = smollm.load(), short
        self.texts = json.loads(FILE.read_text(encoding="utf-8"))
        self.kept: dict[tuple[str, int], list[Tensor]] = {}

    def pieces(self, text: str, draw: int, length: int) -> Tensor:
        """Return the tokens of a draw: four pieces of 256 or 1,024."""
        pieces = self.texts[text]["short" if length == 256 else "long"]
        return self.tokens(pieces[draw * PIECES : (draw + 1) * PIECES])

    def tokens(self, pieces: list[list[int]]) -> Tensor:
        """Return pieces as a tensor, (pieces, tokens); a short run has little of them."""
        return torch.tensor(pieces)[:1, :80] if self.short else torch.tensor(pieces)

    @functools.cache  # noqa: B019 (there is one study)
    def moments(self, *texts: str) -> moments.Moments:
        """Return the moments of one set of texts, or the mean of several."""
        if len(texts) > 1:
            return moments.mixed(*(self.moments(text) for text in texts))
        return moments.collect(self.model, self.tokens(self.texts[texts[0]]["moments"]))

    @functools.lru_cache(maxsize=1)  # noqa: B019
    def cut_weights(self, part: str, by: tuple[str, ...]) -> dict[float, dict[str, Tensor]]:
        """Return weights at all shares, plainly or for the inputs of some sets of texts."""
        names = moments.FEED if part == "feed" else moments.ATTENTION
        shares = SHARES if by in [(), *((text,) for text in SETS)] and part == "feed" else (0.9,)
        known = self.moments(*by) if by else None
        return moments.cut_weights(self.model, names, shares, known)

    def whole(self, case: Case, text: str, draw: int) -> list[Tensor]:
        """Return the tables of the whole model, in float16; for long texts, too large, none."""
        if case.length > 256:
            return []
        if (text, draw) not in self.kept:
            tables: list[Tensor] = []

            def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
                tables.append(smollm.table(q, k).half())
                return tables[-1].float() @ cuts.each_head(v)

            with torch.no_grad():
                self.model(self.pieces(text, draw, case.length), attend=attend, after=-1)
            self.kept[text, draw] = tables
        return self.kept[text, draw]

    def rows(self, case: Case) -> Iterator[dict[str, Any]]:
        """Run a case, and yield a row for each set of texts and draw."""
        for text in case.texts:
            made = case.make(text)
            for draw in range(DRAWS):
                ids = self.pieces(text, draw, case.length)
                error = drift = None
                if isinstance(made, dict):
                    loss = smollm.loss(self.model, ids, weights=made)
                else:
                    meter = Meter(made, self.whole(case, text, draw))
                    loss = statistics.mean(
                        smollm.loss(self.model, some, attend=meter.layers)
                        for some in ids.split(max(1, 1024 // case.length))
                    )
                    error, drift = (e if e is None else round(e, 4) for e in meter.errors())
                yield {
                    "cut": case.cut, "setting": case.setting, "text": text, "length": case.length,
                    "seed": draw, "pieces": len(ids), "error": error, "drift": drift,
                    "loss": round(loss, 4),
                }  # fmt: skip

    def uncut(self, case: Case) -> Iterator[dict[str, Any]]:
        """Yield the losses of the whole model on each piece of a draw."""
        for text in case.texts:
            for draw in range(DRAWS):
                pieces = self.pieces(text, draw, case.length).split(1)
                losses = [smollm.loss(self.model, piece) for piece in pieces]
                yield {"text": text, "length": case.length, "seed": draw, "losses": losses}

    def jobs(self, case: Case) -> Iterator[dict[str, Any]]:
        """Yield the share of right answers, and the error of the tables, by job."""
        made, right, errors = case.make("prose"), {}, {}
        for job, prompts in smollm.stored_prompts().items():
            prompts = prompts[:2] if self.short else prompts
            meter = Meter(made)
            right |= smollm.grade(self.model, {job: prompts}, attend=meter.layers)
            errors[job] = round(meter.errors()[0], 4)
        yield {"cut": case.cut, "setting": case.setting, "right": right, "error": errors}

    def continuations(self, case: Case) -> Iterator[dict[str, Any]]:
        """Yield how the model goes on after the start, token by token the likeliest."""
        attend, tokens = Meter(case.make("prose")).layers, 1 if self.short else 12
        text = go_on(self.model, START, tokens, attend=attend)
        yield {"cut": case.cut, "setting": case.setting, "text": text}


@torch.no_grad()
def go_on(model: smollm.SmolLM, text: str, tokens: int, **changes: Any) -> str:
    """Return the likeliest tokens after a text, one after the other."""
    ids = model.encode(text)
    n = ids.shape[1]
    for _ in range(tokens):
        ids = torch.cat([ids, model(ids, **changes, after=-1).argmax(-1)], dim=1)
    return model.decode(ids[:, n:])


SHARES = (0.9, 0.5, 0.3125)  # the last takes of 16 bits a number as much as 5 bits do


def always(cut: Cut) -> Callable[[str], Cut]:
    """Return the same cut for each set of texts."""
    return lambda text: cut


WAYS: dict[str, tuple[Callable[[int], Cut], Sequence[int]]] = {
    "sheets": (cuts.sheets, (8, 32, 16, 64, 4, 1, 2, 128)),
    "window": (cuts.window, (32, 64, 16, 128, 8, 192)),
    f"window and first {FIRST}": (lambda n: cuts.window(n, FIRST), (32, 64, 16, 128, 8, 192)),
    "averages": (cuts.means, (16, 64, 32, 128, 8, 192)),
    "bits": (cuts.round_cache, (3, 4, 2, 6, 5, 8)),
}


def one(cut: str, setting: int) -> Case:
    """Return a cut that changes tables by one number."""
    return Case(cut, setting, always(WAYS[cut][0](setting)))


def figure_cuts() -> list[Case]:
    """Return the cuts that change tables by one number: the paths of the figure."""
    return [one(cut, setting) for cut, (_, settings) in WAYS.items() for setting in settings]


def learned(
    study: Study, make: Callable[[Tensor], Cut], find: Callable[[int, dict[str, Tensor]], Tensor]
) -> Callable[[str], list[Cut]]:
    """Make a cut for each layer of what other texts of the same set say about it."""
    return lambda text: [make(find(i, layer)) for i, layer in enumerate(study.moments(text))]


def other_tables(study: Study) -> list[Case]:
    """Return variants of these, eviction, a state, and a shift that is free."""

    def mean(i: int, layer: dict[str, Tensor]) -> Tensor:
        return layer["mean"]

    def rotated(i: int, layer: dict[str, Tensor]) -> Tensor:
        return layer["rotated mean"]

    found = [Case("window and first 1", n, always(cuts.window(n, 1))) for n in (32, 64)]
    found += [Case("one vector off all keys", None, learned(study, cuts.shift, rotated))]
    for bits in (3, 2):
        shifted = functools.partial(cuts.round_shifted, bits)
        found += [
            Case("bits, shifted", bits, learned(study, shifted, rotated)),
            Case("bits, keys by channel", bits, always(cuts.round_cache(bits, by_channel=True))),
            Case("bits, spread", bits, always(cuts.round_spread(bits))),
        ]
    centered = functools.partial(cuts.round_centered, 3)
    return [
        *found,
        Case("bits, centered", 3, learned(study, centered, mean)),
        Case("keys unlike", 32, always(cuts.keep_unlike(32))),
        Case("keys heard", 32, always(cuts.keep_heard(32))),
        Case("elu + 1", None, always(cuts.linear)),
        Case("sheets, rescaled", 8, always(cuts.sheets(8, rescaled=True))),
        Case("sheets, not masked", 8, always(cuts.sheets(8, masked=False))),
    ]


def latents(study: Study) -> list[Case]:
    """Return cuts of keys and values to directions: their own, or those of their use."""

    def cut(
        name: str, rank: int, moment: str, make: Callable[[Tensor], Cut], use: Use | None = None
    ) -> Case:
        def find(i: int, layer: dict[str, Tensor]) -> Tensor:
            how = None if use is None else use(study.model, i, layer)
            return moments.projection(layer[moment], rank, how)

        return Case(name, rank, learned(study, make, find))

    keys, values, both = cuts.project_keys, cuts.project_values, cuts.project_both
    after = functools.partial(keys, after=True)
    found = []
    for r in (64, 32):
        found += [
            cut("keys before rotation", r, "keys", keys),
            cut("values", r, "values", values),
            cut("keys after rotation", r, "rotated", after),
            cut("keys before rotation, for queries", r, "keys", keys, moments.query_use),
            cut("keys after rotation, for queries", r, "rotated", after, moments.rotated_query_use),
        ]
    found += [cut("values, for outputs", 64, "values", values, moments.output_use)]
    for r in (192, 96):
        found += [
            cut("keys and values together", r, "both", both),
            cut("keys and values together, for use", r, "both", both, moments.both_use),
        ]
    rounded = cut("keys to 96, rounded", 96, "keys", functools.partial(keys, bits=4))
    return [
        *found,
        Case("bits, keys only", 2, always(cuts.round_cache(2, values=False))),
        Case("bits, keys only", 4, always(cuts.round_cache(4, values=False))),
        rounded._replace(setting=4),
        cut("keys before rotation", 96, "keys", keys),
    ]


def weight_cuts(study: Study) -> list[Case]:
    """Return cuts of weights: plainly, for inputs of each set of texts, and in bits."""

    def cut(name: str, share: float, texts: Sequence[str], by: Sequence[str], part: str) -> Case:
        made = functools.partial(study.cut_weights, part, tuple(by))
        return Case(name, share, lambda _: made()[share], texts=tuple(texts))

    found = [cut("feed-forward, plain", 0.9, SETS, (), "feed")]
    others = {own: [text for text in SETS if text != own] for own in SETS}
    for own in SETS:
        found += [cut("feed-forward, for inputs", s, [own], [own], "feed") for s in SHARES]
        found += [cut(f"feed-forward, for inputs of {own}", 0.9, others[own], [own], "feed")]
    for own in SETS:
        name = "feed-forward, for inputs of both others"
        found += [cut(name, 0.9, [own], others[own], "feed")]
    rounded = functools.partial(moments.round_weights, study.model, moments.FEED, 3)
    found += [Case("feed-forward, bits", 3, lambda _: rounded())]
    found += [cut("attention weights, plain", 0.9, SETS, (), "attention")]

    def attention(text: str) -> dict[str, Tensor]:
        return study.cut_weights("attention", (text,))[0.9]

    return [*found, Case("attention weights, for inputs", 0.9, attention)]


def long_cases() -> list[Case]:
    """Return cuts of texts of 1,024 tokens: none, windows, bits, and one setting of sheets."""
    wanted = {"window": (32, 64), f"window and first {FIRST}": (32, 64), "bits": (3,)}
    wanted |= {"sheets": (32,)}
    found = [none(), *(one(cut, setting) for cut in wanted for setting in wanted[cut])]
    return [case._replace(length=1024) for case in found]


def parts_left_out(study: Study) -> list[Case]:
    """Return layers, and heads of one, each left out alone."""
    layers = [(i, None) for i in range(LAYERS)]
    heads = [(i, head) for i in (11,) for head in range(smollm.HEADS)]
    found = []
    for i, head in layers + heads:
        cut, setting = ("layer", i) if head is None else ("head", f"{i}.{head}")
        make = functools.partial(moments.without, study.model, i, head)
        found += [Case(f"without {cut}", setting, lambda _, m=make: m())]
    return found


def none() -> Case:
    """Return the whole model."""
    return Case("none", None, always(cuts.exact))


def graded() -> list[Case]:
    """Return the cuts whose answers are graded."""
    wanted = {
        "sheets": (4, 8, 16), "window": (8, 16), f"window and first {FIRST}": (4, 8, 16, 32),
        "averages": (8, 16), "bits": (3, 4),
    }  # fmt: skip
    return [none(), *(one(cut, setting) for cut in wanted for setting in wanted[cut])]


def work(study: Study, short: bool = False) -> list[tuple[str, Case]]:
    """Return what to find of which case, in the order of work; a ``short`` run has little."""
    figure = [none(), *figure_cuts()]
    if short:
        few = [case._replace(texts=("prose",)) for case in (figure[1], latents(study)[0])]
        return [("rows", few[0]), ("rows", few[1]), ("jobs", figure[1])]
    several = weight_cuts(study), latents(study), other_tables(study)
    first, more = chain(*(some[:5] for some in several)), chain(*(some[5:] for some in several))
    return [
        *(("rows", case) for case in figure),
        *(("jobs", case) for case in graded()),
        ("uncut", none()),
        *(("rows", case) for case in first),
        *(("continuations", case) for case in figure),
        *(("rows", case) for case in more),
        *(("rows", case) for case in parts_left_out(study)),
        ("uncut", none()._replace(length=1024)),
        *(("rows", case) for case in long_cases()),
    ]


ABOUT = {
    "draws": "seed is the number of a draw of four pieces of 256 or 1,024 tokens; 768 or 3,840 "
    "tokens count, since the first 64 of a piece do not",
    "uncut": "the loss of the whole model on the same pieces",
    "moments": "4,096 tokens of other pieces of the same set, unless the cut names others",
    "skip": 64,
}

"""Read from a model's ``config.json`` what each layer keeps.

A model is a list of parts, dicts of numbers: how many ``layers``, and what each of them keeps,

- ``groups`` keys of ``width`` numbers, and as many values;
- a ``latent`` that all heads share, and beside it ``rotary`` numbers for the position;
- an ``index``, a key by which the model chooses what to read;
- a ``state`` of so many numbers, however long the text.

Three further numbers say how many vectors: of the newest ``window`` tokens, one for ``every`` so
many tokens, and of those that are kept only the ``chosen`` ones are read. ``heads`` counts the
queries, or the heads of a state.

Which fields say this, ``data/model_types.json`` has for families of ``model_type``: of each kind of
layer, the ``parts`` that it keeps. In a part a name stands for the field's value, ``a|b`` for the
first of two fields that is there, ``a/b`` for a quotient, and a list for a product. Further fields
are those whose value is ``fixed``, and those that are ``harmless`` for the cache. The figure
``card`` reads the same file.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from lowrank_tutor._checks import _show
from lowrank_tutor._data import read_data

TYPES = read_data("model_types")
RUN = "run AutoConfig.from_pretrained(...).to_dict() and paste that, written by json.dumps"
ENTER = "enter layers, groups, and width yourself"
BY_HAND = {"model_type": "by hand", "layers": 32, "groups": 8, "width": 128}

Part = Mapping[str, int]


class Model(NamedTuple):
    """What a model keeps, part by part, and how many weights it has, in ``billions``.

    ``experts`` of them, in billions, are in experts that a router chooses, and each token uses the
    share ``used`` of those.
    """

    parts: tuple[Part, ...]
    billions: float | None = None
    experts: float = 0.0
    used: float = 1.0


def read_config(config: Mapping[str, Any]) -> Model:
    """Read what each layer keeps from a ``config.json`` of transformers, as a dict.

    Only types of models that were tested are read. A missing field, or one that is not known for
    the type, is refused by name, never guessed. For any other model enter what its layers keep, as
    below; all its weights then count as used by each token. Of a model with pictures, the
    ``text_config`` is read. The weights are not counted (``billions`` is None), except for those in
    experts: layers · experts · 3 · hidden size · expert size.

    >>> read_config({"model_type": "by hand", "layers": 36, "groups": 8, "width": 128}).parts
    ({'layers': 36, 'groups': 8, 'width': 128, 'heads': 8},)
    """
    if not isinstance(config, Mapping):
        raise TypeError(
            "config must be a dict of names and values, "
            f"got {_show(config)}: json.load(open(path)) reads one, config.to_dict() makes one"
        )
    if config.get("model_type") in TYPES["wrappers"]:
        if not isinstance(text := config.get("text_config"), Mapping):
            raise ValueError(f"config must have text_config, got {_show(text)}: {RUN}")
        config = text
    name = config.get("model_type")
    family = next((each for each in TYPES["families"] if name in each["types"]), None)
    if family is None:
        raise ValueError(
            "config must have a model_type that is read here, "
            f"got {_show(name)}: {ENTER}, as {BY_HAND}"
        )
    of = _Fields(config)
    parts: Counter[tuple[tuple[str, int], ...]] = Counter()
    kinds = _kinds(of, family)
    for kind in kinds:
        parts.update(tuple(of.part(name).items()) for name in family["kinds"][kind])
    experts = _experts(of, family, len(kinds))
    fixed = TYPES["fixed"] | family.get("fixed", {})
    known = {*TYPES["harmless"], *family.get("harmless", ()), *_names(family)}
    known |= {field for field, value in fixed.items() if repr(config.get(field)) == repr(value)}
    if strange := sorted(str(field) for field in of.given if field not in known):
        raise ValueError(
            f"config must have fields and values that are known for {name}, "
            f"got {strange[0]}: {ENTER}"
        )
    return Model(tuple({"layers": n, **dict(part)} for part, n in parts.items()), None, *experts)


def _names(family: Mapping[str, Any]) -> set[str]:
    """Name the fields that say what models of a family keep."""
    found = [family.get("field", "layer_types"), family.get("layers", "num_hidden_layers")]
    found += family.get("experts", {}).values()
    for name in [name for names in family["kinds"].values() for name in names]:
        for value in TYPES["parts"][name].values():
            found += value if isinstance(value, list) else [str(value)]
    return set(re.split("[|/]", "|".join(found)))


class _Fields:
    """The fields of a configuration.

    Null is as good as missing, except where a window may be null.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.given = {name: value for name, value in config.items() if value is not None}

    def number(self, names: str, least: int = 1, most: int = 2**24) -> int:
        """Return the first of these fields that is there, a whole number, or a quotient of two."""
        for name in names.split("|"):
            top, _, bottom = name.partition("/")
            if top not in self.given:
                continue
            divisor = self.number(bottom) if bottom else 1
            value, least = self.given[top], divisor if bottom else least
            if isinstance(value, bool) or not isinstance(value, int | float) or value % 1:
                raise ValueError(f"{top} must be a whole number, got {_show(value)}")
            if not least <= value <= most:
                raise ValueError(f"{top} must be between {least} and {most}, got {_show(value)}")
            return int(value) // divisor
        raise ValueError(f"config must have {names.split('|')[0]}, got none: {RUN}")

    def rows(self, name: str, n: int) -> list[Any]:
        """Return a list with an entry for each of n layers."""
        if name not in self.given:
            raise ValueError(f"config must have {name}, got none: {RUN}")
        rows = self.given[name]
        if not isinstance(rows, list | tuple) or len(rows) != n:
            raise ValueError(f"{name} must be a list of {n} layers, got {_show(rows)}")
        return list(rows)

    def part(self, name: str) -> dict[str, int]:
        """Return what one layer keeps, as a part of the table says it."""
        found = {}
        for key, value in TYPES["parts"][name].items():
            if key == "state":
                found[key] = math.prod(map(self.number, value))
            elif isinstance(value, int):
                found[key] = value
            elif key != "window" or self.config.get(value, 0) is not None:
                found[key] = self.number(value, least=key != "rotary")
        return found


def _kinds(of: _Fields, family: Mapping[str, Any]) -> list[str]:
    """Return the kind of each layer; where a family has only one, no field need say so."""
    n = of.number(family.get("layers", "num_hidden_layers"), most=10_000)
    field, known = family.get("field", "layer_types"), list(family["kinds"])
    if len(known) == 1 and field not in of.given:
        return known * n
    kinds = of.rows(field, n)
    if strange := [kind for kind in kinds if kind not in known]:
        raise ValueError(f"{field} must be of {', '.join(known)}, got {_show(strange[0])}: {ENTER}")
    return kinds


def _experts(of: _Fields, family: Mapping[str, Any], n: int) -> tuple[float, float]:
    """Return the weights in routed experts, in billions, and the share that a token uses."""
    if not (fields := family.get("experts")):
        return 0.0, 1.0
    count = of.number(fields["count"])
    if "kinds" in fields:
        n = sum(kind != "dense" for kind in of.rows(fields["kinds"], n))
    elif "dense" in fields:
        n -= of.number(fields["dense"], least=0, most=n)
    weights = n * count * 3 * of.number("hidden_size") * of.number(fields["size"])
    return weights / 1e9, of.number(fields["used"], most=count) / count

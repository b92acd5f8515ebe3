"""Give linear layers updates of low rank: LoRA, rsLoRA, PiSSA and DoRA.

One layer gets an update, or many throughout a model.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from lowrank_tutor._checks import check_bool, check_choice, check_integer, check_real
from lowrank_tutor._tensors import (
    check_generator,
    check_like,
    check_linear,
    without_autocast,
)

Kind = TypeVar("Kind", bound=nn.Module)


class LoraLinear(nn.Module):
    r"""A linear layer with a frozen weight, and an update of rank ``r`` that learns beside it.

    $y = W x + \tfrac{\alpha}{r} B (A x)$. Merged into $W + \tfrac{\alpha}{r} B A$, the update costs
    nothing at inference. The factors ``a`` (r, n) and ``b`` (m, r) and, with ``magnitude``, the
    ``lengths`` (m,) of the rows are made in float32 at least: in half precision the steps of a
    small learning rate would vanish, and ``GradScaler`` accepts no such gradients. So convert a
    model before, not after. The output has the type of the layer. ``weight``, ``bias``,
    ``in_features`` and ``out_features`` are those of the merged layer, for modules that read them
    instead of calling it, as ``nn.MultiheadAttention`` reads ``out_proj``. ``alpha`` can be set at
    any time, and changes ``factor``, $\tfrac{\alpha}{r}$, which ``state_dict`` holds too.

    Parameters
    ----------
    linear : nn.Linear
        The layer. Its weight (m, n) and bias stop learning, until `reset_base`. The weight must be
        a plain tensor: for packed ones, such as torchao's or those of bitsandbytes, use ``peft``.
    r : int
        Rank of the update, between 1 and min(m, n).
    alpha : float, optional
        Strength of the update, above 0; by default ``r``.
    scaling : {"alpha/r", "alpha/sqrt(r)"}
        The factor of the update: LoRA's own (Hu et al., 2021, arXiv:2106.09685), or that of rsLoRA
        (Kalajdzievski, 2023, arXiv:2312.03732).
    init : {"zero", "principal"}
        LoRA's start, B = 0 and entries of A uniform between $\pm 1/\sqrt{n}$; or PiSSA's (Meng,
        Wang and Zhang, 2024, arXiv:2404.02948), the first ``r`` layers of the singular value
        decomposition, for weights of rank ``r`` at least. The weight is not overwritten: the start
        is kept beside it, and taken off the update.
    magnitude : bool
        DoRA (Liu et al., 2024, arXiv:2402.09353): each row of the weight is divided by its length,
        and that length is learned apart. Gradients pass through the division. No row may be zero,
        because it would never learn.
    generator : torch.Generator, optional
        Draws A; by default torch's global generator does.

    Examples
    --------
    >>> import torch
    >>> linear = torch.nn.Linear(64, 48)
    >>> layer = LoraLinear(linear, r=4)
    >>> x = torch.randn(2, 64)
    >>> torch.equal(layer(x), linear(x))
    True
    >>> sum(p.numel() for p in layer.parameters() if p.requires_grad)
    448
    """

    a: nn.Parameter
    b: nn.Parameter
    lengths: nn.Parameter | None
    a_start: Tensor | None
    b_start: Tensor | None

    def __init__(
        self,
        linear: nn.Linear,
        r: int,
        *,
        alpha: float | None = None,
        scaling: str = "alpha/r",
        init: str = "zero",
        magnitude: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        weight = check_linear(linear).detach()
        m, n = weight.shape
        self.r = check_integer(r, "r", 1, min(m, n), "min(m, n)")
        self._scaling = check_choice(scaling, "scaling", ("alpha/r", "alpha/sqrt(r)"))
        self._divisor = self.r if scaling == "alpha/r" else math.sqrt(self.r)
        self.alpha = self.r if alpha is None else alpha
        self.init = check_choice(init, "init", ("zero", "principal"))
        magnitude = check_bool(magnitude, "magnitude")
        generator = check_generator(generator)
        self.in_features, self.out_features = n, m
        weight = weight.to(torch.promote_types(weight.dtype, torch.float32))
        self.register_buffer("a_start", None)
        self.register_buffer("b_start", None)
        if init == "zero":
            bound = 1 / math.sqrt(n)
            drawn = weight.new_empty(self.r, n).uniform_(-bound, bound, generator=generator)
            self.a = nn.Parameter(drawn)
            self.b = nn.Parameter(weight.new_zeros(m, self.r))
        else:
            b, a = _principal(weight, self.r, self.factor)
            self.a, self.b = nn.Parameter(a), nn.Parameter(b)
            self.a_start, self.b_start = a.clone(), b.clone()
        self.lengths = nn.Parameter(_lengths(weight)) if magnitude else None
        self._learned = {name: part.requires_grad for name, part in linear.named_parameters()}
        self.linear = linear.requires_grad_(False)  # last, so that a refusal has frozen nothing

    @property
    def alpha(self) -> float:
        """The strength of the update, by its factor."""
        return self.factor * self._divisor

    @alpha.setter
    def alpha(self, value: float) -> None:
        alpha = check_real(value, "alpha", "finite and above 0", math.ulp(0.0))
        self.factor = alpha / self._divisor

    @property
    def scaling(self) -> str:
        """How the factor depends on the rank."""
        return self._scaling

    def extra_repr(self) -> str:
        """Return the settings for the layer's printed form."""
        kind = "" if self.lengths is None else ", magnitude=True"
        sizes = f"r={self.r}, alpha={self.alpha:g}"
        return f"{sizes}, scaling={self.scaling!r}, init={self.init!r}{kind}"

    def get_extra_state(self) -> Tensor:
        """Return the factor of the update, for the state dict."""
        return torch.tensor(self.factor, dtype=torch.float64, device="cpu")

    def set_extra_state(self, state: Tensor) -> None:
        """Set the factor of the update from a state dict."""
        self.factor = float(state)

    @property
    def weight(self) -> Tensor:
        """The effective weight (m, n), rounded to the type of the one that came in."""
        return self._exact_weight().to(self.linear.weight.dtype)

    @property
    def bias(self) -> nn.Parameter | None:
        """The bias that came in."""
        return self.linear.bias

    def forward(self, x: Tensor) -> Tensor:
        """Map vectors (..., n) to (..., m)."""
        check_like("x", x, ("...", self.in_features), "the layer", self.linear.weight)
        if self.lengths is not None:
            return functional.linear(x, self.weight, self.bias)
        out: Tensor = self.linear(x)  # called as it is, so that its hooks act
        x = x.to(self.a.dtype)
        update = functional.linear(functional.linear(x, self.a), self.b)
        if self.a_start is not None and self.b_start is not None:
            update = update - functional.linear(functional.linear(x, self.a_start), self.b_start)
        return (out + self.factor * update).to(out.dtype)

    def update(self) -> Tensor:
        """Return the change of the weight so far, (m, n).

        With ``magnitude`` it includes that of the lengths.
        """
        return (
            self._product() if self.lengths is None else self._exact_weight() - self.linear.weight
        )

    def merged(self) -> nn.Linear:
        """Return a new, plain linear layer that maps as this one does.

        The sum is rounded to the type of the weight: changes too small for it are lost, and a sum
        too large for it is refused.
        """
        weight = self.weight.detach()
        if not (weight.is_meta or bool(weight.isfinite().all())):
            raise ValueError(
                f"the merged weight must be finite in {weight.dtype}, "
                f"got {float(weight[~weight.isfinite()][0])}"
            )
        return plain_linear(self.linear, weight, self.bias).requires_grad_()

    def reset_base(self) -> nn.Linear:
        """Return the layer that came in, without the update.

        Its weight and bias learn again if they did before.
        """
        for name, part in self.linear.named_parameters():
            part.requires_grad_(self._learned[name])
        return self.linear

    def _exact_weight(self) -> Tensor:
        changed = self.linear.weight + self._product()
        if self.lengths is None:
            return changed
        sizes = torch.linalg.vector_norm(changed, dim=1)
        return (self.lengths / torch.where(sizes == 0, 1, sizes))[:, None] * changed

    def _product(self) -> Tensor:
        with without_autocast(self.a.device):
            product = self.b @ self.a
            if self.a_start is not None and self.b_start is not None:
                product = product - self.b_start @ self.a_start
            return self.factor * product


def inject_lora(model: nn.Module, names: str | Iterable[str], r: int, **options: Any) -> nn.Module:
    """Replace linear layers of these names by `LoraLinear` of rank ``r``, and return the model.

    ``names`` are the ends of names, as ``model.named_modules()`` gives them: "q_proj", or
    "1.q_proj" for the second layer alone, where ``*`` stands for anything, as in "1.*", but for
    layers whose weight another module has too, such as a head that is tied to the embedding. Each
    must name an ``nn.Linear`` at least once, and no ``Conv1D``, as GPT-2 has. The name of a model
    that is itself such a layer is "", and its adapter is returned. The options are those of
    `LoraLinear`. Only the adapters learn from then on, earlier ones among them. A layer that stands
    in several places stays one. A refusal changes nothing. `lora_state` saves the adapters alone,
    and `without_lora` switches them off.

    >>> import torch
    >>> layer = torch.nn.TransformerEncoderLayer(16, 4, 32)
    >>> model = inject_lora(layer, ["out_proj", "linear2"], r=2)
    >>> sum(p.numel() for p in model.parameters() if p.requires_grad)  # 2 (16 + 16) and 2 (32 + 16)
    160
    >>> merge_lora(model).linear2
    Linear(in_features=32, out_features=16, bias=True)
    """
    adapted = {part.linear for part in modules_of(model, LoraLinear).values()}
    linears = {name: part for name, part in linears_of(model).items() if part not in adapted}
    adapters: dict[nn.Module, LoraLinear] = {}
    try:
        chosen = names_ending_in(names, linears, tied_linears(model, linears))
        for part in dict.fromkeys(linears[name] for name in chosen):
            adapters[part] = LoraLinear(part, r, **options).train(part.training)
    except Exception:
        for adapter in reversed(adapters.values()):  # two layers may share a weight
            adapter.reset_base()
        raise
    _put(model, {name: adapters[part] for name, part in linears.items() if part in adapters})
    model = adapters.get(model, model)
    model.requires_grad_(False)
    for adapter in modules_of(model, LoraLinear).values():
        for learned in adapter.parameters(recurse=False):
            learned.requires_grad_()
    return model


def merge_lora(model: nn.Module) -> nn.Module:
    """Put the plain merged layer in the place of each `LoraLinear`, and return the model.

    The state dict has its old names again. No weight learns until ``model.requires_grad_()``. What
    is merged cannot be taken out again: to go on training the adapters, merge a copy,
    ``merge_lora(copy.deepcopy(model))``.

    A weight that another module uses too, such as a head that is tied to the embedding, is refused:
    merged it would differ from the other's, and a state dict of both, loaded into a model that ties
    them, would lose one of the two. With ``head`` the adapter, ``head.linear.weight =
    nn.Parameter(head.linear.weight.detach().clone())`` unties them; so must whoever loads the
    result.
    """
    adapters = _adapters_of(model)
    if tied := tied_linears(model, {name: part.linear for name, part in adapters.items()}):
        raise ValueError(
            f"model must share no adapted weight with other layers, got {tied[0]!r} tied to one"
        )
    merged: dict[nn.Module, nn.Module] = {
        part: part.merged().requires_grad_(False).train(part.training) for part in adapters.values()
    }
    _put(model, {name: merged[part] for name, part in adapters.items()})
    return merged.get(model, model)


@contextmanager
def without_lora(model: nn.Module) -> Iterator[nn.Module]:
    """Switch all adapters of a model off inside ``with``: each layer is the one that came in.

    A copy made there, by ``copy.deepcopy``, is the model as it was before `inject_lora`, but for
    ``requires_grad``.

    >>> import torch
    >>> model = inject_lora(torch.nn.Sequential(torch.nn.Linear(8, 8)), "0", r=2)
    >>> with without_lora(model) as plain:
    ...     plain[0]
    Linear(in_features=8, out_features=8, bias=True)
    """
    adapters = _adapters_of(model)
    _put(model, {name: part.linear for name, part in adapters.items()})
    try:
        yield adapters[""].linear if "" in adapters else model
    finally:
        _put(model, adapters)


def lora_state(model: nn.Module) -> dict[str, Tensor]:
    """Return a copy of what adapters added to the state dict.

    These are their factors, lengths, starts, and strengths. `load_lora` reads it, after
    ``torch.save`` and ``torch.load``, or whatever keeps a dictionary of tensors.

    >>> import torch
    >>> model = inject_lora(torch.nn.Sequential(torch.nn.Linear(8, 8)), "0", r=2, alpha=4)
    >>> list(lora_state(model)), float(lora_state(model)["0._extra_state"])  # alpha / r
    (['0.a', '0.b', '0._extra_state'], 2.0)
    """
    owned = [f"{name}." if name else "" for name in _adapters_of(model)]
    state = model.state_dict()
    parts = ("a", "b", "lengths", "a_start", "b_start", "_extra_state")
    return {
        key: state[key].clone()
        for name in owned
        for part in parts
        if (key := f"{name}{part}") in state
    }


def load_lora(model: nn.Module, state: Mapping[str, Tensor]) -> nn.Module:
    """Load what `lora_state` returned into a model with the same adapters, and return the model.

    `inject_lora` makes them, with the ``names``, ``r``, ``init``, and ``magnitude`` of those that
    were saved; their strength comes with the state. The weights beside them must be those with
    which the adapters were trained.

    In files of ``peft``, ``a`` is ``lora_A.weight``, and ``b`` is ``lora_B.weight``. After
    `inject_lora` with the file's ``r`` and its ``lora_alpha`` as ``alpha``, this loads one::

        for old, new in (("base_model.model.", ""), ("lora_A.weight", "a"), ("lora_B.weight", "b")):
            saved = {name.replace(old, new): part for name, part in saved.items()}
        load_lora(model, lora_state(model) | saved)
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state must be what lora_state returns, got {type(state).__name__}")
    shapes = {key: tuple(part.shape) for key, part in state.items()}
    wanted = {key: tuple(part.shape) for key, part in lora_state(model).items()}
    for key in wanted | shapes:
        if (found := shapes.get(key)) != (fits := wanted.get(key)):
            rule = (
                "have the names and shapes of the adapters; help(load_lora) renames those of peft"
            )
            raise ValueError(f"state must {rule}, got {found} for {fits} at {key}")
    model.load_state_dict(state, strict=False)
    return model


def plain_linear(linear: nn.Linear, weight: Tensor, bias: nn.Parameter | None) -> nn.Linear:
    """Return a new layer with the type and device of another, which learns if that one does."""
    place = {"device": linear.weight.device, "dtype": linear.weight.dtype}
    layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]  # draws nothing
        nn.Linear, weight.shape[1], weight.shape[0], bias=bias is not None, **place
    )
    with torch.no_grad():
        layer.weight.copy_(weight).requires_grad_(linear.weight.requires_grad)
        if bias is not None:
            layer.bias.copy_(bias).requires_grad_(bias.requires_grad)
    return layer


def _lengths(weight: Tensor) -> Tensor:
    """Return the lengths of the rows; neither a length of 0 nor its row would ever learn."""
    lengths: Tensor = torch.linalg.vector_norm(weight, dim=1)
    if not weight.is_meta and (zeros := int((lengths == 0).sum())):
        raise ValueError(
            "linear.weight must have no row of length 0, which never learns, where magnitude is "
            f"True, got {zeros} of {len(lengths)}"
        )
    return lengths


def _principal(weight: Tensor, r: int, factor: float) -> tuple[Tensor, Tensor]:
    """Return b (m, r) and a (r, n) such that ``factor * b @ a`` is the best of rank r."""
    u, sigma, vt = torch.linalg.svd(weight, full_matrices=False)
    least = max(weight.shape) * torch.finfo(weight.dtype).eps * sigma[0]
    # Where both factors are zero, neither would learn.
    if not (weight.is_meta or bool(sigma[r - 1] > least)):
        raise ValueError(
            f"r must be at most the rank of the weight, {int((sigma > least).sum())}, to start "
            f'"principal", got {r}'
        )
    root = (sigma[:r] / factor).sqrt()
    # FSDP2 takes contiguous factors alone.
    return (u[:, :r] * root).contiguous(), (root[:, None] * vt[:r]).contiguous()


def names_ending_in(
    ends: str | Iterable[str], names: Iterable[str], tied: Iterable[str] = ()
) -> list[str]:
    """Return the names of layers that end in one of ``ends``, each of which must fit one.

    ``*`` stands for anything, but chooses no ``tied`` layer.
    """
    wanted = list(ends) if isinstance(ends, Iterable) and not isinstance(ends, str) else [ends]
    if not wanted or not all(isinstance(end, str) for end in wanted):
        raise TypeError(f"names must be a string or several, got {ends!r}")
    chosen: dict[str, None] = {}
    for end in wanted:
        fits = [name for name in names if fnmatchcase(f".{name}", f"*.{end}")]
        fits = [name for name in fits if not ("*" in end and name in tied)]
        if not fits:
            known = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in names)) or "none"
            raise ValueError(
                f"names must be ends of names of linear layers ({known}), tied ones without *, "
                f"got {end!r}"
            )
        chosen |= dict.fromkeys(fits)
    return list(chosen)


def modules_of(model: nn.Module, kind: type[Kind]) -> dict[str, Kind]:
    """Return the modules of a kind in a model, under every name that they have."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    return {
        name: part
        for name, part in model.named_modules(remove_duplicate=False)
        if isinstance(part, kind)
    }


def linears_of(model: nn.Module) -> dict[str, Any]:
    """Return the linear layers under every name.

    GPT-2's Conv1D is one too, which `check_linear` refuses.
    """
    return {
        name: part
        for name, part in modules_of(model, nn.Module).items()
        if isinstance(part, nn.Linear) or type(part).__name__ == "Conv1D"
    }


def tied_linears(model: nn.Module, linears: Mapping[str, nn.Module]) -> list[str]:
    """Return the names of layers whose weight another module shares."""
    users: dict[int, set[nn.Module]] = {}
    for module in model.modules():
        for weight in module.parameters(recurse=False):
            users.setdefault(_memory(weight), set()).add(module)
    return [name for name, part in linears.items() if len(users.get(_memory(part.weight), ())) > 1]


def _memory(weight: Any) -> int:
    """Return the address of a plain tensor's numbers.

    Tensors that have none stand for themselves.
    """
    return (type(weight) in (Tensor, nn.Parameter) and weight.data_ptr()) or id(weight)


def _adapters_of(model: nn.Module) -> dict[str, LoraLinear]:
    adapters = modules_of(model, LoraLinear)
    if not adapters:
        raise ValueError(
            "model must hold a LoraLinear, as inject_lora makes them, "
            f"got {type(model).__name__} without one"
        )
    return adapters


def _put(model: nn.Module, new: Mapping[str, nn.Module]) -> None:
    """Put modules where a model has these names, unless the name is its own."""
    for name, part in new.items():
        parent, _, last = name.rpartition(".")
        if name:
            setattr(model.get_submodule(parent), last, part)

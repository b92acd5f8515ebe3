"""Report how near to low rank a model's weights are, and cut a layer best for its inputs."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lowrank_tutor._checks import check_rank
from lowrank_tutor._tensors import check_linear, check_plain
from lowrank_tutor.adapters.lora import linears_of, names_ending_in, plain_linear, tied_linears
from lowrank_tutor.bilinear import factorize
from lowrank_tutor.caches.latent import as_finite, as_moment
from lowrank_tutor.rank import break_even_rank
from lowrank_tutor.svd import choose_rank, noise_edge

SHARES = (0.9, 0.95, 0.99)
PACKED = (torch.uint8, torch.int8, torch.int32)
# Factors of adapters, and the products of those that stack all experts, by their names in peft.
FACTORS = re.compile(r"lora_(embedding_)?[AB]|experts(\.base_layer)?$")


def compress(
    linear: nn.Linear,
    k: int,
    *,
    moment: Tensor | None = None,
) -> nn.Sequential:
    r"""Cut a linear layer of weight (m, n) in two, from n numbers to ``k`` and from ``k`` to m.

    The product of the two weights is the matrix of rank ``k`` nearest to the weight or, with the
    second moment ``moment`` (n, n) of the inputs, $\Gamma = E\,x x^\top$, the one whose outputs are
    nearest on average: the best cut of $W \Gamma^{1/2}$ (Chen et al., 2021, NeurIPS; Wang et al.,
    2024, arXiv:2403.07378). ``k`` is between 1 and ``min(m, n)``. Numbers are saved if it is below
    `break_even_rank` (m, n) and no other layer has the same weight, as a tied head has.

    For all layers of a model whose moments were collected: ``for name, moment in moments.items():
    model.set_submodule(name, compress(model.get_submodule(name), k, moment=moment))``.

    The layer stays as it is; its bias goes to the second of the new ones. Where a model reads
    ``weight`` instead of calling the layer, as ``nn.MultiheadAttention`` reads that of
    ``out_proj``, and ``nn.TransformerEncoderLayer`` in evaluation, it finds the product, and saves
    no time. `input_moments` collects $\Gamma$. In directions that no input had, the product is
    zero: if such inputs may come, add a little of the identity, ``0.01 * moment.trace() / n *
    torch.eye(n)``.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.ReLU())
    >>> x = torch.randn(500, 4) @ torch.randn(4, 64)  # inputs in a space of dimension 4
    >>> with input_moments(model) as moments:
    ...     before = model(x)
    >>> model[0] = compress(model[0], 4, moment=moments["0"])
    >>> torch.allclose(model(x), before, atol=1e-4)
    True
    >>> sum(p.numel() for p in model.parameters())  # of 48 (64 + 1)
    496
    """
    weight = check_linear(linear)
    matrix = as_finite("linear.weight", weight).numpy()
    k = check_rank(k, matrix.shape)
    known = None if moment is None else as_moment(moment, matrix.shape[1]).numpy()
    u, v = (torch.from_numpy(factor) for factor in factorize(matrix, k, h_moment=known))
    down, up = plain_linear(linear, v, None), plain_linear(linear, u.T, linear.bias)
    return LinearPair(down, up).train(linear.training)


class LinearPair(nn.Sequential):
    """Two linear layers in place of one.

    A module that reads weight and bias instead of calling them finds the product.
    """

    @property
    def weight(self) -> Tensor:
        """The product of the two weights."""
        return self[1].weight @ self[0].weight  # type: ignore[operator]

    @property
    def bias(self) -> Tensor | None:
        """The bias of the second layer."""
        return self[1].bias  # type: ignore[return-value]


@contextmanager
def input_moments(
    model: nn.Module,
    names: str | Iterable[str] | None = None,
    *,
    dtype: torch.dtype = torch.float64,
) -> Iterator[dict[str, Tensor]]:
    r"""Collect the second moments $E\,x x^\top$ of what linear layers meet inside ``with``.

    ``names`` are as in `inject_lora`, by default all but tied ones. The moments (n, n) come by
    full names, the mean over all rows met so far: run the model without padding. A layer that is
    not called has none; ``nn.MultiheadAttention`` reads the weight of ``out_proj`` without calling
    it.

    A moment takes 8 n² bytes, or with ``dtype=torch.float32`` half of that and half the time, at
    six digits: 2,048 rows of 11,008 numbers took one core 7 s in place of 14 s (November 2026). A
    Llama of 7 billion weights, with six layers of width 4,096 and one of 11,008 in each of 32
    blocks, needs 28 GB in float32; the names "layers.3.*" take one block alone.
    """
    layers = linears_of(model)
    wanted = names_ending_in("*" if names is None else names, layers, tied_linears(model, layers))
    _check_dtype(dtype)
    # A layer with two names goes by the first.
    chosen = {layers[name]: name for name in reversed(wanted)}
    for layer in chosen:
        if not isinstance(layer, nn.Linear):
            check_linear(layer)
    moments: dict[str, Tensor] = {}
    rows = dict.fromkeys(wanted, 0)

    def collect(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = (*args, *named.values())[0]
        x = _on_its_device(given.detach().reshape(-1, given.shape[-1]), dtype)
        old = moments.setdefault(name, x.new_zeros(x.shape[1], x.shape[1]))
        rows[name] += len(x)
        if len(x):
            old.addmm_(x.T, x, beta=1 - len(x) / rows[name], alpha=1 / rows[name])

    with ExitStack() as hooks:
        for layer, name in chosen.items():
            hook = layer.register_forward_pre_hook(
                lambda _, args, named, name=name: collect(name, args, named), with_kwargs=True
            )
            hooks.callback(hook.remove)
        yield moments


def rank_report(
    model: nn.Module | Mapping[str, Any],
    names: str | Iterable[str] | None = None,
    *,
    dtype: torch.dtype = torch.float64,
) -> dict[str, list[Any]]:
    r"""Report how near to low rank the weights of a model or a state dict are, as a table.

    Of each weight the stable rank, the ``k`` that keep 90%, 95%, and 99% of the energy, how many
    singular values stand above noise, and the break-even rank, below which two factors hold fewer
    numbers than the weight. Above noise is what exceeds `svd.noise_edge`, $\nu(\sqrt m + \sqrt n)$,
    with $\nu$ from the median singular value. This assumes a few sheets and independent noise of
    one variance, which no trained weight is; in noise alone, normal and square, it counted none in
    five of six matrices, and one in the sixth. Values below $\sigma_1 \sqrt{\min(m, n)\,
    \varepsilon}$ may be rounding and do not count. Weights are decomposed where they are, on a GPU
    or not. ``lowrank_tutor.kit.table`` and ``pandas.DataFrame`` print the columns.

    Weights must have two axes: give experts one by one, and a convolution as ``w.flatten(1)``.
    Numbers in 8 bits or packed in integers are refused, and so are the factors of an adapter: give
    their product. ``names`` can choose the other weights. Entries with fewer than two rows or
    columns are left out, as are other integers and whatever is no tensor.

    Parameters
    ----------
    names : str or iterable of str, optional
        Ends of names, as in `inject_lora`; a last ".weight" is left out.
    dtype : torch.dtype
        torch.float64, or torch.float32, which kept six digits of the stable rank, and every ``k``,
        of a random weight of 4,096 by 11,008 with a stronger part of rank 64. That took one core of
        an AMD EPYC 18 s, in float32 9 s; weights of 4,096 by 4,096 took 10 and 6 s (measured in
        November 2026). In all, a Llama of 7 billion weights would take about 50 and 27 minutes.

    Examples
    --------
    >>> import torch
    >>> fc = torch.diag(torch.tensor([4.0, 2.0, 1.0, 1.0]))
    >>> weights = {"fc.weight": fc, "fc.bias": torch.zeros(4)}
    >>> report = rank_report(weights)
    >>> report["name"], report["stable rank"], report["k for 95%"]
    (['fc.weight'], [1.375], [3])
    >>> report["above noise"], report["break-even rank"]
    ([1], [2.0])
    """
    entries = model.state_dict() if isinstance(model, nn.Module) else model
    if not isinstance(entries, Mapping):
        raise TypeError(
            f"model must be a torch.nn.Module or a state dict, got {type(model).__name__}"
        )
    _check_dtype(dtype)
    tensors = {str(name): value for name, value in entries.items() if isinstance(value, Tensor)}
    if names is not None:
        full = {name.removesuffix(".weight"): name for name in tensors}
        tensors = {full[name]: tensors[full[name]] for name in names_ending_in(names, full)}
    rows = [row for row in (_row(*one, dtype) for one in tensors.items()) if row is not None]
    if not rows:
        raise ValueError("model must hold a weight with two axes, got none")
    shares = (f"k for {share:.0%}" for share in SHARES)
    header = ("name", "shape", "stable rank", *shares, "above noise", "break-even rank")
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def _check_dtype(dtype: object) -> None:
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"dtype must be torch.float32 or torch.float64, got {dtype!r}")


def _on_its_device(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the numbers in another type, on the CPU if the device has no float64."""
    return x.to("cpu" if x.device.type == "mps" else x.device).to(dtype)


def _row(name: str, weight: Tensor, dtype: torch.dtype) -> tuple[object, ...] | None:
    if weight.ndim < 2 or not (weight.is_floating_point() or weight.dtype in PACKED):
        return None
    if weight.dtype in PACKED or weight.itemsize < 2:
        raise TypeError(f"{name} must hold unpacked numbers of 16 bits or more, got {weight.dtype}")
    check_plain(name, weight)
    if min(weight.flatten(1).shape) < 2:
        return None
    if weight.ndim > 2:
        raise ValueError(
            f"{name} must have two axes, got shape {tuple(weight.shape)}: give experts one by one, "
            "and w.flatten(1) of a convolution"
        )
    if FACTORS.search(name):
        raise ValueError(f"{name} must be one weight, got a factor of an adapter, or experts")
    matrix = _on_its_device(weight.detach(), dtype)
    shape = tuple(matrix.shape)
    if not matrix.isfinite().all():
        raise ValueError(f"{name} must be finite, got {float(matrix[~matrix.isfinite()][0])}")
    # So that squares neither overflow nor vanish.
    matrix = matrix / (float(matrix.abs().max()) or 1.0)
    # Several times faster than singular values.
    gram = matrix @ matrix.T if shape[0] < shape[1] else matrix.T @ matrix
    s = torch.linalg.eigvalsh(gram).double().clamp(min=0).sqrt().flip(0).cpu().numpy()
    stable = float(((s / (s[0] or 1)) ** 2).sum())
    rounding = float(s[0]) * math.sqrt(len(s) * torch.finfo(dtype).eps)
    above = int((s > max(noise_edge(s, *shape), rounding)).sum())
    ranks = (choose_rank(s, energy=share) for share in SHARES)
    return name, str(shape), stable, *ranks, above, break_even_rank(*shape)

"""Report how near to low rank the weights of a model are, and cut a linear layer in two, best for its inputs."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from lowrank_tutor._checks import check_rank
from lowrank_tutor._tensors import check_linear, check_not_meta, check_plain
from lowrank_tutor.bilinear import factorize
from lowrank_tutor.caches.latent import as_finite, as_moment
from lowrank_tutor.caches.lora import modules_of, names_ending_in, plain_linear
from lowrank_tutor.rank import break_even_rank
from lowrank_tutor.svd import choose_rank

SHARES = (0.9, 0.95, 0.99)


def compress(
    linear: nn.Linear, k: int | None = None, *, energy: float | None = None, moment: Tensor | None = None
) -> nn.Sequential:
    r"""Cut a linear layer of weight (m, n) in two, from n numbers to ``k`` and from ``k`` to m.

    The product of the two weights is the matrix of rank ``k`` nearest to the weight or, with the second moment
    ``moment`` (n, n) of the inputs, $\Gamma = E\,x x^\top$, the one whose outputs are nearest on average: the best cut
    of $W \Gamma^{1/2}$ (Chen et al., 2021, NeurIPS; Wang et al., 2024, arXiv:2403.07378). Give ``k``, between 1 and
    ``min(m, n)``, or the share ``energy`` of the weight's squared norm that is kept; with ``moment`` that of the mean
    squared outputs, before the bias. Numbers are saved if ``k`` is below `break_even_rank` (m, n).

    The layer stays as it is; its bias goes to the second of the new ones. Put them in its place where the model calls
    it: evaluation in ``nn.TransformerEncoderLayer`` reads weights instead, unless
    ``torch.backends.mha.set_fastpath_enabled(False)``. `input_moments` collects $\Gamma$. In directions that no input
    had, the product is zero: if such inputs may come, add a little of the identity, ``0.01 * moment.trace() / n *
    torch.eye(n)``.

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.ReLU())
    >>> x = torch.randn(500, 4) @ torch.randn(4, 64)  # inputs in a space of dimension 4
    >>> with input_moments(model) as moments:
    ...     before = model(x)
    >>> model[0] = compress(model[0], 4, moment=moments["0"])
    >>> torch.allclose(model(x), before, atol=1e-4), sum(p.numel() for p in model.parameters())  # of 48 (64 + 1)
    (True, 496)
    """
    weight = check_linear(linear)
    if (k is None) == (energy is None):
        raise ValueError(f"k or energy must be given, one of the two, got {'none' if k is None else 'both'}")
    check_not_meta("linear.weight", weight)
    matrix = as_finite("linear.weight", weight).numpy()
    rank = min(matrix.shape) if k is None else check_rank(k, matrix.shape)
    known = None if moment is None else as_moment(moment, matrix.shape[1]).numpy()
    u, v = factorize(matrix, rank, h_moment=known)
    if energy is not None:
        rank = max(choose_rank(sorted((u**2).sum(axis=1), reverse=True), energy=energy), 1)  # u @ u.T is diag(s)
    first, second = (torch.from_numpy(factor) for factor in (v[:rank], u[:rank].T))
    pair = plain_linear(linear, first, None), plain_linear(linear, second, linear.bias)
    return nn.Sequential(*pair).train(linear.training)


@contextmanager
def input_moments(model: nn.Module, names: str | Iterable[str] | None = None) -> Iterator[dict[str, Tensor]]:
    r"""Collect the second moments $E\,x x^\top$ of what linear layers meet while the model runs inside ``with``.

    ``names`` are as in `inject_lora`, by default those of all layers. The moments (n, n) come by full names, in
    float64, the mean over all rows met so far: run the model without padding. A layer that is not called has none;
    ``nn.MultiheadAttention`` reads the weight of ``out_proj`` without calling it.
    """
    layers = modules_of(model, nn.Linear)
    wanted = list(layers) if names is None else names_ending_in(names, layers)
    chosen = {layers[name]: name for name in reversed(wanted)}  # a layer with two names goes by the first
    moments: dict[str, Tensor] = {}
    rows = dict.fromkeys(layers, 0)

    def collect(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        x = (*args, *named.values())[0].detach()
        x = _in_double(x.reshape(-1, x.shape[-1]))
        rows[name] += len(x)
        old = moments.setdefault(name, x.new_zeros(x.shape[1], x.shape[1]))
        if len(x):
            old += (x.T @ x - len(x) * old) / rows[name]

    with ExitStack() as hooks:
        for layer, name in chosen.items():
            hook = layer.register_forward_pre_hook(
                lambda _, args, named, name=name: collect(name, args, named), with_kwargs=True
            )
            hooks.callback(hook.remove)
        yield moments


def rank_report(model: nn.Module | Mapping[str, Any]) -> dict[str, list[Any]]:
    """Report how near to low rank the weights of a model or a state dict are, as the columns of a table.

    Of each weight the stable rank, the ``k`` that keep 90%, 95% and 99% of the energy, and the break-even rank, below
    which two factors hold fewer numbers than the weight. A weight with more than two axes, such as a convolution's, is
    flattened after the first, and its shape says so. Entries with fewer than two rows or columns are left out, as are
    integers and whatever else is no tensor. Weights are decomposed where they are, on a GPU or not, in float64.
    ``lowrank_tutor.kit.table`` and ``pandas.DataFrame`` print the columns.

    >>> import torch
    >>> report = rank_report({"fc.weight": torch.diag(torch.tensor([4.0, 2.0, 1.0, 1.0])), "fc.bias": torch.zeros(4)})
    >>> report["name"], report["stable rank"], report["k for 95%"], report["break-even rank"]
    (['fc.weight'], [1.375], [3], [2.0])
    """
    entries = model.state_dict() if isinstance(model, nn.Module) else model
    if not isinstance(entries, Mapping):
        raise TypeError(f"model must be a torch.nn.Module or a state dict, got {type(model).__name__}")
    tensors = ((str(name), value) for name, value in entries.items() if isinstance(value, Tensor))
    rows = [row for tensor in tensors if (row := _row(*tensor)) is not None]
    if not rows:
        raise ValueError(f"model must hold a weight with two axes or more, got none among {len(entries)} entries")
    header = ("name", "shape", "stable rank", *(f"k for {share:.0%}" for share in SHARES), "break-even rank")
    return dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))


def _in_double(x: Tensor) -> Tensor:
    """Return float64 on the same device, or on the CPU where the device has none."""
    return x.to("cpu" if x.device.type == "mps" else x.device).double()


def _row(name: str, weight: Tensor) -> tuple[object, ...] | None:
    if weight.ndim < 2 or not weight.is_floating_point():
        return None
    check_not_meta(name, check_plain(name, weight))
    matrix = _in_double(weight.detach().flatten(1))
    shape = tuple(matrix.shape)
    if min(shape) < 2:
        return None
    if not matrix.isfinite().all():
        raise ValueError(f"{name} must be finite, got {float(matrix[~matrix.isfinite()][0])}")
    matrix = matrix / (float(matrix.abs().max()) or 1.0)  # so that squares neither overflow nor vanish
    gram = matrix @ matrix.T if shape[0] < shape[1] else matrix.T @ matrix  # several times faster than singular values
    s = torch.linalg.eigvalsh(gram).clamp(min=0).sqrt().flip(0).cpu().numpy()
    stable = float(((s / (s[0] or 1)) ** 2).sum())
    written = str(shape) if weight.ndim == 2 else f"{tuple(weight.shape)} as {shape}"
    return name, written, stable, *(choose_rank(s, energy=share) for share in SHARES), break_even_rank(*shape)

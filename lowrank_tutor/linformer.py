r"""Linformer: attention to k mixtures of a sequence's n tokens, as a function and as layers.

Wang et al. (2020), arXiv:2006.04768; chapter ``book/07-linformer.md``. Shapes: tokens ``x`` (batch, n, D); queries,
keys and values ``q``, ``k``, ``v`` (batch, heads, n, d); ``e`` and ``f`` (k, n), which compress keys and values along
the sequence. Row j of ``e``, $E_j$, makes one **mixture** of all tokens.

``token_mask`` (batch, n) is **True for a real token**; PyTorch's ``key_padding_mask`` means the opposite. Hidden tokens
change nothing for the others, whatever they hold. Their own rows of a layer's result are zeros, and a sequence that is
hidden altogether has mixtures of zeros. A short sequence gives the same results with padding appended.

Two **rules** govern a row of ``e`` where tokens are hidden, by a mask or beyond the end of a short sequence. Let
$\omega_j$ be its share on real tokens, $\sum_{\text{real}} |E_{ji}|^p / \sum_i |E_{ji}|^p$. What is left of the row is
divided by $\omega_j^{1/p}$, and $\ln \omega_j$ is added to its logits, which gives it $\omega_j$ votes. With two
matrices the smaller share counts. With $p = 1$, the **sum rule**, a row without negative entries keeps its sum, so that
averages return equal tokens unchanged. With $p = 2$, the **norm rule**, a row keeps its norm: the sum of random signs
is near zero by accident. A row follows the sum rule if none of its entries is negative. But the entries of a *learned*
``e`` cross zero during training, and the results would jump. So a layer that learns ``e`` chooses one rule for all rows
when it is made: the sum rule if ``e`` starts without negative entries, otherwise the norm rule.
"""

import copy
import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

from lowrank_tutor._checks import check_bool, check_choice, check_integer, check_real
from lowrank_tutor._tensors import (
    attend,
    check_attention_inputs,
    check_device,
    check_dtype,
    check_generator,
    check_heads,
    check_like,
    check_not_meta,
    check_own_methods,
    check_tensor,
    check_token_mask,
    is_exporting,
    read_padding,
    shape_of,
    without_autocast,
    zero_hidden,
)
from lowrank_tutor.attention import Cost
from lowrank_tutor.shards import add_up, announce_refusal, check_process_group, locate

__all__ = [
    "LinformerCrossAttention", "LinformerEncoderLayer", "LinformerSelfAttention", "linformer_attention",
    "linformer_cost", "pooling_projection",
]  # fmt: skip
__dir__ = __all__.copy  # completion offers no more than that

SHARINGS = ("key-value", "headwise")
RULES = ("sum", "norm")
# What to do instead, for callers who treat a layer like PyTorch's attention.
WAYS_OUT = {
    "key_padding_mask": "token_mask=~key_padding_mask says the same",
    "src_key_padding_mask": "token_mask=~src_key_padding_mask says the same",
    "attention_mask": "token_mask=attention_mask.bool() says the same of zeros and ones, (batch, n)",
    "mask": "token_mask, (batch, n), is True for a real token",
    "attn_mask": "there are no n by n weights, and LinformerEncoderLayer goes where PyTorch's encoder layer stood",
    "need_weights": "there are no n by n weights to return",
    "is_causal": "each compressed key mixes all tokens, the future too",
}


def linformer_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    e: Tensor,
    f: Tensor | None = None,
    *,
    token_mask: Tensor | None = None,
    rule: str | None = None,
) -> Tensor:
    r"""Attend to k mixtures of the tokens: $\mathrm{softmax}(Q (E K)^\top / \sqrt{d})\, (F V)$.

    The result is (batch, heads, n_queries, d_v). With k = n and E = F = I it is softmax attention. There is no causal
    form: each mixture holds all tokens, the future too.

    Parameters
    ----------
    q, k, v : Tensor, shapes (batch, heads, n_queries, d), (batch, heads, n_keys, d), (batch, heads, n_keys, d_v)
        Queries, keys and values.
    e : Tensor, shape (k, n_keys)
        Mixes the keys; k is at most n_keys.
    f : Tensor, shape (k, n_keys), optional
        Mixes the values; by default ``e``.
    token_mask : bool Tensor, shape (batch, n_keys), optional
    rule : {"sum", "norm"}, optional
        One rule for all rows. By default each row follows its entries; name a rule where they are learned.

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.randn(3, 1, 8, 4, 2)  # each (batch, heads, n, d) = (1, 8, 4, 2)
    >>> e = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    >>> linformer_attention(q, k, v, e).shape
    torch.Size([1, 8, 4, 2])
    """
    check_attention_inputs(q, k, v, token_mask)
    n_keys = k.shape[2]
    matrices = [check_like("e", e, ("k", n_keys), "q", q)]
    if f is not None and f is not e:
        matrices.append(check_like("f", f, (e.shape[0], n_keys), "q", q))
    if not 1 <= e.shape[0] <= n_keys:
        raise ValueError(f"e must have between 1 and n_keys = {n_keys} rows, got shape {shape_of(e)}")
    rule = None if rule is None else check_choice(rule, "rule", RULES)
    keys, values = matrices[0] @ zero_hidden(k, token_mask), matrices[-1] @ zero_hidden(v, token_mask)
    if token_mask is None:
        return _attend(q, keys, values)
    scales, log_shares = _padding_rule([_row_sums(matrix, token_mask, rule) for matrix in matrices])
    keys, values = _rescaled(keys, scales[0][:, None]), _rescaled(values, scales[-1][:, None])
    return _attend(q, keys, values, log_shares)


def _row_sums(matrix: Tensor, real: Tensor, rule: str | None, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    r"""Add up $|E_{ji}|^p$ of each row over real tokens, (batch, k), and over all, (k,); say where p is 1, (k,).

    The tokens of the mask (batch, n) have the columns from ``start`` on; all other columns are hidden.
    """
    with without_autocast(matrix.device):
        rows = matrix.to(torch.promote_types(matrix.dtype, torch.float32))
        given = torch.full(rows.shape[:1], rule == "sum", device=rows.device)
        by_sum = given if rule else (rows >= 0).all(dim=1)
        largest = rows.detach().abs().amax(dim=1, keepdim=True)  # shares do not change, and no power may vanish
        sizes = rows.abs() / torch.where(largest == 0, 1, largest)
        powers = sizes * torch.where(by_sum[:, None], 1, sizes)
        kept = real.to(rows.dtype) @ _columns(powers, start, real.shape[1]).T
    return kept, powers.sum(dim=1), by_sum


def _padding_rule(sums: list[tuple[Tensor, Tensor, Tensor]]) -> tuple[list[Tensor], Tensor]:
    r"""Return $\omega_j^{-1/p}$ for each matrix, (batch, k, 1), and $\ln \omega_j$ for the logits, (batch, 1, 1, k).

    A row without a share has the scale 0 and the logit -inf. Where no row has one, all logits are 0: the mixtures are
    zeros by then, and an average of zeros is zero, not NaN.
    """
    shares = []
    for kept, total, by_sum in sums:  # (batch, k), (k,), (k,)
        # A tiny share counts as 0, because the gradient holds the square of the scale: p = 1 needs the larger bound.
        tiny = torch.finfo(total.dtype).tiny
        least = torch.full_like(total, tiny).masked_fill(by_sum, math.sqrt(tiny))
        zero = total == 0  # no mask has emptied such a row: its share is 1
        share = torch.where(zero, 1, kept / torch.where(zero, 1, total))
        shares.append(torch.where(share < least, 0, share))
    share = shares[0] if len(shares) == 1 else torch.minimum(*shares)
    empty = share == 0  # root and logarithm have no gradient there
    scales = []
    for own, (_, _, by_sum) in zip(shares, sums, strict=True):
        kept = torch.where(empty, 1, own)
        # rsqrt would overflow in the gradient of a tiny share
        scales.append(torch.where(by_sum, kept, kept.sqrt()).reciprocal().masked_fill(empty, 0)[:, :, None])
    logs = torch.where(empty, 1, share).log().masked_fill(empty, -math.inf)
    return scales, logs.masked_fill(empty.all(dim=1, keepdim=True), 0)[:, None, None, :]


def _rescaled(mixed: Tensor, scale: Tensor) -> Tensor:
    """Multiply by a scale of at least 24 bits, and round once."""
    return (mixed * scale).to(mixed.dtype)


def _columns(matrix: Tensor, start: int, count: int) -> Tensor:
    """Return ``count`` columns from ``start`` on: a view, or a copy in an export."""
    if is_exporting():  # an export holds for all lengths, but whether a view is contiguous depends on its length
        return matrix.index_select(1, torch.arange(start, start + count, device=matrix.device))
    return matrix[:, start : start + count]


def _attend(q: Tensor, keys: Tensor, values: Tensor, log_shares: Tensor | None = None, dropout: float = 0.0) -> Tensor:
    r"""Attend to k keys: $\mathrm{softmax}(Q K^\top / \sqrt{d} + \ln \omega)\, V$."""
    return attend(q, keys, values, None if log_shares is None else log_shares.to(q.dtype), dropout=dropout)


def pooling_projection(k: int, max_len: int) -> Tensor:
    """Make the matrix (k, max_len) that averages windows of max_len / k tokens.

    A window that is partly hidden gives the mean of its real tokens, and its weight is their share (the sum rule).

    Parameters
    ----------
    k, max_len : int
        Numbers of windows and of tokens; k must divide ``max_len``.

    Examples
    --------
    >>> pooling_projection(k=2, max_len=4).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    *_, max_len, k = _check_sizes(1, 1, max_len, k)
    if max_len % k:
        raise ValueError(f"k must divide max_len = {max_len}, got {k}")
    window = max_len // k
    return torch.eye(k).repeat_interleave(window, dim=1) / window


def linformer_cost(
    n: int,
    dim: int,
    heads: int,
    k: int,
    *,
    sharing: str = "key-value",
    max_len: int | None = None,
    feedforward: int | None = None,
) -> Cost:
    r"""Count the operations, parameters and scores of a `LinformerSelfAttention` for one sequence.

    $4 n D^2 + 6 n k D + 4 k D^2$ operations with E = F, and $2 n k D$ more with two matrices; $4 D^2 + D$ parameters
    and $k$ times ``max_len`` more for each matrix. Where n is below ``max_len``, the rule for padding takes $2 n k$
    operations for each matrix.

    Parameters
    ----------
    n, dim, heads, k : int
        Tokens, the width D, heads (which divide D), and mixtures.
    sharing : {"key-value", "headwise"}
        One matrix E = F, or two.
    max_len : int, optional
        Longest sequence of the layer; by default ``n``.
    feedforward : int, optional
        Width of the second half of a `LinformerEncoderLayer`, to count it too: $4 n D$ times the width more operations.

    Examples
    --------
    >>> linformer_cost(n=1024, dim=512, heads=8, k=256)
    Cost(parameters=1311232, flops=2147483648, scores=2097152)
    >>> linformer_cost(n=1024, dim=512, heads=8, k=256, feedforward=2048).flops
    6442450944
    """
    max_len = check_integer(n, "n", 1) if max_len is None else check_integer(max_len, "max_len", 1)
    n, k = check_integer(n, "n", 1, max_len, "max_len"), check_integer(k, "k", 1, max_len, "max_len")
    dim = check_integer(dim, "dim", 1)
    heads = check_heads(heads, dim)
    matrices = 1 if check_choice(sharing, "sharing", SHARINGS) == "key-value" else 2
    flops = 4 * n * dim**2 + (4 + 2 * matrices) * n * k * dim + 4 * k * dim**2
    flops += 2 * matrices * n * k if n < max_len else 0
    cost = Cost(4 * dim**2 + dim + matrices * k * max_len, flops, heads * n * k)
    return cost.with_feedforward(n, dim, feedforward)


def _check_numbers(name: str, rows: int, columns: int) -> None:
    """Refuse a size that gives a matrix of more than 2**40 numbers, 4 terabytes in float32."""
    if rows * columns > 2**40:
        raise ValueError(f"{name} must give a matrix of at most 2**40 numbers, got {rows} times {columns}")


def _check_sizes(dim: object, heads: object, max_len: object, k: object) -> tuple[int, int, int, int]:
    """Return the sizes of a layer, whose matrices are (dim, dim) and (k, max_len)."""
    width, longest = check_integer(dim, "dim", 1), check_integer(max_len, "max_len", 1)
    sizes = width, check_heads(heads, width), longest, check_integer(k, "k", 1, longest, "max_len")
    _check_numbers("dim", width, width)
    _check_numbers("max_len", sizes[3], longest)
    return sizes


class _NoWeight:
    """Stand where PyTorch looks for a weight, and keep it off its fast path: this is no ordinary tensor."""

    __torch_function__ = None


class LinformerSelfAttention(nn.Module):
    r"""Multi-head self-attention that compresses the sequence to k tokens before it forms keys and values.

    E(XW) = (EX)W: the compressed tokens EX serve all heads, and only k rows meet the weights of keys and values.
    With biases, E(XW + 1b) = (EX)W + (E1)b: mixture j gets the bias times the sum of row j of E.

    Parameters
    ----------
    dim, heads : int
        Width D of the tokens, and number of heads, which must divide it.
    max_len, k : int
        Length of the longest sequence, and number of mixtures, between 1 and ``max_len``.
    sharing : {"key-value", "headwise"}
        ``"key-value"``: one matrix for keys and values, E = F. ``"headwise"``: one for each, shared by the heads.
    dropout : float
        Share of the weights dropped in training, at least 0 and below 1.
    projection : Tensor, shape (k, max_len), optional
        Used as E = F; best `pooling_projection`, because in chapter 6 random starts end far behind. A ``Parameter`` is
        learned, and several layers may share it (the paper's "layerwise"); any other tensor stays fixed.
    rule : {"sum", "norm"}, optional
        One rule for all rows, in place of the layer's own choice. Name it to load averages, fixed or learned, into a
        learned layer that started from something else.
    bias : bool
        Whether queries, keys and values have biases too, as in most pretrained models. They start at zero.
    process_group : torch.distributed.ProcessGroup, optional
        Splits the sequence over processes: each holds consecutive tokens, at least one, in the order of the processes.
        See `lowrank_tutor.shards`.
    generator : torch.Generator, optional
        Draws the initial weights; by default torch's global generator does.
    device, dtype : optional
        Device and floating-point type of the parameters.

    Attributes
    ----------
    e : Tensor, shape (k, max_len)
        Mixes the keys, and the values where ``f`` is None. Without a ``projection`` its entries start normal with
        variance 1 / max_len, so that the spread of the scores does not depend on the length.
    f : Tensor, shape (k, max_len), or None
        Mixes the values.
    to_q, to_k, to_v, to_out : Linear
        Make queries, keys, values and output, D to D; ``to_out`` always has a bias.
    rule : str or None
        The rule of all rows, or None if E is fixed and each row follows its entries. ``state_dict`` does not hold it.
    process_group : torch.distributed.ProcessGroup or None
        May be set and removed. A layer that has one can be neither pickled nor copied.

    Examples
    --------
    >>> import torch
    >>> layer = LinformerSelfAttention(dim=64, heads=4, max_len=512, k=32)
    >>> layer(torch.randn(2, 300, 64)).shape
    torch.Size([2, 300, 64])
    """

    e: Tensor
    # What nn.TransformerEncoder reads. Its fast path needs weights that are not there: the second line keeps off a new
    # encoder, and the third one whose layers were replaced.
    batch_first = True
    _qkv_same_embed_dim = False
    in_proj_weight, in_proj_bias = _NoWeight(), None
    _sequences: tuple[str, ...] = ("x",)  # the positional arguments of ``forward``
    _exchange: str = "ahead"  # progress with other processes: "ahead", "told" or "agreed"

    def __init__(
        self,
        dim: int,
        heads: int,
        max_len: int,
        k: int,
        *,
        sharing: str = "key-value",
        dropout: float = 0.0,
        projection: Tensor | None = None,
        rule: str | None = None,
        bias: bool = False,
        process_group: Any = None,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.max_len, self.k = dim, _, _, _ = _check_sizes(dim, heads, max_len, k)
        self.sharing = check_choice(sharing, "sharing", SHARINGS)
        self.dropout = check_real(dropout, "dropout", "at least 0 and below 1", 0.0, 1.0)
        bias = check_bool(bias, "bias")
        self._given_rule = None if rule is None else check_choice(rule, "rule", RULES)
        self.process_group = check_process_group(process_group)
        # Asked by name, PyTorch 2.4 does not tell of `with torch.device(...)`.
        place: dict[str, Any] = {"device": check_device(device) or torch.empty(0).device}
        place["dtype"] = check_dtype(dtype)
        make: Any = nn.utils.skip_init
        self.to_q, self.to_k, self.to_v = (make(nn.Linear, dim, dim, bias=bias, **place) for _ in range(3))
        self.to_out = make(nn.Linear, dim, dim, **place)
        if projection is None:
            self.e = nn.Parameter(torch.empty((self.k, self.max_len), **place))
        else:
            self._use_projection(projection)
        self.f = nn.Parameter(torch.empty((self.k, self.max_len), **place)) if sharing == "headwise" else None
        self._draw(generator, with_e=projection is None)
        self.rule = self._settle_rule(projection)

    def extra_repr(self) -> str:
        """Return the sizes and options for the layer's printed form."""
        sizes = f"dim={self.dim}, heads={self.heads}, max_len={self.max_len}, k={self.k}"
        bias = ", bias=True" if _bias_of(self.to_k) is not None else ""
        rule = ", rule='sum'" if self.rule == "sum" else ""
        return f"{sizes}, sharing={self.sharing!r}, dropout={self.dropout}{bias}{rule}"

    @property
    def out_proj(self) -> nn.Module:
        """The layer ``to_out``, by the name under which PyTorch reads it."""
        layer: nn.Module = self.to_out
        return layer

    @classmethod
    def from_mha(cls, mha: nn.MultiheadAttention, max_len: int, k: int, **options: Any) -> Self:
        """Copy the weights and settings of exact attention; with k = n and E = I the layer equals it.

        Only E is new and must be learned: start it from `pooling_projection`, as a ``Parameter``.

        Parameters
        ----------
        mha : torch.nn.MultiheadAttention
            Exact attention made with ``batch_first=True``, whose keys and values are as wide as its queries.
        max_len, k, **options
            As in the constructor. The options are ``projection``, ``sharing``, ``rule`` and ``generator``.

        Examples
        --------
        >>> import torch
        >>> exact = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> layer = LinformerSelfAttention.from_mha(exact, max_len=5, k=5, projection=torch.eye(5))
        >>> x = torch.randn(3, 5, 8)
        >>> bool((layer(x) - exact(x, x, x)[0]).abs().max() < 1e-5)
        True
        """
        if not isinstance(mha, nn.MultiheadAttention):
            raise TypeError(f"mha must be a torch.nn.MultiheadAttention, got {type(mha).__name__}")
        check_own_methods("mha", mha, nn.MultiheadAttention, "forward")
        if not mha.batch_first:
            way = "hand tokens over as (batch, n, dim), and set mha.batch_first = True"
            raise ValueError(f"mha must be batch first, got batch_first=False: {way}")
        if mha.in_proj_weight is None:
            widths = f"keys of width {mha.kdim} and values of width {mha.vdim}"
            raise ValueError(f"mha must have keys and values as wide as its queries, {mha.embed_dim}, got {widths}")
        if mha.bias_k is not None or mha.add_zero_attn:
            raise ValueError("mha must attend to the tokens alone, got add_bias_kv or add_zero_attn")
        out = mha.out_proj
        own: dict[str, Any] = {"device": out.weight.device, "dtype": out.weight.dtype, "dropout": mha.dropout}
        layer = cls(mha.embed_dim, mha.num_heads, max_len, k, bias=mha.in_proj_bias is not None, **own, **options)
        state = {"to_out.weight": out.weight.detach()}  # an adapter's own parameters have other names
        for kind, stacked in (("weight", mha.in_proj_weight), ("bias", mha.in_proj_bias)):
            for name, rows in zip("qkv", [] if stacked is None else stacked.detach().chunk(3), strict=False):
                state[f"to_{name}.{kind}"] = rows
        if out.bias is not None:
            state["to_out.bias"] = out.bias.detach()
        layer.load_state_dict(state, strict=False)
        return layer.train(mha.training)

    def resized(self, max_len: int) -> Self:
        """Return a copy for sequences of up to ``max_len`` tokens that gives the same results: E gets columns of zeros.

        The new columns have learned nothing: train with sequences that reach them. The copy shares no tensor with this
        layer, even if several layers share one E.
        """
        longest = check_integer(max_len, "max_len", 1)
        if longest < self.max_len:
            raise ValueError(f"max_len must be at least that of the layer, {self.max_len}, got {longest}")
        _check_numbers("max_len", self.k, longest)
        layer = copy.deepcopy(self, {id(self.process_group): self.process_group})  # a group cannot be copied
        for name, matrix in (("e", layer.e), ("f", layer.f)):
            if matrix is not None:
                grown = functional.pad(matrix.detach(), (0, longest - self.max_len))
                kept = nn.Parameter(grown, matrix.requires_grad) if isinstance(matrix, nn.Parameter) else grown
                setattr(layer, name, kept)
        layer.max_len = longest
        return layer

    def reset_parameters(self, *, projection: Tensor | None = None, generator: torch.Generator | None = None) -> None:
        """Draw all parameters again, in place, as the constructor does, for example after ``to_empty``.

        A learned E is drawn again, even if it was passed in, or set to ``projection``; its rule is chosen again unless
        the constructor was given one. A fixed E stays or is set to ``projection``, which ``to_empty`` makes necessary.
        """
        if projection is not None:
            check_tensor("projection", projection, (self.k, self.max_len))
            if not self.e.is_meta:
                check_not_meta("projection", projection)
        self._draw(generator, with_e=projection is None and isinstance(self.e, nn.Parameter))
        if projection is not None:
            with torch.no_grad():
                self.e.copy_(projection)
        self.rule = self._settle_rule(projection)

    def __call__(self, *tensors: Any, **options: Any) -> Any:
        """Call `forward` with all its hooks; refuse PyTorch's names for options, and name ours."""
        with self._telling():
            if len(tensors) > len(self._sequences):
                taken = " and ".join(self._sequences)
                raise TypeError(f"tensors must be {taken}, and masks go by name, got {len(tensors)} tensors")
            for name in options:
                if name in WAYS_OUT:
                    raise TypeError(f"options must be token_mask or causal, got {name}: {WAYS_OUT[name]}")
            return super().__call__(*tensors, **options)

    def forward(self, x: Tensor, *, token_mask: Tensor | None = None, causal: bool = False) -> Tensor:
        r"""Attend from every token to the k mixtures.

        Parameters
        ----------
        x : Tensor, shape (batch, n, dim)
            Tokens; n is at most ``max_len``. With a process group, those of this process; all have the same batch.
        token_mask : bool Tensor, shape (batch, n), optional
        causal : bool
            Must be False: each mixture holds all tokens, the future too.
        """
        with self._telling():
            self._check(x, token_mask, causal)
        x = zero_hidden(x, token_mask)
        out = self._read(x, *self._compress(x, token_mask))
        return out if token_mask is None else out.masked_fill(~token_mask[:, :, None], 0)

    def _compress(self, x: Tensor, token_mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
        """Make keys and values (batch, heads, k, d), and the rule's logits, of tokens whose hidden rows are zeros."""
        (batch, n, _), group = x.shape, self.process_group
        matrices = [self.e] if self.f is None else [self.e, self.f]
        biases = [_bias_of(part) for part in (self.to_k, self.to_v)]
        biased = any(bias is not None for bias in biases)
        start, length, masked = 0, n, token_mask is not None
        if group is not None:
            start, length, masked = locate(self, x, token_mask, biased)
        own = [_columns(matrix, start, n).expand(batch, -1, -1) for matrix in matrices]
        mixed = [torch.bmm(columns, x) for columns in own]  # EX, (batch, k, D)
        real = x.new_ones((batch, n), dtype=torch.bool) if token_mask is None else token_mask
        if biased:
            mixed += [torch.bmm(columns, real[:, :, None].to(x.dtype)) for columns in own]  # E1, (batch, k, 1)
        sums = []
        if masked or is_exporting() or length < self.max_len:  # an export holds for all lengths
            sums = [_row_sums(matrix, real, self.rule, start) for matrix in matrices]
        if group is not None:
            added = add_up(group, *mixed, *(kept for kept, _, _ in sums))
            sums = [(kept, total, by) for kept, (_, total, by) in zip(added[len(mixed) :], sums, strict=True)]
            mixed = list(added[: len(mixed)])
        log_shares = None
        if sums:
            scales, log_shares = _padding_rule(sums)
            mixed = [_rescaled(rows, scales[i % len(scales)]) for i, rows in enumerate(mixed)]
        heads = []
        for part, bias, i in zip((self.to_k, self.to_v), biases, (0, len(matrices) - 1), strict=True):
            rows = part(mixed[i])  # called as it is, so that hooks, adapters and quantized weights act
            if bias is not None:  # (EX)W + b becomes (EX)W + (E1)b
                rows = rows + ((mixed[i + len(matrices)] - 1) * bias).to(rows.dtype)
            heads.append(self._split(rows))
        return heads[0], heads[1], log_shares

    def _read(self, x: Tensor, keys: Tensor, values: Tensor, log_shares: Tensor | None) -> Tensor:
        """Attend from tokens (batch, n, D) to the mixtures, and mix the heads' results."""
        dropout = self.dropout if self.training else 0.0
        mixed = _attend(self._split(self.to_q(x)), keys, values, log_shares, dropout).transpose(1, 2)
        if is_exporting():  # the ONNX exporter writes attention out, and cannot view the transposed result as rows
            mixed = mixed.clone(memory_format=torch.contiguous_format)
        out: Tensor = self.to_out(mixed.flatten(2))
        return out

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def _telling(self) -> AbstractContextManager[None]:
        """Tell the other processes, if there are any, of an error in the block."""
        return nullcontext() if self.process_group is None else announce_refusal(self)

    def _check(self, x: Tensor, token_mask: Tensor | None, causal: bool, name: str = "x", flag: str = "causal") -> None:
        if check_bool(causal, flag):
            why = "every compressed key mixes all tokens, the future too, and no mask can take that out again"
            raise ValueError(f"{flag} must be False, got True: {why}; use exact attention")
        batch, n, _ = check_like(name, x, ("batch", "n", self.dim), "the layer", self.e).shape
        if not 1 <= n <= self.max_len:
            way = "cut it, or make the layer with a larger max_len"
            raise ValueError(f"{name} must hold between 1 and max_len = {self.max_len} tokens, got {n}; {way}")
        if token_mask is not None:
            check_token_mask(token_mask, self.e, (batch, n))

    def _draw(self, generator: torch.Generator | None, with_e: bool) -> None:
        """Draw weights within PyTorch's bounds and matrices of variance 1 / max_len, and set biases to zero."""
        generator = check_generator(generator)
        linears = (self.to_q, self.to_k, self.to_v, self.to_out)
        for linear in linears:
            if not isinstance(getattr(linear, "weight", None), nn.Parameter):  # drawing a computed one changes nothing
                raise TypeError(f"layers must hold their weight as a parameter, got {type(linear).__name__}")
        for linear in linears:
            nn.init.uniform_(linear.weight, -1 / math.sqrt(self.dim), 1 / math.sqrt(self.dim), generator=generator)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        for matrix in (self.e if with_e else None, self.f):
            if matrix is not None:
                nn.init.normal_(matrix, std=1 / math.sqrt(self.max_len), generator=generator)

    def _settle_rule(self, start: Tensor | None) -> str | None:
        """Return the given rule, or the one that a learned E calls for at its start; None for a fixed E."""
        if self._given_rule is not None or not isinstance(self.e, nn.Parameter):
            return self._given_rule
        if start is not None and start.is_meta:
            raise ValueError('rule must be "sum" or "norm" where a learned projection is on the meta device, got None')
        return "sum" if start is not None and bool((start >= 0).all()) else "norm"

    def _use_projection(self, projection: Tensor) -> None:
        if self.sharing != "key-value":
            raise ValueError(f'sharing must be "key-value" where a projection is given, got "{self.sharing}"')
        check_like("projection", projection, (self.k, self.max_len), "the layer", self.to_q.weight)
        if projection.requires_grad and not isinstance(projection, nn.Parameter):
            got = "one that was computed and has a gradient: the layer would not learn it"
            raise ValueError(f"projection must be a Parameter or a tensor without gradient, got {got}")
        if isinstance(projection, nn.Parameter):
            self.e = projection
        else:
            self.register_buffer("e", projection.detach().clone())


class LinformerCrossAttention(LinformerSelfAttention):
    r"""Multi-head attention of one sequence to k mixtures of another.

    All but ``forward`` is as in `LinformerSelfAttention`; ``from_mha`` takes the ``multihead_attn`` of a decoder layer.
    ``max_len`` bounds the sequence that is compressed; the one that attends may have any length.

    Examples
    --------
    >>> import torch
    >>> layer = LinformerCrossAttention(dim=64, heads=4, max_len=512, k=32)
    >>> translation, original = torch.randn(2, 20, 64), torch.randn(2, 300, 64)
    >>> layer(translation, original).shape
    torch.Size([2, 20, 64])
    """

    _sequences: tuple[str, ...] = ("x", "memory")

    def forward(  # type: ignore[override]
        self, x: Tensor, memory: Tensor, *, token_mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """Attend from every token of ``x`` (batch, n_queries, dim) to mixtures of ``memory`` (batch, n, dim).

        ``token_mask`` (batch, n) marks the real tokens of ``memory``, the sequence that a process group splits.
        """
        with self._telling():
            self._check(memory, token_mask, causal, "memory")
            check_like("x", x, ("batch", "n_queries", self.dim), "the layer", self.e)
            if len(x) != len(memory):
                shapes = f"{shape_of(x)} and {shape_of(memory)}"
                raise ValueError(f"x must have the batch size of memory, got shapes {shapes}")
        return self._read(x, *self._compress(zero_hidden(memory, token_mask), token_mask))


class LinformerEncoderLayer(nn.TransformerEncoderLayer):
    """PyTorch's encoder layer with `LinformerSelfAttention` as its first half, for use in ``nn.TransformerEncoder``.

    Parameters
    ----------
    dim, heads, max_len, k : int
        As in `LinformerSelfAttention`.
    feedforward, dropout : int, float
        Width of the second half, and the share dropped in training, in both halves.
    norm_first : bool
        Whether each half normalizes its input (the default, unlike PyTorch's) or its output.
    activation : str or callable
        ``"relu"``, ``"gelu"`` or a function, for the second half.
    device, dtype, **options
        As in `LinformerSelfAttention`. ``nn.TransformerEncoder`` copies its layer, and the copies share nothing.

    Examples
    --------
    >>> import torch
    >>> encoder = torch.nn.TransformerEncoder(
    ...     LinformerEncoderLayer(64, heads=4, max_len=512, k=32, feedforward=128), 2, enable_nested_tensor=False)
    >>> padding = torch.arange(300) >= torch.tensor([[300], [120]])
    >>> encoder(torch.randn(2, 300, 64), src_key_padding_mask=padding).shape
    torch.Size([2, 300, 64])
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        max_len: int,
        k: int,
        feedforward: int,
        dropout: float = 0.1,
        *,
        norm_first: bool = True,
        activation: Any = "relu",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        # Checked here because PyTorch's constructor, which has to draw first, would refuse bad sizes in its own words.
        dim, heads, max_len, k = _check_sizes(dim, heads, max_len, k)
        feedforward = check_integer(feedforward, "feedforward", 1)
        _check_numbers("feedforward", feedforward, dim)
        dropout = check_real(dropout, "dropout", "at least 0 and below 1", 0.0, 1.0)
        if isinstance(activation, str):
            check_choice(activation, "activation", ("relu", "gelu"))
        elif not callable(activation) or isinstance(activation, type):
            raise TypeError(f'activation must be "relu", "gelu" or a function, got {activation!r}')
        place: dict[str, Any] = {"device": check_device(device), "dtype": check_dtype(dtype)}
        order = check_bool(norm_first, "norm_first")
        super().__init__(dim, heads, feedforward, dropout, activation, batch_first=True, norm_first=order, **place)
        options |= {"dropout": dropout, **place}
        self.self_attn = LinformerSelfAttention(dim, heads, max_len, k, **options)  # type: ignore[assignment]

    @classmethod
    def from_layer(cls, layer: nn.TransformerEncoderLayer, max_len: int, k: int, **options: Any) -> Self:
        """Copy all weights and settings of PyTorch's encoder layer; with k = n and E = I the new one equals it.

        Parameters
        ----------
        layer : torch.nn.TransformerEncoderLayer
            An encoder layer made with ``batch_first=True``.
        max_len, k, **options
            As in `LinformerSelfAttention.from_mha`.

        Examples
        --------
        >>> import torch
        >>> exact = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        >>> encoder = torch.nn.TransformerEncoder(exact, num_layers=3)
        >>> for i, layer in enumerate(encoder.layers):
        ...     encoder.layers[i] = LinformerEncoderLayer.from_layer(layer, max_len=40, k=8)
        >>> encoder(torch.randn(2, 40, 16)).shape
        torch.Size([2, 40, 16])
        """
        exact = isinstance(getattr(layer, "self_attn", None), nn.MultiheadAttention)
        if not (exact and isinstance(layer, nn.TransformerEncoderLayer)):
            got = type(layer).__name__
            raise TypeError(f"layer must be a torch.nn.TransformerEncoderLayer with exact attention, got {got}")
        check_own_methods("layer", layer, nn.TransformerEncoderLayer, "forward", "_sa_block", "_ff_block")
        if not layer.self_attn.batch_first:
            way = "hand tokens over as (batch, n, dim), and set layer.self_attn.batch_first = True"
            raise ValueError(f"layer must be batch first, got batch_first=False: {way}")
        attention = LinformerSelfAttention.from_mha(layer.self_attn, max_len, k, **options)
        sizes = (attention.dim, attention.heads, 1, 1, 1)
        with torch.device("meta"):  # every part is replaced
            taken = cls(*sizes, norm_first=layer.norm_first, activation=layer.activation)
        for name, part in layer.named_children():
            setattr(taken, name, attention if name == "self_attn" else copy.deepcopy(part))
        return taken.train(layer.training)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Apply attention, then the feed-forward network, each with its norm and residual connection.

        Parameters
        ----------
        src : Tensor, shape (batch, n, dim)
            Tokens; n is at most ``max_len``.
        src_mask, is_causal
            Must be None and False: there are no n by n weights to mask.
        src_key_padding_mask : Tensor, shape (batch, n), optional
            PyTorch's mask of **padding**: True marks it, or -inf in a floating-point mask that is 0 elsewhere. Other
            numbers are refused on a CPU; on a GPU and in a compiled program they turn their sequences into NaN.
        """
        attention: Any = self.self_attn
        with attention._telling():
            if src_mask is not None:
                raise ValueError(f"src_mask must be None, got {type(src_mask).__name__}: there are no n by n weights")
            attention._check(src, None, is_causal, "src", "is_causal")
            real, unclear = read_padding("src_key_padding_mask", src_key_padding_mask, "src", src)
        src = zero_hidden(src, real)  # a NaN in padding would reach the gradients of norms and feed-forward network

        def attended(x: Tensor) -> Tensor:
            with attention._telling():  # a hook of the norm may fail
                x = self.norm1(x) if self.norm_first else x
            mixed: Tensor = self.dropout1(attention(x, token_mask=real))
            return mixed

        if self.norm_first:
            src = src + attended(src)
            out: Tensor = src + self._ff_block(self.norm2(src))
        else:
            src = self.norm1(src + attended(src))
            out = self.norm2(src + self._ff_block(src))
        return out if unclear is None else out.masked_fill(unclear, math.nan)


def _bias_of(linear: nn.Module) -> Any:
    bias = getattr(linear, "bias", None)
    return bias() if callable(bias) else bias  # quantized layers have a method

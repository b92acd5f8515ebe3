r"""Linformer: attention to k mixtures of a sequence's n tokens, as a function and as layers.

Wang et al. (2020), arXiv:2006.04768; chapter ``book/07-linformer.md``. Shapes: tokens ``x`` (batch,
n, D); queries, keys and values ``q``, ``k``, ``v`` (batch, heads, n, d); ``e`` and ``f`` (k, n),
which compress keys and values along the sequence. Row j of ``e``, $E_j$, makes one **mixture** of
all tokens.

``token_mask`` (batch, n) is **True for a real token**; PyTorch's ``key_padding_mask`` means the
opposite. Hidden tokens change nothing for the others, whatever they hold. Their own rows of a
layer's result are zeros, and a sequence that is hidden altogether has mixtures of zeros. A short
sequence gives the same results with padding appended.

Where tokens are hidden, by a mask or beyond the end of a short sequence, the **sum rule** or the
**norm rule** scales what is left of a row of ``e``. If a share $\omega$ of its absolute entries
(norm rule: of their squares) lies on real tokens, the row is divided by $\omega$ (by
$\sqrt\omega$), and $\ln \omega$ is added to its logits. A row without negative entries, such as an
average, follows the first, any other the second. The entries of a learned ``e`` cross zero, so a
layer that learns it has one rule for all rows: the sum rule if ``e`` starts without negative
entries.
"""

import math
from typing import Any

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import Tensor, nn

from lowrank_tutor._checks import check_bool, check_choice, check_fraction, check_integer
from lowrank_tutor._padding import columns_of, padding_rule, rescaled, row_sums
from lowrank_tutor._tensors import (
    attend,
    bias_of,
    check_attention_inputs,
    check_device,
    check_dtype,
    check_generator,
    check_like,
    check_sizes,
    check_tokens,
    is_exporting,
    zero_hidden,
)
from lowrank_tutor.attention import Cost

__all__ = ["LinformerSelfAttention", "linformer_attention", "linformer_cost", "pooling_projection"]

SHARINGS = ("key-value", "headwise")
RULES = ("sum", "norm")


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

    The result is (batch, heads, n_queries, d_v). There is no causal form: each mixture holds the
    future, too.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n_queries, d)
        Queries.
    k, v : Tensor, shapes (batch, heads, n_keys, d) and (batch, heads, n_keys, d_v)
        Keys and values.
    e : Tensor, shape (k, n_keys)
        Mixes the keys; k is at most n_keys.
    f : Tensor, shape (k, n_keys), optional
        Mixes the values; by default ``e``.
    token_mask : bool Tensor, shape (batch, n_keys), optional
    rule : {"sum", "norm"}, optional
        One rule for all rows. By default each row follows its entries; name a rule where they are
        learned.

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
    if not 1 <= len(e) <= n_keys:
        raise ValueError(f"e must have between 1 and n_keys = {n_keys} rows, got {len(e)}")
    if rule is not None:
        check_choice(rule, "rule", RULES)
    keys = matrices[0] @ zero_hidden(k, token_mask)
    values = matrices[-1] @ zero_hidden(v, token_mask)
    if token_mask is None:
        return _attend(q, keys, values)
    scales, log_shares = padding_rule([row_sums(matrix, token_mask, rule) for matrix in matrices])
    keys, values = rescaled(keys, scales[0][:, None]), rescaled(values, scales[-1][:, None])
    return _attend(q, keys, values, log_shares)


def _attend(
    q: Tensor, keys: Tensor, values: Tensor, log_shares: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    r"""Attend to k keys: $\mathrm{softmax}(Q K^\top / \sqrt{d} + \ln \omega)\, V$."""
    logits = None if log_shares is None else log_shares.to(q.dtype)
    return attend(q, keys, values, logits, dropout=dropout)


def pooling_projection(k: int, max_len: int) -> Tensor:
    """Make the matrix (k, max_len) that averages windows of max_len / k tokens.

    A window that is partly hidden gives the mean of its real tokens, and its weight is their share
    (the sum rule). The number of windows k must divide ``max_len``.

    >>> pooling_projection(k=2, max_len=4).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    """
    max_len = check_integer(max_len, "max_len")
    k = check_integer(k, "k", 1, max_len, "max_len")
    if max_len % k:
        raise ValueError(f"k must divide max_len = {max_len}, got {k}")
    window = max_len // k
    return torch.eye(k).repeat_interleave(window, dim=1) / window


def linformer_cost(
    n: int, *, dim: int, heads: int, k: int, sharing: str = "key-value", max_len: int | None = None,
    feedforward: int | None = None,
) -> Cost:  # fmt: skip
    r"""Count the operations, parameters and scores of a `LinformerSelfAttention` for one sequence.

    $4 n D^2 + 6 n k D + 4 k D^2$ operations with E = F, and $2 n k D$ more with two matrices; $4
    D^2 + D$ parameters and $k$ times ``max_len`` more for each matrix. Where n is below
    ``max_len``, the rule for padding takes $2 n k$ operations for each matrix.

    Parameters
    ----------
    n, dim, heads, k : int
        Tokens, the width D, heads (which divide D), and mixtures.
    sharing : {"key-value", "headwise"}
        One matrix E = F, or two.
    max_len : int, optional
        Longest sequence of the layer; by default ``n``.
    feedforward : int, optional
        Width of the second half of a `LinformerEncoderLayer`, to count it too: $4 n D$ times the
        width more operations.

    Examples
    --------
    >>> linformer_cost(n=1024, dim=512, heads=8, k=256)
    Cost(parameters=1311232, flops=2147483648, scores=2097152)
    >>> linformer_cost(n=1024, dim=512, heads=8, k=256, feedforward=2048).flops
    6442450944
    """
    longest = check_integer(n, "n") if max_len is None else max_len
    dim, heads, longest, k = check_sizes(dim, heads, longest, k)
    n = check_integer(n, "n", 1, longest, "max_len")
    matrices = 1 if check_choice(sharing, "sharing", SHARINGS) == "key-value" else 2
    flops = 4 * n * dim**2 + (4 + 2 * matrices) * n * k * dim + 4 * k * dim**2
    flops += 2 * matrices * n * k if n < longest else 0
    cost = Cost(4 * dim**2 + dim + matrices * k * longest, flops, heads * n * k)
    return cost.with_feedforward(n, dim, feedforward)


class _NoWeight:
    """Stand where PyTorch looks for a weight, to keep it off its fast path.

    This is no ordinary tensor.
    """

    __torch_function__ = None


class LinformerSelfAttention(nn.Module):
    r"""Multi-head self-attention that compresses the sequence to k tokens first.

    Keys and values are formed from these. E(XW) = (EX)W: the compressed tokens EX serve all heads,
    and only k rows meet the weights of keys and values.

    Parameters
    ----------
    dim, heads : int
        Width D of the tokens, and number of heads, which must divide it.
    max_len, k : int
        Length of the longest sequence, and number of mixtures, between 1 and ``max_len``.
    sharing : {"key-value", "headwise"}
        ``"key-value"``: one matrix for keys and values, E = F. ``"headwise"``: one for each, shared
        by the heads.
    dropout : float
        Share of the weights dropped in training, at least 0 and below 1.
    projection : Tensor, shape (k, max_len), optional
        Used as E = F; best `pooling_projection`. A ``Parameter`` is learned, and several layers may
        share it (the paper's "layerwise"); any other tensor stays fixed.
    rule : {"sum", "norm"}, optional
        One rule for all rows, in place of the layer's own choice, such as for averages that are
        loaded later.
    bias : bool
        Whether queries, keys and values have biases too, as in most pretrained models. They start
        at zero.
    generator : torch.Generator, optional
        Draws the initial weights; by default torch's global generator does.
    device, dtype : optional
        Device and floating-point type of the parameters.

    Attributes
    ----------
    e : Tensor, shape (k, max_len)
        Mixes the keys, and the values where ``f`` is None. Without a ``projection`` its entries
        start normal with variance 1 / max_len, so that the spread of the scores does not depend on
        the length.
    f : Tensor, shape (k, max_len), or None
        Mixes the values.
    to_q, to_k, to_v, to_out : Linear
        Make queries, keys, values and output, D to D; ``to_out`` always has a bias.
    rule : str or None
        The rule of all rows, or None if E is fixed and each row follows its entries. ``state_dict``
        holds it and the number of heads: loading sets the rule, and refuses another number.

    Examples
    --------
    >>> import torch
    >>> layer = LinformerSelfAttention(dim=64, heads=4, max_len=512, k=32)
    >>> layer(torch.randn(2, 300, 64)).shape
    torch.Size([2, 300, 64])
    """

    e: Tensor
    # What nn.TransformerEncoder reads. Its fast path needs weights that are not there: the second
    # line keeps off a new encoder, and the third one whose layers were replaced.
    batch_first = True
    _qkv_same_embed_dim = False
    in_proj_weight, in_proj_bias = _NoWeight(), None

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
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.max_len, self.k = check_sizes(dim, heads, max_len, k)
        self.sharing = check_choice(sharing, "sharing", SHARINGS)
        self.dropout = check_fraction(dropout, "dropout", 0)
        bias = check_bool(bias, "bias")
        if rule is not None:
            check_choice(rule, "rule", RULES)
        # Asked by name, PyTorch 2.4 does not tell of `with torch.device(...)`.
        place: dict[str, Any] = {"device": check_device(device) or torch.empty(0).device}
        place["dtype"] = check_dtype(dtype)
        make: Any = nn.utils.skip_init
        self.to_q, self.to_k, self.to_v = (
            make(nn.Linear, self.dim, self.dim, bias=bias, **place) for _ in range(3)
        )
        self.to_out = make(nn.Linear, self.dim, self.dim, **place)
        if projection is None:
            self.e = nn.Parameter(torch.empty((self.k, self.max_len), **place))
        else:
            self._use_projection(projection)
        self.f = (
            nn.Parameter(torch.empty((self.k, self.max_len), **place))
            if sharing == "headwise"
            else None
        )
        self._draw(generator, self.e if projection is None else None, self.f)
        if rule is None and isinstance(self.e, nn.Parameter):  # one rule for all that is learned
            averages = projection is not None and bool((projection >= 0).all())
            rule = "sum" if averages else "norm"
        self.rule = rule

    def extra_repr(self) -> str:
        """Return the sizes and options for the layer's printed form."""
        sizes = f"dim={self.dim}, heads={self.heads}, max_len={self.max_len}, k={self.k}"
        return f"{sizes}, sharing={self.sharing!r}, dropout={self.dropout}, rule={self.rule!r}"

    @property
    def out_proj(self) -> nn.Module:
        """The layer ``to_out``, by the name under which PyTorch reads it."""
        layer: nn.Module = self.to_out
        return layer

    def forward(
        self, x: Tensor, *, token_mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        r"""Attend from every token to the k mixtures.

        Parameters
        ----------
        x : Tensor, shape (batch, n, dim)
            Tokens; n is at most ``max_len``.
        token_mask : bool Tensor, shape (batch, n), optional
        causal : bool
            Must be False: each mixture holds all tokens, the future too.
        """
        check_tokens(self, x, token_mask, causal)
        x = zero_hidden(x, token_mask)
        out = self._attend(x, *self._compress(x, token_mask))
        return out if token_mask is None else out.masked_fill(~token_mask[:, :, None], 0)

    def get_extra_state(self) -> Tensor:
        """Return heads and rule for the state dict, which no shape of a tensor tells."""
        return torch.tensor(
            [self.heads, (None, *RULES).index(self.rule)], dtype=torch.float64, device="cpu"
        )

    def set_extra_state(self, state: Tensor) -> None:
        """Set the rule from a state dict, and refuse another number of heads."""
        heads, rule = map(int, state)
        if heads != self.heads:
            raise ValueError(f"heads must be {heads}, as in the saved layer, got {self.heads}")
        self.rule = (None, *RULES)[rule]

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Load as any module does, also without heads and rule."""
        state_dict.setdefault(f"{prefix}_extra_state", self.get_extra_state())
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _compress(
        self, x: Tensor, token_mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Make keys and values (batch, heads, k, d), and the padding's logits.

        Hidden rows of the tokens are zeros.
        """
        batch, n, _ = x.shape
        matrices = [self.e] if self.f is None else [self.e, self.f]
        columns = [columns_of(matrix, n).expand(batch, -1, -1) for matrix in matrices]
        mixed = [torch.bmm(part, x) for part in columns]  # EX, (batch, k, D)
        real = x.new_ones((batch, n), dtype=torch.bool) if token_mask is None else token_mask
        if bias_of(self.to_k) is not None or bias_of(self.to_v) is not None:
            ones = real[:, :, None].to(x.dtype)
            mixed += [torch.bmm(part, ones) for part in columns]  # E1, (batch, k, 1)
        log_shares = None
        # An export holds for all lengths, so it must not ask for this one.
        if token_mask is not None or is_exporting() or n < self.max_len:
            sums = [row_sums(matrix, real, self.rule) for matrix in matrices]
            scales, log_shares = padding_rule(sums)
            mixed = [rescaled(rows, scales[i % len(matrices)]) for i, rows in enumerate(mixed)]
        heads = []
        for linear, i in ((self.to_k, 0), (self.to_v, len(matrices) - 1)):
            rows = linear(mixed[i])  # as it is, so that hooks, adapters, quantized weights act
            bias = bias_of(linear)
            if bias is not None:  # (EX)W + b becomes (EX)W + (E1)b
                rows = rows + ((mixed[i + len(matrices)] - 1) * bias).to(rows.dtype)
            heads.append(self._split(rows))
        return heads[0], heads[1], log_shares

    def _attend(self, x: Tensor, keys: Tensor, values: Tensor, log_shares: Tensor | None) -> Tensor:
        """Attend from tokens (batch, n, D) to the mixtures, and mix the heads' results."""
        dropout = self.dropout if self.training else 0.0
        mixed = _attend(self._split(self.to_q(x)), keys, values, log_shares, dropout)
        heads = mixed.transpose(1, 2)
        # The ONNX exporter writes attention out, and cannot view the transposed result as rows.
        if is_exporting():
            heads = heads.clone(memory_format=torch.contiguous_format)
        out: Tensor = self.to_out(heads.flatten(2))
        return out

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.heads, x.shape[2] // self.heads).transpose(1, 2)

    def _draw(self, generator: torch.Generator | None, *matrices: Tensor | None) -> None:
        """Draw weights within PyTorch's bounds, E of variance 1 / max_len, and zero biases."""
        generator = check_generator(generator)
        bound = 1 / math.sqrt(self.dim)
        for linear in (self.to_q, self.to_k, self.to_v, self.to_out):
            nn.init.uniform_(linear.weight, -bound, bound, generator=generator)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        for matrix in matrices:
            if matrix is not None:
                nn.init.normal_(matrix, std=1 / math.sqrt(self.max_len), generator=generator)

    def _use_projection(self, projection: Tensor) -> None:
        if self.sharing != "key-value":
            raise ValueError(
                f'sharing must be "key-value" where a projection is given, got {self.sharing!r}'
            )
        check_like("projection", projection, (self.k, self.max_len), "the layer", self.to_q.weight)
        if projection.requires_grad and not isinstance(projection, nn.Parameter):
            raise ValueError(
                "projection must be a Parameter, or a tensor without gradient, "
                "got one that was computed"
            )
        if isinstance(projection, nn.Parameter):
            self.e = projection
        else:
            self.register_buffer("e", projection.detach().clone())

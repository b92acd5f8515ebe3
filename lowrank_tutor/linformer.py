r"""Can a sequence of n tokens be read as k? Keys and values along the sequence, compressed before any query meets them.

Chapter ``book/07-linformer.md``. Letters: ``x`` (batch, n, D) are tokens, ``q``, ``k``, ``v`` queries, keys and values
(batch, heads, n, d); ``e`` and ``f`` (k, n) compress the keys and the values along the sequence, and $e_j$ is row j
of ``e``. Where a mask or a short sequence hides tokens, let $s_j$ be the share of $\|e_j\|^2$ that lies on real
tokens. What is left of row j is divided by $\sqrt{s_j}$, which gives it its norm back, and its weight is multiplied by
$s_j$: a row that meets no real token takes no part (the **norm rule** of the chapter). With two matrices the smaller
share counts.
"""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional

from lowrank_tutor._checks import check_choice, check_integer, check_real
from lowrank_tutor._sequence_parallel import Shard, add_up, check_process_group, locate, tell_if_refused
from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_dtype,
    check_heads,
    check_kin,
    check_tensor,
    check_token_mask,
    hide,
    is_autocast,
    shape_of,
)
from lowrank_tutor.attention import Cost

if TYPE_CHECKING:  # a build of PyTorch may lack it
    from torch.distributed import ProcessGroup

SHARINGS = ("key-value", "headwise")
# At most so many rows of the result are made at once where no gradient is asked for. A GPU needs more to be busy.
BLOCK_ROWS = {"cpu": 2048}
OTHER_BLOCK_ROWS = 16384


def linformer_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    e: torch.Tensor,
    f: torch.Tensor | None = None,
    *,
    token_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""Let each query look at k mixtures of the tokens: $\mathrm{softmax}(Q (E K)^\top / \sqrt{d})\, (F V)$.

    With k = n and E = F = I it is softmax attention. There is no causal form: each mixture holds all tokens, the
    future too.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n_queries, d)
        Queries.
    k : Tensor, shape (batch, heads, n_keys, d)
        Keys.
    v : Tensor, shape (batch, heads, n_keys, d_v)
        Values.
    e : Tensor, shape (k, n_keys)
        What each of the k mixtures takes of the keys; k is at most n_keys.
    f : Tensor, shape (k, n_keys), optional
        What it takes of the values; by default ``e``.
    token_mask : bool Tensor, shape (batch, n_keys), optional
        **True marks a real token.** PyTorch's ``key_padding_mask`` means the opposite. Where it is False neither key
        nor value counts, whatever they hold, and the norm rule holds for the others; a sequence that it hides
        altogether gives zeros.

    Returns
    -------
    Tensor, shape (batch, heads, n_queries, d_v)

    Raises
    ------
    TypeError
        If an argument is no tensor, or the types do not match.
    ValueError
        If the shapes or devices do not match, or ``e`` has more rows than columns.

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.randn(3, 1, 8, 4, 2)  # each (batch, heads, n, d) = (1, 8, 4, 2)
    >>> e = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    >>> linformer_attention(q, k, v, e).shape
    torch.Size([1, 8, 4, 2])

    References
    ----------
    Wang et al. (2020), arXiv:2006.04768, equation 7.
    """
    check_attention_inputs(q, k, v)
    f = e if f is None else f
    n_keys = k.shape[2]
    check_tensor("e", e, ("k", n_keys))
    check_tensor("f", f, (e.shape[0], n_keys))
    if not 1 <= e.shape[0] <= n_keys:
        raise ValueError(f"e must have between 1 and n_keys = {n_keys} rows, got shape {shape_of(e)}")
    for name, projection in (("e", e), ("f", f)):
        check_kin(name, projection, "q", q)
    votes = None
    if token_mask is None:
        k, v = _project(e, k), _project(f, v)  # (batch, heads, k, d) and (batch, heads, k, d_v)
    else:
        check_token_mask(token_mask, k, (k.shape[0], n_keys))
        width = k.shape[1] * k.shape[3]
        k, v = _project(e, hide(k, token_mask)), _project(f, hide(v, token_mask))
        scales, votes = _norm_rule([_squares(matrix, token_mask, width) for matrix in ((e,) if f is e else (e, f))])
        k, v = (_rescale(x, scale[:, None, :, None]) for x, scale in ((k, scales[0]), (v, scales[-1])))
        votes = votes.to(q.dtype)
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=votes)


class LinformerSelfAttention(nn.Module):
    r"""Multi-head self-attention that compresses the sequence to k tokens before it forms keys and values.

    E(XW) = (EX)W: the compressed tokens EX serve all heads, and only k rows go through the weights of keys and values.
    These have no bias, which the identity needs.

    Parameters
    ----------
    dim : int
        Width D of the tokens.
    heads : int
        Number of heads; it must divide ``dim``.
    max_len : int
        Longest sequence, n. Shorter ones follow the norm rule: what they give does not change when padding is appended.
    k : int
        Length of the compressed sequence, between 1 and ``max_len``.
    sharing : {"key-value", "headwise"}
        ``"key-value"``: one matrix for keys and values, E = F. ``"headwise"``: one for each, shared by the heads.
    dropout : float
        Share of the weights that are dropped in training, at least 0 and below 1.
    projection : Tensor, shape (k, max_len), optional
        E = F from elsewhere. A ``Parameter`` is learned, and may be shared by several layers (the paper's
        "layerwise"); any other tensor is kept as it is, such as `pooling_projection`.
    process_group : torch.distributed.ProcessGroup, optional
        Processes over which the sequence is split: each holds consecutive tokens, at least one, in the order of the
        processes. See the notes.
    generator : torch.Generator, optional
        Draws the start. Without it the global generator of torch draws.
    device : torch.device or str, optional
        Where the parameters are kept.
    dtype : torch.dtype, optional
        Their floating-point type.

    Attributes
    ----------
    e : Tensor, shape (k, max_len)
        Compresses the keys, and the values where ``f`` is None. It starts normal with variance 1 / max_len, so that the
        spread of the scores does not depend on the length.
    f : Tensor, shape (k, max_len), or None
        Compresses the values.
    to_q, to_k, to_v, to_out : Linear
        The weights of queries, keys, values and output, each D to D; only the last has a bias.
    process_group : torch.distributed.ProcessGroup or None
        It may be set and taken away; ``state_dict`` does not hold it. A layer that has one can be neither pickled nor
        copied with ``copy.deepcopy``.

    Raises
    ------
    TypeError
        If a size is not an integer, ``dtype`` not a floating-point type, or ``process_group`` no group.
    ValueError
        If a size is outside its bounds, ``heads`` does not divide ``dim``, or ``projection`` does not fit.

    Notes
    -----
    With a process group every process makes the same layer (from one ``state_dict``, or one seed), hands its own tokens
    and their mask to ``forward``, and gets their rows of the result. It compresses its tokens with its own columns of
    ``e``, and one all-reduce of $b k m D$ numbers joins the k rows of b sequences: m is 1 with E = F and 2 with two
    matrices, and n does not enter. The norm rule adds $b k m$ numbers to it. Before it each process tells the others
    four integers, its length among them, for which a GPU has to wait. ``backward`` takes one more all-reduce of the
    size of the first, so each process must call it.

    The loss is the sum of the losses of the processes. The gradient of the tokens is complete; that of the parameters
    is the part of this process. Add the parts up once a step, by an all-reduce of each ``grad``: k times ``max_len``
    numbers for each matrix, and $4 D^2 + D$ for the weights. ``DistributedDataParallel`` does that, and divides by the
    number of processes.

    Input that one process refuses is refused by all. If a process does not arrive, the others raise a ``RuntimeError``
    after the timeout of the group. Make the layer after ``init_process_group``: before it,
    ``torch.distributed.group.WORLD`` is None, and each process would work alone.

    Examples
    --------
    >>> import torch
    >>> layer = LinformerSelfAttention(dim=64, heads=4, max_len=512, k=32)
    >>> layer(torch.randn(2, 300, 64)).shape
    torch.Size([2, 300, 64])
    >>> real = torch.arange(300) < torch.tensor([[300], [120]])  # (2, 300): the second sequence has 120 tokens
    >>> layer(torch.randn(2, 300, 64), token_mask=real)[1, 120:].abs().sum().item()
    0.0

    References
    ----------
    Wang et al. (2020), arXiv:2006.04768, section 4.
    """

    e: torch.Tensor
    f: torch.Tensor | None
    to_q: nn.Linear
    to_k: nn.Linear
    to_v: nn.Linear
    to_out: nn.Linear
    process_group: "ProcessGroup | None"

    def __init__(
        self,
        dim: int,
        heads: int,
        max_len: int,
        k: int,
        *,
        sharing: str = "key-value",
        dropout: float = 0.0,
        projection: torch.Tensor | None = None,
        process_group: "ProcessGroup | None" = None,
        generator: torch.Generator | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.dim = dim = check_integer(dim, "dim", 1)
        self.heads = check_heads(heads, self.dim)
        self.max_len = check_integer(max_len, "max_len", 1)
        self.k = check_integer(k, "k", 1, self.max_len, "max_len")
        self.sharing = check_choice(sharing, "sharing", SHARINGS)
        self.dropout = check_real(dropout, "dropout", "at least 0 and below 1", 0.0, 1.0)
        self.process_group = check_process_group(process_group)
        place = {"device": torch.get_default_device() if device is None else device, "dtype": check_dtype(dtype)}
        for name in ("to_q", "to_k", "to_v", "to_out"):
            bias = name == "to_out"
            linear = nn.utils.skip_init(nn.Linear, dim, dim, bias=bias, **place)  # type: ignore[no-untyped-call]
            nn.init.uniform_(linear.weight, -1 / math.sqrt(dim), 1 / math.sqrt(dim), generator=generator)
            setattr(self, name, linear)
        nn.init.zeros_(self.to_out.bias)
        if projection is not None:
            self._take(projection)
        else:
            self.e = self._draw(generator, place)
        self.f = self._draw(generator, place) if sharing == "headwise" else None

    def extra_repr(self) -> str:
        """Name the sizes, for the layer's printed form.

        Returns
        -------
        str
        """
        sizes = f"dim={self.dim}, heads={self.heads}, max_len={self.max_len}, k={self.k}"
        return f"{sizes}, sharing={self.sharing!r}, dropout={self.dropout}"

    def forward(self, x: torch.Tensor, *, token_mask: torch.Tensor | None = None, causal: bool = False) -> torch.Tensor:
        r"""Let every token look at the k compressed tokens.

        Parameters
        ----------
        x : Tensor, shape (batch, n, dim)
            Tokens; n is at most ``max_len``. With a process group, those of this process; all have the same batch.
        token_mask : bool Tensor, shape (batch, n), optional
            **True marks a real token.** PyTorch's ``key_padding_mask`` means the opposite. Hidden tokens change
            nothing for the others, whatever they hold, and their own rows of the result are zeros.
        causal : bool
            Refused where true: each compressed token mixes all tokens, the future too.

        Returns
        -------
        Tensor, shape (batch, n, dim)

        Raises
        ------
        TypeError
            If an argument is no tensor, or of another type than the parameters (unless under autocast).
        ValueError
            If the shapes or devices do not match, the sequence is longer than ``max_len``, or ``causal`` is true.
        RuntimeError
            If a process of the group does not arrive before the timeout.
        """
        shard = None
        if self.process_group is None:
            self._check(x, token_mask, causal)
        else:
            with tell_if_refused(self.process_group, self.to_q.weight.device):
                self._check(x, token_mask, causal)
            shard = locate(self.process_group, x, token_mask, self.max_len)
        keys, values, votes = self._compress(x, token_mask, shard)
        attend = self._attend_frugally if self._may_overwrite(x) else self._attend
        return attend(x, keys, values, votes, token_mask)

    def _may_overwrite(self, x: torch.Tensor) -> bool:
        """Whether memory may be used twice: nothing looks on, and the linear layers are what they were made as."""
        watched = torch.is_grad_enabled() or torch.compiler.is_compiling() or is_autocast(x.device)
        return not watched and all(map(_is_plain, (self.to_q, self.to_out)))

    def _check(self, x: torch.Tensor, token_mask: torch.Tensor | None, causal: bool) -> None:
        if causal:
            raise ValueError(
                "causal must be False, got True: every compressed key mixes all tokens, the future too, and no mask can"
                " take that out again; use exact attention"
            )
        check_tensor("x", x, ("batch", "n", self.dim))
        check_kin("x", x, "the layer", self.to_q.weight)
        batch, n = x.shape[:2]
        if not 1 <= n <= self.max_len:
            raise ValueError(
                f"x must hold between 1 and max_len = {self.max_len} tokens, got {n}; cut it, or make the layer with a"
                " larger max_len"
            )
        if token_mask is not None:
            check_token_mask(token_mask, x, (batch, n))

    def _compress(
        self, x: torch.Tensor, token_mask: torch.Tensor | None, shard: Shard | None = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return keys and values (batch, heads, k, d), and what is added to their scores, (batch, 1, 1, k), or None."""
        n = x.shape[1]
        start, total, masked = (0, n, token_mask is not None) if shard is None else shard
        matrices = [self.e] if self.f is None else [self.e, self.f]
        mixed = _mix([matrix[:, start : start + n] for matrix in matrices], hide(x, token_mask))  # (batch, k, D) each
        whole: tuple[torch.Tensor, ...] = ()
        seen: tuple[torch.Tensor, ...] = ()
        if masked or total < self.max_len:
            if token_mask is None:
                token_mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
            whole, seen = zip(*(_squares(matrix, token_mask, self.dim, start) for matrix in matrices), strict=True)
        if self.process_group is not None:
            joined = add_up(self.process_group, *mixed, *seen)
            mixed, seen = list(joined[: len(matrices)]), joined[len(matrices) :]
        xe, xf = mixed[0], mixed[-1]
        del mixed  # what the norm rule replaces need not be kept
        votes = None
        if seen:
            scales, votes = _norm_rule(list(zip(whole, seen, strict=True)))
            xe = _rescale(xe, scales[0][:, :, None])
            xf = xe if self.f is None else _rescale(xf, scales[1][:, :, None])
        keys, values = self._split(self.to_k(xe)), self._split(self.to_v(xf))
        return keys, values, None if votes is None else votes.to(keys.dtype)

    def _attend(
        self,
        x: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        votes: torch.Tensor | None,
        token_mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """Let some tokens (batch, rows, D) look at the compressed ones."""
        q = self._split(self.to_q(hide(x, token_mask)))
        dropout = self.dropout if self.training else 0.0
        mixed = functional.scaled_dot_product_attention(q, keys, values, attn_mask=votes, dropout_p=dropout)
        return hide(self.to_out(mixed.transpose(1, 2).flatten(2)), token_mask)

    def _attend_frugally(
        self,
        x: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        votes: torch.Tensor | None,
        token_mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """Do the same where no gradient is asked for: queries are made where the result will be, and then overwritten.

        So the memory beyond input and result is one block of rows.
        """
        batch, n, dim = x.shape
        result = x.new_empty(x.shape)
        torch.mm(x.reshape(-1, dim), self.to_q.weight.T, out=result.view(-1, dim))
        bias, w_out = self.to_out.bias, self.to_out.weight.T
        dropout = self.dropout if self.training else 0.0
        most = BLOCK_ROWS.get(x.device.type, OTHER_BLOCK_ROWS)
        most = min(max(math.ceil(batch * n / 2), most // 2), most)
        rows = math.ceil(n / math.ceil(n / most))  # blocks of one size: a short last one would be slow
        for b in _slices(batch, max(1, most // n)):
            k, v, added = keys[b], values[b], None if votes is None else votes[b]
            for i in _slices(n, rows):
                block = result[b, i]
                mixed = functional.scaled_dot_product_attention(
                    self._split(block), k, v, attn_mask=added, dropout_p=dropout
                )
                mixed = mixed.transpose(1, 2).reshape(-1, dim)
                torch.addmm(bias, mixed, w_out, out=block.view(-1, dim))
                del mixed  # before the next block is made
        return result if token_mask is None else result.masked_fill_(~token_mask.unsqueeze(2), 0)

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        """Cut the width into heads: (batch, n, D) to (batch, heads, n, d)."""
        return x.reshape(*x.shape[:2], self.heads, self.dim // self.heads).transpose(1, 2)

    def _draw(self, generator: torch.Generator | None, place: dict[str, Any]) -> nn.Parameter:
        start = torch.empty((self.k, self.max_len), **place)
        return nn.Parameter(start.normal_(std=1 / math.sqrt(self.max_len), generator=generator))

    def _take(self, projection: torch.Tensor) -> None:
        if self.sharing != "key-value":
            raise ValueError(f'sharing must be "key-value" where a projection is given, got "{self.sharing}"')
        check_tensor("projection", projection, (self.k, self.max_len))
        check_kin("projection", projection, "the layer", self.to_q.weight)
        if projection.requires_grad and not isinstance(projection, nn.Parameter):
            raise ValueError(
                "projection must be a Parameter or a tensor without gradient, got one that was computed and has a"
                " gradient: the layer would not learn it"
            )
        if isinstance(projection, nn.Parameter):
            self.e = projection
        else:
            self.register_buffer("e", projection.detach().clone())


def pooling_projection(k: int, max_len: int) -> torch.Tensor:
    r"""Make the matrix that averages windows of max_len / k tokens, a compression with nothing to learn.

    A window that a mask hides altogether takes no part. In one of which it hides a part, the norm rule gives the mean
    of the real tokens times the square root of their share s, and the window's weight is multiplied by s: a half-filled
    window counts half, with 0.71 of its mean.

    Parameters
    ----------
    k : int
        Number of windows; it must divide ``max_len``.
    max_len : int
        Number of tokens.

    Returns
    -------
    Tensor, shape (k, max_len)

    Raises
    ------
    TypeError
        If an argument is no integer.
    ValueError
        If ``k`` is outside 1 .. ``max_len``, or does not divide ``max_len``.

    Examples
    --------
    >>> pooling_projection(k=2, max_len=4).tolist()
    [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]

    References
    ----------
    Wang et al. (2020), arXiv:2006.04768, section 4, "general projections".
    """
    max_len = check_integer(max_len, "max_len", 1)
    k = check_integer(k, "k", 1, max_len, "max_len")
    if max_len % k:
        raise ValueError(f"k must divide max_len = {max_len}, got {k}")
    window = max_len // k
    return torch.eye(k).repeat_interleave(window, dim=1) / window


def linformer_cost(
    n: int, dim: int, heads: int, k: int, *, sharing: str = "key-value", max_len: int | None = None
) -> Cost:
    r"""Count what a `LinformerSelfAttention` takes for one sequence.

    $4 n D^2 + 6 n k D + 4 k D^2$ operations with E = F, and $2 n k D$ more with two matrices; $4 D^2 + D$ parameters
    and $k$ times ``max_len`` more for each matrix. Where n is below ``max_len``, the norm rule takes $2 n k$ operations
    for each matrix.

    Parameters
    ----------
    n : int
        Tokens, at most ``max_len``.
    dim : int
        Width D of the model.
    heads : int
        Number of heads, which must divide ``dim``.
    k : int
        Length of the compressed sequence, between 1 and ``max_len``.
    sharing : {"key-value", "headwise"}
        One matrix E = F, or two.
    max_len : int, optional
        Longest sequence of the layer; by default ``n``.

    Returns
    -------
    Cost

    Raises
    ------
    TypeError
        If a size is no integer.
    ValueError
        If a size is outside its bounds, or ``heads`` does not divide ``dim``.

    Examples
    --------
    >>> linformer_cost(n=1024, dim=512, heads=8, k=256)
    Cost(parameters=1311232, flops=2147483648, scores=2097152)
    """
    max_len = check_integer(n, "n", 1) if max_len is None else check_integer(max_len, "max_len", 1)
    n = check_integer(n, "n", 1, max_len, "max_len")
    dim, k = check_integer(dim, "dim", 1), check_integer(k, "k", 1, max_len, "max_len")
    heads = check_heads(heads, dim)
    matrices = 1 if check_choice(sharing, "sharing", SHARINGS) == "key-value" else 2
    flops = 4 * n * dim**2 + (4 + 2 * matrices) * n * k * dim + 4 * k * dim**2
    flops += 2 * matrices * n * k if n < max_len else 0
    return Cost(4 * dim**2 + dim + matrices * k * max_len, flops, heads * n * k)


def _squares(
    projection: torch.Tensor, token_mask: torch.Tensor, width: int, start: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the squared norm of each row, (k,), and what of it the real tokens of each sequence see, (batch, k).

    ``projection`` (k, max_len) may be longer than the mask (batch, n), whose tokens have the columns from ``start`` on:
    what lies beyond is hidden. Some rows at a time are squared: where k is above ``width``, the numbers in a token, all
    squares at once would take more memory than the tokens.
    """
    n = token_mask.shape[1]
    parts = []
    # Squares need more than the 8 bits that autocast would give them.
    with torch.autocast(projection.device.type, enabled=False) if is_autocast(projection.device) else nullcontext():
        for rows in torch.split(projection, max(16, width // 4)):
            squares = rows.to(torch.promote_types(rows.dtype, torch.float32)).square()  # (rows, max_len)
            seen = token_mask.to(squares.dtype) @ squares[:, start : start + n].T
            parts.append((squares.sum(dim=1), seen))
    return torch.cat([part for part, _ in parts]), torch.cat([part for _, part in parts], dim=1)


def _norm_rule(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return what the rows of each matrix are multiplied by, (batch, k), and what is added to their scores.

    ``rows`` holds the squared norms that `_squares` gave for each matrix. The second, (batch, 1, 1, k), multiplies the
    weight of a row by its share, the smallest of all matrices. Where no row has a share nothing is added: the rows are
    zeros by then, and an average of zeros is zero, not NaN.
    """
    shares = [_share(whole, seen) for whole, seen in rows]
    share = shares[0] if len(shares) == 1 else torch.minimum(*shares)
    empty = share == 0  # root and logarithm have no gradient there
    scales = [torch.where(empty, 1, each).sqrt().reciprocal().masked_fill(empty, 0) for each in shares]
    votes = torch.where(empty, 1, share).log().masked_fill(empty, -math.inf)
    return scales, votes.masked_fill(empty.all(dim=1, keepdim=True), 0)[:, None, None, :]


def _share(whole: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
    """Return which share of the squared norm of each row (k,) the real tokens of each sequence see, (batch, k).

    A row of zeros is no row that the mask has emptied: its share is 1. What is too small to be divided by is zero.
    """
    tiny = torch.finfo(seen.dtype).tiny
    zero = whole < tiny
    share = torch.where(zero, 1, seen / torch.where(zero, 1, whole))
    return torch.where(share < tiny, 0, share)


def _rescale(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Multiply with numbers of 24 bits or more, and round once."""
    return (x * scale).to(x.dtype)


def _project(projection: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Multiply (k, n) with (batch, heads, n, width). With what can be learned ``@`` copies ``x``, for the gradient."""
    asked = torch.is_grad_enabled() or forward_ad.unpack_dual(projection).tangent is not None  # type: ignore[no-untyped-call]
    return (projection if asked else projection.detach()) @ x


def _mix(projections: list[torch.Tensor], x: torch.Tensor) -> list[torch.Tensor]:
    """Multiply each (k, n) with each of (batch, n, width). On a batch ``@`` would copy ``x`` first; this does not."""
    return [torch.bmm(projection.expand(x.shape[0], -1, -1), x) for projection in projections]


def _is_plain(linear: nn.Module) -> bool:
    """Whether its weight and bias are all there is to it: no subclass, adapter, parametrization or hook."""
    hooked = linear._forward_hooks or linear._forward_pre_hooks or "forward" in vars(linear)
    return type(linear) is nn.Linear and not hooked


def _slices(total: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, total, step))

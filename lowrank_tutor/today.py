r"""What must a model keep, and what must it learn anew? A latent in place of keys, an update of low rank, a short past.

Chapters ``book/08-caches.md`` and, for `window_attention`, ``book/09-states.md``. Letters: a token ``x``
(batch, n, dim) leaves a **latent** $c = W_{DKV}^\top x$ of ``d_c`` numbers, from which each head makes its key and its
value, $W_{UK}^\top c$ and $W_{UV}^\top c$, of ``d_h`` numbers each. ``r`` is the rank of an update $s B A$ of a weight
$W$ (m, n). In `window_attention` ``m`` old tokens are one.
"""

import math
from typing import Any, NamedTuple

from lowrank_tutor._on_demand import needed

with needed(__name__):
    import torch
    from torch import nn
    from torch.nn import functional

from lowrank_tutor._checks import check_choice, check_integer, check_real
from lowrank_tutor._tensors import (
    check_attention_inputs,
    check_generator,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    shape_of,
    zero_hidden,
)
from lowrank_tutor.bilinear import factorize

BLOCK = 128  # queries of which `window_attention` writes the weights out at a time
SCALINGS = ("alpha/r", "alpha/sqrt(r)")
INITS = ("zero", "principal")


class LatentCost(NamedTuple):
    """What one new token takes, in one layer, to attend to ``n`` tokens whose latents are stored.

    Attributes
    ----------
    multiplications : int
        Those that involve the stored latents or turn the query and the output, softmax left out.
    read : int
        Numbers that are read from the cache.
    """

    multiplications: int
    read: int


class Latent(NamedTuple):
    """One narrow projection in place of the keys' and values' weights.

    Attributes
    ----------
    down : Tensor, shape (dim, k)
        Makes the latent of a token, `latent_attention`'s ``w_dkv``.
    up_k : Tensor, shape (heads, k, d_h)
        Makes the keys of the latent, ``w_uk``.
    up_v : Tensor, shape (heads, k, d_v)
        Makes the values, ``w_uv``.
    """

    down: torch.Tensor
    up_k: torch.Tensor
    up_v: torch.Tensor


def kv_cache_numbers(
    layers: int,
    *,
    heads: int | None = None,
    groups: int | None = None,
    width: int | None = None,
    latent: int | None = None,
    rotary: int = 0,
) -> int:
    """Count the numbers that a model stores for each token that it has read.

    Multi-head attention keeps a key and a value for each head, 2 heads · width; grouped-query attention for each group
    of heads that share them, 2 groups · width; latent attention keeps latent + rotary. All of that in every layer.

    Parameters
    ----------
    layers : int
        Layers that attend, at least 1.
    heads : int, optional
        Heads, each with keys and values of its own. Give one of ``heads``, ``groups`` and ``latent``.
    groups : int, optional
        Groups of heads that share keys and values; configurations call it ``num_key_value_heads``.
    width : int, optional
        Width of a key, which is that of a value; needed with ``heads`` and ``groups``.
    latent : int, optional
        Width of the latent.
    rotary : int, optional
        Width of the one rotated key that all heads share beside the latent.

    Returns
    -------
    int
        Numbers a token. In 16 bits they take twice as many bytes.

    Examples
    --------
    >>> kv_cache_numbers(32, heads=32, width=128), kv_cache_numbers(61, latent=512, rotary=64)
    (262144, 35136)

    References
    ----------
    DeepSeek-AI (2024), arXiv:2405.04434, Table 1.
    """
    layers = check_integer(layers, "layers", 1)
    kinds = {"heads": heads, "groups": groups, "latent": latent}
    given = [name for name, number in kinds.items() if number is not None]
    if len(given) != 1:
        raise ValueError(f"heads, groups or latent must be given, one of the three, got {', '.join(given) or 'none'}")
    kept = check_integer(kinds[given[0]], given[0], 1)
    rotary = check_integer(rotary, "rotary", 0)
    if given == ["latent"]:
        if width is not None:
            raise ValueError(f"width must be None with a latent, which stands for keys and values, got {width}")
        return layers * (kept + rotary)
    if rotary:
        raise ValueError(f"rotary must be 0 without a latent: the keys themselves are rotated, got {rotary}")
    return layers * 2 * kept * check_integer(width, "width", 1)


def latent_attention(
    x: torch.Tensor,
    w_dkv: torch.Tensor,
    w_uk: torch.Tensor,
    w_uv: torch.Tensor,
    w_q: torch.Tensor,
    *,
    q_rope: torch.Tensor | None = None,
    k_rope: torch.Tensor | None = None,
    token_mask: torch.Tensor | None = None,
    causal: bool = True,
    absorb: bool = True,
) -> torch.Tensor:
    r"""Attend to tokens of which only a latent is kept, $c = W_{DKV}^\top x$; keys and values are made of it.

    Keys are $W_{UK}^\top c$ and values $W_{UV}^\top c$. Since $q^\top (W_{UK}^\top c) = (W_{UK} q)^\top c$ and
    $\sum_j p_j W_{UV}^\top c_j = W_{UV}^\top \sum_j p_j c_j$, queries can be brought to the latents, and keys and
    values are never made. Both orders give the same result. The logits are divided by $\sqrt{d_h + d_R}$, with the
    width $d_R$ of what is rotated.

    Parameters
    ----------
    x : Tensor, shape (batch, n, dim)
        Tokens.
    w_dkv : Tensor, shape (dim, d_c)
        Makes the latents.
    w_uk : Tensor, shape (heads, d_c, d_h)
        Makes the keys of each head of the latents.
    w_uv : Tensor, shape (heads, d_c, d_v)
        Makes the values.
    w_q : Tensor, shape (heads, dim, d_h)
        Makes the queries of the tokens.
    q_rope : Tensor, shape (batch, heads, n, d_rope), optional
        Rotated parts of the queries; with ``k_rope`` or not at all.
    k_rope : Tensor, shape (batch, n, d_rope), optional
        The rotated part of the key, one for all heads, which is kept beside the latent.
    token_mask : bool Tensor, shape (batch, n), optional
        **True marks a real token**; PyTorch's ``key_padding_mask`` means the opposite. Hidden tokens do not count,
        whatever they hold, and their own output is zero.
    causal : bool
        Whether a token sees only itself and those before it.
    absorb : bool
        Whether queries are brought to the latents, or keys and values made of them.

    Returns
    -------
    Tensor, shape (batch, heads, n, d_v)

    Examples
    --------
    >>> import torch
    >>> x, w_dkv = torch.randn(1, 5, 12), torch.randn(12, 3)
    >>> w_uk, w_uv, w_q = torch.randn(2, 3, 4), torch.randn(2, 3, 4), torch.randn(2, 12, 4)
    >>> short, long = (latent_attention(x, w_dkv, w_uk, w_uv, w_q, absorb=order) for order in (True, False))
    >>> short.shape, torch.allclose(short, long, atol=1e-4)
    (torch.Size([1, 2, 5, 4]), True)

    References
    ----------
    DeepSeek-AI (2024), arXiv:2405.04434, section 2.1.
    """
    _check_latent(x, w_dkv, w_uk, w_uv, w_q, q_rope, k_rope, token_mask)
    causal, absorb = _check_bool("causal", causal), _check_bool("absorb", absorb)
    x = zero_hidden(x, token_mask)

    latents = (x @ w_dkv)[:, None]  # (batch, 1, n, d_c)
    q = x[:, None] @ w_q  # (batch, heads, n, d_h)
    scale = (q.shape[3] + (0 if q_rope is None else q_rope.shape[3])) ** -0.5
    if absorb:
        q, keys, values = q @ w_uk.mT, latents, latents  # (batch, heads, n, d_c), and one latent for all heads
    else:
        keys, values = latents @ w_uk, latents @ w_uv  # (batch, heads, n, d_h), (batch, heads, n, d_v)
    if q_rope is not None and k_rope is not None:
        shared = zero_hidden(k_rope, token_mask)[:, None].expand(-1, keys.shape[1], -1, -1)
        q, keys = torch.cat([q, q_rope.to(q.dtype)], dim=3), torch.cat([keys, shared.to(keys.dtype)], dim=3)
    keys, values = (part.expand(-1, q.shape[1], -1, -1) for part in (keys, values))
    mixed = _attend(q, keys, values, scale, token_mask, causal=causal)
    return mixed @ w_uv if absorb else mixed


def latent_cost(n: int, heads: int, d_h: int, d_c: int, d_rope: int, *, absorb: bool) -> LatentCost:
    r"""Count what one new token takes to attend to ``n`` stored latents, in one layer.

    With the query brought to the latents: $n h (2 d_c + d_R)$ multiplications, and $2 h d_h d_c$ to bring it there and
    the output back. With keys and values made anew: $2 n h d_c d_h$ to make them, and $n h (2 d_h + d_R)$.

    Parameters
    ----------
    n : int
        Tokens stored, at least 1.
    heads, d_h : int
        Heads, and the width of their keys and values.
    d_c, d_rope : int
        Width of the latent, and of the rotated key that is stored beside it; the latter may be 0.
    absorb : bool
        Whether queries are brought to the latents.

    Returns
    -------
    LatentCost

    Examples
    --------
    >>> latent_cost(1000, 128, 128, 512, 64, absorb=True)
    LatentCost(multiplications=156041216, read=576000)
    >>> latent_cost(1000, 128, 128, 512, 64, absorb=False)
    LatentCost(multiplications=16818176000, read=576000)
    """
    n, heads = check_integer(n, "n", 1), check_integer(heads, "heads", 1)
    d_h, d_c = check_integer(d_h, "d_h", 1), check_integer(d_c, "d_c", 1)
    d_rope = check_integer(d_rope, "d_rope", 0)
    if _check_bool("absorb", absorb):
        work = n * heads * (2 * d_c + d_rope) + 2 * heads * d_h * d_c
    else:
        work = 2 * n * heads * d_c * d_h + n * heads * (2 * d_h + d_rope)
    return LatentCost(work, n * (d_c + d_rope))


def latent_from_heads(w_k: torch.Tensor, w_v: torch.Tensor, k: int, *, moment: torch.Tensor | None = None) -> Latent:
    r"""Turn the keys' and values' weights of all heads into one latent of ``k`` numbers.

    The weights side by side, $[W_K\; W_V]$, are cut to rank ``k`` in one go, so that what keys and values have in
    common is stored once. With the second moment $E\,x x^\top$ of the tokens the cut is best for the keys and values of
    such tokens, and not for the weights: a change of variables, as in ``bilinear.factorize``, which does it.

    Parameters
    ----------
    w_k : Tensor, shape (heads, dim, d_h)
        Makes the keys of each head. Heads that share them are given once.
    w_v : Tensor, shape (heads, dim, d_v)
        Makes the values.
    k : int
        Width of the latent, at most dim and heads · (d_h + d_v).
    moment : Tensor, shape (dim, dim), optional
        $E\,x x^\top$, for tokens (n, dim) ``x.T @ x / n``; not centered. Best in float64: directions that
        rounding could have made are left out. Without it the identity.

    Returns
    -------
    Latent

    Examples
    --------
    >>> import torch
    >>> w_k, w_v = torch.randn(2, 4, 16, 8)  # 4 heads of width 8
    >>> down, up_k, up_v = latent_from_heads(w_k, w_v, k=16)
    >>> down.shape, up_k.shape, torch.allclose(down @ up_v, w_v, atol=1e-4)
    (torch.Size([16, 16]), torch.Size([4, 16, 8]), True)

    References
    ----------
    Meng et al. (2025), arXiv:2502.07864, for the joint cut; Wang et al. (2024), arXiv:2403.07378, for the moment.
    """
    check_tensor("w_k", w_k, ("heads", "dim", "d_h"))
    heads, dim, d_h = w_k.shape
    check_tensor("w_v", w_v, (heads, dim, "d_v"))
    check_same_device_and_dtype("w_v", w_v, "w_k", w_k)
    d_v = w_v.shape[2]
    k = check_integer(k, "k", 1, min(dim, heads * (d_h + d_v)), "min(dim, heads * (d_h + d_v))")
    if moment is not None:
        check_tensor("moment", moment, (dim, dim))
        precision = torch.promote_types(moment.dtype, torch.float32)  # kept: it says how much rounding to allow for
        moment = moment.detach().to("cpu", precision)

    joint = torch.cat([part.transpose(0, 1).flatten(1) for part in (w_k, w_v)], dim=1)  # (dim, heads (d_h + d_v))
    table = joint.detach().double().cpu().numpy()
    u, v = factorize(table, k, s_moment=None if moment is None else moment.numpy())
    down, up = (torch.from_numpy(part).to(w_k) for part in (u.T.copy(), v))
    up_k, up_v = torch.split(up, [heads * d_h, heads * d_v], dim=1)
    return Latent(down, *(part.reshape(k, heads, -1).transpose(0, 1).contiguous() for part in (up_k, up_v)))


class LoraLinear(nn.Module):
    r"""A linear layer whose weight stays as it is, and an update of rank ``r`` that learns beside it.

    $y = W x + s\, B (A x)$. Merged into $W + s B A$, the update costs nothing at inference. What lies in the null space
    of $A$, of dimension at least $n - r$, is mapped as before.

    The weight that came in is never overwritten: with ``init="principal"`` the update is $s (B A - B_0 A_0)$, and the
    start $s B_0 A_0$, the first ``r`` layers of the singular value decomposition, is kept beside it.

    Parameters
    ----------
    linear : nn.Linear
        The layer. Its weight and bias stop learning, until `reset_base`.
    r : int
        Rank of the update, between 1 and the smaller side of the weight.
    alpha : float, optional
        Strength of the update, above 0; by default ``r``.
    scaling : {"alpha/r", "alpha/sqrt(r)"}
        The factor s: LoRA's own, or that of rsLoRA.
    init : {"zero", "principal"}
        LoRA's start, B = 0 and entries of A uniform between $\pm 1/\sqrt{n}$; or PiSSA's.
    magnitude : bool
        DoRA: each row of the weight is divided by its length, and that length is learned apart. Gradients pass through
        the division.
    generator : torch.Generator, optional
        Draws A. Without it the global generator of torch draws.

    Attributes
    ----------
    a : Parameter, shape (r, n)
        What the update looks at.
    b : Parameter, shape (m, r)
        What it adds.
    g : Parameter, shape (m,), or None
        Lengths of the rows, with ``magnitude``.

    Examples
    --------
    >>> import torch
    >>> linear = torch.nn.Linear(64, 48)
    >>> layer = LoraLinear(linear, r=4)
    >>> x = torch.randn(2, 64)
    >>> torch.equal(layer(x), linear(x)), sum(p.numel() for p in layer.parameters() if p.requires_grad)
    (True, 448)

    References
    ----------
    Hu et al. (2021), arXiv:2106.09685; Kalajdzievski (2023), arXiv:2312.03732, the root; Meng, Wang and Zhang (2024),
    arXiv:2404.02948, PiSSA; Liu et al. (2024), arXiv:2402.09353, DoRA.
    """

    a: nn.Parameter
    b: nn.Parameter
    g: nn.Parameter | None
    a_start: torch.Tensor | None
    b_start: torch.Tensor | None

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
        if not isinstance(linear, nn.Linear):
            raise TypeError(f"linear must be a torch.nn.Linear, got {type(linear).__name__}")
        m, n = linear.weight.shape
        self.r = check_integer(r, "r", 1, min(m, n), "min(m, n)")
        self.alpha = check_real(self.r if alpha is None else alpha, "alpha", "finite and above 0", math.ulp(0.0))
        self.scaling = check_choice(scaling, "scaling", SCALINGS)
        self.init = check_choice(init, "init", INITS)
        magnitude = _check_bool("magnitude", magnitude)
        generator = check_generator(generator)

        self.factor = self.alpha / (self.r if scaling == "alpha/r" else math.sqrt(self.r))
        self._learned = {name: part.requires_grad for name, part in linear.named_parameters()}
        self.linear = linear.requires_grad_(False)
        place: dict[str, Any] = {"device": linear.weight.device, "dtype": linear.weight.dtype}
        self.register_buffer("a_start", None)
        self.register_buffer("b_start", None)
        if init == "zero":
            bound = 1 / math.sqrt(n)
            self.a = nn.Parameter(torch.empty(self.r, n, **place).uniform_(-bound, bound, generator=generator))
            self.b = nn.Parameter(torch.zeros(m, self.r, **place))
        else:
            b, a = _principal(linear.weight, self.r, self.factor)
            self.a, self.b = nn.Parameter(a), nn.Parameter(b)
            self.a_start, self.b_start = a.clone(), b.clone()
        self.g = nn.Parameter(_row_lengths(linear.weight.detach())) if magnitude else None

    def extra_repr(self) -> str:
        """Name the settings, for the layer's printed form.

        Returns
        -------
        str
        """
        kind = "" if self.g is None else ", magnitude=True"
        return f"r={self.r}, alpha={self.alpha:g}, scaling={self.scaling!r}, init={self.init!r}{kind}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map vectors.

        Parameters
        ----------
        x : Tensor, shape (..., n)
            Inputs, as for the linear layer.

        Returns
        -------
        Tensor, shape (..., m)
        """
        weight, bias = self.linear.weight, self.linear.bias
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"x must be a tensor, got {type(x).__name__}")
        if x.ndim == 0 or x.shape[-1] != weight.shape[1]:
            raise ValueError(f"x must have shape (..., {weight.shape[1]}), got shape {shape_of(x)}")
        check_same_device_and_dtype("x", x, "the layer", weight)
        if self.g is not None:
            return functional.linear(x, self._weight(), bias)
        update = functional.linear(functional.linear(x, self.a), self.b)
        if self.a_start is not None and self.b_start is not None:
            update = update - functional.linear(functional.linear(x, self.a_start), self.b_start)
        return functional.linear(x, weight, bias) + self.factor * update

    def update(self) -> torch.Tensor:
        """Return what training has added to the weight so far.

        Returns
        -------
        Tensor, shape (m, n)
            $s B A$; with ``init="principal"`` $s (B A - B_0 A_0)$; with ``magnitude`` the difference of the weights.
        """
        return self._product() if self.g is None else self._weight() - self.linear.weight

    def merged(self) -> nn.Linear:
        """Return a plain linear layer that maps as this one does.

        In a narrow type the sum is rounded: what is too small beside an entry of the weight is lost.

        Returns
        -------
        nn.Linear
            A new one; the layer and its weight stay as they are.
        """
        weight, bias = self.linear.weight, self.linear.bias
        plain: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]  # draws nothing
            nn.Linear, weight.shape[1], weight.shape[0], bias=bias is not None, device=weight.device, dtype=weight.dtype
        )
        with torch.no_grad():
            plain.weight.copy_(self._weight())
            if bias is not None:
                plain.bias.copy_(bias)
        return plain

    def reset_base(self) -> nn.Linear:
        """Take the update off: return the layer that came in, with its own weight, learning if it learned before.

        Returns
        -------
        nn.Linear
        """
        for name, part in self.linear.named_parameters():
            part.requires_grad_(self._learned[name])
        return self.linear

    def _product(self) -> torch.Tensor:
        product = self.b @ self.a
        if self.a_start is not None and self.b_start is not None:
            product = product - self.b_start @ self.a_start
        return self.factor * product

    def _weight(self) -> torch.Tensor:
        """Return the weight (m, n) that inputs meet."""
        sum_of_both = self.linear.weight + self._product()
        if self.g is None:
            return sum_of_both
        lengths = _row_lengths(sum_of_both)
        return (self.g / torch.where(lengths == 0, 1, lengths))[:, None] * sum_of_both


def window_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    window: int,
    m: int,
    votes: bool = True,
    gates: torch.Tensor | None = None,
    token_mask: torch.Tensor | None = None,
) -> torch.Tensor:
    r"""Attend to the last tokens exactly, and to older ones as means of ``m`` at a time; never to later ones.

    Tokens are cut into groups of ``m``. The last ``window`` tokens, the query's own among them, are seen as they are,
    and so are up to ``m - 1`` before them, whose group is not over yet. Of each earlier group a query sees the mean key
    and the mean value. With ``votes``, $\ln m$ is added to the logit of a group, so that it weighs as much as ``m``
    tokens with that key. With m = 1 it is exact causal attention. This is Linformer with averages, made causal.

    Parameters
    ----------
    q : Tensor, shape (batch, heads, n, d)
        Queries.
    k : Tensor, shape (batch, heads, n, d)
        Keys.
    v : Tensor, shape (batch, heads, n, d_v)
        Values.
    window : int
        Number of last tokens that are always exact, at least 1.
    m : int
        Tokens in a group, at least 1.
    votes : bool
        Whether a group votes with $\ln$ of the number of its real tokens, or like one token.
    gates : Tensor, shape (batch, heads, n, 1) or (batch, heads, n, d), optional
        Logits of the tokens within their group: its mean is weighted by their softmax, for each of the d numbers apart
        if there are as many (values must then have d numbers, too). Without them all tokens count alike.
    token_mask : bool Tensor, shape (batch, n), optional
        **True marks a real token**; PyTorch's ``key_padding_mask`` means the opposite. Hidden keys and values do not
        count, whatever they hold. A query that sees no real token gives zero.

    Returns
    -------
    Tensor, shape (batch, heads, n, d_v)

    Examples
    --------
    >>> import torch
    >>> q, k, v = torch.randn(3, 1, 2, 64, 8, dtype=torch.float64)
    >>> exact = window_attention(q, k, v, window=16, m=1)
    >>> torch.allclose(exact, torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    True

    References
    ----------
    This book, chapter 7, for the averages; gates as in the compressed attention of DeepSeek-V4.
    """
    check_attention_inputs(q, k, v)
    n, window, m = k.shape[2], check_integer(window, "window", 1), check_integer(m, "m", 1)
    votes = _check_bool("votes", votes)
    if q.shape[2] != n:
        raise ValueError(f"q must hold as many tokens as k, got shapes {shape_of(q)} and {shape_of(k)}")
    _check_gates(gates, k, v)
    if token_mask is not None:
        check_token_mask(token_mask, k, (k.shape[0], n))
        k, v = zero_hidden(k, token_mask), zero_hidden(v, token_mask)

    keys, values, log_votes = _groups(k, v, m, gates, token_mask)  # (batch, heads, n // m, ...), (batch, n // m)
    log_votes = log_votes if votes else torch.where(log_votes.isinf(), log_votes, 0)
    parts = []
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        first, last = (max(0, query + 1 - window) // m for query in (start, end - 1))  # groups that a query may use
        near = slice(first * m, end)
        added = _added(start, end, first, last, window, m, log_votes, token_mask)  # (batch, 1, queries, seen)
        seen_keys = torch.cat([keys[:, :, :last], k[:, :, near]], dim=2)
        seen_values = torch.cat([values[:, :, :last], v[:, :, near]], dim=2)
        parts.append(_attend_added(q[:, :, start:end], seen_keys, seen_values, added))
    return torch.cat(parts, dim=2)


def _groups(
    k: torch.Tensor, v: torch.Tensor, m: int, gates: torch.Tensor | None, token_mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Average whole groups of m keys and values, and give the logarithm of the number of real tokens in each."""
    batch, heads, n, _ = k.shape
    count, whole = n // m, n // m * m
    real = torch.ones(batch, n, dtype=torch.bool, device=k.device) if token_mask is None else token_mask
    real = real[:, :whole].view(batch, count, m)
    logits = k.new_zeros(batch, heads, n, 1) if gates is None else gates
    logits = logits[:, :, :whole].reshape(batch, heads, count, m, logits.shape[3])
    logits = logits.masked_fill(~(real | ~real.any(dim=2, keepdim=True))[:, None, :, :, None], -math.inf)
    shares = torch.softmax(logits, dim=3)  # an empty group averages zeros

    def mean(part: torch.Tensor) -> torch.Tensor:
        cut = part[:, :, :whole].reshape(batch, heads, count, m, part.shape[3])
        return (shares * cut).sum(dim=3).to(part.dtype)

    return mean(k), mean(v), real.sum(dim=2).to(torch.promote_types(k.dtype, torch.float32)).log()


def _added(
    start: int,
    end: int,
    first: int,
    last: int,
    window: int,
    m: int,
    log_votes: torch.Tensor,
    token_mask: torch.Tensor | None,
) -> torch.Tensor:
    """Say what is added to the logits of queries start .. end - 1: votes of groups, and -inf where they may not look.

    Columns are the groups 0 .. last - 1, and then the tokens from the group ``first`` on.
    """
    device = log_votes.device
    queries = torch.arange(start, end, device=device)[:, None]
    groups = (queries + 1 - window).clamp(min=0) // m  # how many a query uses
    tokens = torch.arange(first * m, end, device=device)
    far = torch.arange(last, device=device) < groups
    near = (tokens >= groups * m) & (tokens <= queries)
    added_far = log_votes[:, None, :last].masked_fill(~far, -math.inf)
    hidden = ~near if token_mask is None else ~(near & token_mask[:, None, first * m : end])
    added_near = log_votes.new_zeros(hidden.shape).masked_fill(hidden, -math.inf)
    return torch.cat([added_far, added_near.expand(len(added_far), -1, -1)], dim=2)[:, None]


def _attend_added(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
    """Attend with something added to the logits; where that hides all, the result is zero, not NaN."""
    empty = (added == -math.inf).all(dim=3, keepdim=True)
    mask = added.masked_fill(empty, 0).to(q.dtype)
    mixed = functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
    return mixed.masked_fill(empty, 0)


def _attend(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scale: float,
    token_mask: torch.Tensor | None,
    *,
    causal: bool,
) -> torch.Tensor:
    """Attend with a scale of its own, causal or not; hidden tokens neither count nor get anything."""
    if token_mask is None:
        return functional.scaled_dot_product_attention(q, keys, values, is_causal=causal, scale=scale)
    n = q.shape[2]
    seen = token_mask[:, None, None, :]
    if causal:
        seen = seen & torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
    seen = seen | ~seen.any(dim=3, keepdim=True)  # such a query is hidden itself, or there is nothing but zeros
    mixed = functional.scaled_dot_product_attention(q, keys, values, attn_mask=seen, scale=scale)
    return zero_hidden(mixed, token_mask)


def _principal(weight: torch.Tensor, r: int, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return b (m, r) and a (r, n) such that factor times b a is the best approximation of rank r."""
    wide = weight.detach().to(torch.promote_types(weight.dtype, torch.float32))
    u, sigma, vt = torch.linalg.svd(wide, full_matrices=False)
    root = (sigma[:r] / factor).sqrt()
    return (u[:, :r] * root).to(weight.dtype), (root[:, None] * vt[:r]).to(weight.dtype)


def _row_lengths(weight: torch.Tensor) -> torch.Tensor:
    lengths: torch.Tensor = torch.linalg.vector_norm(weight, dim=1)
    return lengths


def _check_bool(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def _check_gates(gates: torch.Tensor | None, k: torch.Tensor, v: torch.Tensor) -> None:
    if gates is None:
        return
    check_tensor("gates", gates, (*k.shape[:3], "1 or d"))
    check_same_device_and_dtype("gates", gates, "q", k)
    if gates.shape[3] != 1 and not gates.shape[3] == k.shape[3] == v.shape[3]:
        raise ValueError(
            f"gates must have one number a token, or as many as keys and as values, got shapes {shape_of(gates)}, "
            f"{shape_of(k)} and {shape_of(v)}"
        )


def _check_latent(
    x: torch.Tensor,
    w_dkv: torch.Tensor,
    w_uk: torch.Tensor,
    w_uv: torch.Tensor,
    w_q: torch.Tensor,
    q_rope: torch.Tensor | None,
    k_rope: torch.Tensor | None,
    token_mask: torch.Tensor | None,
) -> None:
    check_tensor("x", x, ("batch", "n", "dim"))
    batch, n, dim = x.shape
    if not x.dtype.is_floating_point:
        raise TypeError(f"x must be of a floating-point type, got {x.dtype}")
    if 0 in (n, dim):
        raise ValueError(f"x must hold at least one token of at least one number, got shape {shape_of(x)}")
    check_tensor("w_dkv", w_dkv, (dim, "d_c"))
    check_tensor("w_uk", w_uk, ("heads", w_dkv.shape[1], "d_h"))
    heads, d_c, d_h = w_uk.shape
    check_tensor("w_uv", w_uv, (heads, d_c, "d_v"))
    check_tensor("w_q", w_q, (heads, dim, d_h))
    if (q_rope is None) != (k_rope is None):
        given, missing = ("k_rope", "q_rope") if q_rope is None else ("q_rope", "k_rope")
        raise ValueError(f"{missing} must be given with {given}, got None")
    weights = {"w_dkv": w_dkv, "w_uk": w_uk, "w_uv": w_uv, "w_q": w_q}
    if q_rope is not None and k_rope is not None:
        check_tensor("q_rope", q_rope, (batch, heads, n, "d_rope"))
        check_tensor("k_rope", k_rope, (batch, n, q_rope.shape[3]))
        weights |= {"q_rope": q_rope, "k_rope": k_rope}
    for name, weight in weights.items():
        check_same_device_and_dtype(name, weight, "x", x)
    if token_mask is not None:
        check_token_mask(token_mask, x, (batch, n))

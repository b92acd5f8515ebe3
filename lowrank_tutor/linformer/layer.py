r"""Multi-head attention that compresses the sequence first: E(XW) = (EX)W.

Chapter ``book/07-linformer.md``; letters as in ``linformer``, and ``x`` (batch, n, D) are tokens.
"""

import copy
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import nn

from lowrank_tutor._checks import check_bool, check_choice, check_integer, check_real
from lowrank_tutor._tensors import (
    check_device,
    check_dtype,
    check_generator,
    check_heads,
    check_not_meta,
    check_same_device_and_dtype,
    check_tensor,
    check_token_mask,
    zero_hidden,
)
from lowrank_tutor.linformer.attention import attend, join_heads, split_heads
from lowrank_tutor.linformer.biases import bias_of, with_bias_of_mixtures
from lowrank_tutor.linformer.compress import compress
from lowrank_tutor.linformer.costs import SHARINGS, check_numbers
from lowrank_tutor.linformer.from_mha import refuse_calls_of_mha, weights_of_mha
from lowrank_tutor.linformer.frugal import attend_in_place, can_overwrite
from lowrank_tutor.linformer.norm_rule import RULES
from lowrank_tutor.linformer.shards import announce_refusal, check_process_group, locate

if TYPE_CHECKING:  # a build of PyTorch may lack it
    from torch.distributed import ProcessGroup


class LinformerSelfAttention(nn.Module):
    r"""Multi-head self-attention that compresses the sequence to k tokens before it forms keys and values.

    E(XW) = (EX)W: the compressed tokens EX serve all heads, and only k rows go through the weights of keys and values.
    With biases, E(XW + 1b) = (EX)W + (E1)b: row j of the mixtures gets the bias as often as row j of E adds up to.

    Parameters
    ----------
    dim : int
        Width D of the tokens.
    heads : int
        Number of heads; it must divide ``dim``.
    max_len : int
        Longest sequence, n. What shorter ones give does not change when padding is appended.
    k : int
        Length of the compressed sequence, between 1 and ``max_len``.
    sharing : {"key-value", "headwise"}
        ``"key-value"``: one matrix for keys and values, E = F. ``"headwise"``: one for each, shared by the heads.
    dropout : float
        Share of the weights that are dropped in training, at least 0 and below 1.
    projection : Tensor, shape (k, max_len), optional
        E = F from elsewhere. A ``Parameter`` is learned, and may be shared by several layers (the paper's
        "layerwise"); any other tensor is kept as it is, such as `pooling_projection`.
    rule : {"sum", "norm"}, optional
        What each row of E and F keeps of itself where tokens are hidden, by a mask or beyond a short sequence: its sum,
        as averages need it, or its length. By default each row of a fixed E keeps its sum if no entry is negative. A
        learned E follows one rule: the sum rule if the ``Parameter`` that is handed in has no negative entry, otherwise
        the norm rule. Name the rule to load averages, fixed or learned, into a learned layer that did not start so.
    bias : bool
        Whether queries, keys and values have biases too, as they do in most pretrained models. They start at zero.
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
    to_q : Linear
        The weights of the queries, D to D. Like those of keys and values they have a bias only if ``bias`` is true.
    to_k : Linear
        The weights of the keys.
    to_v : Linear
        The weights of the values.
    to_out : Linear
        The weights of the output, always with a bias.
    rule : str or None
        The rule of all rows, settled when the layer is made; None where E is fixed, and each row follows its entries.
        ``state_dict`` does not hold it.
    process_group : torch.distributed.ProcessGroup or None
        It may be set and taken away; ``state_dict`` does not hold it. A layer that has one can be neither pickled nor
        copied with ``copy.deepcopy``.

    Notes
    -----
    With a process group every process makes the same layer (from one ``state_dict``, or one seed), hands its own tokens
    and their mask to ``forward``, and gets their rows of the result. It compresses its tokens with its own columns of
    ``e``, and one all-reduce of $b k m D$ numbers joins the k rows of b sequences: m is 1 with E = F and 2 with two
    matrices, and n does not enter. The rule for padding adds $b k m$ numbers to it. Before it each process tells the
    others 18 numbers, its length among them, for which a GPU has to wait. ``backward`` takes one more all-reduce of the
    size of the first. So each process must call it, and after several losses all in the same order: gradients of two
    layers that meet in one sum look like any others, and nothing can tell.

    The loss is the sum of the losses of the processes. The gradient of the tokens is complete; that of the parameters
    is the part of this process. Add the parts up once a step, by an all-reduce of each ``grad``: k times ``max_len``
    numbers for each matrix, and $4 D^2 + D$ for the weights. ``DistributedDataParallel`` does that, and divides by the
    number of processes.

    Whatever error one process raises before the sum, all raise one for that batch, and the next batch finds them in
    step. They also refuse layers that differ in settings, type, autocast or weights, of which they compare the first
    rows and columns. Weights may differ by roundings, as they do on processors of two kinds, but not by an optimizer's
    step on gradients that were not added up. Dropout, and whether a layer trains, is each process's own. An error
    after the sum leaves the processes out of step: end them, or make new groups. If a process does not arrive, the
    others raise a ``RuntimeError`` after the timeout of the group. Make the layer after ``init_process_group``: before
    it, ``torch.distributed.group.WORLD`` is None, and each process would work alone.

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
    rule: str | None
    process_group: "ProcessGroup | None"
    batch_first = True  # nn.TransformerEncoder asks; the next line tells it that its fast path is not for us
    _qkv_same_embed_dim = False
    _sequences: tuple[str, ...] = ("x",)  # what ``forward`` takes without a name
    _exchange: str = "ahead"  # with other processes: "ahead", "told" or "done"
    _lost_projection: bool = False  # a fixed E that was on the meta device, where no numbers are

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
        rule: str | None = None,
        bias: bool = False,
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
        check_numbers("dim", dim, dim)
        check_numbers("max_len", self.k, self.max_len)
        self.sharing = check_choice(sharing, "sharing", SHARINGS)
        self.dropout = check_real(dropout, "dropout", "at least 0 and below 1", 0.0, 1.0)
        self._given_rule = None if rule is None else check_choice(rule, "rule", RULES)
        self.process_group = check_process_group(process_group)
        check_bool(bias, "bias")
        place = {"device": check_device(device) or torch.get_default_device(), "dtype": check_dtype(dtype)}
        for name in ("to_q", "to_k", "to_v", "to_out"):
            has_bias = bias or name == "to_out"
            linear = nn.utils.skip_init(nn.Linear, dim, dim, bias=has_bias, **place)  # type: ignore[no-untyped-call]
            setattr(self, name, linear)
        self._draw_weights(generator)
        if projection is not None:
            self._use_projection(projection)
        else:
            self.e = self._draw(generator, place)
        self.f = self._draw(generator, place) if sharing == "headwise" else None
        self.rule = self._settle_rule(projection)

    def extra_repr(self) -> str:
        """Name the sizes, for the layer's printed form.

        Returns
        -------
        str
        """
        sizes = f"dim={self.dim}, heads={self.heads}, max_len={self.max_len}, k={self.k}"
        bias = ", bias=True" if bias_of(self.to_k) is not None else ""
        rule = ", rule='sum'" if self.rule == "sum" else ""
        return f"{sizes}, sharing={self.sharing!r}, dropout={self.dropout}{bias}{rule}"

    @classmethod
    def from_mha(
        cls,
        mha: nn.MultiheadAttention,
        max_len: int,
        k: int,
        *,
        projection: torch.Tensor | None = None,
        sharing: str = "key-value",
        rule: str | None = None,
        generator: torch.Generator | None = None,
    ) -> Self:
        """Take over the weights and biases of exact attention; with k = n and E = I the layer equals it.

        The heads, the dropout, the device, the type and the mode (training or evaluation) are taken over too. What is
        new is E, which has to be learned: `pooling_projection`, as a ``Parameter``, is a tame start. The layer is batch
        first, whatever ``mha`` is.

        Parameters
        ----------
        mha : torch.nn.MultiheadAttention
            Whose keys and values are as wide as its queries. Its tensors are copied.
        max_len : int
            Longest sequence.
        k : int
            Length of the compressed sequence, between 1 and ``max_len``.
        projection : Tensor, shape (k, max_len), optional
            E = F from elsewhere, as in the constructor.
        sharing : {"key-value", "headwise"}
            As in the constructor.
        rule : {"sum", "norm"}, optional
            As in the constructor.
        generator : torch.Generator, optional
            Draws E (and F).

        Returns
        -------
        LinformerSelfAttention

        Examples
        --------
        >>> import torch
        >>> exact = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        >>> layer = LinformerSelfAttention.from_mha(exact, max_len=5, k=5, projection=torch.eye(5))
        >>> x = torch.randn(3, 5, 8)
        >>> bool((layer(x) - exact(x, x, x)[0]).abs().max() < 1e-5)
        True
        """
        state = weights_of_mha(mha)
        weight = state["to_out.weight"]
        layer = cls(
            mha.embed_dim,
            mha.num_heads,
            max_len,
            k,
            sharing=sharing,
            dropout=mha.dropout,
            projection=projection,
            rule=rule,
            bias="to_q.bias" in state,
            generator=generator,
            device=weight.device,
            dtype=weight.dtype,
        )
        layer.load_state_dict(state, strict=False)
        return layer.train(mha.training)

    def resized(self, max_len: int) -> Self:
        """Return a copy for longer sequences: E grows by columns of zeros, and every result stays as it was.

        The new columns know nothing about the tokens that will meet them: train with such sequences. The copy shares
        no tensor with this layer, also where several layers shared one E.

        Parameters
        ----------
        max_len : int
            Longest sequence of the copy, at least that of this layer.

        Returns
        -------
        LinformerSelfAttention
        """
        longest = check_integer(max_len, "max_len", 1)
        if longest < self.max_len:
            raise ValueError(f"max_len must be at least that of the layer, {self.max_len}, got {longest}")
        check_numbers("max_len", self.k, longest)
        group = self.process_group
        layer = copy.deepcopy(self, {id(group): group})  # a group cannot be copied
        for name in ("e", "f"):
            matrix = getattr(layer, name)
            if matrix is not None:
                grown = nn.functional.pad(matrix.detach(), (0, longest - self.max_len))
                kept = nn.Parameter(grown, matrix.requires_grad) if isinstance(matrix, nn.Parameter) else grown
                setattr(layer, name, kept)
        layer.max_len = longest
        return layer

    def reset_parameters(
        self, *, projection: torch.Tensor | None = None, generator: torch.Generator | None = None
    ) -> None:
        """Draw all parameters again, in place, as the constructor does: a layer from ``to_empty`` is whole after it.

        A learned E is drawn anew, also one that was passed in, and its rule is settled anew unless the constructor got
        one. A fixed one cannot be drawn and stays as it is; where
        ``to_empty`` has emptied it, hand it in again.

        Parameters
        ----------
        projection : Tensor, shape (k, max_len), optional
            What a fixed E (or a learned one) is set to.
        generator : torch.Generator, optional
            Draws, in place of the global generator of torch.

        Returns
        -------
        None

        Raises
        ------
        ValueError
            If E is fixed, was on the meta device, and no ``projection`` says what it holds.
        """
        if projection is not None:
            check_tensor("projection", projection, (self.k, self.max_len))
            if not self.e.is_meta:
                check_not_meta("projection", projection)
        elif self._lost_projection:
            raise ValueError("projection must be given where a fixed E was on the meta device, got None")
        self._draw_weights(generator)
        with torch.no_grad():
            if projection is not None:
                self.e.copy_(projection)
                self._lost_projection = self.e.is_meta
            elif isinstance(self.e, nn.Parameter):
                self._draw_into(self.e, generator)
            if self.f is not None:
                self._draw_into(self.f, generator)
        self.rule = self._settle_rule(projection)

    def __call__(self, *tensors: Any, **options: Any) -> Any:
        """Call `forward` with all its hooks; who calls the layer like PyTorch's attention hears what to call instead.

        Parameters
        ----------
        *tensors, **options
            Those of ``forward``.

        Returns
        -------
        Tensor, shape (batch, n, dim)
        """
        with self._telling():
            refuse_calls_of_mha(len(tensors), options, self._sequences)
            return super().__call__(*tensors, **options)

    def forward(self, x: torch.Tensor, *, token_mask: torch.Tensor | None = None, causal: bool = False) -> torch.Tensor:
        r"""Let every token look at the k compressed tokens.

        Parameters
        ----------
        x : Tensor, shape (batch, n, dim)
            Tokens; n is at most ``max_len``. With a process group, those of this process; all have the same batch.
        token_mask : bool Tensor, shape (batch, n), optional
            **True marks a real token**; PyTorch's ``key_padding_mask`` means the opposite. Hidden tokens change nothing
            for the others, whatever they hold, and their own rows of the result are zeros.
        causal : bool
            Refused where true: each compressed token mixes all tokens, the future too.

        Returns
        -------
        Tensor, shape (batch, n, dim)
        """
        with self._telling():
            self._check(x, token_mask, causal)
        keys, values, log_shares = self._compress(x, token_mask)
        return self._attend(x, keys, values, log_shares, token_mask)

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]  # of ``to``, ``to_empty`` and their like
        self._lost_projection |= self.e.is_meta and not isinstance(self.e, nn.Parameter)
        return self

    def _telling(self) -> AbstractContextManager[None]:
        """Tell the other processes of an error, if there are others."""
        return nullcontext() if self.process_group is None else announce_refusal(self)

    def _check(
        self,
        x: torch.Tensor,
        token_mask: torch.Tensor | None,
        causal: bool,
        *,
        name: str = "x",
        causal_name: str = "causal",
    ) -> None:
        if check_bool(causal, causal_name):
            raise ValueError(
                f"{causal_name} must be False, got True: every compressed key mixes all tokens, the future too, and no"
                " mask can take that out again; use exact attention"
            )
        self._check_tokens(name, x, "n")
        batch, n = x.shape[:2]
        if not 1 <= n <= self.max_len:
            raise ValueError(
                f"{name} must hold between 1 and max_len = {self.max_len} tokens, got {n}; cut it, or make the"
                " layer with a larger max_len"
            )
        if token_mask is not None:
            check_token_mask(token_mask, x, (batch, n))

    def _check_tokens(self, name: str, x: torch.Tensor, axis: str) -> None:
        check_tensor(name, x, ("batch", axis, self.dim))
        check_same_device_and_dtype(name, x, "the layer", self.e)
        if x.dtype != self.e.dtype and torch.float64 in (x.dtype, self.e.dtype):
            types = f"{self.e.dtype}, got {x.dtype}"
            raise TypeError(f"{name} must be of the type of the layer, {types}: autocast leaves torch.float64 alone")

    def _compress(
        self, x: torch.Tensor, token_mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Return keys and values (batch, heads, k, d), and what is added to logits, (batch, 1, 1, k)."""
        matrices = [self.e] if self.f is None else [self.e, self.f]
        biased = any(bias_of(part) is not None for part in (self.to_k, self.to_v))
        shard = locate(self, x, token_mask)
        tokens, counts, log_shares = compress(
            matrices, x, token_mask, self.process_group, shard, with_counts=biased, rule=self.rule
        )
        keys, values = self.to_k(tokens[0]), self.to_v(tokens[-1])  # the same EX where E = F
        if biased:
            keys = with_bias_of_mixtures(keys, self.to_k, counts[0])
            values = with_bias_of_mixtures(values, self.to_v, counts[-1])
        return split_heads(keys, self.heads), split_heads(values, self.heads), log_shares

    def _attend(
        self,
        x: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        log_shares: torch.Tensor | None,
        token_mask: torch.Tensor | None,
    ) -> torch.Tensor:
        """Let each token (batch, n, D) look at the compressed ones."""
        dropout = self.dropout if self.training else 0.0
        if can_overwrite(x, self.to_q, self.to_out):
            return attend_in_place(x, self.to_q, self.to_out, keys, values, log_shares, token_mask, dropout)
        q = split_heads(self.to_q(zero_hidden(x, token_mask)), self.heads)
        mixed = join_heads(attend(q, keys, values, log_shares, dropout))
        return zero_hidden(self.to_out(mixed), token_mask)

    def _draw_weights(self, generator: torch.Generator | None) -> None:
        """Draw the weights of the linear layers; their biases start at zero."""
        generator = check_generator(generator)
        for linear in (self.to_q, self.to_k, self.to_v, self.to_out):
            nn.init.uniform_(linear.weight, -1 / math.sqrt(self.dim), 1 / math.sqrt(self.dim), generator=generator)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)

    def _draw(self, generator: torch.Generator | None, place: dict[str, Any]) -> nn.Parameter:
        return nn.Parameter(self._draw_into(torch.empty((self.k, self.max_len), **place), generator))

    def _draw_into(self, matrix: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
        return matrix.normal_(std=1 / math.sqrt(self.max_len), generator=generator)

    def _settle_rule(self, start: torch.Tensor | None) -> str | None:
        """Return the rule that was given, or that of a learned E by its start; None for a fixed E."""
        if self._given_rule is not None or not isinstance(self.e, nn.Parameter):
            return self._given_rule
        if start is not None and start.is_meta:
            raise ValueError(
                'rule must be "sum" or "norm" where a learned projection is on the meta device, which holds no entries'
                " to choose by, got None"
            )
        return "sum" if start is not None and bool((start >= 0).all()) else "norm"

    def _use_projection(self, projection: torch.Tensor) -> None:
        if self.sharing != "key-value":
            raise ValueError(f'sharing must be "key-value" where a projection is given, got "{self.sharing}"')
        check_tensor("projection", projection, (self.k, self.max_len))
        check_same_device_and_dtype("projection", projection, "the layer", self.to_q.weight)
        if projection.requires_grad and not isinstance(projection, nn.Parameter):
            raise ValueError(
                "projection must be a Parameter or a tensor without gradient, got one that was computed and has a"
                " gradient: the layer would not learn it"
            )
        if isinstance(projection, nn.Parameter):
            self.e = projection
        else:
            self.register_buffer("e", projection.detach().clone())
            self._lost_projection = projection.is_meta

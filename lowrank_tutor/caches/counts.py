"""Count what a model stores for each token that it has read, and what reading it takes."""

from typing import NamedTuple

from lowrank_tutor._checks import check_bool, check_integer


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
    if check_bool(absorb, "absorb"):
        work = n * heads * (2 * d_c + d_rope) + 2 * heads * d_h * d_c
    else:
        work = 2 * n * heads * d_c * d_h + n * heads * (2 * d_h + d_rope)
    return LatentCost(work, n * (d_c + d_rope))

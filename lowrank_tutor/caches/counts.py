"""Count the numbers that a model stores for each token, and the work of reading them."""

from typing import NamedTuple

from lowrank_tutor._checks import check_bool, check_integer


class LatentCost(NamedTuple):
    """The ``multiplications`` of one new token, and the cached numbers it must ``read``.

    Softmax is left out. Multiplications are those with stored latents, and those that bring the
    query to them and the output back.
    """

    multiplications: int
    read: int


def kv_cache_numbers(
    layers: int, *, heads: int | None = None, groups: int | None = None, width: int | None = None,
    latent: int | None = None, rotary: int = 0, index: int = 0,
) -> int:  # fmt: skip
    """Count the numbers that a model stores for each token it has read, in all layers that attend.

    Give one of ``heads``, ``groups`` and ``latent``; beside another, ``heads`` counts queries, and
    plays no part. Multi-head attention keeps 2 heads · width numbers, grouped-query attention 2
    groups · width (configurations call the groups ``num_key_value_heads``), and latent attention
    latent + rotary, where rotary is the width of one rotated key that all heads share (DeepSeek-AI,
    2024, arXiv:2405.04434, Table 1). ``index`` is the width of a further key, by which a model
    chooses the tokens that it attends to. In 16 bits they take twice as many bytes.

    >>> kv_cache_numbers(32, heads=32, width=128), kv_cache_numbers(61, latent=512, rotary=64)
    (262144, 35136)
    """
    layers, index = check_integer(layers, "layers"), check_integer(index, "index", 0)
    rotary = check_integer(rotary, "rotary", 0)
    if latent is not None:
        if groups is not None or width is not None:
            raise ValueError(
                f"groups and width must be None beside a latent, got {groups} and {width}"
            )
        return layers * (check_integer(latent, "latent") + rotary + index)
    if rotary:
        raise ValueError(f"rotary must be 0 without a latent, got {rotary}")
    name, size = ("heads", heads) if groups is None else ("groups", groups)
    size = check_integer(size, name)
    return layers * (2 * size * check_integer(width, "width") + index)


def latent_cost(n: int, heads: int, d_h: int, d_c: int, d_rope: int, *, absorb: bool) -> LatentCost:
    r"""Count what one new token needs to attend to ``n`` stored latents, in one layer.

    With ``absorb`` the $n_h$ queries are brought to the latents: $n n_h (2 d_c + d_R)$
    multiplications, and $2 n_h d_h d_c$ to bring them there and the outputs back. Otherwise keys
    and values are made again: $2 n n_h d_c d_h$, and $n n_h (2 d_h + d_R)$ to attend. The rotated
    key beside each latent has ``d_rope`` numbers, possibly 0.

    >>> latent_cost(1000, 128, 128, 512, 64, absorb=True)
    LatentCost(multiplications=156041216, read=576000)
    """
    n, heads = check_integer(n, "n"), check_integer(heads, "heads")
    d_h, d_c = check_integer(d_h, "d_h"), check_integer(d_c, "d_c")
    d_rope = check_integer(d_rope, "d_rope", 0)
    if check_bool(absorb, "absorb"):
        work = n * heads * (2 * d_c + d_rope) + 2 * heads * d_h * d_c
    else:
        work = 2 * n * heads * d_c * d_h + n * heads * (2 * d_h + d_rope)
    return LatentCost(work, n * (d_c + d_rope))

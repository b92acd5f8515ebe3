"""Count what a model stores for each token that it has read."""

from lowrank_tutor._checks import check_integer


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

"""Count the operations, parameters and scores of a layer, to see when compression pays.

Chapter ``book/07-linformer.md``.
"""

from lowrank_tutor._checks import check_choice, check_integer
from lowrank_tutor._tensors import check_heads
from lowrank_tutor.attention import Cost

SHARINGS = ("key-value", "headwise")


def check_numbers(name: str, rows: int, columns: int) -> None:
    """Refuse a size that gives a matrix of more than 2**40 numbers, 4 terabytes in float32."""
    if rows * columns > 2**40:
        raise ValueError(f"{name} must give a matrix of at most 2**40 numbers, got {rows} times {columns}")


def linformer_cost(
    n: int, dim: int, heads: int, k: int, *, sharing: str = "key-value", max_len: int | None = None
) -> Cost:
    r"""Count what a `LinformerSelfAttention` takes for one sequence.

    $4 n D^2 + 6 n k D + 4 k D^2$ operations with E = F, and $2 n k D$ more with two matrices; $4 D^2 + D$ parameters
    and $k$ times ``max_len`` more for each matrix. Where n is below ``max_len``, the rule for padding takes $2 n k$
    operations for each matrix.

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

"""Corrections: every cell's assertions hold, and the numbers in the prose are computed once more in another way."""

import math
import re
import warnings
from importlib.metadata import version

import numpy as np
import pytest
import torch
from chapters import CELL_LINES, ROOT, code_cells, run
from linformer import LinformerSelfAttention
from scipy.linalg import null_space
from torch.utils.flop_counter import FlopCounterMode

from lowrank_tutor.attention import attention_weights

PAGE = ROOT / "book" / "corrections.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = dict(section.split("\n", 1) for section in re.split(r"\n### ", TEXT)[1:])
COLUMNS = 80


@pytest.fixture(scope="module")
def page():
    return run(PAGE).namespace


def says(words: str, title: str) -> bool:
    """Whether a section holds these words; there must be exactly one such section."""
    (body,) = [body for name, body in SECTIONS.items() if title in name]
    return words in body


# ------------------------------------------------------------------------------------------------------------ the form


def test_the_cells_run_and_their_assertions_hold(page):
    assert page["ratio"] > 0.2


@pytest.mark.parametrize("title", SECTIONS)
def test_every_correction_claims_shows_and_says_what_is_right(title):
    body = re.split(r"\n## ", SECTIONS[title])[0]
    claim, cell = body.index("**Claim.**"), body.index("```{code-cell}")
    right = re.search(r"\*\*Right[.*]|\*\*What survives\.\*\*", body)
    assert claim < cell
    assert claim < right.start()
    cells = re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", body, re.M | re.S)
    assert any(re.search(r"^\s*assert ", source, re.M) for source in cells)


@pytest.mark.parametrize("title", [name for name in SECTIONS if not name.startswith(("Inner products", "Theorem"))])
def test_every_correction_says_where_the_book_teaches_it(title):
    assert re.search(r"Taught in \{doc\}`\d\d-[\w-]+`", SECTIONS[title])


def test_cells_are_short_and_narrow():
    for cell in code_cells(PAGE):
        lines = cell.source.splitlines()
        assert len([line for line in lines if line.strip()]) <= CELL_LINES, cell.source
        assert max(map(len, lines)) <= COLUMNS, max(lines, key=len)


# ------------------------------------------------------------------------------------------------- rank, PCA, factors


def test_rank_one_matrices_have_five_degrees_of_freedom():
    """Their tangent space at u v^T is all u x^T + y v^T; what is orthogonal to it is a b^T with a, b normal to u, v."""
    u, v = np.random.default_rng(1).standard_normal((2, 3, 1))
    normal = np.kron(null_space(u.T), null_space(v.T))
    assert normal.shape[1] == 4
    assert says("here 6 and 5", "Six numbers")
    assert 3 * 3 - normal.shape[1] == 1 * (3 + 3 - 1) == 5


@pytest.mark.parametrize("k", [8, 32])
def test_the_identity_loses_what_the_page_says(k):
    assert math.sqrt(1 - k / 64) == pytest.approx(np.linalg.norm(np.eye(64)[k:]) / np.linalg.norm(np.eye(64)))


def test_a_two_by_two_table_is_never_saved():
    assert says("For $2 \\times 2$ that is 1, so no rank saves.", "Factors save")
    assert 2 * 2 / (2 + 2) == 1
    assert (np.array([1, 2]) @ np.outer([2, 1], [1, -1])) @ [3, 4] == -4


def test_no_unit_vectors_have_the_cosines_of_the_example(page):
    """At best, for any unknown products, the least eigenvalue is 1 - sqrt 2, taken at a = b = 0."""
    best = max(page["lowest"](a, b) for a in np.linspace(-1, 1, 41) for b in np.linspace(-1, 1, 41))
    assert best == pytest.approx(1 - math.sqrt(2))
    allowed = np.array([[1, 1], [1, -1]]) / math.sqrt(2)
    full = np.block([[np.eye(2), allowed], [allowed.T, np.eye(2)]])
    assert np.linalg.eigvalsh(full)[0] == pytest.approx(0, abs=1e-12), "divided by sqrt 2 it is one, just"


def test_the_dead_valley_is_a_minimum_and_the_saddle_is_none():
    def loss(u, v, f):
        return (1 - f(u * v)) ** 2 / 2

    steps = np.random.default_rng(2).uniform(-0.1, 0.1, (1000, 2))
    around = [loss(1 + a, -0.5 + b, lambda t: max(t, 0)) for a, b in steps]
    assert set(around) == {0.5}
    saddle = [loss(a, b, lambda t: t) for a, b in steps]
    assert min(saddle) < 0.5 < max(saddle)


def test_the_tied_factors_are_best_among_many(page):
    rng = np.random.default_rng(3)
    table, x = rng.standard_normal((40, 40)), rng.standard_normal((40, 6))
    best, u, v = page["tied"](table, x)
    for _ in range(50):
        left, right = (x @ (w + 0.05 * rng.standard_normal(w.shape)).T for w in (u, v))
        assert np.linalg.norm(table - left @ right.T) > np.linalg.norm(table - best)


# ------------------------------------------------------------------------------------------------ Johnson-Lindenstrauss


@pytest.mark.parametrize("k", [20, 80])
def test_the_bound_for_one_pair_holds_for_products_drawn_by_their_exact_law(k):
    """Orthogonal unit vectors: half the difference of two chi-squares over k."""
    draws = np.random.default_rng(4).chisquare(k, (2, 400_000)) / (2 * k)
    found = np.mean(np.abs(draws[0] - draws[1]) > 0.5)
    bound = 2 * math.exp(-k / 2 * (0.5 - math.log(1.5)))
    assert 0 < found < bound


def test_the_number_of_pairs_decides_whether_the_sum_falls(page):
    """N^(2 - gamma c): it grows below gamma c = 2 and falls above, while that of one pair always falls."""
    gamma = (0.5 - math.log(1.5)) / 2 / 0.5**2
    assert 4 * gamma < 2 < 16 * gamma
    for c in (4, 16):
        slope = math.log(page["chances"](c, 10**8)[1] / page["chances"](c, 10**4)[1]) / math.log(10**4)
        assert slope == pytest.approx(2 - gamma * c, abs=0.05)


def test_the_worst_pair_stays_near_the_bound_that_was_chosen():
    """The largest of M nearly normal numbers is near sqrt(2 ln M): for k = 4 ln N / eps^2 that is eps, in the limit."""
    for n in (10**3, 10**6, 10**12):
        k = 4 * math.log(n) / 0.5**2
        assert math.sqrt(2 * math.log(n**2) / k) == pytest.approx(0.5)


def test_a_square_random_map_leaves_the_root_of_two():
    rng = np.random.default_rng(5)
    table = rng.standard_normal((8, 16))
    r = rng.standard_normal((5000, 16, 16)) / 4
    errors = ((table @ r.transpose(0, 2, 1) - table) ** 2).sum(axis=(1, 2))
    assert errors.mean() / (table**2).sum() == pytest.approx(2, rel=0.02)


# ------------------------------------------------------------------------------------------------------------ attention


def test_performers_default_number_of_features_is_the_packages():
    assert says("`performer-pytorch` 1.1.4 takes $\\lfloor d \\ln d \\rfloor$ of them, 266 for $d = 64$", "Performer")
    assert version("performer-pytorch") == "1.1.4"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "distutils Version classes", DeprecationWarning)
        from performer_pytorch import FastAttention
    for d in (32, 64):
        assert FastAttention(dim_heads=d).nb_features == math.floor(d * math.log(d))
    assert FastAttention(dim_heads=64).nb_features == 266


def test_one_heads_weights_fill_what_the_cell_prints():
    assert np.zeros(1, np.float32).nbytes * 65_536**2 / 1e9 == pytest.approx(17, abs=0.5)


def test_running_sums_over_blocks_are_softmax_attention(page):
    q, k, v = torch.randn(3, 50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plain = torch.exp(30 * q @ k.T / math.sqrt(7) - (30 * q @ k.T / math.sqrt(7)).max())
    for size in (1, 16, 50):
        blocks = page["in_blocks"](30 * q, k, v, size=size)
        assert torch.allclose(blocks, plain @ v / plain.sum(1, keepdim=True))


# ------------------------------------------------------------------------------------------------------------ Linformer


def test_the_ratios_to_the_usual_order_hold_for_the_package_that_has_it():
    assert says("1.33 times fewer operations with two matrices", "Compress first")
    assert says("1.50 times fewer with $E = F$", "Compress first")
    n, d, k = 1024, 512, 256
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        LinformerSelfAttention(d, seq_len=n, k=k, heads=8)(torch.empty(1, n, d))
    ours = {c: 4 * n * d**2 + c * n * k * d + 4 * k * d**2 for c in (6, 8)}
    assert counter.get_total_flops() / ours[6] == 1.5
    assert round(counter.get_total_flops() / ours[8], 2) == 1.33


def test_written_out_weights_are_four_times_the_tokens():
    assert says("they hold four times as many numbers as the tokens do", "E and F have a price")
    assert 8 * 256 / 512 == 4


def test_the_code_of_the_tutorial_fails_as_it_says():
    with pytest.raises(RuntimeError, match="2048x4096 and 64x256"):
        torch.nn.functional.linear(torch.zeros(4, 8, 64, 4096), torch.zeros(256, 64))


# --------------------------------------------------------------------------------------------------------- the theorems


def test_the_law_of_a_random_middle_against_many_draws():
    """Small enough for a mean over thousands of draws, which pins the constant in the law."""
    rng = np.random.default_rng(0)
    p, v = rng.standard_normal((3, 6)), rng.standard_normal((6, 2))
    k, draws = 4, 20_000
    r = rng.standard_normal((draws, k, 6)) / np.sqrt(k)
    errors = ((p @ r.transpose(0, 2, 1) @ (r @ v) - p @ v) ** 2).sum(axis=(1, 2))
    law = ((p**2).sum() * (v**2).sum() + ((p @ v) ** 2).sum()) / k
    assert errors.mean() == pytest.approx(law, rel=0.03)


def test_the_weights_of_the_section_are_those_of_softmax_attention(page):
    q, keys = (torch.from_numpy(np.ascontiguousarray(page[name]))[None, None] for name in ("q", "keys"))
    assert np.allclose(attention_weights(q, keys)[0, 0].numpy(), page["P"], rtol=1e-12, atol=0)


def test_an_output_that_knows_no_query_needs_an_epsilon_of_one_half(page):
    """Row 0 wants the heavy value, every other row zero: whatever one output is, it is far from one of the two."""
    weights, heavy = np.eye(5), np.zeros((5, 3))
    heavy[0] = 1
    for share in np.linspace(-0.5, 1.5, 41):
        needed = page["least_epsilon"](weights, heavy, np.tile(share * heavy[0], (5, 1)))
        assert max(needed[0], needed[1]) >= 0.5 - 1e-12


def test_the_left_side_of_23_tends_to_a_norm_that_grows():
    """Over draws of R the mean square of 1 - R 1 is k + n."""
    rng, k, n = np.random.default_rng(6), 8, 50
    r = rng.standard_normal((5000, k, n)) / math.sqrt(k)
    assert ((1 - r.sum(axis=2)) ** 2).sum(axis=1).mean() == pytest.approx(k + n, rel=0.05)


def test_the_constants_in_words():
    assert "$k = 5 \\ln n/\\varepsilon^2$ is 3,119" in TEXT
    assert 5 * np.log(512) / 0.01 == pytest.approx(3119, abs=1)
    assert "only from $\\ln n = 479$ on, for $d = 64$" in TEXT
    assert 9 * 64 * math.log(64) / 5 == pytest.approx(479, abs=0.5)


# ----------------------------------------------------------------------------------- caches, adapters and states


def test_the_cache_of_deepseek_v2_in_numbers_and_in_bits():
    latent, grouped, own = 60 * (512 + 64), 95 * 2 * 8 * 128, 60 * 2 * 128 * 128
    assert (round(100 - 100 * latent / grouped, 1), round(100 - 100 * latent * 6 / grouped / 16, 1)) == (82.2, 93.3)
    assert says(f"{own / latent:.0f} times fewer", "93.3%")


def test_what_absorbing_costs_and_saves():
    stored, absorbed = 128 * (128 + 64 + 128), 128 * (512 + 64 + 512)
    assert says(f"{absorbed / stored:.1f} times as many multiplications", "Absorbing")
    once = stored - 127 * 64  # the rotated key, which all heads share
    assert says(f"reads {once / 576:.0f} times fewer numbers ({stored / 576:.0f} times, where", "Absorbing")


@pytest.mark.parametrize("title", [name for name in SECTIONS if not name.startswith(("Inner products", "Theorem"))])
def test_every_correction_says_who_makes_the_claim(title):
    """A paper, an account that is named where the page or the section begins, or a package's documentation."""
    body = SECTIONS[title]
    claim = body[body.index("**Claim.**") : body.index("```{code-cell}")]
    account = r"[Tt]he (blog series|blog post|note|course page|tutorial|post on|chapter on|same code)"
    assert re.search(rf"\{{cite:t\}}|{account}|documentation of", claim), claim


def test_skips_alone_do_not_decide_whether_tokens_become_alike(page):
    """Random values shrink the differences a step, relative to the mean; values of minus one half enlarge them."""
    same, apart = np.full((4, 4), 1 / 4), np.diag([1.0, -1, 2, -2])
    step = apart - same @ apart / 2
    mean = np.abs(step.mean(axis=0)).max()
    assert mean == pytest.approx(np.abs(apart.mean(axis=0)).max() / 2), "the mean halves, what differs stays"
    assert page["unlike"](1, 24) < 0.5 < 0.9 < page["unlike"](1, 24, page["minus"])


def test_two_minus_signs_cancel_in_a_product_of_factors():
    b, a = np.random.default_rng(0).standard_normal((2, 3, 3))
    assert -b @ -a == pytest.approx(b @ a)


def test_what_is_owed_stays_bounded_where_a_fixed_share_is_sent():
    """The entry of largest size of two holds at least half the energy: the debt stays below the geometric sum."""
    owed, gradient = np.zeros(2), np.array([1.0, 0.9])
    for _ in range(1000):
        owed = owed + gradient
        owed[np.abs(owed).argmax()] = 0
        share = math.sqrt(1 / 2)
        assert np.linalg.norm(owed) <= share / (1 - share) * np.linalg.norm(gradient)

"""The layer against the slow order in plain loops, exact attention, finite differences and itself
when compiled.
"""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from attentions import tensors
from hypothesis import given, settings
from hypothesis import strategies as st
from linformers import ENTRIES, SHARINGS, layer_by_loops, layer_of
from torch import nn

from lowrank_tutor.linformer import LinformerSelfAttention, pooling_projection


@settings(max_examples=60)
@given(st.sampled_from(SHARINGS), st.integers(1, 6), st.integers(0, 10**6), st.data())
def test_any_mask_in_slow_order(sharing, n, seed, data):
    layer, (x,) = layer_of(4, 2, 6, 3, sharing=sharing), tensors((2, n, 4), seed=seed)
    with torch.no_grad():
        for matrix in (layer.e, layer.f):
            if matrix is not None:
                numbers = data.draw(st.lists(ENTRIES, min_size=18, max_size=18))
                matrix.copy_(torch.tensor(numbers).view(3, 6))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))).view(
        2, n
    )
    out = layer(x, token_mask=mask)
    np.testing.assert_allclose(out.detach(), layer_by_loops(layer, x, mask), rtol=0, atol=1e-12)
    np.testing.assert_allclose(layer(x).detach(), layer_by_loops(layer, x), rtol=0, atol=1e-12)


def test_dropout_keeps_the_mean(calls):
    layer, copies = layer_of(max_len=4, dropout=0.25), 4000
    x = tensors((1, 4, 6))[0].expand(copies, 4, 6)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = layer(x).detach(), layer(x).detach()
        assert {options["dropout_p"] for *_, options in calls} == {0.25}
        calls.clear()
        still = layer.eval()(x[:1]).detach()
        assert {options["dropout_p"] for *_, options in calls} == {0.0}
        assert torch.equal(layer(x[:1]), still)
    assert not torch.equal(first, second)
    spread = first.std(dim=0)
    assert (spread > 0.01).all()
    assert ((first.mean(dim=0) - still[0]).abs() < 5 * spread / math.sqrt(copies)).all()


@pytest.mark.parametrize(("sharing", "matrices"), [("key-value", ["e"]), ("headwise", ["e", "f"])])
def test_parameters_and_sizes(sharing, matrices):
    layer = LinformerSelfAttention(
        np.int64(6), np.int32(2), np.int64(8), np.int64(3), sharing=sharing, dropout=0.5
    )
    shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
    assert shapes == {name: (3, 8) for name in matrices} | {
        **{f"to_{name}.weight": (6, 6) for name in ("q", "k", "v", "out")}, "to_out.bias": (6,)
    }  # fmt: skip
    assert set(layer.state_dict()) == {*shapes, "_extra_state"}
    assert all(p.dtype == torch.float32 and p.requires_grad for p in layer.parameters())
    assert {
        type(size)
        for size in (layer.dim, layer.heads, layer.max_len, layer.k, layer.to_k.out_features)
    } == {int}
    printed = f"dim=6, heads=2, max_len=8, k=3, sharing={sharing!r}, dropout=0.5, rule='norm'"
    assert repr(layer).startswith(f"LinformerSelfAttention(\n  {printed}\n  (to_q): Linear(")


def test_initial_weights():
    layer = LinformerSelfAttention(
        64, 4, 400, 100, sharing="headwise", generator=torch.Generator().manual_seed(0)
    )
    for linear in (layer.to_q, layer.to_k, layer.to_v, layer.to_out):
        assert linear.weight.abs().max() <= 1 / 8
        assert linear.weight.std().item() == pytest.approx(1 / 8 / math.sqrt(3), rel=0.03)
    assert torch.equal(layer.to_out.bias, torch.zeros(64))
    for matrix in (layer.e, layer.f):
        assert matrix.std().item() == pytest.approx(1 / 20, rel=0.03)
        assert abs(matrix.mean().item()) < 5 / 20 / math.sqrt(matrix.numel())
        assert matrix.abs().max() > 3 / 20
    assert not torch.equal(layer.e, layer.f)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_generator(sharing):
    def drawn(seed=None):
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return LinformerSelfAttention(6, 2, 8, 3, sharing=sharing, generator=generator).state_dict()

    before = torch.get_rng_state()
    one, two, other = drawn(5), drawn(5), drawn(6)
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        by_global = drawn()
    for name, value in one.items():
        assert torch.equal(value, two[name])
        assert torch.equal(value, by_global[name])
        assert name in ("to_out.bias", "_extra_state") or not torch.equal(value, other[name])


@pytest.mark.parametrize(
    "options", [{}, {"sharing": "headwise"}, {"projection": pooling_projection(4, 8).double()}]
)
def test_state_copy_and_pickle(options):
    layer, (x,) = layer_of(k=4, **options), tensors((2, 8, 6))
    other = layer_of(k=4, generator=torch.Generator().manual_seed(1), **options)
    assert not torch.equal(other(x), layer(x))
    other.load_state_dict(layer.state_dict())
    for same in (other, copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(same(x), layer(x))
        assert type(same) is LinformerSelfAttention
        assert repr(same) == repr(layer)
        assert all(p is not q for p, q in zip(same.parameters(), layer.parameters(), strict=True))


def test_fixed_projection_is_not_learned():
    given_matrix = pooling_projection(4, 8).double()
    kept = given_matrix.clone()
    layer, (x,) = layer_of(k=4, projection=given_matrix), tensors((2, 8, 6))
    before = layer(x).detach()
    given_matrix.fill_(7)  # the caller's own
    assert torch.equal(layer(x), before)
    assert "e" not in dict(layer.named_parameters())
    assert torch.equal(dict(layer.named_buffers())["e"], kept)
    assert torch.equal(layer.state_dict()["e"], kept)
    assert layer.float().e.dtype == torch.float32


def test_computed_projection_is_refused():
    source = nn.Parameter(tensors((4, 8))[0])
    for projection in (2 * source, source.detach().clone().requires_grad_()):
        with pytest.raises(
            ValueError, match=r"^projection must be a Parameter, or a tensor without"
        ):
            layer_of(k=4, projection=projection)
    with pytest.raises(ValueError, match=r'^sharing must be "key-value" where a projection is'):
        layer_of(k=4, projection=source, sharing="headwise")
    assert torch.equal(layer_of(k=4, projection=(2 * source).detach()).e, 2 * source)
    fixed = nn.Parameter(source.detach(), requires_grad=False)
    assert layer_of(k=4, projection=fixed).e is fixed


def test_layers_can_share_one_parameter():
    shared = nn.Parameter(tensors((3, 8))[0])
    layers = nn.ModuleList(
        layer_of(projection=shared, generator=torch.Generator().manual_seed(i)) for i in range(2)
    )
    assert len(list(layers.parameters())) == 1 + 2 * 5
    other = copy.deepcopy(layers)
    assert other[0].e is other[1].e
    assert other[0].e is not shared
    assert other.to(torch.bfloat16)[0].e is other[1].e


def test_layer_compiles_once(compiler):
    layer = layer_of(max_len=64)
    compiled = compiler(layer, backend="eager", dynamic=True)
    with torch.compiler.set_stance("default"), torch.no_grad():
        (x,) = tensors((2, 60, 6))
        np.testing.assert_allclose(compiled(x), layer(x), atol=1e-14)
    with torch.compiler.set_stance("fail_on_recompile"), torch.no_grad():
        for n in (5, 17, 63):
            (x,) = tensors((2, n, 6))
            np.testing.assert_allclose(compiled(x), layer(x), atol=1e-14)


@pytest.mark.parametrize(
    ("n", "options", "message"),
    [
        (0, {}, "x must hold between 1 and max_len = 8 tokens, got 0"),
        (9, {}, "x must hold between 1 and max_len = 8 tokens, got 9"),
        (6, {"causal": True}, "causal must be False, got True: every compressed key mixes"),
    ],
)
def test_bad_tokens(n, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        layer_of()(torch.zeros(3, n, 6).double(), **options)

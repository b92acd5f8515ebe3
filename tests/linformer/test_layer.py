"""The layer against the slow order in plain loops, exact attention, finite differences and itself when compiled."""

import copy
import math
import pickle
import re
import shutil

import numpy as np
import pytest
import torch
from attentions import by_loops as exact_by_loops
from attentions import real_tokens, tensors
from hypothesis import given, settings
from hypothesis import strategies as st
from linformers import ENTRIES, MASKS, SHARINGS, array, layer_by_loops, layer_of, lengths, roundings
from torch import nn

from lowrank_tutor.linformer import LinformerSelfAttention, linformer_attention, pooling_projection


@pytest.mark.parametrize(("n", "masked"), [(1, False), (5, True), (5, False), (8, True), (8, False)])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_identity_layer_is_exact(n, masked, dtype, error):
    layer = layer_of(k=8, dtype=dtype, projection=torch.eye(8, dtype=dtype))
    (x,) = tensors((3, n, 6), dtype=dtype)
    mask = real_tokens(n=n) if masked else None
    q, k, v = (
        (x.double() @ linear.weight.detach().double().T).view(3, n, 2, 3).transpose(1, 2)
        for linear in (layer.to_q, layer.to_k, layer.to_v)
    )
    exact = exact_by_loops(q, k, v, mask).transpose(0, 2, 1, 3).reshape(3, n, 6)
    exact = exact @ array(layer.to_out.weight).T + array(layer.to_out.bias)
    if masked:
        exact[~mask] = 0
    out = layer(x, token_mask=mask)
    np.testing.assert_allclose(out.detach(), exact, rtol=0, atol=error)


@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize(("n", "masked"), [(1, False), (7, True), (7, False), (8, True), (8, False)])
def test_layer_against_slow_order(n, sharing, masked):
    layer, (x,) = layer_of(sharing=sharing), tensors((3, n, 6))
    mask = real_tokens(n=n) if masked else None
    out = layer(x, token_mask=mask)
    assert out.shape == (3, n, 6)
    np.testing.assert_allclose(out.detach(), layer_by_loops(layer, x, mask), rtol=0, atol=1e-13)


@settings(max_examples=60)
@given(st.sampled_from(SHARINGS), st.integers(1, 6), st.integers(0, 10**6), st.data())
def test_any_mask_in_slow_order(sharing, n, seed, data):
    layer, (x,) = layer_of(4, 2, 6, 3, sharing=sharing), tensors((2, n, 4), seed=seed)
    with torch.no_grad():
        for matrix in (layer.e, layer.f):
            if matrix is not None:
                numbers = data.draw(st.lists(ENTRIES, min_size=18, max_size=18))
                matrix.copy_(torch.tensor(numbers).view(3, 6))
    mask = torch.tensor(data.draw(st.lists(st.booleans(), min_size=2 * n, max_size=2 * n))).view(2, n)
    out = layer(x, token_mask=mask)
    np.testing.assert_allclose(out.detach(), layer_by_loops(layer, x, mask), rtol=0, atol=1e-12)


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
def test_sequences_do_not_mix(mask, sharing):
    layer, (x,) = layer_of(sharing=sharing), tensors((3, 6, 6))
    out = layer(x, token_mask=mask).detach()
    for b in range(3):
        alone = layer(x[b : b + 1], token_mask=None if mask is None else mask[b : b + 1])
        np.testing.assert_allclose(out[b], alone[0].detach(), atol=1e-14)
    order = torch.tensor([2, 0, 1])
    moved = layer(x[order], token_mask=None if mask is None else mask[order])
    np.testing.assert_allclose(moved.detach(), out[order], atol=1e-14)


def test_causal_use_is_refused():
    layer, (x,) = layer_of(), tensors((1, 8, 6))
    reason = (
        "causal must be False, got True: every compressed key mixes all tokens, the future too, and no mask can take"
        " that out again; use exact attention"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        layer(x, causal=True)
    with pytest.raises(TypeError, match=r"^causal must be True or False, got 1$"):
        layer(x, causal=1)
    assert torch.equal(layer(x, causal=False), layer(x))


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("max_len", [6, 8])
def test_gradients_of_layers(mask, sharing, max_len):
    layer, (x,) = layer_of(4, 2, max_len, 3, sharing=sharing), tensors((3, 6, 4))
    names, parameters = zip(*((name, p.detach().clone()) for name, p in layer.named_parameters()), strict=True)

    def call(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values, strict=True)), (x,), {"token_mask": mask})

    assert torch.autograd.gradcheck(call, [x.requires_grad_() for x in (x, *parameters)], fast_mode=True)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_layer_learns(sharing):
    layer, target, (x,) = layer_of(k=4, sharing=sharing), layer_of(k=4, sharing=sharing), tensors((8, 8, 6))
    with torch.no_grad():
        target.to_v.weight.mul_(2)
        target.e.mul_(-1)
        expected = target(x)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = (layer(x) - expected).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 20


def test_no_sequence_gives_no_output():
    layer = layer_of()
    for mask in (None, torch.ones(0, 8, dtype=torch.bool)):
        assert layer(torch.zeros(0, 8, 6, dtype=torch.float64), token_mask=mask).shape == (0, 8, 6)


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


def test_no_dropout_by_default():
    layer, (x,) = layer_of(), tensors((1, 8, 6))
    assert layer.dropout == 0.0
    assert torch.equal(layer(x), layer.eval()(x))


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_layer_rounding_errors(dtype, sharing, mask):
    layer, (x,) = layer_of(sharing=sharing, dtype=dtype), tensors((3, 6, 6), dtype=dtype)
    out = layer(x, token_mask=mask)
    assert out.dtype == dtype
    expected = layer_by_loops(layer, x, mask)
    # Eight results are rounded on the way: tokens mixed, rescaled, keys or values, queries, votes, weights, averages,
    # output.
    assert np.linalg.norm(array(out) - expected) < 8 * roundings(dtype) * np.linalg.norm(expected)


@MASKS
@pytest.mark.parametrize("sharing", SHARINGS)
def test_a_layer_runs_under_autocast(mask, sharing):
    layer, (x,) = layer_of(sharing=sharing, dtype=torch.float32), tensors((3, 6, 6), dtype=torch.float32)
    expected = layer_by_loops(layer, x, mask)
    with torch.autocast("cpu", torch.bfloat16):
        out, from_half = layer(x, token_mask=mask), layer(x.bfloat16(), token_mask=mask)
        with pytest.raises(
            TypeError, match=r"^x must .* torch\.float32, got torch\.float64: autocast leaves torch\.float64"
        ):
            layer(x.double())
        with pytest.raises(TypeError, match=r"^x must be of the type of the layer, torch\.float32, got torch\.int64$"):
            layer(x.long())
    assert out.dtype == from_half.dtype == torch.bfloat16
    for rounded in (out, from_half):
        # Five more are: the tokens, and four matrices.
        assert np.linalg.norm(array(rounded) - expected) < 13 * 2**-9 * np.linalg.norm(expected)


def test_meta_tensors():
    for sharing in SHARINGS:
        layer = LinformerSelfAttention(6, 2, 8, 3, sharing=sharing, device="meta")
        assert {p.device.type for p in layer.parameters()} == {"meta"}
        x, mask = torch.empty(3, 6, 6, device="meta"), torch.empty(3, 6, dtype=torch.bool, device="meta")
        assert layer(x).shape == layer(x, token_mask=mask).shape == (3, 6, 6)
    with torch.device("meta"):
        assert {p.device.type for p in LinformerSelfAttention(6, 2, 8, 3).parameters()} == {"meta"}
    assert LinformerSelfAttention(6, 2, 8, 3).e.device.type == "cpu"


def test_parameter_shapes():
    for sharing, matrices in (("key-value", ["e"]), ("headwise", ["e", "f"])):
        layer = LinformerSelfAttention(6, 2, 8, 3, sharing=sharing)
        shapes = {name: tuple(p.shape) for name, p in layer.named_parameters()}
        assert shapes == {name: (3, 8) for name in matrices} | {
            **{f"to_{name}.weight": (6, 6) for name in ("q", "k", "v", "out")}, "to_out.bias": (6,)
        }  # fmt: skip
        assert set(layer.state_dict()) == set(shapes)
        assert all(p.dtype == torch.float32 and p.requires_grad for p in layer.parameters())
        assert (layer.f is None) == (sharing == "key-value")


def test_sharing_saves_one_matrix():
    one, two = (sum(p.numel() for p in layer_of(sharing=sharing).parameters()) for sharing in SHARINGS)
    assert two - one == 3 * 8


def test_sizes_are_printed():
    layer = LinformerSelfAttention(np.int64(6), np.int32(2), np.int64(8), np.int64(3), sharing="headwise", dropout=0.5)
    assert (layer.dim, layer.heads, layer.max_len, layer.k) == (6, 2, 8, 3)
    assert (layer.sharing, layer.dropout) == ("headwise", 0.5)
    assert {type(size) for size in (layer.dim, layer.heads, layer.max_len, layer.k, layer.to_k.out_features)} == {int}
    printed = "dim=6, heads=2, max_len=8, k=3, sharing='headwise', dropout=0.5"
    assert layer.extra_repr() == printed
    assert repr(layer).startswith(f"LinformerSelfAttention(\n  {printed}\n  (to_q): Linear(")


def test_initial_weights():
    layer = LinformerSelfAttention(64, 4, 400, 100, sharing="headwise", generator=torch.Generator().manual_seed(0))
    for linear in (layer.to_q, layer.to_k, layer.to_v, layer.to_out):
        assert linear.weight.abs().max() <= 1 / 8
        assert linear.weight.std().item() == pytest.approx(1 / 8 / math.sqrt(3), rel=0.03)
    assert torch.equal(layer.to_out.bias, torch.zeros(64))
    assert layer.to_q.bias is None
    assert layer.to_k.bias is None
    assert layer.to_v.bias is None
    for matrix in (layer.e, layer.f):
        assert matrix.std().item() == pytest.approx(1 / 20, rel=0.03)
        assert abs(matrix.mean().item()) < 5 / 20 / math.sqrt(matrix.numel())
        assert matrix.abs().max() > 3 / 20
    assert not torch.equal(layer.e, layer.f)


def spread_of_scores(calls, n, max_len, start=None):
    """The standard deviation of the scores of a new layer on tokens of unit variance."""
    layer = LinformerSelfAttention(16, 2, max_len, 64, generator=torch.Generator().manual_seed(0))
    if start is not None:
        nn.init.uniform_(layer.e, -start, start, generator=torch.Generator().manual_seed(0))
    (x,) = tensors((1, n, 16), dtype=torch.float32)
    layer(x)
    q, keys, *_ = calls[-1]
    return (q @ keys.transpose(2, 3) / math.sqrt(8)).std().item()


def test_score_spread_ignores_length(calls):
    sizes = [256, 1024, 4096, 16384]
    ours = [spread_of_scores(calls, n, n) for n in sizes]
    assert max(ours) < 1.5 * min(ours)
    sliced = [spread_of_scores(calls, n, 16384) for n in sizes]
    assert max(ours + sliced) < 1.5 * min(ours + sliced)
    # Entries between -1 / sqrt(k) and 1 / sqrt(k), a common start, let it grow like sqrt(n).
    common = [spread_of_scores(calls, n, n, start=1 / math.sqrt(64)) for n in sizes]
    assert common[-1] / common[0] == pytest.approx(math.sqrt(16384 / 256), rel=0.25)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_generator_draws_reproducibly(sharing):
    before = torch.get_rng_state()
    one, two = (LinformerSelfAttention(6, 2, 8, 3, sharing=sharing, generator=torch.Generator().manual_seed(5))
                for _ in range(2))  # fmt: skip
    assert torch.equal(torch.get_rng_state(), before)
    for name, value in one.state_dict().items():
        assert torch.equal(value, two.state_dict()[name])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        three, four = (LinformerSelfAttention(6, 2, 8, 3, sharing=sharing) for _ in range(2))
        torch.manual_seed(0)
        five = LinformerSelfAttention(6, 2, 8, 3, sharing=sharing)
    for name, value in three.state_dict().items():
        assert torch.equal(value, five.state_dict()[name])
        assert name == "to_out.bias" or not torch.equal(value, four.state_dict()[name])


@pytest.mark.parametrize("options", [{}, {"sharing": "headwise"}, {"projection": pooling_projection(4, 8).double()}])
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
    layer = layer_of(k=4, projection=kept)
    layer(x).sum().backward()
    assert not layer.e.requires_grad
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    assert torch.equal(layer.e, kept)


def test_computed_projection_is_refused():
    source = nn.Parameter(tensors((4, 8))[0])
    reason = (
        "projection must be a Parameter or a tensor without gradient, got one that was computed and has a gradient: the"
        " layer would not learn it"
    )
    for projection in (2 * source, source.detach().clone().requires_grad_()):
        with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
            layer_of(k=4, projection=projection)
    assert torch.equal(layer_of(k=4, projection=(2 * source).detach()).e, 2 * source)
    assert layer_of(k=4, projection=source).e is source
    fixed = nn.Parameter(source.detach(), requires_grad=False)
    assert layer_of(k=4, projection=fixed).e is fixed


def test_layers_can_share_one_parameter():
    shared = nn.Parameter(tensors((3, 8))[0])
    layers = nn.ModuleList(layer_of(projection=shared, generator=torch.Generator().manual_seed(i)) for i in range(2))
    (x,) = tensors((2, 8, 6))
    assert all(layer.e is shared for layer in layers)
    assert sum(p is shared for p in layers.parameters()) == 1
    assert len(list(layers.parameters())) == 1 + 2 * 5
    gradients = []
    for layer in layers:
        layers.zero_grad()
        layer(x).square().sum().backward()
        gradients.append(shared.grad)
    layers.zero_grad()
    sum(layer(x).square().sum() for layer in layers).backward()
    np.testing.assert_allclose(shared.grad, gradients[0] + gradients[1], rtol=1e-12)
    other = copy.deepcopy(layers)
    assert other[0].e is other[1].e
    assert other[0].e is not shared
    other.to(torch.bfloat16)
    assert other[0].e is other[1].e
    assert other[0].e.dtype == torch.bfloat16
    assert shared.dtype == torch.float64
    torch.optim.SGD(layers.parameters(), lr=0.1).step()
    assert torch.equal(layers[0].e, layers[1].e)


@MASKS
def test_inputs_stay_unchanged(mask):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    before, mask_before, state = x.clone(), None if mask is None else mask.clone(), copy.deepcopy(layer.state_dict())
    with torch.no_grad():
        layer(x, token_mask=mask).fill_(7)
    layer(x, token_mask=mask).detach().fill_(7)
    assert torch.equal(x, before)
    assert mask is None or torch.equal(mask, mask_before)
    assert all(torch.equal(value, state[name]) for name, value in layer.state_dict().items())


@pytest.mark.parametrize("sharing", SHARINGS)
def test_layer_compiles_to_one_graph(compiler, sharing):
    layer = layer_of(sharing=sharing)
    compiled = compiler(layer, backend="eager")
    for n, mask in ((8, None), (6, real_tokens())):
        (x,) = tensors((3, n, 6))
        np.testing.assert_allclose(
            compiled(x, token_mask=mask).detach(), layer(x, token_mask=mask).detach(), atol=1e-14
        )


def test_a_layer_compiles_under_autocast(compiler):
    layer, (x,) = layer_of(dtype=torch.float32), tensors((3, 6, 6), dtype=torch.float32)
    compiled = compiler(layer, backend="eager")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(compiled(x, token_mask=real_tokens()), layer(x, token_mask=real_tokens()))


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


@MASKS
def test_compiled_gradients(compiler, mask):
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    gradients = []
    for function in (layer, compiler(layer, backend="aot_eager")):
        layer.zero_grad()
        function(x, token_mask=mask).square().sum().backward()
        gradients.append([p.grad.clone() for p in layer.parameters()])
    for one, other in zip(*gradients, strict=True):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-12)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own code generator
def test_layer_compiles_to_machine_code(compiler, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    layer, (x,) = layer_of(), tensors((3, 6, 6))
    compiled = compiler(
        layer, options={"cpp.vec_isa_ok": False}
    )  # to ask for vector instructions takes most of the time
    with torch.no_grad():
        np.testing.assert_allclose(
            compiled(x, token_mask=real_tokens()), layer(x, token_mask=real_tokens()), atol=1e-13
        )


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # PyTorch maps its attention by a loop
def test_vmap_over_masks():
    layer, (x,) = layer_of(), tensors((4, 3, 8, 6))
    masks = torch.stack([lengths(8, 3, n, n=8) for n in (0, 2, 5, 8)])
    out = torch.stack([layer(some, token_mask=mask) for some, mask in zip(x, masks, strict=True)])
    mapped = torch.vmap(lambda some, mask: layer(some, token_mask=mask))(x, masks)
    np.testing.assert_allclose(mapped.detach(), out.detach(), rtol=0, atol=1e-14)


def test_scattered_tokens():
    layer, (x,) = layer_of(), tensors((8, 6, 3))
    scattered, mask = x.permute(2, 0, 1), lengths(8, 3, 0)
    out = layer(scattered.contiguous(), token_mask=mask)
    np.testing.assert_allclose(layer(scattered, token_mask=mask).detach(), out.detach(), atol=1e-14)


(X,) = tensors((3, 6, 6))
LONG = "; cut it, or make the layer with a larger max_len"


@pytest.mark.parametrize(
    ("x", "mask", "error", "message"),
    [
        (X[..., :5], None, ValueError, "x must have shape (batch, n, 6), got shape (3, 6, 5)"),
        (X[0], None, ValueError, "x must have shape (batch, n, 6), got shape (6, 6)"),
        (X.float(), None, TypeError, "x must be of the type of the layer, torch.float64, got torch.float32"),
        (
            torch.nested.nested_tensor([X[0], X[1]], layout=torch.jagged),
            None,
            TypeError,
            "x must be a plain tensor, got a nested one: pad it, and mark what is real by a mask",
        ),
        (
            X.to_sparse(),
            None,
            TypeError,
            "x must be a dense tensor, got layout torch.sparse_coo: .to_dense() makes one",
        ),
        (X[:, :0], None, ValueError, f"x must hold between 1 and max_len = 8 tokens, got 0{LONG}"),
        (torch.cat([X, X[:, :3]], 1), None, ValueError, f"x must hold between 1 and max_len = 8 tokens, got 9{LONG}"),
        (X, X[..., 0], TypeError, "token_mask must be a bool tensor (True marks a real token), got torch.float64"),
        (
            X,
            real_tokens(n=8),
            ValueError,
            "token_mask must have shape (batch, n_keys) = (3, 6), got shape (3, 8)",
        ),
    ],
)
def test_bad_tokens(x, mask, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        layer_of()(x, token_mask=mask)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"heads": 4}, ValueError, "heads must divide dim = 6, got 4"),
        ({"max_len": 0}, ValueError, "max_len must be at least 1, got 0"),
        ({"k": 0}, ValueError, "k must be between 1 and max_len = 8, got 0"),
        ({"k": 9}, ValueError, "k must be between 1 and max_len = 8, got 9"),
        ({"sharing": "layerwise"}, ValueError, 'sharing must be "key-value" or "headwise", got \'layerwise\''),
        ({"dropout": 1.0}, ValueError, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": -0.1}, ValueError, "dropout must be at least 0 and below 1, got -0.1"),
        ({"bias": "False"}, TypeError, "bias must be True or False, got 'False'"),
        ({"dim": 10**30}, ValueError, f"dim must give a matrix of at most 2**40 numbers, got {10**30} times {10**30}"),
        ({"max_len": 2**40}, ValueError, f"max_len must give a matrix of at most 2**40 numbers, got 3 times {2**40}"),
        ({"device": "a"}, ValueError, "device must be a torch.device, a name such as \"cpu\" or None, got 'a'"),
        ({"device": 0.5}, TypeError, 'device must be a torch.device, a name such as "cpu" or None, got float'),
        ({"dtype": torch.int64}, TypeError, "dtype must be a floating-point type, got torch.int64"),
        ({"projection": torch.ones(3, 7)}, ValueError, "projection must have shape (3, 8), got shape (3, 7)"),
        ({"projection": torch.ones(4, 8)}, ValueError, "projection must have shape (3, 8), got shape (4, 8)"),
        (
            {"projection": torch.ones(3, 8), "dtype": torch.float64},
            TypeError,
            "projection must be of the type of the layer, torch.float64, got torch.float32",
        ),
        (
            {"projection": torch.ones(3, 8), "sharing": "headwise"},
            ValueError,
            'sharing must be "key-value" where a projection is given, got "headwise"',
        ),
    ],
)
def test_bad_sizes(options, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        LinformerSelfAttention(**{"dim": 6, "heads": 2, "max_len": 8, "k": 3} | options)


def test_layer_size_bounds():
    for sizes in ((1, 1, 1, 1), (6, 6, 8, 8), (6, 1, 8, 1)):
        layer = LinformerSelfAttention(*sizes, dropout=0.999)
        assert layer(torch.zeros(1, sizes[2], sizes[0])).shape == (1, sizes[2], sizes[0])
        assert layer(torch.zeros(1, 1, sizes[0])).shape == (1, 1, sizes[0])


def test_masks_have_a_name():
    """PyTorch's names for a mask, which mean something else, are refused, and so is a mask without a name."""
    unknown = "unexpected keyword argument"
    for keyword, words in (
        ("mask", unknown), ("key_padding_mask", "token_mask=~key_padding_mask"), ("attn_mask", "got attn_mask")
    ):  # fmt: skip
        with pytest.raises(TypeError, match=words):
            layer_of()(X, **{keyword: None})
        with pytest.raises(TypeError, match=unknown):
            linformer_attention(X[:, None], X[:, None], X[:, None], torch.eye(6), **{keyword: None})
    with pytest.raises(TypeError, match="masks go by name, got 2"):
        layer_of()(X, real_tokens())
    with pytest.raises(TypeError, match="positional argument"):
        linformer_attention(X[:, None], X[:, None], X[:, None], torch.eye(6), None, real_tokens())

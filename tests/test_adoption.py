"""Tried as a stranger would: what other people's tools do with the layer, and other people's data with the helpers.

The table of *Use it in your model* says what works; here each of its rows is done. Tools that this project does not
require are left out where they are not installed.
"""

import copy
import io
import re

import numpy as np
import pytest
import scipy.sparse
import torch
from attentions import tensors
from chapters import ROOT
from torch import nn

from lowrank_tutor.family import factorize_ratings, lda, nmf
from lowrank_tutor.jl import distortion, gaussian_projection
from lowrank_tutor.linformer import LinformerSelfAttention
from lowrank_tutor.pca import PCA
from lowrank_tutor.rank import numerical_rank
from lowrank_tutor.svd import best_rank_k, randomized_svd, relative_error, truncated_svd

PAGE = (ROOT / "book" / "use-linformer.md").read_text(encoding="utf-8")
(X,) = tensors((3, 40, 16), dtype=torch.float32)
(WHOLE,) = tensors((3, 64, 16), seed=1, dtype=torch.float32)
# Other people's tools warn of their own future.
others_warn = pytest.mark.filterwarnings("ignore")


def a_layer(bias=True):
    generator = torch.Generator().manual_seed(0)
    layer = LinformerSelfAttention(16, 4, 64, 8, bias=bias, generator=generator)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(generator=generator)
    return layer


def with_and_without_gradient(call):
    """The result; both ways give the same."""
    out = call()
    with torch.no_grad():
        np.testing.assert_allclose(call().detach(), out.detach(), rtol=0, atol=1e-6)
    return out.detach()


# the layer


def test_hooks_see_and_change_what_passes():
    layer, seen = a_layer(), []
    before = layer(X).detach()
    layer.to_k.register_forward_hook(lambda _module, _args, out: seen.append(out.shape))
    layer.to_v.register_forward_hook(lambda _module, _args, out: 2 * out)
    changed = with_and_without_gradient(lambda: layer(X))
    assert seen == [(3, 8, 16)] * 2, "keys are made of k rows"
    assert (changed - before).abs().max() > 0.1


@others_warn
def test_lora_adapts_it_and_merges():
    peft = pytest.importorskip("peft")
    layer = a_layer()
    before = layer(X).detach()
    config = peft.LoraConfig(target_modules=["to_q", "to_k", "to_v"], r=2, init_lora_weights=False)
    adapted = peft.get_peft_model(layer, config).eval()
    out = with_and_without_gradient(lambda: adapted(X))
    assert (out - before).abs().max() > 0.1
    np.testing.assert_allclose(adapted.merge_and_unload()(X).detach(), out, rtol=0, atol=1e-5)


@others_warn
def test_dynamic_quantization_keeps_it_near():
    layer = a_layer()
    packed = torch.ao.quantization.quantize_dynamic(copy.deepcopy(layer), {nn.Linear})
    out = with_and_without_gradient(lambda: packed(X))
    assert 0 < relative_error(out.flatten(1).numpy(), layer(X).detach().flatten(1).numpy()) < 0.05


@others_warn
def test_int8_weights_of_torchao_keep_it_near():
    quantization = pytest.importorskip("torchao.quantization")
    layer = a_layer().eval()
    before = layer(X).detach()
    quantization.quantize_(layer, quantization.Int8WeightOnlyConfig())
    out = with_and_without_gradient(lambda: layer(X))
    assert 0 < relative_error(out.flatten(1).numpy(), before.flatten(1).numpy()) < 0.05


@others_warn
@pytest.mark.parametrize("x", [X, WHOLE], ids=["short", "whole"])
def test_an_ensemble_runs_under_vmap(x):
    models = [LinformerSelfAttention(16, 4, 64, 8) for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(models)

    def one(parameters, x):
        return torch.func.functional_call(models[0], parameters, (x,))

    out = with_and_without_gradient(lambda: torch.vmap(one, (0, None))(parameters, x))
    for mapped, model in zip(out, models, strict=True):
        np.testing.assert_allclose(mapped, model(x).detach(), rtol=0, atol=1e-6)


@others_warn
def test_derivatives_of_every_mode_agree():
    layer = a_layer().double().requires_grad_(False)
    (x, step) = tensors((2, 5, 16), (2, 5, 16))

    def total(x):
        return layer(x).square().sum()

    np.testing.assert_allclose(torch.func.jacrev(total)(x), torch.func.jacfwd(total)(x), atol=1e-10)
    slope = torch.func.jvp(total, (x,), (step,))[1]
    np.testing.assert_allclose(slope, (torch.func.grad(total)(x) * step).sum(), rtol=1e-10)
    curvature = torch.func.hessian(total)(x[:1, :2]).reshape(32, 32)
    np.testing.assert_allclose(curvature, curvature.T, atol=1e-10)
    with torch.autograd.forward_ad.dual_level():
        dual = total(torch.autograd.forward_ad.make_dual(x, step))
        np.testing.assert_allclose(torch.autograd.forward_ad.unpack_dual(dual).tangent, slope)


@others_warn
def test_a_nested_tensor_is_refused_with_the_way_out():
    nested = torch.nested.nested_tensor([X[0], X[1, :7]], layout=torch.jagged)
    with pytest.raises(TypeError, match=r"^x must be a plain tensor, got a nested one: pad it, and mark what is real"):
        a_layer()(nested)


class Masked(nn.Module):
    """The layer with its mask by position, as exporters hand things over."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, real):
        return self.layer(x, token_mask=real)


@others_warn
@pytest.mark.parametrize("masked", [False, True])
def test_an_exported_program_takes_every_length(masked):
    n = torch.export.Dim("n", min=1, max=64)
    layer = Masked(a_layer()) if masked else a_layer()
    example = (X, torch.ones(3, 40, dtype=torch.bool))[: 1 + masked]
    program = torch.export.export(layer, example, dynamic_shapes=({1: n},) * (1 + masked)).module()
    for length in (1, 2, 33, 64):
        x, real = WHOLE[:, :length], torch.arange(length) < torch.tensor([[64], [30], [1]])
        given = (x, real)[: 1 + masked]
        np.testing.assert_allclose(program(*given).detach(), layer(*given).detach(), rtol=0, atol=2e-6)


@others_warn
def test_onnx_takes_every_length():
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    layer, file = a_layer(), io.BytesIO()
    n = torch.export.Dim("n", min=1, max=64)
    with torch.no_grad():
        torch.onnx.export(layer, (X,), dynamo=True, dynamic_shapes=({1: n},), verbose=False).save(file)
    session = onnxruntime.InferenceSession(file.getvalue())
    for length in (1, 33, 64):
        (out,) = session.run(None, {session.get_inputs()[0].name: WHOLE[:, :length].numpy()})
        np.testing.assert_allclose(out, layer(WHOLE[:, :length]).detach(), rtol=0, atol=1e-5)


BERT = re.search(r"```python\n(class LinformerForBert.*?)```", PAGE, re.DOTALL)


@others_warn
def test_bert_takes_the_layer_as_the_page_says():
    transformers = pytest.importorskip("transformers")
    recipe = {}
    exec("import torch\nfrom torch import nn\nfrom lowrank_tutor.linformer import *\n" + BERT[1], recipe)
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32,
        max_position_embeddings=24,
    )  # fmt: skip
    torch.manual_seed(0)
    exact = transformers.BertModel(config).eval()
    tokens = torch.randint(0, 50, (2, 24))
    real = torch.arange(24) < torch.tensor([[24], [15]])
    with torch.no_grad():
        expected = exact(tokens, attention_mask=real.long()).last_hidden_state
    model = recipe["compress"](copy.deepcopy(exact), k=24)
    for layer in model.encoder.layer:
        layer.attention.self.layer.e.data.copy_(torch.eye(24))
    out = model(tokens, attention_mask=real.long()).last_hidden_state.detach()
    np.testing.assert_allclose(out[real], expected[real], rtol=0, atol=1e-5)
    # fewer mixtures; it trains, ignores padding, and comes back from a file
    model = recipe["compress"](copy.deepcopy(exact), k=4).eval()
    model(tokens, attention_mask=real.long()).last_hidden_state.square().sum().backward()
    assert model.encoder.layer[0].attention.self.layer.e.grad.abs().max() > 0
    with torch.no_grad():
        out = model(tokens, attention_mask=real.long()).last_hidden_state
        alone = model(tokens[1:, :15]).last_hidden_state
        np.testing.assert_allclose(out[1:, :15], alone, rtol=0, atol=1e-5)
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        again = recipe["compress"](transformers.BertModel(config), k=4).eval()
        again.load_state_dict(torch.load(file, weights_only=True))
        assert torch.equal(again(tokens, attention_mask=real.long()).last_hidden_state, out)


# linear algebra


def ratings(n=60, m=40, share=0.4, seed=0):
    rng = np.random.default_rng(seed)
    whole = rng.standard_normal((n, 2)) @ rng.standard_normal((2, m)) + 3
    return whole, rng.random((n, m)) < share


def test_sparse_ratings_give_what_the_table_gives():
    table, known = ratings()
    known[7], known[:, 5] = False, False
    triplets = scipy.sparse.coo_array((table[known], np.nonzero(known)), shape=table.shape)
    for penalty in (1.0, 0.0):
        dense = factorize_ratings(table, known, 3, regularization=penalty, rng=0, max_sweeps=5)
        sparse = factorize_ratings(triplets, None, 3, regularization=penalty, rng=0, max_sweeps=5)
        assert sparse.losses[-1] == pytest.approx(dense.losses[-1], rel=0.05)
        np.testing.assert_array_equal(np.isnan(sparse.estimates), np.isnan(dense.estimates))
    assert np.isnan(sparse.p[7]).all()
    with pytest.raises(ValueError, match=r"^observed must be None for sparse ratings, whose stored entries are the"):
        factorize_ratings(triplets, known, 3)
    with pytest.raises(
        TypeError,
        match=r"^observed must be an array of bools .True marks a known rating. unless ratings are sparse, got None",
    ):
        factorize_ratings(table, None, 3)


def test_a_large_table_settles_where_the_whole_svd_would_have_begun():
    table, known = ratings(620, 530, share=0.2)
    found = factorize_ratings(table, known, 3, regularization=0.1, rng=0)
    assert found.converged
    assert relative_error(found.estimates, table) < 0.01


def test_nmf_says_of_new_rows_what_they_hold():
    rng = np.random.default_rng(0)
    parts = rng.random((3, 12))
    found = nmf(rng.random((40, 3)) @ parts, 3, rng=0)
    weights = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.5, 3.0, 0.0]])
    new = weights @ found.h
    np.testing.assert_allclose(found.transform(new), weights, atol=1e-6)
    noisy = new + rng.random(new.shape)
    w = found.transform(noisy)
    slope = (w @ found.h - noisy) @ found.h.T  # at the optimum: none where w is positive, none downhill elsewhere
    assert (w >= 0).all()
    assert (slope > -1e-6).all()
    assert np.abs(slope[w > 0]).max() < 1e-6
    with pytest.raises(ValueError, match=r"^x must have 12 columns, got shape \(3, 11\)$"):
        found.transform(noisy[:, :11])


def test_lda_of_many_points_is_that_of_their_decomposition(monkeypatch):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 2000)
    x = rng.standard_normal((2000, 5)) * [1, 2, 3, 4, 5] + rng.standard_normal((4, 5))[labels] * 3
    found = lda(x, labels, 3)
    monkeypatch.setattr("lowrank_tutor.family.discriminants._TALL", 10**9)
    judge = lda(x, labels, 3)
    np.testing.assert_allclose(found.axes, judge.axes, atol=1e-10)
    np.testing.assert_allclose(found.ratio, judge.ratio, atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: truncated_svd(a, 1),
        lambda a: best_rank_k(a, 1),
        lambda a: relative_error(a, a),
        lambda a: numerical_rank(a),
        lambda a: PCA(1).fit(a),
        lambda a: nmf(a, 1),
        lambda a: lda(a, [0, 1, 0], 1),
        lambda a: distortion(a, np.eye(3)),
    ],
)
def test_what_takes_no_sparse_matrix_says_so_and_what_to_do(call):
    with pytest.raises(
        TypeError, match=r"must be a dense array, got a sparse csr_array of shape \(3, 3\): \.toarray\("
    ):
        call(scipy.sparse.eye_array(3).tocsr())


@pytest.mark.parametrize(
    "call",
    [
        lambda rng: randomized_svd(np.random.default_rng(1).random((90, 80)), 2, rng=rng).u,
        lambda rng: gaussian_projection(2, 3, rng),
        lambda rng: nmf(np.random.default_rng(1).random((9, 8)), 2, rng=rng, max_sweeps=3).w,
        lambda rng: factorize_ratings(*ratings(9, 8), 2, rng=rng, max_sweeps=2).p,
    ],
)
def test_a_seed_is_as_good_as_a_generator(call):
    np.testing.assert_array_equal(call(42), call(np.random.default_rng(42)))
    np.testing.assert_array_equal(call(np.int64(42)), call(42))


def test_distances_of_many_points_are_those_of_the_steps(monkeypatch):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.standard_normal((500, 30)), 1e3 + 1e-6 * rng.standard_normal((120, 30))])
    for r in (gaussian_projection(5, 30, 1), np.eye(30)[:1]):
        found = distortion(x, r)
        monkeypatch.setattr("lowrank_tutor.jl._FEW", 10**9)
        np.testing.assert_allclose(found, distortion(x, r), rtol=1e-9, atol=1e-11)
        monkeypatch.undo()
    x[601] = x[77]
    with pytest.raises(ValueError, match=r"^x must hold different points, got the same in rows 77 and 601$"):
        distortion(x, r)

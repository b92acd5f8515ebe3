"""Use it in your model: the page's cells run in their order, and what it says of them is so."""

import math

import pytest
import torch
from chapters import ROOT, code_cells, run

PAGE = ROOT / "book" / "use-linformer.md"


@pytest.fixture(scope="module")
def page():
    ran = run(PAGE)
    return ran.namespace | {"printed": ran.printed}


def test_a_hundred_steps_teach_the_task(page):
    x, real, above = page["batch"](64, torch.Generator().manual_seed(1))
    with torch.no_grad():
        right = ((page["model"](x, real) > 0) == above)[real].float().mean()
    alone = ((x > 0) == above)[real].float().mean()
    assert right > 0.95
    assert 0.6 < alone < 0.75, "without the others a token cannot know"


def test_exact_attention_stands_beside_it(page):
    assert page["right"]["exact"] == pytest.approx(0.99, abs=0.01)
    assert page["right"]["Linformer"] == pytest.approx(0.98, abs=0.01)
    assert max(page["curves"]["exact"][-1], page["curves"]["Linformer"][-1]) < 0.05 < 0.7 < page["curves"]["exact"][0]
    exact = page["models"]["exact"].encoder.layers[0].self_attn
    assert isinstance(exact, torch.nn.MultiheadAttention)


def test_the_sign_of_one_number_is_right_two_times_in_three():
    draw = torch.Generator().manual_seed(0)
    mean, apart = 2 * torch.randn(10**6, generator=draw), torch.randn(10**6, generator=draw)
    found = ((mean + apart > 0) == (apart > 0)).double().mean().item()
    assert 0.5 + math.asin(1 / math.sqrt(5)) / math.pi == pytest.approx(found, abs=0.002)
    assert "right 65% of the time" in PAGE.read_text(encoding="utf-8")


def test_saved_and_loaded_it_answers_alike_and_padding_moves_nothing(page):
    assert "saved and loaded: largest difference 0.0\n" in page["printed"]
    assert (page["alone"] - page["padded"]).abs().max() < 1e-4
    assert page["n"] < 128, "the first sequence is padded, so the comparison means something"


def test_an_n_by_n_mask_is_refused(page):
    layer = page["LinformerEncoderLayer"](32, 4, 256, 16, 64)
    with pytest.raises(ValueError, match=r"^src_mask must be None, got Tensor: there are no n by n weights$"):
        layer(torch.zeros(1, 8, 32), src_mask=torch.zeros(8, 8))


def test_queries_may_be_fewer_than_keys(page):
    assert page["mixed"].shape == (2, 10, 32)


def test_trained_weights_change_nothing_with_the_identity(page):
    assert page["moved"] < 1e-5
    assert page["taken"].resized(80)(page["x50"]).shape == (2, 50, 32)


def test_one_parameter_serves_six_layers(page):
    assert "1 matrix for 6 layers" in page["printed"]
    assert "e" not in dict(page["fixed"].named_parameters())


def test_what_is_refused_is_shown(page):
    assert "x must hold between 1 and max_len = 256 tokens, got 300" in page["printed"]
    assert "causal must be False, got True" in page["printed"]


def test_its_cells_are_short():
    assert max(len(cell.source.splitlines()) for cell in code_cells(PAGE)) <= 24


def test_the_encoder_layer_hands_on_place_and_dropout(page):
    layer = page["LinformerEncoderLayer"](32, 4, 256, 16, 64, dropout=0.25, dtype=torch.float64, device="meta")
    assert layer.self_attn.dropout == 0.25
    assert {(p.dtype, p.device.type) for p in layer.parameters()} == {(torch.float64, "meta")}

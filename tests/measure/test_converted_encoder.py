"""The converted encoder: its attentions against dense masks, its score by hand, and its texts."""

import math

import pytest
import torch

from measure.training import converted_encoder as study

N, BLOCK, REAL = 64, 4, 45  # the last tokens are padding; block 12 of 16 has one real token


def keys_of(kind, place, k, v):
    """Return what a query at a place reads, one by one: keys, values and how many tokens each
    stands for.
    """
    tokens = [(k[i], v[i], 1) for i in range(REAL)]
    blocks = [slice(start, min(start + BLOCK, REAL)) for start in range(0, REAL, BLOCK)]
    if kind == "none":
        return [(k[0], torch.zeros_like(v[0]), 1)]
    if kind == "local window":
        reach = study.cost(N, BLOCK) // 2
        return [token for i, token in enumerate(tokens) if abs(i - place) <= reach]
    if kind == "averages":
        rows = study.averages(study.cost(N, BLOCK), N) > 0
        windows = [row[:REAL].nonzero()[:, 0] for row in rows]
        return [
            (k[w].mean(0), v[w].mean(0), len(w) / row.sum())
            for w, row in zip(windows, rows, strict=True)
            if len(w)
        ]
    if kind == "window and averages":
        own, read = place // BLOCK, []
        for at, block in enumerate(blocks):
            near = (
                tokens[block]
                if abs(at - own) <= 1
                else [(k[block].mean(0), v[block].mean(0), len(tokens[block]))]
            )
            read += near
        return read
    return tokens


@pytest.mark.parametrize("kind", [kind for kind in study.KINDS if kind != study.DRAWN])
def test_attention_by_loops(kind):
    q, k, v = torch.randn(
        3, 2, 2, N, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    real = torch.arange(N) < torch.tensor([[REAL], [N]])
    e = study.averages(study.cost(N, BLOCK), N)
    found = study.attention(kind, N, BLOCK)(q, k, v, real, e)[0, 1]
    for place in range(REAL):
        keys, values, votes = zip(*keys_of(kind, place, k[0, 1], v[0, 1]), strict=True)
        logits = torch.stack(keys) @ q[0, 1, place] / math.sqrt(5) + torch.tensor(votes).log()
        torch.testing.assert_close(
            found[place], logits.softmax(0) @ torch.stack(values), msg=f"{kind}, {place}"
        )


def test_window_has_its_cost():
    x, v, real = (
        torch.zeros(1, 1, 256, 1),
        torch.zeros(1, 1, 256, 1, requires_grad=True),
        torch.ones(1, 256) > 0,
    )
    study.attention("local window", 256, 16)(x, x, v, real, None)[0, 0, 128].backward()
    assert int((v.grad > 0).sum()) == study.cost(256, 16) == 48 + 16 - 3


def test_padding_changes_nothing():
    encoder = study.the_encoder(None)
    texts = [[7 + i % 40 for i in range(30)]]
    for kind in study.KINDS:
        model = study.Converted(encoder, kind, N, BLOCK, 0)
        ids, real = study.batch(encoder, texts, N)
        other = torch.where(real, ids, 9)
        torch.testing.assert_close(model(ids, real)[0], model(other, real)[0], msg=kind)


def test_documents_hide_summary():
    test, train = study.corpus(study.SHORT)
    assert len(test) == study.SHORT.documents
    for page in test:
        assert study.plain(page.summary) not in study.plain(page.rest), page
    assert not {page.file for page in test} & {page.file for page in train}
    everything = test + train
    assert len({study.plain(page.summary) for page in everything}) == len(everything)


def test_recall_at_1_by_hand():
    """The second is behind another, and the third in a tie."""
    documents = torch.tensor([[0.9, 0.2, 0.1], [0.5, 0.5, 0.4], [0.1, 0.8, 0.4]])
    assert study.recall_at_1(torch.eye(3), documents) == 0.3333

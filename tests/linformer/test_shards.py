"""One sequence over several processes against one: errors, refusals, timeouts and counts.

First threads of this process play a group, which takes no time. Then come the four processes of
tests/shards_worker.py, started once.
"""

import copy
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import shards_worker
import torch
from shards_worker import DIM, KINDS, LAYERS, LENGTHS, MAX_LEN, SECONDS

from lowrank_tutor.linformer import LinformerSelfAttention, linformer_cost, shards

distributed = torch.distributed
pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork") or not distributed.is_available() or not distributed.is_gloo_available(),
    reason="needs torch.distributed with gloo, and processes that can be forked",
)


class Member:
    """A thread that plays one process of a group: what it hands to a collective meets what the others hand to it."""

    def __init__(self, rank, size, barrier, handed):
        self._rank, self._size, self._barrier, self._handed = rank, size, barrier, handed

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def exchange(self, tensor):
        self._handed[self._rank] = tensor.detach().clone()
        self._barrier.wait(20)
        everything = [tensor.clone() for tensor in self._handed]
        self._barrier.wait(20)
        return everything


@pytest.fixture
def together(monkeypatch):
    """Run a function of a member of a group in so many threads; return the results in order of the ranks."""

    def all_gather(told, own, group):
        for place, tensor in zip(told, group.exchange(own), strict=True):
            place.copy_(tensor)

    def all_reduce(tensor, group):
        tensor.copy_(sum(group.exchange(tensor)))

    monkeypatch.setattr(distributed, "all_gather", all_gather)
    monkeypatch.setattr(distributed, "all_reduce", all_reduce)

    def run(size, function):
        barrier, handed = threading.Barrier(size), [None] * size

        def play(rank):
            try:
                return function(Member(rank, size, barrier, handed))
            except BaseException:
                barrier.abort()  # nobody waits for this one
                raise

        with ThreadPoolExecutor(size) as pool:
            return [future.result() for future in [pool.submit(play, rank) for rank in range(size)]]

    return run


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """What each of four processes has found, in their order; they have one thread each."""
    folder = tmp_path_factory.mktemp("found")
    run = subprocess.run(
        [sys.executable, shards_worker.__file__, folder],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(4)]


@pytest.fixture(params=["2", "4"])
def found(processes, request):
    """What each process of a group of so many has found."""
    return [process[request.param] for process in processes[: int(request.param)]]


# in threads: what goes in and comes out


@pytest.mark.parametrize(
    ("told", "masked", "max_len", "expected"),
    [
        ([(2, 4), (2, 1), (2, 6)], [False] * 3, 11, [(0, 11, False), (4, 11, False), (5, 11, False)]),
        ([(2, 4), (2, 1), (2, 6)], [False, True, False], 12, [(0, 11, True), (4, 11, True), (5, 11, True)]),
        (
            [(2, 4), (2, 1), (3, 6)],
            [False] * 3,
            12,
            "x must hold as many sequences in every process, got 2, 2, 3",
        ),
        (
            [(2, 4), (2, 1), (2, 6)],
            [False] * 3,
            10,
            "x must hold at most max_len = 10 tokens in all processes together, got 4 + 1 + 6 = 11; cut it, or make the"
            " layer with a larger max_len",
        ),
        (
            [(2, 4), None, (2, 6)],
            [False] * 3,
            12,
            "x must fit the layer in every process, got a refusal in process 1",
        ),
    ],
)
def test_the_processes_tell_each_other_where_their_tokens_lie(together, told, masked, max_len, expected):
    def find(group):
        shape, mask = told[group.rank()], torch.ones(1) if masked[group.rank()] else None
        try:
            if shape is None:
                with shards.announce_refusal(group, torch.device("cpu")):
                    raise TypeError("its own words")
            return shards.locate(group, torch.zeros(*shape, DIM), mask, max_len)
        except (TypeError, ValueError) as error:
            return str(error)

    everywhere = [expected] * 3 if isinstance(expected, str) else expected
    assert together(3, find) == ["its own words" if t is None else e for t, e in zip(told, everywhere, strict=True)]


def test_sums_have_the_types_of_their_terms_and_gradients_from_everywhere(together):
    def add_up(group):
        own = torch.full((2, 3), group.rank() + 1.0, dtype=torch.float64, requires_grad=True)
        sums = shards.add_up(group, own, torch.tensor([group.rank()], dtype=torch.float32))
        (sums[0] * 10 ** group.rank()).sum().backward()
        return [sums[0].tolist(), sums[1].tolist(), [it.dtype for it in sums], own.grad.tolist()]

    expected = [[[6.0] * 3] * 2, [3.0], [torch.float64, torch.float32], [[111.0] * 3] * 2]
    assert together(3, add_up) == [expected] * 3


@pytest.mark.parametrize("kind", ["whole", "short", "masked"])
@pytest.mark.parametrize("sharing", ["key-value", "headwise"])
def test_a_sequence_in_threads_is_that_of_one(together, sharing, kind):
    x, cuts = shards_worker.tokens(), [(0, 4), (4, 5), (5, 11)]
    mask = torch.arange(11) < torch.tensor([[9], [11], [3], [0]]) if kind == "masked" else None
    alone = shards_worker.layer_of(sharing, 11 if kind == "whole" else MAX_LEN, bias=True)
    with torch.no_grad():
        alone.to_k.bias.fill_(0.3)
        alone.to_v.bias.fill_(0.2)

    def run(layer, first, last, group=None):
        layer.process_group = group
        rows = x[:, first:last].clone().requires_grad_()
        out = layer(rows, token_mask=None if mask is None else mask[:, first:last])
        (out * shards_worker.weights()[:, first:last]).sum().backward()
        return out.detach(), rows.grad

    def play(group):
        layer = alone.resized(alone.max_len)
        return run(layer, *cuts[group.rank()], group)

    expected = run(copy.deepcopy(alone), 0, 11)
    for found, judge in zip(zip(*together(3, play), strict=True), expected, strict=True):
        torch.testing.assert_close(torch.cat(found, 1), judge, rtol=0, atol=1e-12)


def test_a_layer_that_grows_keeps_its_group_and_tells_it_what_it_refuses(together):
    def play(group):
        layer = shards_worker.layer_of()
        layer.process_group = group
        layer = layer.resized(MAX_LEN + 1)
        assert layer.process_group is group
        x = shards_worker.tokens(4 if group.rank() else 0)
        with pytest.raises(ValueError, match=r"^x must (hold between|fit the layer)") as refused:
            layer(x)
        return str(refused.value)

    own, others = together(2, play)
    assert own.startswith("x must hold between 1 and max_len = 16 tokens, got 0")
    assert others == "x must fit the layer in every process, got a refusal in process 0"


# one process is the judge


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", LAYERS)
def test_outputs_and_gradients_are_those_of_one_process(found, layer, kind):
    matrices = {"key-value": {"e"}, "headwise": {"e", "f"}, "pooling": set()}[layer]
    weights = {"to_q.weight", "to_k.weight", "to_v.weight", "to_out.weight", "to_out.bias"}
    for dtype, bound in (("float32", 1e-5), ("float64", 1e-12)):
        results = [process[f"{layer}, {kind}, torch.{dtype}"] for process in found]
        errors = [result["errors"] for result in results]
        assert {name for name in errors[0] if name.startswith("gradient of")} == {
            "gradient of the tokens", *(f"gradient of {name}" for name in matrices | weights)
        }  # fmt: skip
        assert {"output", "output without a gradient", "output in inference mode"} < set(errors[0])
        assert max(max(error.values()) for error in errors) < bound
        if kind == "all hidden":
            assert all(result["largest"] == 0 for result in results)
        else:
            assert all(result["largest"] > 0.3 and result["own part"] > 0.1 for result in results)


def test_a_gradient_that_is_not_summed_is_wrong(found):
    assert min(process["contrast"]["gradient that is passed on"] for process in found) > 0.01


def test_the_norm_rule_of_one_process_is_wrong(found):
    assert min(process["contrast"]["norm rule of one process"] for process in found) > 0.1


def test_a_model_with_a_shared_matrix_in_data_parallel_gets_the_mean_of_the_gradients(found):
    for process in found:
        assert {"output", "gradient of the tokens", "gradient of first.e"} < set(process["model"])
        assert max(process["model"].values()) < 1e-12


def test_a_gradient_of_the_gradient_is_right_too(found):
    assert max(max(process["second_gradient"].values()) for process in found) < 1e-12


def test_bfloat16_and_autocast_round_and_no_more(found):
    for process in found:
        assert set(process["rounded"]) == {"bfloat16", "autocast"}
        assert 0 < max(process["rounded"].values()) < 0.03


def test_two_groups_hold_two_sequences(found):
    assert max(process["halves"]["error"] for process in found) < 1e-12


def test_no_sequence_gives_no_output(found):
    assert [process["edges"]["no sequence"] for process in found] == [[0, n, DIM] for n in LENGTHS[len(found)]]


def test_a_gradient_may_be_asked_for_in_one_process_only(found):
    assert [process["edges"]["asked for"] for process in found] == [True] + [False] * (len(found) - 1)
    assert found[0]["edges"]["gradient in one process"] < 1e-12


# refusals and timeouts

OWN_WORDS = {
    "another type": ("TypeError", "x must be of the type of the layer, torch.float64, got torch.float32"),
    "no tokens": (
        "ValueError",
        f"x must hold between 1 and max_len = {MAX_LEN} tokens, got 0; cut it, or make the layer with a larger max_len",
    ),
    "no tensor": ("TypeError", "x must be a tensor, got NoneType"),
    "a mask that does not fit": ("ValueError", "token_mask must have shape (batch, n_keys) = (4, 4), got shape (1, 1)"),
    "causal": (
        "ValueError",
        "causal must be False, got True: every compressed key mixes all tokens, the future too, and no mask can take"
        " that out again; use exact attention",
    ),
}


@pytest.mark.parametrize("name", OWN_WORDS)
def test_what_one_process_refuses_all_refuse_at_once(found, name):
    *others, last = (process["refused"][name] for process in found)
    assert (last["error"], last["message"]) == OWN_WORDS[name]
    for other in others:
        assert other["error"] == "ValueError"
        assert other["message"] == f"x must fit the layer in every process, got a refusal in process {len(others)}"
        assert other["seconds"] < 30  # the timeout is 60


@pytest.mark.parametrize(
    ("name", "found_there", "words"),
    [
        (
            "more sequences",
            {2: "4, 5", 4: "4, 4, 4, 5"},
            "x must hold as many sequences in every process, got {}",
        ),
        (
            "too long",
            {2: "2 + 14 = 16", 4: "2 + 2 + 2 + 10 = 16"},
            "x must hold at most max_len = 15 tokens in all processes together, got {}; cut it, or make the layer with"
            " a larger max_len",
        ),
    ],
)
def test_what_does_not_fit_together_all_refuse_in_the_same_words(found, name, found_there, words):
    for process in found:
        refusal = process["refused"][name]
        assert (refusal["error"], refusal["message"]) == ("ValueError", words.format(found_there[len(found)]))
        assert refusal["seconds"] < 30


def test_what_fits_is_taken_to_the_bound_and_after_a_refusal(found):
    for process in found:
        assert process["refused"]["as long as can be"]["error"] is None
        assert process["refused"]["afterwards"]["error"] is None


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_process_that_does_not_arrive_makes_the_others_raise(found, phase):
    *others, missing = (process["late"] for process in found)
    assert missing == {}
    for other in others:
        assert other[phase]["error"] == "RuntimeError"
        assert 0 < other[phase]["seconds"] < SECONDS + 20
    assert max(other[phase]["seconds"] for other in others) > SECONDS / 2


def test_what_is_not_a_group_is_refused():
    words = "process_group must be a torch.distributed.ProcessGroup that this process belongs to, got 'gloo'"
    with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
        LinformerSelfAttention(6, 2, 8, 3, process_group="gloo")


def test_a_group_of_others_is_refused(found):
    for process in found:
        refusal = process["halves"]["of others"]
        assert refusal["error"] == "TypeError"
        assert refusal["message"].startswith("process_group must be a torch.distributed.ProcessGroup that this process")


def test_where_pytorch_has_no_processes_a_layer_works_alone(monkeypatch):
    monkeypatch.delattr(shards.distributed, "ProcessGroup")
    assert LinformerSelfAttention(6, 2, 8, 3)(torch.zeros(1, 8, 6)).shape == (1, 8, 6)
    with pytest.raises(TypeError, match="process_group must be"):
        LinformerSelfAttention(6, 2, 8, 3, process_group="gloo")


# what a layer holds


def test_a_group_is_no_part_of_the_state_and_can_be_set_and_taken_away(found):
    for process in found:
        held = process["held"]
        assert held["state"]
        assert held["same print"]
        assert (held["deepcopy"], held["pickle"]) == ("TypeError", "TypeError")
        assert max(held["alone"], held["together"]) < 1e-12


# communication


@pytest.mark.parametrize("rule", ["full", "short"])
@pytest.mark.parametrize(("sharing", "matrices"), [("key-value", 1), ("headwise", 2)])
def test_a_step_sends_the_numbers_that_the_documentation_gives(found, sharing, matrices, rule):
    """A layer of k = 4 and D = 8 in float32. Neither the length nor the number of processes enters."""
    for process in found:
        for batch, n in itertools.product((1, 3), (16, 64)):
            joined = batch * 4 * matrices * (8 + (rule == "short"))
            step = process["count"][f"{sharing}, n = {n}, batch = {batch}, {rule}"]
            assert step["forward"] == [["all_gather", 4, 8], ["all_reduce", joined, 4]]
            assert step["backward"] == [["all_reduce", joined, 4]]
            assert {name for name, *_ in step["parameters"]} == {"all_reduce"}
            max_len = n + (rule == "short")
            numbers = sum(count for _, count, _ in step["parameters"])
            assert numbers == matrices * 4 * max_len + 4 * 8**2 + 8
            assert numbers == linformer_cost(n, 8, 2, 4, sharing=sharing, max_len=max_len).parameters


# the example


def test_the_example_of_the_chapter_runs(processes):
    for rank, process in enumerate(processes):
        (difference,) = re.findall(rf"^process {rank}: 1024 tokens, (\S+) from one process$", process["example"], re.M)
        assert float(difference) < 1e-5

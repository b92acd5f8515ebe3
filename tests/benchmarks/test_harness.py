"""Methods are timed in turn, those that fail are named, and what is written says where it was measured."""

import json

import pytest

from benchmarks import harness
from benchmarks.harness import Timing, due, interleaved, say_if_busy, write


def fake_clock(seconds):
    """Say that each method takes what the table says, and write down which ran when."""
    log = []

    def clock(function, run):
        name = function(run)
        log.append((run, name))
        return seconds[name], name

    return clock, log


def test_a_method_that_takes_long_gets_fewer_runs_spread_over_the_rounds():
    seconds = {"quick": 0.1, "slow": 2.0, "slowest": 100.0}
    clock, log = fake_clock(seconds)
    named = {name: lambda run, name=name: name for name in seconds}
    timings = interleaved(named, 12, lambda result: result, clock=clock, limit=12, least=3)
    assert {name: len(timing.seconds) for name, timing in timings.items()} == {"quick": 12, "slow": 6, "slowest": 3}
    assert [run for run, name in log if name == "slow"] == [-1, 0, 2, 4, 6, 8, 10]
    assert [run for run, name in log if name == "slowest"] == [-1, 0, 4, 8]
    assert timings["slow"].notes == ["slow"] * 6


def test_without_a_limit_every_method_runs_in_every_round_and_in_a_new_order():
    clock, log = fake_clock({"a": 50.0, "b": 1.0, "c": 2.0})
    interleaved({name: lambda run, name=name: name for name in "abc"}, 8, lambda _: None, clock=clock)
    rounds = [[name for run, name in log if run == number] for number in range(-1, 8)]
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len({tuple(names) for names in rounds}) > 1


def test_a_method_that_raises_is_not_run_again():
    runs = []

    def broken(run):
        runs.append(run)
        raise ValueError("no")

    timings = interleaved({"broken": broken, "good": lambda run: run}, 4, lambda result: result)
    assert (timings["broken"].error, runs) == ("ValueError: no", [-1])
    assert timings["good"].notes == [0, 1, 2, 3]


@pytest.mark.parametrize(("runs", "repeats"), [(3, 10), (1, 7), (7, 7), (5, 6)])
def test_as_many_rounds_are_due_as_a_method_gets(runs, repeats):
    assert sum(due(run, runs, repeats) for run in range(repeats)) == runs
    assert due(-1, runs, repeats)


def test_the_spread_is_that_of_the_middle_half():
    timing = Timing([4.0, 1.0, 2.0, 3.0, 5.0], [], None)
    assert (timing.best, timing.quartiles, timing.median) == (1.0, (2.0, 4.0), 3.0)
    assert Timing([2.0], [], None).quartiles == (2.0, 2.0)


def test_a_busy_machine_is_mentioned(capsys):
    say_if_busy({"load_average": [0.4, 0, 0], "cores": 2})
    assert capsys.readouterr().out == ""
    say_if_busy({"load_average": [0.6, 0, 0], "cores": 2})
    assert "busy" in capsys.readouterr().out


@pytest.mark.parametrize("meta", [{"date": "today"}, {"machine": {"cores": 2}}])
def test_a_record_is_written_with_the_load_at_the_end_where_it_names_a_machine(tmp_path, monkeypatch, meta):
    monkeypatch.setattr(harness, "DATA", tmp_path)
    path = write("some", meta, [{"n": 1}, {"n": 2}])
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["rows"] == [{"n": 1}, {"n": 2}]
    assert ("load_average_at_end" in record["meta"].get("machine", {})) == ("machine" in meta)

"""Two runners under the roof of a card: their least times are those of the package."""

import numpy as np
import pytest

from lowrank_tutor.figures import race
from lowrank_tutor.roofline import GPUS, gpu_crossover, gpu_floor


@pytest.fixture(scope="module")
def hand(show):
    return show(race())


def test_random_states_match_roofline(hand):
    rng = np.random.default_rng(0)
    states = []
    for _ in range(20):
        k = int(rng.choice([128, 256, 1024]))
        n = int(np.exp(rng.uniform(np.log(max(512, k)), np.log(65536))))
        states.append({"gpu": str(rng.choice(list(GPUS))), "k": k, "n": n})

    def check(seen):
        state = {name: seen.call("state")[name] for name in ("gpu", "k", "n")}
        gpu, k, n = state.values()
        exact, mixed = gpu_floor(n, 64, 8, gpu), gpu_floor(n, 64, 8, gpu, k=k)
        expected = {
            "exact": 1000 * exact.seconds,
            "mixed": 1000 * mixed.seconds,
            "ratio": exact.seconds / mixed.seconds,
            "pays": gpu_crossover(k, 64, 8, gpu),
        }
        assert seen.shown() == pytest.approx(expected), state
        assert race(gpu, k, n).numbers == pytest.approx(expected), state
        for name, floor in (("exact", exact), ("mixed", mixed)):
            runner = seen.call("table")[name]
            assert runner["wall"] == floor.wall
            assert runner["at"] == pytest.approx(floor.flops / floor.moved_bytes)
            assert runner["speed"] == pytest.approx(floor.flops / floor.seconds)

    hand.tour(states, check)


def test_runner_and_choices_move(hand):
    hand.set(**race().state)
    runner = hand.handle("tokens")
    runner.press("ArrowRight")
    assert hand.call("state")["n"] == round(8192 * 2**0.25)
    runner.press("Home")
    hand.figure.get_by_label("1,024", exact=True).check()
    assert hand.call("state") == {"gpu": "T4", "k": 1024, "n": 1024}
    hand.said("the mixtures are slower")
    runner.press("End")
    hand.drag("tokens", -150, 0)
    assert 3000 < hand.call("state")["n"] < 12000
    hand.figure.get_by_label("L4", exact=True).check()
    hand.figure.get_by_label("256", exact=True).check()
    hand.said("fewer would save little")


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_race_fills_bars(show, motion):
    hand = show(race(), reduced_motion=motion)
    bar = "(figure) => Number(figure.querySelectorAll('svg')[1].querySelector('rect').getAttribute('width'))"
    whole = hand.figure.evaluate(bar)
    hand.button("Race").click()
    if motion == "reduce":
        assert hand.figure.evaluate(bar) == whole
    else:
        assert hand.figure.evaluate(bar) < whole / 2
        hand.button("Start again").click()  # a change ends the race
        hand.page.wait_for_function(f"(figure) => ({bar})(figure) === {whole}", arg=hand.figure.element_handle())


@pytest.mark.parametrize("wrong", [{"gpu": "A10"}, {"k": 64}, {"n": 511}, {"n": 65537}, {"n": 600.5}])
def test_bad_arguments(hand, wrong):
    with pytest.raises(ValueError, match=f"^{next(iter(wrong))} must be"):
        race(**wrong)
    with pytest.raises(Exception, match="must be"):
        hand.call("set", wrong)

"""Every explorer of the built site in a real browser: every slider, every third position, and its
keys.

It needs ``make book`` first, and a Chromium or Chrome on the machine. ``LOWRANK_REQUIRE_BROWSER=1``
turns a missing browser into a failure.
"""

import re

import numpy as np
import pytest
from chapters import WITH_EXPLORERS, each_chapter, explorers, judged, judges
from visits import READ, READERS, VISITS, address_of

each_explorer = pytest.mark.parametrize("name", explorers())
each_page = pytest.mark.parametrize("path", WITH_EXPLORERS, ids=lambda path: path.stem)


def page_of(name):
    """The page of an explorer."""
    return address_of(explorers()[name])


def who_reads(page):
    """Return those who read a page."""
    return [who for other, who in VISITS if other == page]


def written(explorer, name, value):
    how = explorer.formats.get(name, "," if isinstance(value, int) else ".4g")
    if callable(how):
        return how(value)
    return (
        value if isinstance(value, str) else how.format(value) if "{" in how else format(value, how)
    )


def chosen(explorer, name):
    """Whether a row of choices stands for a slider: words, or few numbers."""
    return (
        isinstance(explorer.start[name], str) or len(explorer.sliders[name]) <= 4
    ) and name != explorer.plays


def check(shown, explorer, position):
    """Compare what stands on the page at one position with what NumPy says there."""
    values, expected, own = position
    numbers = {name: as_number(value) for name, value, _ in shown["numbers"]}
    assert numbers == pytest.approx(expected, rel=1e-6, abs=1e-6), values
    texts = {name: text for name, _, text in shown["numbers"]}
    assert texts == {name: written(explorer, name, value) for name, value in own.items()}
    numeric = {name: value for name, value in values.items() if not chosen(explorer, name)}
    assert dict(shown["outputs"]) == {
        name: written(explorer, name, value) for name, value in numeric.items()
    }
    for name, value, words in shown["controls"]:
        if chosen(explorer, name):
            assert value == str(values[name])
        elif words is None:
            assert float(value) == values[name]
        else:
            assert float(value) == explorer.sliders[name].index(values[name])
            assert words == written(explorer, name, values[name])
    assert shown["alt"] == explorer.words.sentence(explorer.alt, values | own)


@pytest.mark.parametrize(
    ("name", "who"),
    [(name, who) for name in explorers() for who in who_reads(page_of(name)) if READERS[who].drags],
)
def test_positions(readers, name, who):
    """Each shows a picture of its own, and NumPy's numbers."""
    _, explorer, positions = judged(name)
    shown = readers[who].see(page_of(name)).dragged[name]["shown"]
    last = len(positions) - 1
    assert [at for at, _ in shown] == sorted({*range(0, last, READERS[who].drags), last})
    for at, one in shown:
        check(one, explorer, positions[at])
    states = {(one["alt"], *one["panels"]) for _, one in shown}
    assert len(states) == len(shown), "two positions show and say the same"


def as_number(value):
    """What a readout says: a number, or a word."""
    try:
        return float(value)
    except ValueError:
        return value


@each_explorer
def test_picture_order(readers, name):
    """What is shown at three positions is what is drawn there, and not at the two others; and
    nothing else on the page has moved.
    """
    _, explorer, positions = judged(name)
    dragged = readers["light"].see(page_of(name)).dragged[name]
    assert dragged["after"] == dragged["before"]
    assert dragged["shifts"] == []
    shown = dict(dragged["shown"])
    every = [*shown]
    places = {every[0], every[len(every) // 3], every[-1]}
    for at in places:
        panels = explorer.frame(name, **positions[at].values).panels
        apart = {o: max(map(distance, shown[o]["panels"], panels)) for o in places}
        assert apart[at] < 0.1  # of 1/72 inch
        assert apart[at] == min(apart.values())


def distance(shown, panel):
    """How far numbers of a picture are from those of one that is drawn now; nothing else may
    differ, but for images.
    """
    number = r"-?\d+(?:\.\d+)?"
    texts = [
        re.sub(r'</\w+>|/(?=>)|"data:[^"]*"| data-sample=""', "", svg) for svg in (shown, panel.svg)
    ]
    if len({re.sub(number, "", text) for text in texts}) > 1:
        return np.inf
    numbers = [np.array(re.findall(number, text), dtype=float) for text in texts]
    return float(np.abs(np.subtract(*numbers)).max())


@pytest.mark.parametrize("name", [*explorers()][::8])  # one script serves all
def test_keys_offline(visit, name):
    """A slider's keys work without a network, and it shows a ring."""
    _, explorer, positions = judged(name)
    sliders = [slider for slider in explorer.sliders if not chosen(explorer, slider)]
    if not sliders:  # all are rows of choices, whose keys are the browser's own
        return
    steps = explorer.sliders[sliders[0]]
    at = {tuple(position.values.items()): position for position in positions}
    figure = visit(page_of(name)).locator(f'figure.explorer[data-name="{name}"]')
    figure.page.context.set_offline(True)
    stop = figure.locator(f'input[data-slider="{sliders[0]}"]')
    for key, step in (("End", -1), ("ArrowLeft", -2), ("Home", 0), ("ArrowRight", 1)):
        stop.press(key)
        there = explorer.start | {sliders[0]: steps[step]}
        check(figure.evaluate(READ), explorer, at[tuple(there.items())])
    assert stop.evaluate("(input) => parseFloat(getComputedStyle(input).outlineWidth)") >= 2


STILL = """
(all) => Object.fromEntries(all.map((figure) => [figure.dataset.name, {
  numbers: Object.fromEntries([...figure.querySelectorAll("data")].map((d) =>
    [d.dataset.name, Number.isNaN(Number(d.value)) ? d.value : Number(d.value)])),
  height: figure.querySelector(".explorer-panels svg").getBoundingClientRect().height,
  excuse: figure.querySelector("noscript").textContent,
}]))
"""


@each_page
def test_without_javascript(visit, path):
    """The first frame and its numbers stand there, and a sentence says what is missing."""
    page = visit(address_of(path), java_script_enabled=False)
    shown = page.locator("figure.explorer").evaluate_all(STILL)
    for name in judges(path):
        _, explorer, positions = judged(name)
        (expected,) = [
            position.expected for position in positions if position.values == explorer.start
        ]
        assert shown[name]["numbers"] == pytest.approx(expected, rel=1e-6, abs=1e-6)
        assert shown[name]["height"] > 50
        assert "The sliders need JavaScript" in shown[name]["excuse"]


@pytest.mark.parametrize(("page", "who"), [visit for visit in VISITS if READERS[visit[1]].calm])
def test_reduced_motion(readers, page, who):
    facts = readers[who].see(page).facts
    assert facts["moving"] == []
    assert facts["scrolling"] == "auto"


# How figures look


@each_chapter
def test_dark_photographs(readers, path):
    for who in who_reads(address_of(path)):
        for picture in readers[who].see(address_of(path)).facts["pictures"]:
            stays = READERS[who].theme == "light" or picture["photograph"]
            assert (picture["filter"] == "none") == stays, (who, picture)

"""A picture is tilted, and its spectrum cut: the browser's numbers are NumPy's for the same gray
values.
"""

import io

import numpy as np
import pytest
from PIL import Image

from lowrank_tutor.figures import tilt
from lowrank_tutor.figures.parts.sample_pictures import PICTURES, SIZE, grays

FIGURE = tilt


def recomputed(picture, k):
    """NumPy's numbers, written once more: from the picture and its rank-k approximation itself."""
    a = np.array(picture, dtype=float)
    u, s, vt = np.linalg.svd(a)
    size = np.linalg.norm(a) or 1.0
    errors = np.array([np.linalg.norm(s[j:]) / size for j in range(len(s) + 1)])
    error = np.linalg.norm(a - (u[:, :k] * s[:k]) @ vt[:k]) / size
    return {
        "relative_error": error,
        "numbers_kept": 2 * SIZE * k,
        "layers_for_5_percent": int(np.sum(errors > 0.05)),
    }


def check(hand):
    shown = hand.shown()
    assert shown == pytest.approx(
        recomputed(hand.call("table")["picture"], hand.call("state")["k"]), abs=1e-5, rel=0
    )
    return shown


def test_random_states(hand):
    rng = np.random.default_rng(0)
    states = [
        {
            "picture": str(rng.choice(list(PICTURES))),
            "tilt": float(rng.choice([0, rng.uniform(0, 45), rng.integers(0, 46)])),
            "k": int(rng.integers(1, SIZE + 1)),
        }
        for _ in range(25)
    ]
    hand.tour(states, check)


def test_pictures_are_pythons(hand):
    for picture in PICTURES:
        for degrees in (0, 12.5):
            hand.set(picture=picture, tilt=degrees)
            drawn = np.array(hand.call("table")["picture"])
            assert np.abs(drawn - grays(picture, degrees)).max() <= 1, (
                picture,
                degrees,
            )  # rounding


def test_turn_by_hand(hand):
    hand.set(picture="window", tilt=0, k=4)
    box = hand.figure.locator("canvas.turn").bounding_box()
    x, y, r = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 0.45 * box["width"]
    hand.page.mouse.move(x + r, y)
    hand.page.mouse.down()
    for degrees in (20, 60, -20):  # clockwise, and no farther than it goes
        turned = np.radians(degrees)
        hand.page.mouse.move(x + r * np.cos(turned), y + r * np.sin(turned))
        hand.settle()
        assert hand.call("state")["tilt"] == pytest.approx(np.clip(degrees, 0, 45), abs=1)
        check(hand)
    hand.page.mouse.up()


def test_cut(hand):
    hand.set(picture="window", tilt=20, k=8)
    for dx, low, high in ((25, 9, 40), (-300, 1, 1)):
        hand.drag("cut", dx, 5)
        check(hand)
        assert low <= hand.call("state")["k"] <= high
    box = hand.figure.locator("svg.grab").bounding_box()
    hand.page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + 30)  # anywhere in the spectrum
    assert hand.call("state")["k"] > 20
    check(hand)


def as_file(image, kind="PNG", name="mine"):
    buffer = io.BytesIO()
    image.save(buffer, kind)
    return {"name": name, "mimeType": f"image/{kind.lower()}", "buffer": buffer.getvalue()}


def bring(hand, file):
    hand.figure.locator("input[type=file]").set_input_files(file)
    hand.page.wait_for_timeout(300)
    hand.settle()


def test_own_picture(show):
    hand = show(tilt(degrees=0, k=4))
    before = len(hand.requests)
    pixels = np.random.default_rng(2).integers(0, 256, (200, 300, 3)).astype(np.uint8)
    bring(hand, as_file(Image.fromarray(pixels), "JPEG"))
    assert hand.call("state")["picture"] == "own"
    assert check(hand)["layers_for_5_percent"] > 40
    assert [
        url for url in hand.requests[before:] if not url.startswith(("blob:file:", "data:"))
    ] == []
    hand.button("Copy a link").click()
    assert "own" not in hand.page.url
    assert "stays on this machine" in hand.said()
    hand.set(tilt=9, k=30)
    check(hand)


def test_odd_pictures(show):
    hand = show(tilt(degrees=0, k=3))
    bring(hand, {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"no picture"})
    assert "choose a PNG, a JPEG or a WebP" in hand.said()
    bring(hand, as_file(Image.new("1", (20_000, 20_000))))  # a small file, and 1.6 GB of pixels
    assert "at most 100 million pixels" in hand.said("million")
    assert hand.call("state")["picture"] == "window"
    with pytest.raises(Exception, match="choose a file first"):
        hand.call("set", {"picture": "own"})
    clear = Image.new("RGBA", (50, 80), (0, 0, 0, 0))
    clear.paste((0, 0, 0, 255), (0, 0, 25, 80))
    black = Image.new("RGB", (300, 100))
    for image, words in (
        (Image.new("L", (1, 1), 90), "one even gray"),
        (black, "is black"),
        (clear, "Your picture"),
    ):
        hand.figure.locator("p[role=status]").evaluate("(p) => (p.textContent = '')")
        bring(hand, as_file(image))
        assert words in hand.said()
        check(hand)
    gray = np.array(hand.call("table")["picture"])
    assert gray[:, :75].max() == 0
    assert gray[:, 85:].min() == 255  # what is transparent shows white paper


def test_last_wish_is_drawn(hand):
    last = hand.figure.evaluate(
        """async (figure) => {
          const all = [1, 2, 3, 4, 30]
            .map((tilt) => figure.instrument.set({ picture: "window", tilt, k: 2 }));
          await Promise.all(all);
          return figure.instrument.numbers().layers_for_5_percent;
        }"""
    )
    assert last == 55

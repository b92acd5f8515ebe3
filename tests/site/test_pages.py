"""Every page of the built site, as four readers meet it: light and dark, wide and narrow, over http and from a file."""

import gzip
import re

import pytest
from chapters import CHAPTERS
from visits import PAGES, READERS, address_of, violations

FIRST_VISIT = 1_000_000  # bytes of theme and maths, text gzipped
WHOLE = 24_000_000  # bytes of the site
TEXT = {".html", ".css", ".js", ".json", ".svg"}

each_page = pytest.mark.parametrize("page", PAGES)
each_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
each_reader = pytest.mark.parametrize("who", READERS)


@each_page
@each_reader
def test_a_page_loads_and_moves_in_silence_and_asks_nobody_else(readers, page, who):
    seen = readers[who].see(page)
    assert seen.messages == []
    assert seen.foreign == []
    assert seen.missing == []


@each_page
@pytest.mark.parametrize("who", [who for who, kind in READERS.items() if kind.axe])
def test_a_page_is_accessible(readers, page, who):
    assert readers[who].see(page).axe == []


@each_page
@each_reader
def test_a_page_never_scrolls_sideways(readers, page, who):
    assert readers[who].see(page).facts["overflow"] == []


@each_page
@each_reader
def test_a_page_is_light_or_dark_as_the_reader_has_it(readers, page, who):
    facts = readers[who].see(page).facts
    assert facts["theme"] == readers[who].kind.settings["color_scheme"]
    brightness = sum(map(int, re.findall(r"\d+", facts["paper"])[:3])) / 3
    assert brightness > 200 if facts["theme"] == "light" else brightness < 60


@each_page
@each_reader
def test_every_image_is_shown_and_says_what_it_shows(readers, page, who):
    for image in readers[who].see(page).facts["images"]:
        assert image["shown"], image
        assert image["alt"], image
        assert "_images" not in image["alt"], "a file's name is no alternative text"
        if image["inside"] and "/_static/" not in image["src"]:
            assert len(image["alt"].split()) >= 6, image


@each_chapter
@each_reader
def test_the_maths_is_typeset_and_spoken_and_is_no_stop(readers, path, who):
    """Whatever another page has stored: see ``visits.STORED``."""
    facts = readers[who].see(address_of(path)).facts
    assert facts["maths"] > 10
    assert facts["mathErrors"] == []
    assert facts["spoken"] == facts["maths"]
    assert facts["mathStops"] == 0


@each_chapter
def test_theme_and_maths_weigh_little_on_a_first_visit(readers, site, path):
    own = address_of(path)
    files = [site / file for file in set(readers["light"].see(own).local) - {own}]
    weights = {f: len(gzip.compress(f.read_bytes()) if f.suffix in TEXT else f.read_bytes()) for f in files}
    print(f"{path.stem}: {sum(weights.values()):,} bytes")
    assert sum(weights.values()) > FIRST_VISIT / 10, "what the window had kept from other pages counts, too"
    heaviest = sorted(((size, f.name) for f, size in weights.items()), reverse=True)[:5]
    assert sum(weights.values()) <= FIRST_VISIT, heaviest


def test_the_whole_site_fits_into_an_attachment(site):
    weights = {path: path.stat().st_size for path in site.rglob("*") if path.is_file()}
    print(f"the site: {sum(weights.values()):,} bytes")
    heaviest = sorted(((size, path.name) for path, size in weights.items()), reverse=True)[:5]
    assert sum(weights.values()) <= WHOLE, heaviest


SPOILED = {
    "color-contrast": '<p style="color: #999; background: #fff">Words too pale to read.</p>',
    "image-alt": '<img src="data:,">',
    "button-name": "<button></button>",
    "label": "<input>",
}


@pytest.mark.parametrize(("rule", "html"), SPOILED.items(), ids=SPOILED)
def test_what_keeps_a_reader_out_is_found(readers, rule, html):
    """Pale words and their kin among all the others of a page, of whose looks only samples are taken."""
    page = readers["light"].open("book/glossary.html")
    page.evaluate("html => document.querySelector('article section').insertAdjacentHTML('beforeend', html)", html)
    found = [violation.split()[0] for violation in violations(page)]
    page.evaluate("document.querySelector('article section').lastElementChild.remove()")
    assert rule in found

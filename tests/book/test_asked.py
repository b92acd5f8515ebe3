"""Asked elsewhere: its cells hold, less calibration does as it says, and each answer links out and
is found.
"""

import json
import re

import pytest
from chapters import ROOT, run

PAGE = ROOT / "book" / "asked.md"
ANSWERS = dict(re.findall(r"^### (.*)\n((?:(?!^##).*\n)+)", PAGE.read_text(encoding="utf-8"), re.M))
SHORTER = {  # what is typed, and how the title begins
    "merge qlora 4 bit": "merge_and_unload",
    "nystromformer causal": "Linformer: causal",
    "kv cache eviction": "Eviction",
    "streamingllm": "Streaming LLM",
    "power sgd": "9.6 Send less",
    "recommend for new users": "Performing a prediction",
    "negative entries nmf": "NMF fails",
    "rwkv forgets": "Mamba or RWKV",
}


def test_calibration():
    right = run(PAGE).namespace["RIGHT"]
    assert right["200 stories"] - 0.03 < min(right["5 stories"], right["random words"])
    assert right["tunes alone"] < right["5 stories"] - 0.1


def test_answers_have_links():
    out = r"\]\(https://(github\.com/[\w.-]+/[\w.-]+/(issues|pull)|stats\.stackexchange\.com/questions)/\d+\)"
    links = (out, r"\{(doc|ref|prf:ref|eq|term|py:\w+)\}`")
    assert [
        title for title, text in ANSWERS.items() if not all(re.search(link, text) for link in links)
    ] == []


FIVE = """(all) => Object.fromEntries(all.map((asked) =>
  [asked, findPlaces(asked).shown.slice(0, 5).map((place) => place.title)]))"""


@pytest.fixture(scope="module")
def first_five(browser, address):
    """Return the function that returns the first five titles that a search finds for each
    question.
    """
    page = browser.new_page()
    page.goto(f"{address}/search.html")
    yield lambda questions: page.evaluate(FIVE, [*questions])
    page.close()


def test_titles_are_found(first_five):
    asked = [title.replace("'", "\u2019") for title in ANSWERS]
    found = first_five(asked)
    assert [title for title in asked if title not in found[title]] == []


@pytest.mark.parametrize(("words", "title"), SHORTER.items())
def test_other_words(first_five, words, title):
    assert any(each.startswith(title) for each in first_five([words])[words])


def test_questions_are_answered(first_five):
    """Half of them come from threads and reviews, and each names a title that holds its answer."""
    questions = json.loads((PAGE.parents[1] / "tests/book/questions.json").read_text("utf-8"))
    found = first_five(questions)
    missed = [
        asked
        for asked, title in questions.items()
        if not any(title in each for each in found[asked])
    ]
    assert len(questions) >= 80
    assert len(missed) <= 20, missed

"""Asked elsewhere: its cells hold, less calibration does as it says, and each answer links its thread and the book."""

import re

from chapters import ROOT, run

PAGE = ROOT / "book" / "asked.md"


def test_calibration():
    right = run(PAGE).namespace["RIGHT"]
    assert right["200 stories"] - 0.03 < min(right["5 stories"], right["random words"])
    assert right["tunes alone"] < right["5 stories"] - 0.1


def test_answers_have_links():
    answers = re.findall(r"^### (.*)\n((?:(?!^##).*\n)+)", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(answers) == 30
    links = (r"\]\(https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+\)", r"\{(doc|ref|prf:ref|eq|term|py:\w+)\}`")
    assert [title for title, text in answers if not all(re.search(link, text) for link in links)] == []

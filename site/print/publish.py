"""Put the PDF, the EPUB, and the archive on the built site.

``make publish`` makes them first.
"""

import re
import shutil
import sys
from pathlib import Path

from print_book import PDF, ROOT

SITE = ROOT / "_build" / "html"
FILES = {
    "pdf": "The whole book as a <strong>PDF</strong>, solutions included",
    "epub": "The same as an <strong>EPUB</strong> for e-readers",
    "zip": "The <strong>site</strong>, sliders included, "
    "as an archive that works without a network",
}
KEEP_IT = re.compile(
    "<!-- the files -->\\s*<p>.*?</p>", re.S
)  # site/landing.py; after it, how to make the files
DOORS = re.compile('(<p><a class=[^>]*href="01-rank.html".*?)(?=</p>)', re.S)  # below the figure


def publish(dist: Path, site: Path) -> None:
    """Copy the files, and let the front page lead to them.

    The links replace the words that say how to make them.
    """
    items = ""
    for kind, words in FILES.items():
        file = (dist / PDF.name).with_suffix(f".{kind}")
        shutil.copy(file, site)
        items += (
            f'<li><a href="../{file.name}">{words}</a> ({file.stat().st_size / 1e6:.1f} MB)</li>\n'
        )
    home = site / "book" / "index.html"
    text, found = KEEP_IT.subn(f"<ul>\n{items}</ul>", home.read_text(encoding="utf-8"))
    text, doors = DOORS.subn(rf'\1 <a href="../{PDF.name}">PDF</a>', text)
    if (found, doors) != (1, 1):
        raise RuntimeError(
            "the front page must have one place for the files and one for a link, "
            f"got {found}, {doors}"
        )
    home.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(publish(PDF.parent, SITE))

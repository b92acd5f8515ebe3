"""Write text, code, formulas, folds and quotations in plain Markdown.

Every notebook shows it alike.
"""

import html
import re
import textwrap


def join(blocks):
    return "\n\n".join(block for block in blocks if block)


def details(title, body):
    """Fold the body away; the blank lines make it Markdown again."""
    title = html.escape(title, quote=False)
    return f"<details>\n<summary><b>{title}</b></summary>\n\n{body}\n\n</details>"


def hung(mark, body):
    """Return an item of a list, its further lines under the first."""
    return mark + textwrap.indent(body, " " * len(mark))[len(mark) :]


def quoted(body):
    """Return a block quote; formulas go on one line, or its marks would be read as part of them."""
    body = re.sub(r"\$\$\n.*?\n[ \t]*\$\$", lambda m: " ".join(m[0].split()), body, flags=re.DOTALL)
    return "\n".join(f"> {line}".rstrip() for line in body.splitlines())


def run_in(title, body):
    """Put the title on the first line of a paragraph.

    It doesn't go before a list, a formula, a table or a quotation.
    """
    return (
        f"{title}\n\n{body}"
        if re.match(r"\$\$|[-*+>] |\d+[.)] |```|\||<", body)
        else f"{title} {body}"
    )


def code(text):
    """Return code between more backticks than it holds."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = (
        " " if "`" in (text[0], text[-1]) or text[0] == text[-1] == " " else ""
    )  # one on each side is not read
    return f"{ticks}{space}{text}{space}{ticks}"


def escape(text):
    """Return text in which nothing means anything to Markdown in a line, nor before a link."""
    marks = r"[\\`$*~]|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\](?=[(\[:])|!$"
    return re.sub(marks, r"\\\g<0>", text)


def safe_lines(text):
    """Return a paragraph of which no line begins like a heading, a list, a quotation or a table."""
    text = re.sub(
        r"^(?=(?:#{1,6}|[-+])(?:\s|$)|>|[-=:|][-=:| \t]*$)", r"\\", text, flags=re.MULTILINE
    )
    return re.sub(r"^\d{1,9}(?=[.)](?:\s|$))", r"\g<0>\\", text, flags=re.MULTILINE)

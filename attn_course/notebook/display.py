"""Showing one message as HTML and as text."""

import html
import re

from attn_course.notebook.shell import in_notebook


def display_bundle(text: str, html_text: str) -> None:
    """Show one message in both forms: a notebook picks the HTML, a terminal the text."""
    if in_notebook():
        from IPython.display import display

        display({"text/plain": text, "text/html": html_text}, raw=True)
    else:
        print(text)


def inline_html(text: str) -> str:
    """Escape, then turn `code` into <code> and line ends into breaks."""
    escaped = html.escape(text)
    escaped = re.sub(r"`([^`\n]+)`", r"<code>\1</code>", escaped)
    return escaped.replace("\n", "<br>")

"""The HTML frame and the colours of all pages of runs and reports."""

import html
import re
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

_FILES: Final = resources.files("disque_trio.sim.picture")
_COLOURS: Final = resources.files("disque_trio") / "web" / "static" / "colours.css"
"""The colours of the console, which are the same."""
_SLOT: Final = re.compile(r"<!-- put:(\w+) -->")


def html_page(title: str, style: str, body: str) -> str:
    """Return the whole file. `style` is added to the common styles."""
    parts = {
        "title": html.escape(title),
        "style": text(_COLOURS) + text(_FILES / "sheet.css") + style,
        "body": body,
    }
    return filled(text(_FILES / "sheet.html"), parts)


def filled(page: str, parts: dict[str, str]) -> str:
    """Return a page with each `<!-- put:NAME -->` replaced by that part."""
    return _SLOT.sub(lambda slot: parts[slot[1]], page)


def dark() -> str:
    """Return a rule for systems with dark colours, for pages without a script to switch."""
    _, _, rest = text(_COLOURS).partition('[data-theme="dark"]')
    rules = rest[: rest.index("}") + 1]
    return f"@media (prefers-color-scheme: dark) {{ :root {rules} }}\n"


def text(file: Traversable) -> str:
    """Return the text of a file of the package."""
    return file.read_text(encoding="utf-8")

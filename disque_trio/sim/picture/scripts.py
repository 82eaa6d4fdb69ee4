"""The JavaScript of the picture as one script.

The modules lie in the package as the console serves them. A saved picture is one file that loads
nothing, so they are put together without their `import` and `export` words: no name may be at the
top level of two of them.
"""

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Final

from disque_trio.sim.picture.html_page import text

_FILES: Final = resources.files("disque_trio.sim.picture")
TIMELINE: Final = (
    *("elements", "text", "words", "sentences", "run", "axis", "marks", "scene"),
    *("arrows", "bands", "events", "diagram", "player", "timeline", "moment"),
)
"""The component, in `timeline/`; each after those that it needs when it is loaded."""
PAGE: Final = ("data", "overview", "theme", "head", "jobs", "main")
"""What only the saved picture has."""
_IMPORT: Final = re.compile(r'^import [^;]+ from "[^"]+";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def modules() -> dict[str, str]:
    """The text of each, by its path, in their order."""
    names = [*(f"timeline/{name}.js" for name in TIMELINE), *(f"{name}.js" for name in PAGE)]
    return {name: text(_FILES / name) for name in names}


def event_words() -> Mapping[str, str]:
    """By kind of event, or `kind.cause`: what a node does, with `{job}` and `{other}` to be filled
    in."""
    _, _, value = modules()["timeline/words.js"].partition("EVENT_WORDS = ")
    found: dict[str, str] = json.loads(value.rstrip().removesuffix(";"))
    return found


def joined() -> str:
    """One script, without modules."""
    return "".join(_EXPORT.sub("", _IMPORT.sub("", module)) for module in modules().values())

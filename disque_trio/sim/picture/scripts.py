"""The JavaScript of the picture as one script.

The modules are in the package as the console serves them. A saved picture is one file that loads
nothing, so they are joined without their `import` and `export` keywords: no top-level name may
occur in two of them.
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
"""The modules in `timeline/`, each after those that it needs when it is loaded."""
PAGE: Final = ("data", "overview", "theme", "head", "jobs", "main")
"""The modules of the saved picture only."""
_IMPORT: Final = re.compile(r'^import [^;]+ from "[^"]+";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def modules() -> dict[str, str]:
    """Return the text of each module, by path, in order."""
    names = [*(f"timeline/{name}.js" for name in TIMELINE), *(f"{name}.js" for name in PAGE)]
    return {name: text(_FILES / name) for name in names}


def event_words() -> Mapping[str, str]:
    """Return, by kind of event or `kind.cause`, a description with the placeholders `{job}` and
    `{other}`."""
    _, _, value = modules()["timeline/words.js"].partition("EVENT_WORDS = ")
    found: dict[str, str] = json.loads(value.rstrip().removesuffix(";"))
    return found


def joined() -> str:
    """Return one script, without modules."""
    return "".join(_EXPORT.sub("", _IMPORT.sub("", module)) for module in modules().values())

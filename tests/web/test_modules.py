"""The console's modules of JavaScript, which no compiler checks."""

import re
from pathlib import Path
from typing import Final

import pytest

STATIC: Final = Path(__file__).parents[2] / "disque_trio" / "web" / "static"
MODULES: Final = sorted(STATIC.rglob("*.js"))

_EXPORT: Final = re.compile(
    r"^export (?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE
)
_IMPORT: Final = re.compile(r"^import \{([^}]*)\} from", re.MULTILINE)
_CALL: Final = re.compile(r"(?<![\w.#$])(\w+)\(")
_COMMENT: Final = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)

EXPORTED: Final = {name for path in MODULES for name in _EXPORT.findall(path.read_text())}


def known(text: str) -> set[str]:
    """Names that the module imports, declares or takes as a parameter."""
    imported = {
        each.split(" as ")[-1].strip() for some in _IMPORT.findall(text) for each in some.split(",")
    }
    declared = re.findall(r"(?:function\*?|const|let|class) (\w+)", text)
    methods = re.findall(r"^ +(?:async |get )?(\w+)\([^)]*\) \{$", text, re.MULTILINE)
    bound = [
        name
        for names in re.findall(r"[({]([^(){}]*)[})][^\n]*?(?:=>|=|\{)", text)
        for name in re.findall(r"\w+", names)
    ]
    return {*imported, *declared, *methods, *bound}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(STATIC)))
def test_what_another_module_exports_is_imported_where_it_is_called(path: Path) -> None:
    text = _COMMENT.sub("", path.read_text())
    called = set(_CALL.findall(text)) & EXPORTED

    assert called - known(text) == set()

"""The names that programs use: commands, settings, metrics, the command line and the Python API.

`python -m tests.conformance.surface` records those of this version; what a released version has
recorded is never edited (docs/compatibility.md).
"""

import inspect
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from disque_trio import __version__
from disque_trio.cli.shells import places
from disque_trio.statemachine.commands.info import FEATURES
from disque_trio.statemachine.commands.table import ROWS
from disque_trio.statemachine.commands.usage import forms
from disque_trio.statemachine.directives import DIRECTIVES
from disque_trio.web.metrics import FAMILIES
from disque_trio.worker.options import GIVEN_TO
from tests.rig import Rig
from tests.statemachine.commands.informed import text_of

PACKAGES: Final = (
    "disque_trio.client",
    "disque_trio.testing",
    "disque_trio.worker",
    "disque_trio.contrib.django",
    "disque_trio.contrib.flask",
    "disque_trio.contrib.otel",
    "disque_trio.contrib.starlette",
)
FOLDER: Final = Path(__file__).parent / "surfaces"
Surface = Mapping[str, Any]


def surface() -> Surface:
    """All of it: parts by name; a list is a set of names but for `positional`."""
    return {
        "commands": {row.name.upper(): _keywords(row.usage) for row in ROWS},
        "features": dict.fromkeys(sorted(FEATURES)),
        "directives": dict.fromkeys(sorted(each.name for each in DIRECTIVES if each.is_shown)),
        "fields of INFO": dict.fromkeys(
            sorted(line.partition(":")[0] for line in text_of(Rig()).splitlines() if ":" in line)
        ),
        "metrics": {each.name: list(each.labels) for each in FAMILIES},
        "command line": {place.path: _words(place) for place in places()},
        "options of tasks": {name: sorted(each.__annotations__) for name, each in GIVEN_TO.items()},
        "python": {name: each for package in PACKAGES for name, each in _package(package)},
    }


def _keywords(usage: str) -> list[str]:
    found = {
        word
        for form in forms(usage)
        for part in form
        if part.is_keyword
        for word in part.words
        if word.isupper()
    }
    return sorted(word for each in found for word in each.split("|"))


def _words(place: Any) -> list[str]:
    return sorted({*place.words, *(name for each in place.options for name in each.names)})


def _package(package: str) -> Iterator[tuple[str, Any]]:
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        yield f"{package}.{name}", _described(value)
        if inspect.isclass(value) and not issubclass(value, BaseException):
            for member in sorted(each for each in dir(value) if not each.startswith("_")):
                yield f"{package}.{name}.{member}", _described(getattr(value, member))


def _described(value: Any) -> Any:
    """The parameters of what can be called; nothing of other values."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return {}
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return {}
    kinds = inspect.Parameter
    given = [each for each in parameters if not each.name.startswith("_") and each.name != "self"]
    return {
        "positional": [
            each.name
            for each in given
            if each.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        ],
        "keywords": sorted(each.name for each in given if each.kind != kinds.POSITIONAL_ONLY),
        "required": sorted(
            each.name
            for each in given
            if each.default is kinds.empty
            and each.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
        ),
    }


def broken(recorded: Any, today: Any, path: str = "") -> Iterator[str]:
    """What a program that was written for the recorded surface does not find today."""
    if isinstance(recorded, dict):
        for name, each in recorded.items():
            if name not in today:
                yield f"{path}{name} is gone"
            elif each is not None:
                yield from broken(each, today[name], f"{path}{name}: ")
    elif path.endswith("positional: "):
        if today[: len(recorded)] != recorded:
            yield f"{path}{recorded} became {today}"
    elif path.endswith("required: "):
        yield from (f"{path}{each} is new" for each in today if each not in recorded)
    else:
        yield from (f"{path}{each} is gone" for each in recorded if each not in today)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    parts = [
        f"{json.dumps(part)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in names.items())
        + "\n}"
        for part, names in surface().items()
    ]
    (FOLDER / f"{__version__}.json").write_text("{" + ",\n".join(parts) + "}\n")

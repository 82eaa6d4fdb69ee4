"""The models of docs/spec/models: a module, values for its constants, and what must hold."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from tests.spec.evaluating import Specification
from tests.spec.parsing import Module, parse

SPEC: Final = Path(__file__).parents[2] / "docs" / "spec"
_BROKEN: Final = Path(__file__).parent / "broken.toml"


@attrs.frozen
class Model:
    """A `.cfg` file."""

    name: str
    about: str
    constants: Mapping[str, Any]
    invariants: tuple[str, ...]

    @property
    def module(self) -> str:
        """The module that it is of."""
        return self.name.partition("-")[0]

    def of(self, module: Module) -> Specification:
        """The module with this model's constants."""
        return Specification(module, self.constants)


@attrs.frozen
class Broken:
    """A mistake in a module, which the model must refute."""

    name: str
    module: str
    model: str
    old: str
    new: str
    breaks: str

    def text(self) -> str:
        """The module with the mistake."""
        text = text_of(self.module)
        assert text.count(self.old) == 1, f"{self.name} does not fit {self.module}.tla"
        return text.replace(self.old, self.new)


def text_of(module: str) -> str:
    """The file of a module."""
    return (SPEC / f"{module}.tla").read_text("utf-8")


def model(name: str) -> Model:
    """The model of that name."""
    text = (SPEC / "models" / f"{name}.cfg").read_text("utf-8")
    about = text.partition("\n")[0].removeprefix("\\*").strip()
    [invariants] = re.findall(r"^INVARIANTS (.*)$", text, re.MULTILINE)
    found = re.findall(r"^ +(\w+) = (.*)$", text, re.MULTILINE)
    return Model(
        name, about, {key: _value(value) for key, value in found}, tuple(invariants.split())
    )


def models() -> list[Model]:
    """All of them, by name."""
    return [model(path.stem) for path in sorted((SPEC / "models").glob("*.cfg"))]


def _value(text: str) -> Any:
    if text.startswith("{"):
        inner = [each.strip() for each in text.strip("{}").split(",")]
        return frozenset(_value(each) for each in inner if each)
    if text in ("TRUE", "FALSE"):
        return text == "TRUE"
    return int(text) if text.isdigit() else text.strip('"')


def broken() -> list[Broken]:
    """All mistakes."""
    named = tomllib.loads(_BROKEN.read_text("utf-8"))
    return [
        Broken(name, **{key: value.lstrip("\n") for key, value in each.items()})
        for name, each in named.items()
    ]


def parsed(name: str) -> Module:
    """A module."""
    return parse(text_of(name))

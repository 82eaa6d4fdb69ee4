"""Mutants: mistakes that a good engineer could make, as data; each changes one place of the node.

They lie in the `.toml` files beside this one. This module imports nothing of the package: whoever
runs a mutant has to put it in place before the package is imported.
"""

import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import attrs

HERE: Final = Path(__file__).parent
PACKAGE: Final = HERE.parents[2] / "disque_trio"


class StaleError(Exception):
    """A mutant does not fit today's source: its old text is not there exactly once."""


@attrs.frozen(kw_only=True)
class Mutant:
    """One mistake. It is caught in the plans, or it is equivalent, and says why."""

    name: str
    file: str
    """Below the package."""
    old: str
    """Stands exactly once in the file."""
    new: str
    wrong: str
    """What the engineer got wrong."""
    plans: tuple[str, ...] = ()
    """Functions of `ablations.conditions`, or shipped scenarios: their seeds are run in turn."""
    finds: tuple[str, ...] = ()
    """Properties and causes of duplicates, of which at least one is expected."""
    equivalent: str = ""
    """Why nobody outside could tell it from the intact node; empty if somebody can."""

    @property
    def module(self) -> str:
        """The module it changes."""
        return f"disque_trio.{self.file.removesuffix('.py').replace('/', '.')}"

    def source(self) -> str:
        """The module's source with the mistake in it. Raises StaleError."""
        source = (PACKAGE / self.file).read_text("utf-8")
        count = source.count(self.old)
        if count != 1:
            raise StaleError(f"{self.name}: its old text stands {count} times in {self.file}")
        return source.replace(self.old, self.new)

    def install(self) -> None:
        """From now on whoever imports the module gets the mistaken one, until the process ends."""
        assert self.module not in sys.modules, f"{self.module} has been imported already"
        module = sys.modules[self.module] = ModuleType(self.module)
        exec(compile(self.source(), PACKAGE / self.file, "exec"), vars(module))


def all_mutants() -> dict[str, Mutant]:
    """All there are, by name, in the order of their files."""
    found: dict[str, Mutant] = {}
    for path in sorted(HERE.glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text("utf-8")).items():
            assert name not in found, f"two mutants are called {name}"
            lists: dict[str, Any] = {key: tuple(fields.pop(key, ())) for key in ("plans", "finds")}
            found[name] = Mutant(name=name, **fields, **lists)
    return found

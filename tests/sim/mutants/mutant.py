"""Mutants: mistakes that an engineer could make, as data; each changes one place of the package.

The hand-made ones are in the `.toml` files beside this one. `operators` draws others.
"""

import ast
import tomllib
from collections.abc import Iterable
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import attrs

HERE: Final = Path(__file__).parent
PACKAGE: Final = HERE.parents[2] / "disque_trio"
LIMIT_S: Final = 20.0
"""Processor time of a seed: a run that takes longer hangs."""


class StaleError(Exception):
    """A mutant does not fit today's source: the place that it changes is not there exactly once."""


def _texts(one_or_more: str | Iterable[str]) -> tuple[str, ...]:
    return (one_or_more,) if isinstance(one_or_more, str) else tuple(one_or_more)


@attrs.frozen(kw_only=True)
class Mutant:
    """One mistake: a text that is replaced, or statements at the beginning of a function. It is
    caught in its plans, or costs something, or is equivalent and says why."""

    name: str
    file: str
    """Below the package."""
    old: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    """Each is in the file exactly once."""
    new: tuple[str, ...] = attrs.field(default=(), converter=_texts)
    at: str = ""
    """A function, as `name` or `Class.name`; in the `.toml` files with its file: `a.py:name`."""
    first: str = ""
    """Statements that go before all others of that function."""
    wrong: str
    """What the engineer got wrong."""
    plans: tuple[str, ...] = ()
    """Functions of `plans`, or shipped scenarios, or plans of `scenarios/pins`: their seeds are run
    in turn. `name:26` begins with seed 26."""
    finds: tuple[str, ...] = ()
    """Properties and causes of duplicates, of which at least one is expected by `make mutants`."""
    shows: tuple[str, ...] = ()
    """All of these are found in few cheap seeds of its plans, which `make test` runs."""
    seeds: int = 3
    """How many for `shows`."""
    costs: str = ""
    """No promise is broken, but this figure (`figures`) is greater than in the intact node."""
    equivalent: str = ""
    """Why nobody outside could tell it from the intact node; empty if somebody can."""

    @property
    def path(self) -> Path:
        """The file."""
        return PACKAGE / self.file

    def source(self) -> str:
        """The module's source with the mistake in it. Raises StaleError."""
        source = self.path.read_text("utf-8")
        if self.at:
            return self._with_statements(source)
        for old, new in zip(self.old, self.new, strict=True):
            count = source.count(old)
            if count != 1:
                raise StaleError(f"{self.name}: its old text is {count} times in {self.file}")
            source = source.replace(old, new)
        return source

    def _with_statements(self, source: str) -> str:
        found = [body for name, body in _functions(ast.parse(source)) if name == self.at]
        if len(found) != 1:
            raise StaleError(f"{self.name}: {self.at} is {len(found)} times in {self.file}")
        has_docstring = ast.get_docstring(found[0]) is not None
        begin = found[0].body[1 if has_docstring and len(found[0].body) > 1 else 0]
        lines = source.splitlines(keepends=True)
        lines.insert(
            begin.lineno - 1, indent(self.first.strip("\n") + "\n", " " * begin.col_offset)
        )
        return "".join(lines)


def _functions(tree: ast.Module) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Those of the module and of its classes, by qualified name."""
    found = []
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        found += [
            (prefix + each.name, each)
            for each in inside
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
    return found


def all_mutants() -> dict[str, Mutant]:
    """All hand-made ones, by name, in the order of their files."""
    found: dict[str, Mutant] = {}
    for path in sorted(HERE.glob("made/*.toml")):
        for name, fields in tomllib.loads(path.read_text("utf-8")).items():
            assert name not in found, f"two mutants are called {name}"
            if "at" in fields:
                fields["file"], _, fields["at"] = fields["at"].partition(":")
            lists: dict[str, Any] = {
                key: tuple(fields.pop(key, ())) for key in ("plans", "finds", "shows")
            }
            found[name] = Mutant(name=name, **fields, **lists)
    return found

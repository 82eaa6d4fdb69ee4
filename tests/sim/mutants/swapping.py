"""Puts a changed source in the place of a module: in this process, in which it has been imported,
or before anything imports it.

Functions that are there get the code of the changed ones, wherever they were imported to or kept
in tables. So a mutant begins within milliseconds, and the intact code can come back.
"""

import ast
import gc
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.sim.mutants.mutant import PACKAGE, Mutant


class ElsewhereError(Exception):
    """More than the code of functions differs, so the module has to be imported anew."""


def module_of(path: Path) -> str:
    """The module's name."""
    return ".".join(("disque_trio", *path.relative_to(PACKAGE).with_suffix("").parts))


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The package has the mistake until the end. Raises StaleError, ElsewhereError."""
    with swapped({mutant.path: mutant.source()}):
        yield


@contextmanager
def swapped(sources: Mapping[Path, str | ast.Module]) -> Iterator[None]:
    """Until the end, the functions of these files are those of the sources."""
    for path in sources:
        import_module(module_of(path))
    new: dict[tuple[str, CodeType], CodeType] = {}
    for path, source in sources.items():
        file = str(path)
        intact = compile(path.read_text("utf-8"), file, "exec", dont_inherit=True)
        changed = compile(source, file, "exec", dont_inherit=True)
        new |= {(file, old): now for old, now in _pairs(intact, changed) if old != now}
    files = {str(path) for path in sources}
    gc.unfreeze()  # a node that ran here may have put its functions out of sight
    found = [
        (each, each.__code__)
        for each in gc.get_objects()
        if type(each) is FunctionType and each.__code__.co_filename in files
    ]
    pairs = [(each, old, new[old.co_filename, old]) for each, old in found
             if (old.co_filename, old) in new]  # fmt: skip
    gc.freeze()
    if not pairs:
        raise ElsewhereError(f"no function of {sorted(files)} is there")
    try:
        _put(pairs)
        yield
    finally:
        for each, old, _ in pairs:
            each.__code__ = old


def _put(pairs: Iterable[tuple[FunctionType, CodeType, CodeType]]) -> None:
    for each, _, new in pairs:
        try:
            each.__code__ = new
        except ValueError as error:  # it needs other variables around it
            raise ElsewhereError(str(error)) from error


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Functions of a module or class and what becomes of them. Raises ElsewhereError."""
    if _outline(old) != _outline(new):
        raise ElsewhereError(f"{old.co_filename}: {old.co_name} differs outside of functions")
    before = [each for each in old.co_consts if isinstance(each, CodeType)]
    after = [each for each in new.co_consts if isinstance(each, CodeType)]
    for one, other in zip(before, after, strict=True):
        if one.co_flags & CO_OPTIMIZED:
            yield one, other
        else:
            yield from _pairs(one, other)


def _outline(code: CodeType) -> tuple[object, ...]:
    consts = [each.co_name if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return code.co_code, code.co_names, consts


def install(path: Path, source: str) -> None:
    """From now on whoever imports the module gets this one, until the process ends."""
    name = module_of(path)
    assert name not in sys.modules, f"{name} has been imported already"
    module = sys.modules[name] = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(source, path, "exec", dont_inherit=True), vars(module))

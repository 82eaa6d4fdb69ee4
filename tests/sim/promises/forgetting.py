"""Processes in which one option is ignored: that of pytest, and those that its tests start.

`sitecustomize` of a directory that comes first in PYTHONPATH calls `forget` (`elsewhere`). The
class that has the option takes its default whatever it is given.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


def forget(module: str, name: str, option: str) -> None:
    """From now on the class `name` of this module ignores the option."""
    sys.meta_path.insert(0, _Finder(module, name, option))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, module: str, name: str, option: str) -> None:
        self._module, self._name, self._option = module, name, option

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        assert spec.loader is not None
        spec.loader = _Loader(spec.loader, self._name, self._option)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader, name: str, option: str) -> None:
        self._loader, self._name, self._option = loader, name, option

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        kind, option = getattr(module, self._name), self._option
        made = kind.__init__

        def ignorant(self: Any, *args: Any, **given: Any) -> None:
            given.pop(option, None)
            made(self, *args, **given)

        kind.__init__ = ignorant

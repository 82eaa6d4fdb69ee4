"""Disque, the distributed in-memory at-least-once job queue, on Trio."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["client", "contrib", "testing", "worker"]


def exported(
    package: str, homes: Mapping[str, str]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """`__all__`, `__getattr__` and `__dir__` of a package that imports the module of each public
    name when it is first used. `homes` has the modules by name, relative to the package."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name], package), name)

    def listed() -> list[str]:
        return sorted({*vars(import_module(package)), *homes})

    return sorted(homes), get, listed


if not TYPE_CHECKING:  # type checkers would take any name for an existing one

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

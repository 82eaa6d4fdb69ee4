"""Django's tasks on disque_trio: a backend for `TASKS`, and an app for workers
(docs/frameworks.md).

Django has tasks since version 6.0; for earlier versions the package `django-tasks` has the same.
"""

from importlib import import_module
from typing import Any

__all__ = ["Backend"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import lazily, because Django imports this package before its settings can be read."""
    if name == "Backend":
        try:
            return import_module("disque_trio.contrib.django.backend").Backend
        except ModuleNotFoundError as missing:
            raise ImportError(
                f"disque_trio.contrib.django needs {missing.name}: pip install "
                '"disque-trio[django]"',
                name=missing.name,
            ) from missing
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

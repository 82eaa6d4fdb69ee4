"""Finds the app that a command line names."""

import importlib
import os
import sys
import traceback
from types import ModuleType
from typing import Any, Final

from disque_trio.terminal.options import UsageError
from disque_trio.worker import App
from disque_trio.worker.arguments import UnfitTypeError

_DEFAULT: Final = "app"


def load(name: str) -> App[Any]:
    """The app `MODULE:APP`; without APP, `app`. Modules of the current directory come first.

    Raises `UsageError`.
    """
    module_name, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module = _import(module_name)
    try:
        found = getattr(module, attribute or _DEFAULT)
    except AttributeError:
        raise UsageError(f"{module_name} has no {attribute or _DEFAULT}{_others(module)}") from None
    if not isinstance(found, App):
        kind = type(found).__name__
        raise UsageError(f"{name} is not an App, but has the type {kind}{_others(module)}")
    return found


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise _broken(name, error) from error
        raise UsageError(
            f"there is no module {missing}, neither in {os.getcwd()} nor among installed packages"
        ) from error
    except UnfitTypeError as error:
        raise UsageError(str(error)) from error
    except (ValueError, TypeError) as error:
        if not name or name.startswith("."):
            raise UsageError(
                f"{name!r} is not a module: give one, such as shop.tasks:app"
            ) from error
        raise _broken(name, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> UsageError:
    """The module is there, and fails: its author needs the traceback."""
    return UsageError(f"{name} cannot be imported:\n{''.join(traceback.format_exception(error))}")


def _others(module: ModuleType) -> str:
    apps = [name for name, found in vars(module).items() if isinstance(found, App)]
    hint = ", ".join(f"{module.__name__}:{name}" for name in apps)
    return f"; it has {hint}" if apps else "; it has no App"

"""The form of the running code: Python, or compiled modules."""

from importlib.util import find_spec
from typing import Final

_BASE: Final = find_spec("disque_trio.statemachine.base")
"""A module that compiled wheels contain in native form; found without importing it."""
COMPILED: Final = _BASE is not None and not (_BASE.origin or "").endswith(".py")
FORM: Final = "compiled" if COMPILED else "pure"

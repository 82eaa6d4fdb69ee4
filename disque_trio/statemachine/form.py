"""Which form of the code runs: Python, or native modules."""

from importlib.util import find_spec
from typing import Final

_BASE: Final = find_spec("disque_trio.statemachine.base")
"""One of the modules that are compiled; it need not be imported for that."""
COMPILED: Final = _BASE is not None and not (_BASE.origin or "").endswith(".py")
FORM: Final = "compiled" if COMPILED else "pure"

"""Which form of the code runs: Python, or native modules."""

from typing import Final

from disque_trio.statemachine import base

COMPILED: Final = not (base.__file__ or "").endswith(".py")
FORM: Final = "compiled" if COMPILED else "pure"

"""Adds advice to errors of handlers that require another event loop than the worker's."""

import asyncio
from typing import Final

_ERRORS: Final = {
    "asyncio": ("must be called from async context", "trio"),
    "trio": ("no running event loop", "asyncio"),
}
"""By the worker's event loop: the error text of the other library, and its name."""


def add_note(error: BaseException) -> None:
    """Add a note to the error of a handler, if the other library has raised it."""
    loop = "trio" if asyncio._get_running_loop() is None else "asyncio"
    text, other = _ERRORS[loop]
    if type(error) is RuntimeError and str(error) == text:
        error.add_note(
            f"this worker runs coroutines on {loop}: start it with --loop {other}, or use anyio"
        )

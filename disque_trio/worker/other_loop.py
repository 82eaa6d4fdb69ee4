"""What to do about a handler that is written for the event loop that its worker does not run."""

import asyncio
from typing import Final

_ERRORS: Final = {
    "asyncio": ("must be called from async context", "trio"),
    "trio": ("no running event loop", "asyncio"),
}
"""By the worker's event loop: what the other library raises there, and its name."""


def add_note(error: BaseException) -> None:
    """Add it to the error of a handler, if the other library has raised it."""
    loop = "trio" if asyncio._get_running_loop() is None else "asyncio"
    text, other = _ERRORS[loop]
    if type(error) is RuntimeError and str(error) == text:
        error.add_note(
            f"this worker runs coroutines on {loop}: start it with --loop {other}, or use anyio"
        )

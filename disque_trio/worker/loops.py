"""The way from other threads, and from signal handlers, into the event loop."""

from collections.abc import Callable
from typing import Any

import anyio.lowlevel


def current_loop() -> Any:
    """The event loop that runs here: a loop of asyncio, or a token of Trio."""
    return anyio.lowlevel.current_token().native_token


def in_loop() -> Callable[..., Any]:
    """Of the event loop that runs here: calls a function in it soon, from anywhere."""
    loop = current_loop()
    called: Callable[..., Any] = getattr(loop, "run_sync_soon", None) or loop.call_soon_threadsafe
    return called

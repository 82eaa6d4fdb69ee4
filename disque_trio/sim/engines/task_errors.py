"""Errors of tasks, without the exception groups that nurseries put around them."""

import contextlib
from collections.abc import Iterator

from disque_trio.terminal.interrupts import is_interrupt


def root_of(error: Exception) -> Exception:
    """The error within the groups; of several, the first."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@contextlib.contextmanager
def ungrouped() -> Iterator[None]:
    """Raise the error in place of its group, and Ctrl-C in place of those of nurseries."""
    try:
        yield
    except ExceptionGroup as group:
        raise root_of(group) from group
    except BaseExceptionGroup as group:
        if is_interrupt(group):
            raise KeyboardInterrupt from group
        raise

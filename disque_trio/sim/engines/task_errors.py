"""Errors of tasks, without the exception groups of nurseries."""

import contextlib
from collections.abc import Iterator

from disque_trio.terminal.interrupts import is_interrupt


def root_of(error: Exception) -> Exception:
    """Return the first error within nested groups."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@contextlib.contextmanager
def ungrouped() -> Iterator[None]:
    """Raise the first error in place of its group, and KeyboardInterrupt in place of a group of a
    nursery."""
    try:
        yield
    except ExceptionGroup as group:
        raise root_of(group) from group
    except BaseExceptionGroup as group:
        if is_interrupt(group):
            raise KeyboardInterrupt from group
        raise

"""What went wrong in a task, without the groups that nurseries put around it."""

import contextlib
from collections.abc import Iterator


def root_of(error: Exception) -> Exception:
    """The error within the groups; of several, the first."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


@contextlib.contextmanager
def ungrouped() -> Iterator[None]:
    """What is raised in tasks is raised as such."""
    try:
        yield
    except ExceptionGroup as group:
        raise root_of(group) from group

"""What became of each of many calls, also if adding them was interrupted."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from disque_trio.client.errors import DisqueError
from disque_trio.worker.describing import name_of, text_of


class NotEnqueuedError(DisqueError):
    """A call was not added, because a hook or its options raised an error, which is the cause."""


class EnqueueManyError(DisqueError):
    """`enqueue_many` was interrupted. The cause is the error, for example of the calls' own
    iterator. Calls after those in `results` were not added."""

    def __init__(self, text: str, results: list[Any]) -> None:
        super().__init__(text)
        self.results = results
        """As `enqueue_many` returns them: `Enqueued` or the error of each call, in order."""


def not_enqueued(what: str, error: Exception) -> NotEnqueuedError:
    """The error of one call, in place of one that is none of this library's."""
    found = NotEnqueuedError(f"{what} was not added: {said(error)}")
    found.__cause__ = error
    return found


def said(error: BaseException) -> str:
    """The type of an error, and its text if it has one."""
    return f"{name_of(type(error))}: {text_of(error)}".removesuffix(": ")


@contextlib.contextmanager
def telling(results: list[Any], under_way: Sequence[Any]) -> Iterator[None]:
    """Let an error of the block have the results so far, and an error for each call that is under
    way, which may have been added. What is no `Exception`, such as a cancellation, gets them as its
    attribute `results`."""
    try:
        yield
    except BaseException as error:
        told = [*results, *under_way]
        if not isinstance(error, Exception):
            error.__dict__["results"] = told
            raise
        added = sum(not isinstance(each, DisqueError) for each in told)
        raise EnqueueManyError(
            f"interrupted after {len(told)} calls, of which {added} were added (see `results`): "
            f"{said(error)}",
            told,
        ) from error

"""The results of `enqueue_many` if it is interrupted."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from disque_trio.client.errors import DisqueError
from disque_trio.terminal.counting import counted
from disque_trio.worker.describing import type_and_text
from disque_trio.worker.enqueued import R_co
from disque_trio.worker.requests import Request

Window = Sequence[Request[R_co] | DisqueError]
"""Requests that are added together, and the errors of calls that could not be encoded."""


class EnqueueManyError(DisqueError):
    """`enqueue_many` was interrupted by an error, which is the cause: for example an error of the
    calls' iterator. Calls after those in `results` were not added."""

    def __init__(self, text: str, results: list[Any]) -> None:
        super().__init__(text)
        self.results = results
        """The result of each call so far, in order: `Enqueued`, or the error. The error of a call
        that was being added is `EnqueueUnknownError`."""


@contextlib.contextmanager
def with_results(
    windows: Iterator[Window[R_co]], results: list[Any]
) -> Iterator[Iterator[Window[R_co]]]:
    """Yield the windows. If the block raises, raise `EnqueueManyError` with the `results` so far,
    and with an error for each call of the current window, which may have been added. An exception
    that is no `Exception`, such as a cancellation, gets them as its attribute `results` instead."""
    under_way: list[DisqueError] = []

    def current() -> Iterator[Window[R_co]]:
        for window in windows:
            under_way[:] = map(_interrupted, window)
            yield window
            under_way.clear()

    try:
        yield current()
    except BaseException as error:
        outcomes = [*results, *under_way]
        if not isinstance(error, Exception):
            error.__dict__["results"] = outcomes
            raise
        added = sum(not isinstance(each, DisqueError) for each in outcomes)
        raise EnqueueManyError(
            f"interrupted after {counted(len(outcomes), 'call')}, {added} of them added "
            f"(see `results`): {type_and_text(error)}",
            outcomes,
        ) from error


def _interrupted(asked: Request[Any] | DisqueError) -> DisqueError:
    if isinstance(asked, DisqueError):
        return asked
    return asked.unknown(DisqueError("adding it was interrupted"))

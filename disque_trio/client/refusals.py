"""Errors that a node answers, by their codes (docs/commands.md)."""

from collections.abc import Sequence
from typing import Final

from disque_trio.client.errors import DisqueError
from disque_trio.statemachine.base import Failure


class RefusedError(DisqueError):
    """The node has refused a request and done nothing of it."""

    def __init__(self, code: str, text: str, command: str) -> None:
        super().__init__(code, text, command)
        self.code = code
        """The first word of the error, such as `ERR`."""
        self.text = text
        """The error without the code."""
        self.command = command

    def __str__(self) -> str:
        return f"{self.command}: {self.code} {self.text}".rstrip()


class NotReplicatedError(RefusedError):
    """There were not enough nodes for the copies, or not in time: the job was not added, but after
    a partition a copy of it may remain."""


class QueueFullError(RefusedError):
    """The queue has `maxlen` jobs."""


class QueuePausedError(RefusedError):
    """The queue takes no jobs now."""


class UnknownJobError(RefusedError):
    """The node does not know the job."""


class TooLateError(RefusedError):
    """Half of the job's TTL is over: its lease cannot be renewed any more."""


class AlreadyAckedError(RefusedError):
    """The job has been acknowledged."""


class AuthenticationError(RefusedError):
    """The password is missing or wrong."""


class UnavailableError(RefusedError):
    """This node cannot do it now; another one may."""


class BadReplyError(DisqueError):
    """A reply that the command cannot have: is this a node of Disque?"""


_BY_CODE: Final[dict[str, type[RefusedError]]] = {
    "NOREPL": NotReplicatedError,
    "MAXLEN": QueueFullError,
    "PAUSED": QueuePausedError,
    "NOJOB": UnknownJobError,
    "TOOLATE": TooLateError,
    "ACKED": AlreadyAckedError,
    "NOAUTH": AuthenticationError,
    "WRONGPASS": AuthenticationError,
    "DENIED": AuthenticationError,
    "LOADING": UnavailableError,
    "LEAVING": UnavailableError,
    "MISCONF": UnavailableError,
    "OOM": UnavailableError,
    "DUPLICATEID": UnavailableError,
}


def refused(failure: Failure, words: Sequence[bytes]) -> RefusedError:
    """The exception for an error that a request was answered with."""
    code, _, text = failure.text.decode(errors="backslashreplace").partition(" ")
    kind = _BY_CODE.get(code, RefusedError)
    return kind(code, text, words[0].decode(errors="backslashreplace"))

"""Errors that a node answers, by their codes (docs/commands.md)."""

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


class LeaseLostError(RefusedError):
    """The job was given back, or to somebody else, since the delivery whose token was sent: stop
    working."""


class DeadJobError(RefusedError):
    """The job is dead: nobody gets it until REDRIVE queues it again."""


class DuplicateJobError(RefusedError):
    """Another job of the queue has the key, and `if_exists` is `reject`."""

    @property
    def job_id(self) -> str:
        """The id of that job."""
        return self.text.partition(" ")[0]

    @property
    def state(self) -> str:
        """Its state: waiting, queued, with-worker, backing-off, dead or done-kept."""
        return self.text.partition(" ")[2]


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
    "LOST": LeaseLostError,
    "DEAD": DeadJobError,
    "DUPLICATE": DuplicateJobError,
    "NOAUTH": AuthenticationError,
    "WRONGPASS": AuthenticationError,
    "DENIED": AuthenticationError,
    "LOADING": UnavailableError,
    "LEAVING": UnavailableError,
    "MISCONF": UnavailableError,
    "OOM": UnavailableError,
    "DUPLICATEID": UnavailableError,
}


def refused(failure: Failure, command: str) -> RefusedError:
    """The exception for an error that a command was answered with."""
    code, _, text = failure.text.decode(errors="backslashreplace").partition(" ")
    return _BY_CODE.get(code, RefusedError)(code, text, command)

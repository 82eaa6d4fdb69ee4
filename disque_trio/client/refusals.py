"""Errors returned by a node, by their codes (docs/commands.md)."""

from typing import Final

from disque_trio.client.errors import DisqueError
from disque_trio.statemachine.base import Failure
from disque_trio.terminal.escapes import printable

URL_WITH_PASSWORD: Final = "Put the password into the URL: disque://:PASSWORD@HOST:PORT"
WRONG_PASSWORD: Final = "The password of the URL is wrong"
_IS_NEEDLESS: Final = "no password is set"


class RefusedError(DisqueError):
    """The node rejected a request. The request had no effect, unless a subclass states
    otherwise."""

    def __init__(self, code: str, text: str, command: str) -> None:
        super().__init__(code, text, command)
        self.code = code
        """The first word of the error, such as `ERR`."""
        self.text = text
        """The error without the code."""
        self.command = command

    def __str__(self) -> str:
        return printable(f"{self.command}: {self.code} {self.text}".rstrip())


class NotReplicatedError(RefusedError):
    """Not enough nodes confirmed a replica in time. The job was not added, but after a partition a
    replica of it may remain."""

    @property
    def may_pass(self) -> bool:
        """Did a node that counts as reachable not answer? The others will soon consider it failed,
        so the same request may then succeed. Otherwise there are too few nodes."""
        return self.text.startswith(("Timeout reached", "Nodes failed"))


class QueueFullError(RefusedError):
    """The queue has `maxlen` jobs."""


class QueuePausedError(RefusedError):
    """The queue is paused for input."""


class UnknownJobError(RefusedError):
    """The node does not hold the job."""


class TooLateError(RefusedError):
    """Half of the job's TTL has passed, so its lease cannot be renewed."""


class AlreadyAckedError(RefusedError):
    """The job has been acknowledged."""


class LeaseLostError(RefusedError):
    """The job was returned, or delivered to another worker, since the delivery with this token:
    stop working on it."""


class DeadJobError(RefusedError):
    """The job is dead: it is not delivered until REDRIVE enqueues it."""


class DuplicateJobError(RefusedError):
    """Another job of the queue has the key, and `if_exists` is `reject`."""

    @property
    def job_id(self) -> str:
        """The id of the other job."""
        return self.text.partition(" ")[0]

    @property
    def state(self) -> str:
        """The state of the other job: waiting, queued, with-worker, backing-off, dead or
        done-kept."""
        return self.text.partition(" ")[2]


class AuthenticationError(RefusedError):
    """The password is missing or wrong, or the node serves only clients of its own machine
    (`DENIED`)."""

    node: str = ""
    """The address of the node, if it rejects every command of the connection; otherwise empty."""

    @property
    def advice(self) -> str:
        """Advice; empty if the text of the node contains it."""
        if _IS_NEEDLESS in self.text:
            return "Leave the password out, or set it on this node: CONFIG SET requirepass"
        if self.command == "AUTH":
            return WRONG_PASSWORD
        return URL_WITH_PASSWORD if self.code == "NOAUTH" else ""

    def __str__(self) -> str:
        if not self.node:
            return super().__str__()
        text = printable(f"{self.node}: {self.code} {self.text}".rstrip("."))
        return ". ".join(filter(None, (text, self.advice)))


class UnavailableError(RefusedError):
    """This node cannot serve the request now; another one may."""


class UnsupportedError(DisqueError):
    """No reachable node has a feature that the command needs. The command had no effect."""


class BadReplyError(DisqueError):
    """A reply that is invalid for the command: the server may not be a Disque node."""


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
    """The exception for an error reply to a command."""
    code, _, text = failure.text.decode(errors="backslashreplace").partition(" ")
    return _BY_CODE.get(code, RefusedError)(code, text, command)

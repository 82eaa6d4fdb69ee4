"""Clients of a cluster: `Client` for Trio and asyncio, `BlockingClient` for threads.

Modules below them handle connections to a node, TLS, and errors with advice. They import the wire
and `system`. The command line and the pipeline import this package. docs/client.md describes it.
"""

from typing import TYPE_CHECKING, Final

from disque_trio import exported

if TYPE_CHECKING:
    from disque_trio.client.blocking import BlockingClient as BlockingClient
    from disque_trio.client.client import Client as Client
    from disque_trio.client.command import Command as Command
    from disque_trio.client.errors import BusyError as BusyError
    from disque_trio.client.errors import ConnectionFailedError as ConnectionFailedError
    from disque_trio.client.errors import DisqueError as DisqueError
    from disque_trio.client.errors import LostError as LostError
    from disque_trio.client.errors import OtherLoopError as OtherLoopError
    from disque_trio.client.nodes import NoNodeError as NoNodeError
    from disque_trio.client.recorder import Recorder as Recorder
    from disque_trio.client.records import Job as Job
    from disque_trio.client.records import JobDetails as JobDetails
    from disque_trio.client.records import JobResult as JobResult
    from disque_trio.client.records import KeyHolder as KeyHolder
    from disque_trio.client.records import Meta as Meta
    from disque_trio.client.records import QueueInfo as QueueInfo
    from disque_trio.client.records import QueueLimits as QueueLimits
    from disque_trio.client.records import QueueStats as QueueStats
    from disque_trio.client.refusals import AlreadyAckedError as AlreadyAckedError
    from disque_trio.client.refusals import AuthenticationError as AuthenticationError
    from disque_trio.client.refusals import BadReplyError as BadReplyError
    from disque_trio.client.refusals import DeadJobError as DeadJobError
    from disque_trio.client.refusals import DuplicateJobError as DuplicateJobError
    from disque_trio.client.refusals import LeaseLostError as LeaseLostError
    from disque_trio.client.refusals import NotReplicatedError as NotReplicatedError
    from disque_trio.client.refusals import QueueFullError as QueueFullError
    from disque_trio.client.refusals import QueuePausedError as QueuePausedError
    from disque_trio.client.refusals import RefusedError as RefusedError
    from disque_trio.client.refusals import TooLateError as TooLateError
    from disque_trio.client.refusals import UnknownJobError as UnknownJobError
    from disque_trio.client.refusals import UnsupportedError as UnsupportedError

_REFUSALS: Final = (
    "AlreadyAckedError",
    "AuthenticationError",
    "BadReplyError",
    "DeadJobError",
    "DuplicateJobError",
    "LeaseLostError",
    "NotReplicatedError",
    "QueueFullError",
    "QueuePausedError",
    "RefusedError",
    "TooLateError",
    "UnknownJobError",
    "UnsupportedError",
)
_HOMES: Final = {
    "BlockingClient": ".blocking",
    "Client": ".client",
    "Command": ".command",
    **dict.fromkeys(
        ("BusyError", "ConnectionFailedError", "DisqueError", "LostError", "OtherLoopError"),
        ".errors",
    ),
    "NoNodeError": ".nodes",
    "Recorder": ".recorder",
    **dict.fromkeys(
        (
            "Job",
            "JobDetails",
            "JobResult",
            "KeyHolder",
            "Meta",
            "QueueInfo",
            "QueueLimits",
            "QueueStats",
        ),
        ".records",
    ),
    **dict.fromkeys(_REFUSALS, ".refusals"),
}

# The command line imports this package, and starts more quickly without anyio.
if not TYPE_CHECKING:  # type checkers would take any name for an existing one
    __all__, __getattr__, __dir__ = exported(__name__, _HOMES)

"""The worker library: `App` declares tasks, adds their jobs and runs them.

`engine` decides what a worker does, without I/O; of the state machine it imports only names.
docs/worker.md describes the library, docs/worker-engine.md the engine.
"""

from typing import TYPE_CHECKING, Final

from disque_trio import exported

if TYPE_CHECKING:
    from disque_trio.worker.app import App as App
    from disque_trio.worker.arguments import UnfitTypeError as UnfitTypeError
    from disque_trio.worker.batches import Batch as Batch
    from disque_trio.worker.batches import BatchFailedError as BatchFailedError
    from disque_trio.worker.codecs import ClaimCheck as ClaimCheck
    from disque_trio.worker.codecs import Codec as Codec
    from disque_trio.worker.codecs import Store as Store
    from disque_trio.worker.codecs import Zlib as Zlib
    from disque_trio.worker.context import Job as Job
    from disque_trio.worker.context import NoJobError as NoJobError
    from disque_trio.worker.context import current_job as current_job
    from disque_trio.worker.enqueue import Call as Call
    from disque_trio.worker.enqueue_many import EnqueueManyError as EnqueueManyError
    from disque_trio.worker.enqueued import Enqueued as Enqueued
    from disque_trio.worker.enqueued import NotOpenError as NotOpenError
    from disque_trio.worker.envelope import BadBodyError as BadBodyError
    from disque_trio.worker.envelope import NewerBodyError as NewerBodyError
    from disque_trio.worker.envelope import NotEncodableError as NotEncodableError
    from disque_trio.worker.envelope import TooLargeError as TooLargeError
    from disque_trio.worker.events import Event as Event
    from disque_trio.worker.events import JobCancelled as JobCancelled
    from disque_trio.worker.events import JobDead as JobDead
    from disque_trio.worker.events import JobEnqueued as JobEnqueued
    from disque_trio.worker.events import JobReleased as JobReleased
    from disque_trio.worker.events import JobRetried as JobRetried
    from disque_trio.worker.events import JobStarted as JobStarted
    from disque_trio.worker.events import JobSucceeded as JobSucceeded
    from disque_trio.worker.events import RunEnded as RunEnded
    from disque_trio.worker.events import RunEvent as RunEvent
    from disque_trio.worker.events import WorkerStarted as WorkerStarted
    from disque_trio.worker.events import WorkerStopped as WorkerStopped
    from disque_trio.worker.exceptions import Cancel as Cancel
    from disque_trio.worker.exceptions import Dead as Dead
    from disque_trio.worker.exceptions import InterruptedJobError as InterruptedJobError
    from disque_trio.worker.exceptions import JobFailedError as JobFailedError
    from disque_trio.worker.exceptions import JobTimeoutError as JobTimeoutError
    from disque_trio.worker.exceptions import NoResultError as NoResultError
    from disque_trio.worker.exceptions import Retry as Retry
    from disque_trio.worker.exceptions import Snooze as Snooze
    from disque_trio.worker.flows.building import Flow as Flow
    from disque_trio.worker.flows.building import FlowMember as FlowMember
    from disque_trio.worker.flows.handles import BlockingEnqueuedFlow as BlockingEnqueuedFlow
    from disque_trio.worker.flows.handles import EnqueuedFlow as EnqueuedFlow
    from disque_trio.worker.flows.handles import FlowFailedError as FlowFailedError
    from disque_trio.worker.flows.handles import FlowMemberStatus as FlowMemberStatus
    from disque_trio.worker.flows.handles import FlowStatus as FlowStatus
    from disque_trio.worker.handles import BlockingJobHandle as BlockingJobHandle
    from disque_trio.worker.handles import JobHandle as JobHandle
    from disque_trio.worker.hooks import Adding as Adding
    from disque_trio.worker.operating.states import JobStatus as JobStatus
    from disque_trio.worker.policies import Backoff as Backoff
    from disque_trio.worker.policies import Fixed as Fixed
    from disque_trio.worker.policies import Polynomial as Polynomial
    from disque_trio.worker.requests import EnqueueUnknownError as EnqueueUnknownError
    from disque_trio.worker.requests import NotEnqueuedError as NotEnqueuedError
    from disque_trio.worker.results import Update as Update
    from disque_trio.worker.tally import BatchEnds as BatchEnds
    from disque_trio.worker.tally import MemberEnd as MemberEnd
    from disque_trio.worker.task import Task as Task
    from disque_trio.worker.timetable.records import TooManySchedulesError as TooManySchedulesError
    from disque_trio.worker.timetable.records import UnknownScheduleError as UnknownScheduleError

_EXCEPTIONS: Final = (
    "Cancel Dead InterruptedJobError JobFailedError JobTimeoutError NoResultError Retry Snooze"
)
_EVENTS: Final = (
    "Event JobCancelled JobDead JobEnqueued JobReleased JobRetried JobStarted JobSucceeded "
    "RunEnded RunEvent WorkerStarted WorkerStopped"
)
_FLOWS: Final = "BlockingEnqueuedFlow EnqueuedFlow FlowFailedError FlowMemberStatus FlowStatus"
_HOMES: Final = {
    "App": ".app",
    **dict.fromkeys(("Batch", "BatchFailedError"), ".batches"),
    "UnfitTypeError": ".arguments",
    **dict.fromkeys(("ClaimCheck", "Codec", "Store", "Zlib"), ".codecs"),
    **dict.fromkeys(("Job", "NoJobError", "current_job"), ".context"),
    "Call": ".enqueue",
    "EnqueueManyError": ".enqueue_many",
    **dict.fromkeys(("Enqueued", "NotOpenError"), ".enqueued"),
    **dict.fromkeys(
        ("BadBodyError", "NewerBodyError", "NotEncodableError", "TooLargeError"), ".envelope"
    ),
    **dict.fromkeys(_EVENTS.split(), ".events"),
    **dict.fromkeys(_EXCEPTIONS.split(), ".exceptions"),
    **dict.fromkeys(("Flow", "FlowMember"), ".flows.building"),
    **dict.fromkeys(_FLOWS.split(), ".flows.handles"),
    **dict.fromkeys(("BlockingJobHandle", "JobHandle"), ".handles"),
    "Adding": ".hooks",
    "JobStatus": ".operating.states",
    **dict.fromkeys(("Backoff", "Fixed", "Polynomial"), ".policies"),
    **dict.fromkeys(("EnqueueUnknownError", "NotEnqueuedError"), ".requests"),
    "Update": ".results",
    **dict.fromkeys(("BatchEnds", "MemberEnd"), ".tally"),
    "Task": ".task",
    **dict.fromkeys(("TooManySchedulesError", "UnknownScheduleError"), ".timetable.records"),
}

# The command line and the simulator import this package but use few of its names.
if not TYPE_CHECKING:  # type checkers would take any name for an existing one
    __all__, __getattr__, __dir__ = exported(__name__, _HOMES)

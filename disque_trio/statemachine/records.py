"""The records of the append-only file (original 7.1)."""

import attrs

from disque_trio.statemachine.base import JobId, Millis
from disque_trio.statemachine.messages import JobCopy


@attrs.define
class LoadJob:
    """This node holds this job."""

    copy: JobCopy


@attrs.define
class DeleteJob:
    """This node no longer holds this job."""

    id: JobId


@attrs.define
class StoredResult:
    """This node keeps this result. Times are Unix milliseconds."""

    id: JobId
    queue: bytes
    at: Millis
    """When the result was set."""
    until: Millis
    """When it expires, by the clock of the node that wrote this; 0 if it was deleted."""
    value: bytes


Record = LoadJob | DeleteJob | StoredResult

"""What a node writes down of its jobs: the records of the append-only file (original 7.1)."""

import attrs

from disque_trio.statemachine.base import JobId, Millis
from disque_trio.statemachine.messages import JobCopy


@attrs.define
class LoadJob:
    """This node holds this job."""

    copy: JobCopy


@attrs.define
class DeleteJob:
    """This node does not hold this job any more."""

    id: JobId


@attrs.define
class StoredResult:
    """This node keeps this result. Times are Unix milliseconds."""

    id: JobId
    queue: bytes
    at: Millis
    """When it was given."""
    until: Millis
    """By the clock of the node that wrote this; 0 if a client has deleted it."""
    value: bytes


Record = LoadJob | DeleteJob | StoredResult

"""What a node writes down of its jobs: the records of the append-only file (original 7.1)."""

import attrs

from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.messages import JobCopy


@attrs.define
class LoadJob:
    """This node holds this job."""

    copy: JobCopy


@attrs.define
class DeleteJob:
    """This node does not hold this job any more."""

    id: JobId


Record = LoadJob | DeleteJob

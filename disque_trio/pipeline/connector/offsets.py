"""The offset of a stream: the number of a batch, and its jobs.

Spark writes an offset into its log before it runs the batch. After a crash the jobs with these ids
are read again; a job whose id is not in the log has not been read.

    {"seq": 7, "jobs": {"10.0.0.1:7711": ["D-…", "D-…"], …}}

`seq` counts batches, so that no two offsets are equal. Jobs are listed by the node that delivered
them, which is the first to be asked for them.
"""

from typing import Any, Final

import attrs

from disque_trio.client.leases import Jobs
from disque_trio.pipeline.errors import PipelineError

_ID_LENGTH: Final = 40


@attrs.frozen
class Offset:
    """Where a batch ends."""

    seq: int
    jobs: Jobs

    def ids(self) -> list[str]:
        """The batch's jobs."""
        return [job for jobs in self.jobs.values() for job in jobs]

    def dumped(self) -> dict[str, Any]:
        """As Spark stores it."""
        return {"seq": self.seq, "jobs": self.jobs}


START: Final = Offset(0, {})


def load(data: Any) -> Offset:
    """An offset that Spark stored. Raises `PipelineError` if it is not one of a Disque stream."""
    match data:
        case {"seq": int(seq), "jobs": dict(jobs)} if all(map(_is_ids, jobs.values())):
            return Offset(seq, jobs)
    raise PipelineError(
        f"the checkpoint's offset is not one of a Disque stream: {data!r:.120}. "
        "Does the checkpoint belong to another query?"
    )


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) and len(item) == _ID_LENGTH and item.startswith("D-")
        for item in value
    )

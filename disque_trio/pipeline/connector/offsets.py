"""The offset of a stream: which batch this is, and which jobs it has.

Spark writes offsets into its log before it runs a batch. So the ids in it are what can be had again
after a crash, and an id that never came into the log is a job that nobody has read.

    {"seq": 7, "jobs": {"10.0.0.1:7711": ["D-…", "D-…"], …}}

`seq` counts batches, so that two offsets are never alike. The jobs stand under the node that gave
them, which is the first to be asked for them.
"""

from typing import Any, Final

import attrs

from disque_trio.pipeline.errors import PipelineError

Jobs = dict[str, list[str]]
"""Ids by the name of the node that gave them."""

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
        """As Spark keeps it."""
        return {"seq": self.seq, "jobs": self.jobs}


START: Final = Offset(0, {})


def load(data: Any) -> Offset:
    """What Spark kept. Raises `PipelineError` if that is no offset of ours."""
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

"""The offset of a stream: the number of a batch, and the notes with its ids.

Spark writes an offset into its log before it runs the batch. After a crash the jobs with these ids
are read again; a job whose id is not noted has not been read. The ids are jobs of a queue that
nobody takes from, since Spark repeats offsets in its progress events and in errors.

    {"seq": 7, "queue": "orders", "count": 20000, "notes": [["10.0.0.1:7711", "D-…"], …]}

`seq` counts batches, so that no two offsets are equal. The text of a note lists jobs by the node
that delivered them, which is the first to be asked for them.
"""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import attrs

from disque_trio.client import commands
from disque_trio.client.command import Command
from disque_trio.client.leases import Jobs
from disque_trio.pipeline.connector import notes
from disque_trio.pipeline.connector.nodes import Nodes
from disque_trio.pipeline.connector.notes import Place
from disque_trio.pipeline.connector.windows import of_ids
from disque_trio.pipeline.errors import PipelineError
from disque_trio.terminal.counting import counted

QUEUE: Final = "disque-trio.spark.batches"
NOTED: Final = 5_000
"""Ids of one note at most, 43 bytes each."""
_COPIES: Final = 3
_RETRY_S: Final = 300
"""Notes are read by their ids, so it does not matter where they are queued."""
_ID_LENGTH: Final = 40


@attrs.frozen
class Offset:
    """Where a batch ends."""

    seq: int
    queue: str
    count: int = 0
    """How many jobs it has."""
    notes: tuple[Place, ...] = ()
    """The notes with their ids. Their order is that of the jobs in the batch."""

    def dumped(self) -> dict[str, Any]:
        """As Spark stores it."""
        return attrs.asdict(self)


class LostJobsError(PipelineError):
    """Jobs of a batch that is replayed are not there any more."""


@attrs.define(eq=False)
class Batches:
    """The jobs of a stream's batches, by the number of the batch."""

    nodes: Nodes
    queue: str
    """From which the stream reads."""
    _known: dict[int, Jobs] = attrs.field(init=False, factory=dict)

    def keep(self, seq: int, jobs: Jobs) -> Offset:
        """Note the ids of a batch. Raises `PipelineError`."""
        texts = map(json.dumps, _parts(jobs))
        places = [notes.keep(self.nodes, partial(self._adds, text)) for text in texts]
        self._known[seq] = jobs
        return Offset(seq, self.queue, len(flat(jobs)), tuple(places))

    def _adds(self, text: str) -> Command[str]:
        """With as many copies as there can be now: a node that is down counts in the default."""
        return commands.addjob(
            QUEUE,
            text,
            timeout=self.nodes.link.timeout_s * 0.8,
            retry=_RETRY_S,
            ttl=notes.TTL_S,
            replicate=min(_COPIES, len(self.nodes.live())),
        )

    def jobs(self, offset: Offset) -> Jobs:
        """The batch that ends here. Raises `LostJobsError`."""
        if offset.seq not in self._known:
            self._known[offset.seq] = self._read(offset)
        return self._known[offset.seq]

    def known(self, offset: Offset) -> Jobs:
        """The same, as far as it needs no node."""
        return self._known.get(offset.seq, {})

    def drop(self, offset: Offset) -> None:
        """Spark has done with the batch."""
        self._known.pop(offset.seq, None)
        notes.drop(self.nodes, offset.notes)

    def _read(self, offset: Offset) -> Jobs:
        found: Jobs = {}
        for place in offset.notes:
            text = notes.read(self.nodes, place)
            if text is None:
                raise LostJobsError(
                    "no node that answers has the ids of "
                    f"{counted(offset.count, 'job')} of a batch; "
                    f"{', '.join(self.nodes.down()) or 'none'} are down. Start the query "
                    "again when they answer, or omit the jobs with "
                    'option("failOnDataLoss", "false")'
                )
            for node, ids in json.loads(text).items():
                found.setdefault(node, []).extend(ids)
        return found


def flat(jobs: Jobs) -> list[str]:
    """The ids alone."""
    return [job for ids in jobs.values() for job in ids]


def _parts(jobs: Jobs) -> Iterator[Jobs]:
    for node, ids in jobs.items():
        for some in of_ids(ids, NOTED):
            yield {node: list(some)}


def load(data: Any, queue: str) -> Offset:
    """An offset that Spark stored for a stream of this queue. Raises `PipelineError` if it is not
    one, or one of another queue."""
    match data:
        case {"seq": int(seq), "count": int(count), "notes": [*found]} if all(
            map(_is_place, found)
        ):
            other = data.get("queue", queue)  # release 0.1 did not store it
            if other != queue:
                raise PipelineError(
                    f"the checkpoint is of a stream of the queue {other}, not {queue}: "
                    "each queue needs its own checkpoint"
                )
            return Offset(seq, queue, count, tuple((node, note) for node, note in found))
    raise PipelineError(
        f"the checkpoint's offset is not one of a Disque stream: {data!r:.120}. "
        "The checkpoint may belong to another query, or to an earlier version"
    )


def _is_place(value: Any) -> bool:
    match value:
        case [str(), str(note)]:
            return len(note) == _ID_LENGTH and note.startswith("D-")
    return False

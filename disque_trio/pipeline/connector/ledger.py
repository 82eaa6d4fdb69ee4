"""Notes of what a query has written, so that a repeated batch adds no job twice.

Spark repeats a stream's batch after a crash, and does not tell the sink what the first run has
done. So each task notes the ids of the jobs that it has added, a window of rows at a time, as jobs
in a queue of the query; QPEEK reads it, and no client takes jobs from it. A window with the same
rows as a note has that note's jobs. Once a batch is committed, one note keeps the digests of its
windows, and its other notes are dropped. Rows are skipped only if they are the same as noted.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import attrs

from disque_trio.client import commands
from disque_trio.client.refusals import RefusedError
from disque_trio.pipeline.connector import notes
from disque_trio.pipeline.connector.adding import Added
from disque_trio.pipeline.connector.nodes import NodeGoneError, Nodes, copies
from disque_trio.pipeline.connector.notes import Place
from disque_trio.pipeline.connector.releasing import undo
from disque_trio.pipeline.connector.rows import Row
from disque_trio.pipeline.errors import PipelineError

PREFIX: Final = "disque-trio.spark."
_RETRY_S: Final = 3
"""After so long another holder queues the note of a dead node, so that it is found."""
_MOST: Final = 100_000


@attrs.frozen
class Note:
    """What was added for a window of a task, or the windows of a committed batch."""

    batch: int
    digests: dict[str, str]
    """Digests of the rows, by `task/window`."""
    added: Added | None
    """None: the batch is committed."""


@attrs.define(eq=False)
class Ledger:
    """The notes of one query."""

    nodes: Nodes
    query: str
    replicas: int | None

    @property
    def queue(self) -> str:
        """The queue of the notes."""
        return f"{PREFIX}{self.query}"

    def read(self) -> dict[str, tuple[str, Note]]:
        """All notes, each with a node that has it, by their ids."""
        found: dict[str, tuple[str, Note]] = {}
        for node in self.nodes.live():
            try:
                (jobs,) = self.nodes.ask(node, [commands.qpeek(self.queue, _MOST)])
            except NodeGoneError:
                continue
            if isinstance(jobs, RefusedError):
                raise PipelineError(f"{node} refuses {jobs}")
            found |= {job.id: (node, _parsed(job.body)) for job in jobs}
        if self.nodes.down():
            copied, over = self._copies()
            found = {job: place for job, place in (found | copied).items() if job not in over}
        return found

    def _copies(self) -> tuple[dict[str, tuple[str, Note]], set[str]]:
        """Notes of which nodes have copies, and the ids of those that were dropped.

        A note of a dead node is queued by another holder when its RETRY is over. Until then it is
        found only by looking through all jobs of the nodes that are left.
        """
        found: dict[str, tuple[str, Note]] = {}
        over: set[str] = set()
        for node in self.nodes.live():
            with suppress(NodeGoneError):
                for job in copies(self.nodes, node, self.queue):
                    if job.state == "acked":
                        over.add(job.id)
                    elif job.state != "wait-repl" and job.body is not None:
                        found[job.id] = (node, _parsed(job.body))
        return found, over

    def note(self, note: Note, node: str | None = None) -> Place:
        """Add the note at that node or another. Raises `PipelineError`.

        A query that is stopped for longer than its TTL adds the rows of its latest batch again.
        """
        adds = commands.addjob(
            self.queue,
            json.dumps(attrs.asdict(note)),
            timeout=self.nodes.link.timeout_s * 0.8,
            retry=_RETRY_S,
            ttl=notes.TTL_S,
            replicate=self.replicas,
        )
        return notes.keep(self.nodes, lambda: adds, node)

    def drop(self, places: Iterable[Place]) -> None:
        """Drop these notes."""
        notes.drop(self.nodes, places)


def digest(rows: Sequence[Row]) -> str:
    """The digest of a window's rows."""
    state = hashlib.blake2b(digest_size=16)
    for row in rows:
        for part in (row.queue, row.body, *row.terms.words):
            state.update(b"%d:" % len(part))
            state.update(part)
        state.update(b";")
    return state.hexdigest()


def _parsed(body: bytes) -> Note:
    data = json.loads(body)
    added = data.pop("added")
    return Note(added=None if added is None else Added(**added), **data)


@attrs.define(eq=False)
class TaskNotes:
    """The notes of one task."""

    ledger: Ledger
    batch: int
    task: int
    mine: list[Place] = attrs.field(init=False, factory=list)
    """Notes of this attempt."""
    _done: dict[str, str] = attrs.field(init=False, factory=dict)
    _known: dict[str, tuple[Place, Note]] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for job, (node, note) in self.ledger.read().items():
            if note.batch != self.batch:
                continue
            if note.added is None:
                self._done |= note.digests
            else:
                self._known |= dict.fromkeys(note.digests, ((node, job), note))

    def find(self, window: int, what: str) -> Added | None:
        """What an earlier run has added for these rows; empty if its batch is committed.

        If it had other rows in this window, their jobs are removed.
        """
        name = _name(self.task, window)
        if self._done.get(name) == what:
            return Added()
        if name not in self._known:
            return None
        place, note = self._known[name]
        assert note.added is not None
        if note.digests[name] == what:
            return note.added
        undo(self.ledger.nodes, note.added)
        self.ledger.drop([place])
        return None

    def keep(self, window: int, what: str, added: Added, node: str) -> None:
        """Note what has been added for these rows."""
        note = Note(self.batch, {_name(self.task, window): what}, added)
        self.mine.append(self.ledger.note(note, node))


def finish(ledger: Ledger, batch: int, tasks: dict[int, list[str]]) -> None:
    """Note that a batch is committed, with the digests of each task's windows."""
    digests = {
        _name(task, n): what for task, whats in tasks.items() for n, what in enumerate(whats)
    }
    _, kept = ledger.note(Note(batch, digests, None))
    _clear(ledger, batch, digests, kept)


def forget(ledger: Ledger, batch: int) -> None:
    """Remove all jobs of a batch that has failed."""
    _clear(ledger, batch, {}, "")


def _clear(ledger: Ledger, batch: int, digests: dict[str, str], kept: str) -> None:
    """Drop the notes of a batch and of older ones, and remove jobs that were not committed."""
    notes = ledger.read()
    committed = {note.batch: note.digests for _, note in notes.values() if note.added is None}
    committed[batch] = digests
    old = []
    for job, (node, note) in notes.items():
        if job == kept or note.batch > batch:
            continue
        old.append((node, job))
        # An older note was unreachable when its batch was committed.
        whole = committed.get(note.batch)
        is_stray = whole is not None and not note.digests.items() <= whole.items()
        if note.added is not None and is_stray:
            undo(ledger.nodes, note.added)
    ledger.drop(old)


def _name(task: int, window: int) -> str:
    return f"{task}/{window}"

"""The jobs of a node in memory, for tests, and descriptions of near misses."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import ACTIVE, Spilled
from disque_trio.statemachine.job import Job
from disque_trio.terminal.counting import counted
from disque_trio.testing.inline.node import MemoryNode
from disque_trio.worker import codec
from disque_trio.worker.codec import Envelope
from disque_trio.worker.envelope import BadBodyError, NewerBodyError, as_coded, read
from disque_trio.worker.task import Prepared

_LONGEST: Final = 10
"""The maximum number of near misses that are shown."""


@attrs.frozen
class Waiting:
    """A job that waits, or is dead."""

    id: str
    queue: str
    body: bytes
    task: str
    """The name of the task; empty for a body without an envelope."""
    key: str | None
    args: Sequence[Any]
    """The positional arguments, as JSON."""
    kwargs: Mapping[str, Any]
    headers: Mapping[str, Any]
    due_in: float
    """Seconds until the job is enqueued; 0 if it is."""
    priority: int
    attempt: int
    reason: str
    """Why it is dead; empty if it is not."""
    group: str | None = None
    """GROUP, if the job has one."""

    def __str__(self) -> str:
        arguments = [repr(each) for each in self.args]
        arguments += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        late = f" in {self.due_in:g} s" if self.due_in else ""
        name = self.task or repr(self.body[:40])
        return f"{name}({', '.join(arguments)}){late}, queue {self.queue}"


def shown(node: MemoryNode, job: Job) -> Waiting:
    """The job, for a test."""
    assert job.queue is not None
    assert not isinstance(job.body, Spilled | None), "there is no disk"
    body = bytes(job.body)
    envelope = _envelope(body)
    is_later = job.state == ACTIVE and job.requeue_at
    extensions = job.extensions
    return Waiting(
        id=job.id.decode(),
        queue=job.queue.decode(errors="surrogateescape"),
        body=body,
        task=envelope.task if envelope else "",
        key=envelope.key if envelope else None,
        args=[codec.read_plain(bytes(each), envelope.form) for each in envelope.args]
        if envelope
        else [],
        kwargs={
            name: codec.read_plain(bytes(each), envelope.form)
            for name, each in envelope.kwargs.items()
        }
        if envelope
        else {},
        headers=envelope.headers if envelope else {},
        due_in=max(job.requeue_at - node.now.mono, 0) / 1000 if is_later else 0.0,
        priority=job.priority,
        attempt=job.nacks + 1,
        group=None if job.group is None else job.group.decode(errors="surrogateescape"),
        reason=extensions.dead.reason.decode(errors="replace") if extensions else "",
    )


def _envelope(body: bytes) -> Envelope | None:
    if (coded := as_coded(body)) is not None:  # a test may lack the keys
        return codec.envelope("json", task=coded.task, key=coded.key)
    try:
        return read(body, len(body))
    except (BadBodyError, NewerBodyError):
        return None


@attrs.frozen(kw_only=True)
class Wanted:
    """The properties of a wanted job."""

    task: Prepared[..., Any]
    args: Sequence[Any] | None = None
    kwargs: Mapping[str, Any] | None = None
    queue: str | None = None
    within: float | None = None

    def misses(self, job: Waiting) -> list[str]:
        """The differences; empty if the job matches."""
        name = self.task.definition.name
        if job.task not in (name, *self.task.definition.aliases):
            return ["is of another task"]
        found = list(self._wrong_arguments(job))
        if self.queue is not None and job.queue != self.queue:
            found.append(f"is in queue {job.queue}, not {self.queue}")
        if self.within is not None and job.due_in > self.within:
            found.append(f"is due in {job.due_in:g} s, not within {self.within:g} s")
        return found

    def _wrong_arguments(self, job: Waiting) -> Sequence[str]:
        arguments = self.task.arguments
        try:
            has = arguments.named(*arguments.unpack(read(job.body, len(job.body))))
        except BadBodyError as error:
            return [str(error)]
        if self.args is None:
            wants = dict(self.kwargs or {})
        else:
            wants = arguments.named(self.args, self.kwargs or {})
        for unknown in wants.keys() - has.keys():
            raise TypeError(f"{self.task.definition.name} has no argument {unknown}")
        return [
            f"{name} is {has[name]!r}, not {wanted!r}"
            for name, wanted in wants.items()
            if wanted != has[name]
        ]


def missing(wanted: Wanted, jobs: Sequence[Waiting], count: int | None, found: int) -> str:
    """A message that jobs are missing, with the existing ones."""
    how_many = counted(found, "job") if found else "no job"
    name = wanted.task.definition.name
    text = f"{how_many} of {name} that fits is waiting"
    if count is not None:
        text += f", and {count} are asked for"
    near = sorted(
        ((wanted.misses(job), job) for job in jobs),
        key=lambda each: (each[1].task != name, len(each[0])),
    )
    lines = [f"  {job}: {', '.join(why) or 'fits'}" for why, job in near[:_LONGEST]]
    if len(near) > _LONGEST:
        lines.append(f"  and {len(near) - _LONGEST} more")
    return "\n".join([text + ("; there are:" if lines else "; there are none"), *lines])

"""Watches the states of all jobs of a test: each change must be in the table `TRANSITIONS`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import MemberDescriptorType
from typing import Final

import pytest

from disque_trio.statemachine.job import Job
from disque_trio.statemachine.job_states import ABSENT, TRANSITIONS
from disque_trio.statemachine.jobtable import JobTable

Way = tuple[int, int, str]
"""From which state to which, and by which function."""
WAYS: Final = frozenset((each.before, each.after, each.by) for each in TRANSITIONS)
_PACKAGE: Final = "disque_trio.statemachine."


def _caller() -> str:
    """The function of the state machine that makes the change; `""` if a test makes it."""
    frame = sys._getframe(3)
    name = f"{frame.f_globals['__name__']}.{frame.f_code.co_name}"
    return name.removeprefix(_PACKAGE) if name.startswith(_PACKAGE) else ""


class _State:
    """Stands for `Job.state`. A job that is in no table may have any state."""

    def __init__(self, seen: set[Way], inside: dict[int, Job]) -> None:
        slot = Job.__dict__["state"]
        assert isinstance(slot, MemberDescriptorType)
        self.slot = slot
        self._seen = seen
        self._inside = inside

    def __get__(self, job: Job | None, kind: type[Job]) -> object:
        return self if job is None else self.slot.__get__(job, kind)

    def __set__(self, job: Job, state: int) -> None:
        if id(job) in self._inside and job.state != state:
            self.note(job.state, state)
        self.slot.__set__(job, state)

    def note(self, before: int, after: int) -> None:
        by = _caller().replace("lifecycle._hold", "lifecycle.register")
        if by:
            assert (before, after, by) in WAYS, f"{before} to {after} by {by}"
            self._seen.add((before, after, by))


@contextmanager
def watched() -> Iterator[set[Way]]:
    """The ways that have been gone, while this lasts."""
    seen: set[Way] = set()
    inside: dict[int, Job] = {}
    state = _State(seen, inside)
    put, drop = JobTable.put, JobTable.drop

    def watched_put(table: JobTable, job: Job) -> None:
        inside[id(job)] = job
        state.note(ABSENT, job.state)
        put(table, job)

    def watched_drop(table: JobTable, job: Job) -> None:
        inside.pop(id(job), None)
        state.note(job.state, ABSENT)
        drop(table, job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "state", state)
        patch.setattr(JobTable, "put", watched_put)
        patch.setattr(JobTable, "drop", watched_drop)
        yield seen

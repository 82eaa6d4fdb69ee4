"""Traces of a sample of jobs (`trace-file-sample`): which rows they contain, and how a file
declares its sample.

Jobs are sampled by their ids, the same at all nodes (`statemachine.jobtraces`), and no row of a
sampled job is missing. All rows about no job are included, except messages about waiting clients,
of which an idle cluster sends many. The first line of each file of a sample is a row of kind
``sample``.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from disque_trio.statemachine.jobtraces import MOST, is_chosen
from disque_trio.statemachine.messages import (
    HaveJobs,
    JobsMessage,
    Message,
    NeedJobs,
    Waiting,
    singles,
)
from disque_trio.tracing.rows import Row

SAMPLE_KIND: Final = "sample"
_ABOUT_WAITING: Final = (Waiting, NeedJobs, HaveJobs)
_DETAIL: Final = re.compile(r"one-in=([1-9][0-9]{0,6})")


def heading(first: Row, sample: int) -> Row:
    """Return the first row of a file of a sample whose next row is `first`."""
    return attrs.evolve(first, kind=SAMPLE_KIND, job="", queue="", client="", peer="", cause="",
                        detail=f"one-in={sample}", ref=0)  # fmt: skip


def sample_of(kind: str, detail: str) -> int:
    """Return the sample of a file with this first row: one job in this many, or 1 for all jobs.
    Raise ValueError."""
    if kind != SAMPLE_KIND:
        return 1
    found = _DETAIL.fullmatch(detail)
    if found is None or not 1 <= int(found[1]) <= MOST:
        raise ValueError(f"a sample says one-in=N, with N from 1 to {MOST}, not '{detail}'")
    return int(found[1])


def is_about_chosen(job: str, sample: int) -> bool:
    """Is a row with this `job` in the sample?"""
    return sample == 1 or not job or is_chosen(job.encode("latin-1", "replace"), sample)


def of_chosen(rows: Iterable[Row], sample: int) -> Iterator[Row]:
    """Yield the rows in this sample."""
    return (row for row in rows if is_about_chosen(row.job, sample))


def messages_about_chosen(message: Message, sample: int) -> Iterator[Message]:
    """Yield each single message in `message`, without the jobs that are not in the sample."""
    for single in singles(message):
        if sample > 1 and isinstance(single, _ABOUT_WAITING):
            continue
        if sample == 1 or not isinstance(single, JobsMessage):
            yield single
            continue
        copies = tuple(each for each in single.copies if is_chosen(each.id, sample))
        if copies or not single.copies:
            evolve: Any = attrs.evolve
            cut: Message = evolve(single, copies=copies)
            yield cut

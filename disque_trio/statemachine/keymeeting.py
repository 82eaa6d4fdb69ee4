"""Two jobs with one key meet after a cut, and the later one goes (docs/bus.md, decision 73).

Each side of a partition may add a job with the same key. When all members of the cluster can be
reached again, each node asks the others about the jobs with keys that it is to deliver and that
were never delivered: those that are there when the last node has returned, and for a while also
those that come later, such as by an ADDJOB that has waited for copies, or from another node. A job
of which an earlier one lives, by creation stamp and id, ends as by ACKJOB (`keysearch`). The
earliest stays, so none is lost.

Nothing is asked where there are no keys. A few jobs are asked about at a time. Owns the fields of
`Meeting`.
"""

from typing import Final

from disque_trio.statemachine import keyindex, keysearch
from disque_trio.statemachine.base import Millis
from disque_trio.statemachine.keys import Meeting
from disque_trio.statemachine.state import NodeState

RUN_EVERY: Final[Millis] = 20
LOOK_EVERY: Final[Millis] = 500
"""How often it is seen whether all nodes are back."""
MEETS_FOR: Final[Millis] = 10_000
"""For how long jobs that come after the last return are asked about."""
AT_ONCE: Final = 100
"""About so many jobs it is asked at a time."""
LOOKS: Final = 2000
"""How many jobs and keys one run looks at."""


def begin(node: NodeState) -> None:
    """A node has returned."""
    meeting = node.keys.meeting
    meeting.is_wanted = True
    meeting.until = node.mono + MEETS_FOR
    if not meeting.due:
        node.timers.arm(meeting, node.mono + RUN_EVERY)


def on_due(node: NodeState, meeting: Meeting) -> None:
    """List the jobs when the last node has returned, and ask about the next ones."""
    if not node.keys.index:
        meeting.is_wanted = False
        meeting.ids.clear()
        meeting.names.clear()
        return
    if not keysearch.sees_all(node):
        meeting.until = node.mono + MEETS_FOR
        node.timers.arm(meeting, node.mono + LOOK_EVERY)
        return
    if meeting.is_wanted:
        meeting.is_wanted = False
        meeting.ids.clear()
        # Half as long as a list of the jobs: 17 ms for a million.
        meeting.names = list(node.keys.index)
    _ask(node, meeting)
    if meeting.ids or meeting.names:
        node.timers.arm(meeting, node.mono + RUN_EVERY)


def _ask(node: NodeState, meeting: Meeting) -> None:
    room = AT_ONCE - len(node.keys.searches.running)
    looks = LOOKS
    while looks and room > 0:
        looks -= 1
        if not meeting.ids:
            if not meeting.names:
                return
            meeting.ids = [job.id for job in node.keys.index.get(meeting.names.pop(), ())]
            continue
        job = node.jobs.get(meeting.ids.pop())
        name = None if job is None else keyindex.name_of(job)
        if job is not None and name is not None and keysearch.may_yield(node, job):
            room -= 1
            keysearch.begin_for_job(node, job, name)

"""The keys of unique jobs at a node: the jobs that have them, and the ADDJOBs that want them.

The fields are written by `key_index`, `key_claim`, `key_search` and `key_ordering`.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from disque_trio.statemachine.base import JobId, Millis, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import KeyFact
from disque_trio.statemachine.messages import KeyClaim
from disque_trio.statemachine.timers import Timed

KeyName = tuple[bytes, bytes]
"""The queue and the key."""

# IFEXISTS: the action of an ADDJOB if another job has the key.

RETURN: Final = 0
REJECT: Final = 1
AGAIN: Final = 2
"""If the other job is leased, add a job that is enqueued when the other one has ended."""
REPLACE: Final = 3
"""Add a job, and end the other one if it was never delivered."""


@attrs.define(eq=False, weakref_slot=False)
class Kept(Timed):
    """A job that is no longer here, and whose key stays reserved for a while."""

    name: KeyName
    id: JobId
    stamp: int
    word: int
    """KEPT, or MOVED."""
    until: Millis


@attrs.define(eq=False, weakref_slot=False)
class Claim:
    """An ADDJOB that wants a key for its job, which has no copies yet."""

    number: int
    name: KeyName
    job: Job
    if_exists: int
    is_async: bool
    made: Millis
    """When the ADDJOB arrived."""
    began: Millis
    """When it became the first one here, and began to ask."""
    last_answers: dict[NodeId, Millis] = attrs.Factory(dict)
    """When each node last answered, or was asked again after its answer."""
    pending: dict[JobId, tuple[NodeId, int]] = attrs.Factory(dict)
    """Jobs whose ADDJOB waited when this one asked: at which node, and `asked_at` then."""
    again_at: Millis = 0
    """When nodes that have not answered are asked again."""
    round: int = 0
    """The number of rounds of requests."""
    base: int = 0
    """Answers to earlier rounds do not count."""
    since: dict[NodeId, int] = attrs.Factory(dict)
    """For some nodes, a later round from which their answers count."""
    asked_at: int = 0
    """The claim number when all nodes were asked: ADDJOBs with smaller numbers arrived before,
    others later."""
    about: JobId = b""
    """The job about whose end all nodes are asked."""
    moved: JobId = b""
    """A job that was in transit to another node when all were asked."""
    ended: dict[JobId, KeyFact] = attrs.Factory(dict)
    """Jobs that have ended according to a node. Other nodes may still have them."""
    answers: dict[NodeId, tuple[KeyFact, ...]] = attrs.Factory(dict)
    yielded: dict[NodeId, JobId] = attrs.Factory(dict)
    """Claims of other nodes with precedence over this one, about which these nodes were asked."""

    @property
    def age(self) -> tuple[int, JobId]:
        """The claim with the smaller age comes first."""
        return self.job.ctime, self.job.id


@attrs.frozen(eq=False)
class Rule:
    """The purpose of a search: the conclusion from the answers, and whether it is still needed."""

    decide: "Callable[[Any, Search, dict[NodeId, tuple[KeyFact, ...]]], None]"
    """Called when all nodes have answered, with the answers, including this node's."""
    is_cancelled: "Callable[[Any, Search], bool]"
    """Called before nodes are asked again. If true, the search ends; it has answered its client."""
    before_asking: "Callable[[Any, Search], None] | None" = None
    """Called before all are asked: sends them KEYCANCEL for `cancelled`."""


@attrs.define(eq=False, weakref_slot=False)
class Search(Timed):
    """Requests to all nodes about a key, repeated when due. `key_search` writes it."""

    number: int
    name: KeyName
    rule: Rule
    began: Millis
    client: Client | None = None
    """The client that asks; None if the node asks for itself, about `job`."""
    job: Job | None = None
    round: int = 0
    """The number of rounds of requests; answers to earlier rounds do not count."""
    last_answers: dict[NodeId, Millis] = attrs.Factory(dict)
    """When each node last answered, or was asked again after its answer."""
    about: JobId = b""
    """The job about whose end all nodes are asked."""
    ended: dict[JobId, KeyFact] = attrs.Factory(dict)
    """Jobs that have ended according to a node. Other nodes may still have them."""
    answers: dict[NodeId, tuple[KeyFact, ...]] = attrs.Factory(dict)
    cancelled: tuple[KeyFact, ...] = ()
    """The jobs that it ends: all nodes are asked until none of them has one."""


@attrs.define(eq=False, weakref_slot=False)
class Reconciliation(Timed):
    """Jobs here for which other nodes must be asked whether an earlier one has their key, because a
    node has returned. `key_ordering` writes it."""

    ids: list[JobId] = attrs.Factory(list)
    """The next one is at the end."""
    names: list[KeyName] = attrs.Factory(list)
    """Other nodes may have to be asked about jobs with these keys, too."""
    is_wanted: bool = False
    """A node has returned since the jobs were listed."""
    until: Millis = 0
    """Until when jobs that become due for their first delivery are included."""


@attrs.define(eq=False, weakref_slot=False)
class Ordering(Timed):
    """Jobs here that are enqueued only when the earlier ones with their key have ended.
    `key_ordering` writes it."""

    jobs: dict[JobId, Job] = attrs.Factory(dict)
    """Jobs that have become due (`key_index`)."""
    waiting: dict[KeyName, tuple[Search, ...]] = attrs.Factory(dict)
    """The searches about them."""
    replacing: dict[JobId, bool] = attrs.Factory(dict)
    """New jobs whose ADDJOB gets its reply when the jobs that they replace have ended, and whether
    they have their copies (`replication`)."""


@attrs.define(eq=False, weakref_slot=False)
class Keys(Timed):
    """The keys of a node. `key_index` and `key_claim` write it."""

    index: dict[KeyName, tuple[Job, ...]] = attrs.Factory(dict)
    """The jobs here that have the key, acknowledged ones included (`key_index`)."""
    kept: dict[KeyName, tuple[Kept, ...]] = attrs.Factory(dict)
    """Jobs that are gone (`key_index`)."""
    claims: dict[KeyName, list[Claim]] = attrs.Factory(dict)
    """The claims of this node's clients, in order; the first one asks (`key_claim`)."""
    asking: dict[int, Claim] = attrs.Factory(dict)
    """The first claims, by number (`key_claim`)."""
    last_number: int = 0
    """The last number of a claim that asks, or of a search (`key_claim`, `key_search`)."""
    searches: dict[int, Search] = attrs.Factory(dict)
    """The running searches, by number (`key_search`)."""
    reconciliation: Reconciliation = attrs.Factory(Reconciliation)
    """`key_ordering`; `key_index` adds jobs."""
    ordering: Ordering = attrs.Factory(Ordering)
    """`key_ordering`; `key_index` adds jobs."""
    askers: dict[KeyName, dict[NodeId, KeyClaim]] = attrs.Factory(dict)
    """Nodes that wait for the outcome of an ADDJOB here (`key_claim`)."""
    dirty: dict[KeyName, None] = attrs.Factory(dict)
    """Keys with a change for which a claim may wait (`key_index`)."""

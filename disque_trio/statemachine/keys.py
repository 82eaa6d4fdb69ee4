"""What a node knows of the keys of unique jobs: which jobs have them, and which ADDJOBs want them.

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

# IFEXISTS: what an ADDJOB wants if another job has the key.

RETURN: Final = 0
REJECT: Final = 1
AGAIN: Final = 2
"""Add a job that is queued when that one has ended, if that one is with a worker."""
REPLACE: Final = 3
"""Add a job, and end that one, if it was never delivered."""


@attrs.define(eq=False, weakref_slot=False)
class Kept(Timed):
    """A job that is not here any more, whose key is taken for a while."""

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
    """When the ADDJOB came."""
    began: Millis
    """When it was the first one here, and began to ask."""
    last_answers: dict[NodeId, Millis] = attrs.Factory(dict)
    """When a node last answered, whatever, or was asked anew after its answer."""
    pending: dict[JobId, tuple[NodeId, int]] = attrs.Factory(dict)
    """Jobs whose ADDJOB waited when this one asked: at which node, and `asked_at` then."""
    again_at: Millis = 0
    """When those that have not answered are asked again."""
    round: int = 0
    """How often it has asked."""
    base: int = 0
    """Answers to earlier rounds do not count."""
    since: dict[NodeId, int] = attrs.Factory(dict)
    """For some nodes, a later round from which on their answers count."""
    asked_at: int = 0
    """A number between those of the ADDJOBs that came before all were asked, and of later ones."""
    about: JobId = b""
    """The job of which all nodes are asked whether it has ended."""
    moved: JobId = b""
    """A job that was on its way to another node when all were asked."""
    ended: dict[JobId, KeyFact] = attrs.Factory(dict)
    """Jobs that have ended, as a node has said: others may not have heard of it."""
    answers: dict[NodeId, tuple[KeyFact, ...]] = attrs.Factory(dict)
    yielded: dict[NodeId, JobId] = attrs.Factory(dict)
    """Claims of other nodes that come before this one, and of which they have been asked."""

    @property
    def age(self) -> tuple[int, JobId]:
        """Of two claims the one with the smaller age is the first."""
        return self.job.ctime, self.job.id


@attrs.frozen(eq=False)
class Rule:
    """What a search is for: what follows from the answers, and whether nobody wants it any more."""

    decide: "Callable[[Any, Search, dict[NodeId, tuple[KeyFact, ...]]], None]"
    """Called when all nodes have answered, with what each said, this one included."""
    is_cancelled: "Callable[[Any, Search], bool]"
    """Called before anybody is asked again. If so, the search ends; it has answered its client."""
    before_asking: "Callable[[Any, Search], None] | None" = None
    """Called before all are asked: sends them KEYCANCEL for `cancelled`."""


@attrs.define(eq=False, weakref_slot=False)
class Search(Timed):
    """All nodes are asked what they know of a key, and asked again when it is due. `key_search`
    writes it."""

    number: int
    name: KeyName
    rule: Rule
    began: Millis
    client: Client | None = None
    """Who wants to know; None if the node asks for itself, about `job`."""
    job: Job | None = None
    round: int = 0
    """How often it has asked; answers to earlier rounds do not count."""
    last_answers: dict[NodeId, Millis] = attrs.Factory(dict)
    """When a node last answered, whatever, or was asked anew after its answer."""
    about: JobId = b""
    """The job of which all nodes are asked whether it has ended."""
    ended: dict[JobId, KeyFact] = attrs.Factory(dict)
    """Jobs that have ended, as a node has said: others may not have heard of it."""
    answers: dict[NodeId, tuple[KeyFact, ...]] = attrs.Factory(dict)
    cancelled: tuple[KeyFact, ...] = ()
    """What it ends: all nodes are asked until none of them has any of it."""


@attrs.define(eq=False, weakref_slot=False)
class Reconciliation(Timed):
    """Jobs here of which it is to be asked whether an earlier one has their key, because a node has
    returned. `key_ordering` writes it."""

    ids: list[JobId] = attrs.Factory(list)
    """The one that is asked about next at the end."""
    names: list[KeyName] = attrs.Factory(list)
    """Of the jobs with these keys some may have to be asked about, too."""
    is_wanted: bool = False
    """A node has returned since the jobs were listed."""
    until: Millis = 0
    """Jobs that are to be delivered for the first time until then are asked about, too."""


@attrs.define(eq=False, weakref_slot=False)
class Ordering(Timed):
    """Jobs here that are not queued before the earlier ones with their key have ended.
    `key_ordering` writes it."""

    jobs: dict[JobId, Job] = attrs.Factory(dict)
    """Those that have become due (`key_index`)."""
    waiting: dict[KeyName, tuple[Search, ...]] = attrs.Factory(dict)
    """What asks about them."""
    replacing: dict[JobId, bool] = attrs.Factory(dict)
    """New jobs whose ADDJOB is answered when those that they replace have ended, and whether they
    have their copies (`replication`)."""


@attrs.define(eq=False, weakref_slot=False)
class Keys(Timed):
    """What a node knows of keys. `key_index` and `key_claim` write it."""

    index: dict[KeyName, tuple[Job, ...]] = attrs.Factory(dict)
    """The jobs here that have the key, acknowledged ones included (`key_index`)."""
    kept: dict[KeyName, tuple[Kept, ...]] = attrs.Factory(dict)
    """Jobs that are gone (`key_index`)."""
    claims: dict[KeyName, list[Claim]] = attrs.Factory(dict)
    """Those of this node's clients, in their order; the first one asks (`key_claim`)."""
    asking: dict[int, Claim] = attrs.Factory(dict)
    """The first ones, by number (`key_claim`)."""
    last_number: int = 0
    """Of an ADDJOB that asks, or of a search (`key_claim`, `key_search`)."""
    searches: dict[int, Search] = attrs.Factory(dict)
    """Those that run, by number (`key_search`)."""
    reconciliation: Reconciliation = attrs.Factory(Reconciliation)
    """`key_ordering`; `key_index` adds jobs."""
    ordering: Ordering = attrs.Factory(Ordering)
    """`key_ordering`; `key_index` adds jobs."""
    askers: dict[KeyName, dict[NodeId, KeyClaim]] = attrs.Factory(dict)
    """Nodes that wait for what becomes of an ADDJOB here (`key_claim`)."""
    dirty: dict[KeyName, None] = attrs.Factory(dict)
    """Keys of which something has changed that a claim may wait for (`key_index`)."""

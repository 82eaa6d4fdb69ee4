"""Machines that announce what an earlier version announced, drawn for each life of a node.

A node that announces less must get nothing that it does not announce: it could not read it, or
would lose a part of it. The older nodes here are of today's code: what their version did not send
is dropped, and clients ask them only for what every version knows.
"""

import random
from functools import partial
from typing import Final

import attrs

from disque_trio.statemachine.base import (
    BATCHES,
    BURIES,
    CAPABILITIES,
    CLAIMS,
    DIGESTS,
    ERRORS,
    EXTENDS,
    LEAVING,
    LISTS,
    LONG_WAITS,
    MEETS,
    MYSELF,
    POSTPONES,
    PURGES,
    SNOOZES,
    JobId,
    Reply,
    Status,
)
from disque_trio.statemachine.messages import (
    Batch,
    GossipMessage,
    JobsMessage,
    Many,
    Message,
    NeedJobs,
    Postponed,
    Purge,
    SetAck,
    singles,
)
from disque_trio.wire.frames import FrameParser, encode
from tests.cluster_rig import PORT, ClusterRig, End

ORIGINAL: Final = 0
VERSIONS: Final = (
    ORIGINAL,
    BATCHES | MEETS | LISTS,
    BATCHES | MEETS | LISTS | EXTENDS | PURGES,
    BATCHES | MEETS | LISTS | EXTENDS | PURGES | CLAIMS,
    CAPABILITIES & ~(POSTPONES | SNOOZES),
    CAPABILITIES & ~(SNOOZES | LONG_WAITS),
    CAPABILITIES & ~(LONG_WAITS | ERRORS),
    CAPABILITIES & ~ERRORS,
)
"""What earlier versions announced."""
ASKED: Final = CLAIMS | POSTPONES
"""Of nodes that understand KEYCLAIM (`key_search`)."""


def needs(message: Message) -> int:
    """What a node must announce to be sent this."""
    needed = 0 if isinstance(message, Many | Batch) else message.NEEDS
    needed |= ASKED if needed & CLAIMS else 0
    if isinstance(message, Purge) and message.dead:
        needed |= BURIES
    if isinstance(message, Postponed) and (message.snoozes or message.is_snooze):
        needed |= SNOOZES
    if isinstance(message, Postponed) and message.wait >> 32:
        needed |= LONG_WAITS
    if isinstance(message, JobsMessage):
        for copy in message.copies:
            needed |= EXTENDS if copy.extensions else 0
            needed |= copy.extensions.needs if copy.extensions else 0
            needed |= ERRORS if copy.extensions and copy.extensions.error.at else 0
    return needed


class Mixed(ClusterRig):
    """Nodes that announce `announced`, by name."""

    def __init__(self, *names: str, seed: int = 0) -> None:
        self.announced = dict.fromkeys(names, CAPABILITIES)
        self.told: list[tuple[str, Message]] = []
        """What a node was sent that it could not read."""
        super().__init__(*names, seed=seed)
        self.form()

    def live_anew(self, name: str, announced: int) -> None:
        """Another version takes the node's place, with its jobs, and all links are new."""
        self.announced[name] = announced
        for end, far in list(self._ends.items()):
            if name in (end.host.name, far.host.name):
                self._break(end)
        self.run_until(self.is_formed, 20_000)
        self.run(3000)

    def _send(self, end: End, message: Message) -> None:
        mine = self.announced[end.host.name]
        if needs(message) & ~mine:
            return
        if isinstance(message, NeedJobs) and not mine & MEETS:
            message = NeedJobs(message.queue, message.count)
        if isinstance(message, SetAck) and not mine & DIGESTS:
            message = attrs.evolve(message, digest=0)
        cluster = end.machine.state.cluster
        if self._is_known(end) and needs(message) & ~self.announced[self._ends[end].host.name]:
            self.told.append((self._ends[end].host.name, message))
        said = (mine, cluster.incarnation)
        header = said if isinstance(message, GossipMessage) else ()
        flags = cluster.myself.flags & (MYSELF | LEAVING)
        for single in singles(message):
            (frame,) = FrameParser().feed(encode(cluster.myself.id, PORT, flags, single, *header))
            self._later(partial(self._arrive, end, frame))

    def _is_known(self, end: End) -> bool:
        """Has the node at the other end announced something on this link?"""
        if end not in self._ends:
            return False
        link = end.machine.state.cluster.links[end.link]
        return link.peer is None or link.peer.resent_on == end.link

    def able(self, name: str, needed: int) -> int:
        """How many other nodes announce all of this."""
        return sum(
            announced & needed == needed
            for other, announced in self.announced.items()
            if other != name
        )

    def is_mute(self, name: str) -> bool:
        """Can another node that may have jobs with keys not be asked about them?"""
        return any(
            announced & EXTENDS and announced & ASKED != ASKED
            for other, announced in self.announced.items()
            if other != name
        )


def drawn(rng: random.Random) -> int:
    """What a version announced, or any of it."""
    if rng.random() < 0.3:
        return CAPABILITIES
    return rng.choice(VERSIONS) if rng.random() < 0.6 else rng.randrange(CAPABILITIES + 1)


def id_of(reply: Reply) -> JobId:
    """The id that ADDJOB has answered."""
    assert isinstance(reply, Status), reply
    return reply.text

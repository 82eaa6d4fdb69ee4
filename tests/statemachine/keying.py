"""What the tests of keys begin with: a machine with other nodes of ours, and what these answer."""

from disque_trio.statemachine.base import CAPABILITIES, JobId, NodeId
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.extensions import Extensions
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import HELD, IN_QUEUE, PENDING, KeyFact
from disque_trio.statemachine.key_search import ASK_EVERY
from disque_trio.statemachine.messages import JobCopy, KeyAnswer, KeyClaim
from tests.rig import JOB, Rig, copy_of

KEY = b"k"
STAMP = 1_000_000
EARLY, LATE = 1, 1 << 62
"""Creation stamps before and after those of the rig's jobs."""
OTHER: JobId = b"D-cccccccc-BBBBBBBBBBBBBBBBBBBBBBBB-05a1"


def keyed_rig(peers: int = 2, config: Config | None = None) -> Rig:
    """All peers are ours, and have answered on their links."""
    rig = Rig(peers=peers, config=config, ours=True)
    for peer in rig.node.cluster.nodes.values():
        peer.resent_on = peer.link
    return rig


def original(rig: Rig, id: NodeId) -> None:
    """The peer is an original server."""
    rig.node.cluster.nodes[id].capabilities = 0


def ours(rig: Rig, id: NodeId) -> None:
    """The peer announces what nodes of ours announce."""
    rig.node.cluster.nodes[id].capabilities = CAPABILITIES


def ask(
    rig: Rig, *options: bytes | str | int, timeout: int = 0, client: Client | None = None
) -> Client:
    """A client sends an ADDJOB of one copy that wants the key."""
    asker = client or rig.connect()
    words = ("ADDJOB", "q", "body", timeout, "REPLICATE", 1, "UNIQUE", KEY, *options)
    rig.request(*words, client=asker)
    return asker


def claims(rig: Rig) -> list[tuple[NodeId, KeyClaim]]:
    """What was asked since the last call."""
    return [(to, said) for to, said in rig.sent() if isinstance(said, KeyClaim)]


def answers(rig: Rig) -> list[tuple[NodeId, tuple[KeyFact, ...]]]:
    """What was answered since the last call."""
    return [(to, said.facts) for to, said in rig.sent() if isinstance(said, KeyAnswer)]


def say(rig: Rig, id: NodeId, claim: KeyClaim, *facts: KeyFact) -> None:
    """A peer answers."""
    rig.message(id, KeyAnswer(claim.number, claim.round, facts))


def say_all(rig: Rig, *facts: KeyFact) -> None:
    """All that have been asked answer the same, until nobody is asked any more."""
    for _ in range(9):
        asked = claims(rig)
        for to, claim in asked:
            say(rig, to, claim, *facts)
        if not asked:
            return


def outwait(rig: Rig, seconds: float = 4.5) -> None:
    """By default more than two node timeouts of two seconds, in which no node that is asked
    answers. PINGs are answered, so nobody is suspected."""
    for _ in range(int(seconds * 10)):
        rig.advance(ASK_EVERY)
        for each in rig.node.cluster.nodes.values():
            each.pong_received, each.ping_sent = rig.now.mono, 0


def held(id: JobId = JOB, stamp: int = STAMP, state: int = IN_QUEUE, keep: int = 0) -> KeyFact:
    """A peer holds the job."""
    return KeyFact(id, stamp, HELD, state, keep)


def fact(word: int, id: JobId = JOB, stamp: int = STAMP) -> KeyFact:
    """Another word about it."""
    return KeyFact(id, stamp, word, 0, 0)


def pending(id: JobId = JOB, stamp: int = STAMP) -> KeyFact:
    """Its ADDJOB waits at the peer."""
    return fact(PENDING, id, stamp)


def claim_of(
    id: JobId = OTHER, stamp: int = EARLY, number: int = 1, about: JobId = bytes(40)
) -> KeyClaim:
    """A peer wants the key."""
    return KeyClaim(number, 1, id, stamp, about, b"q", KEY)


def keyed_copy(id: JobId = JOB, key: bytes = KEY, keep: int = 0, **fields: object) -> JobCopy:
    """A copy of a job with a key."""
    copy = copy_of(id, **fields)  # type: ignore[arg-type]
    copy.extensions = Extensions(key=key, keep=keep)
    return copy


def wanted(rig: Rig, client: Client) -> Job:
    """The job for which the client waits."""
    job = client.pending_adds[-1].job
    assert job is not None
    return job

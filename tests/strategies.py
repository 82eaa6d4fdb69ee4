"""Hypothesis strategies: ids, job copies, messages, frames, requests, replies, cuts."""

import itertools
from collections.abc import Iterable
from typing import Any

import attrs
from hypothesis import strategies as st

from disque_trio.statemachine.base import (
    FAIL,
    LEAVING,
    MYSELF,
    NOADDR,
    NULL_ARRAY,
    PFAIL,
    Failure,
    JobId,
    NodeId,
    Reply,
    Status,
)
from disque_trio.statemachine.extensions import MAX_REASON, DeadState, Extensions
from disque_trio.statemachine.job import make_id
from disque_trio.statemachine.key_facts import KEY_STATES, KEY_WORDS, KeyFact
from disque_trio.statemachine.layout import (
    BYTES,
    IDENTITIES,
    IDENTITY,
    LENGTH,
    MARK,
    TRUTH,
    UINT32,
    Part,
)
from disque_trio.statemachine.messages import (
    ALL_MESSAGES,
    Batch,
    BusMessage,
    Frame,
    Gossip,
    JobCopy,
    JobMessage,
    JobState,
    KeyAnswer,
    Meet,
    Message,
    Ping,
    Pong,
    Postponed,
    ReplJob,
    SetAck,
    YourJobs,
)

SPECIAL = b"\r\n$*:+-=0149 \"'\\x"
"""Bytes that mean something to RESP or to inline requests."""

u8 = st.integers(0, (1 << 8) - 1)
u16 = st.integers(0, (1 << 16) - 1)
u32 = st.integers(0, (1 << 32) - 1)
u64 = st.integers(0, (1 << 64) - 1)


def payloads(max_size: int = 60) -> st.SearchStrategy[bytes]:
    """Queue names, bodies, arguments: any bytes, and often those that look like protocol."""
    special = st.lists(st.sampled_from(SPECIAL), max_size=max_size).map(bytes)
    return st.binary(max_size=max_size) | special


def node_ids() -> st.SearchStrategy[NodeId]:
    """Any node id."""
    return st.integers(0, (1 << 160) - 1).map(lambda number: b"%040x" % number)


def job_ids() -> st.SearchStrategy[JobId]:
    """Any well-formed job id."""
    return st.builds(
        lambda node, bits, ttl_s, at_least_once: make_id(
            node, bits, ttl_s, at_least_once=at_least_once
        ),
        node_ids(),
        st.integers(0, (1 << 144) - 1),
        st.integers(1, 1 << 22),
        st.booleans(),
    )


def job_copies() -> st.SearchStrategy[JobCopy]:
    """Any job that the wire can carry."""
    return st.builds(
        JobCopy,
        id=job_ids(),
        state=st.integers(0, 4),
        gc_attempt=st.integers(0, 15),
        flags=u8,
        replicas=u16,
        etime=u32,
        ctime=u64,
        delay=u32,
        retry=u32,
        nacks=u16,
        deliveries=u16,
        queue=payloads(20),
        body=payloads(),
        holders=st.lists(node_ids(), max_size=4).map(tuple),
        extensions=st.none() | extensions(),
        due=st.just(0) | u64,
    )


def extensions() -> st.SearchStrategy[Extensions]:
    """Any extensions of a job, but for none."""
    later = st.dictionaries(st.integers(100, (1 << 16) - 1), payloads(20), max_size=3)
    return st.builds(
        Extensions,
        priority=st.integers(-100, 100),
        key=st.none() | payloads(20),
        keep=u64,
        limit=u32,
        dead=dead_states(),
        backoff=u64,
        max_backoff=u64,
        snoozes=u32,
        unknown=later.map(lambda fields: tuple(sorted(fields.items()))),
    ).filter(lambda found: found != Extensions())


def dead_states() -> st.SearchStrategy[DeadState]:
    """Whether a job is dead, and how often it was redriven."""
    return st.builds(DeadState, u32, st.booleans(), payloads(MAX_REASON), u64)


def gossips() -> st.SearchStrategy[Gossip]:
    """An entry about a node; a node whose address is lost has an empty one."""
    return st.builds(
        Gossip,
        id=node_ids(),
        ip=st.ip_addresses().map(lambda ip: str(ip).encode()) | st.just(b""),
        port=u16,
        flags=st.lists(st.sampled_from([PFAIL, FAIL, NOADDR, LEAVING]), unique=True).map(sum),
        ping_sent=u32,
        pong_received=u32,
    )


def messages() -> st.SearchStrategy[Message]:
    """Any message of any type, but for batches."""
    return st.one_of([message_of(kind) for kind in ALL_MESSAGES])


def message_of(kind: type[BusMessage]) -> st.SearchStrategy[Any]:
    """Of this type: by its layout, or as below."""
    made = _made_of()
    if kind in made:
        return made[kind]
    parts = {part.name: _values_of(part) for part in kind.LAYOUT}
    return st.builds(kind, **({"id": job_ids()} if issubclass(kind, JobMessage) else {}), **parts)


def _values_of(part: Part) -> st.SearchStrategy[Any]:
    if part.allowed:
        return st.sampled_from(part.allowed)
    if part.form == BYTES:
        return payloads(min(20, part.most))
    ids = node_ids() if part.name in ("node", "holders") else job_ids()
    return {
        IDENTITY: ids,
        IDENTITIES: st.lists(ids, max_size=4).map(tuple),
        LENGTH: payloads(20),
        MARK: st.booleans(),
        TRUTH: st.booleans(),
        UINT32: u32,
        "B": st.integers(0, 1),
        "Q": u64,
    }[part.form]


def _made_of() -> dict[type[BusMessage], st.SearchStrategy[Any]]:
    gossip = st.lists(gossips(), max_size=4).map(tuple)
    given_back = st.builds(Postponed, job_ids(), u32, u16, st.booleans())
    snoozed = st.builds(
        Postponed, job_ids(), u32, u16, st.booleans(), st.integers(1, 9), st.booleans()
    )
    compared = st.builds(
        SetAck, job_ids(), st.integers(1, SetAck.MOST_WITH_DIGEST), st.integers(1, (1 << 32) - 1)
    )
    return {
        Ping: st.builds(Ping, gossip),
        Pong: st.builds(Pong, gossip, payloads(20)),
        Meet: st.builds(Meet, gossip),
        ReplJob: st.builds(ReplJob, job_copies().map(lambda copy: (copy,)), st.booleans()),
        YourJobs: st.builds(
            YourJobs, st.lists(job_copies(), min_size=1, max_size=4).map(tuple), st.booleans()
        ),
        SetAck: st.builds(SetAck, job_ids(), u32) | compared,
        Postponed: given_back | snoozed,
        JobState: st.builds(JobState, job_ids(), u64, dead_states()),
        KeyAnswer: st.builds(KeyAnswer, u64, u32, st.lists(key_facts(), max_size=4).map(tuple)),
    }


def key_facts() -> st.SearchStrategy[KeyFact]:
    """What a node may say of a job with a key."""
    states = st.integers(0, len(KEY_STATES) - 1)
    return st.builds(KeyFact, job_ids(), u64, st.sampled_from(KEY_WORDS), states, u64)


def messages_about_a_job() -> st.SearchStrategy[Message]:
    """Those that a batch may be made of."""
    kinds: list[type[BusMessage]] = [ReplJob]
    kinds += [kind for kind in ALL_MESSAGES if issubclass(kind, JobMessage)]
    return st.one_of([message_of(kind) for kind in kinds])


def batches() -> st.SearchStrategy[Batch]:
    """Any messages about jobs at once."""
    parts = st.lists(messages_about_a_job(), min_size=1, max_size=8)
    return st.builds(Batch, parts.map(tuple))


def single(read: Iterable[Frame]) -> list[Frame]:
    """The frames with each message about one job. Neighbours that are alike are read as one."""
    return [
        attrs.evolve(frame, message=Batch(tuple(frame.messages)))
        if isinstance(frame.message, Batch)
        else frame
        for frame in read
    ]


def frames() -> st.SearchStrategy[Frame]:
    """Any message, or several, with any sender's header around it."""
    return st.builds(
        Frame,
        sender=node_ids(),
        port=u16,
        flags=st.sampled_from([MYSELF, MYSELF | LEAVING]),
        message=messages() | batches(),
        capabilities=u16,
    )


def requests() -> st.SearchStrategy[list[bytes]]:
    """Any request of a client."""
    return st.lists(payloads(20), min_size=1, max_size=5)


def replies() -> st.SearchStrategy[Reply]:
    """Any reply of a node, as it reads after the wire: no line ends in texts."""
    texts = st.binary(max_size=20).map(lambda text: text.translate(None, b"\r\n"))
    leaves = st.one_of(
        st.integers(-(1 << 63), (1 << 63) - 1),
        payloads(20),
        st.none(),
        st.just(NULL_ARRAY),
        texts.map(Status),
        texts.map(Failure),
    )
    return st.recursive(leaves, lambda items: st.lists(items, max_size=5), max_leaves=20)


def cuts() -> st.SearchStrategy[list[float]]:
    """Where to cut some bytes, as shares of their length; `pieces` does it."""
    return st.lists(st.floats(0, 1), max_size=8)


def pieces(data: bytes, shares: list[float]) -> list[bytes]:
    """The bytes in as many pieces as there are cuts, and one more. Some may be empty."""
    places = [0, *sorted(int(share * len(data)) for share in shares), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import MYSELF
from disque_trio.statemachine.messages import (
    Batch,
    Enqueue,
    Frame,
    GotAck,
    GotJob,
    Many,
    Message,
    NeedJobs,
    Ping,
    Queued,
    ReplJob,
    SetAck,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.wire import jobs
from disque_trio.wire.batches import ENOUGH, bodies, part_of
from disque_trio.wire.frames import FrameParser, encode, encode_parts, one_by_one
from tests.strategies import batches
from tests.wire.test_frames import COPY, JOB, ME, PORT, frame_of, head, refused
from tests.wire.test_jobs import SENT

OTHER_JOB = b"D-aeecadd2-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


def batch_of(*messages: Message) -> list[bytes]:
    """What a node sends to another of ours in place of these messages."""
    parts = [part_of(message) for message in messages]
    return encode_parts(ME, PORT, MYSELF, [part for part in parts if part is not None])


def run(kind: int, count: int, payload: bytes, marks: int = 0, aux: int = 0) -> bytes:
    return bytes([kind, marks, 0, 0]) + count.to_bytes(4, "big") + aux.to_bytes(4, "big") + payload


def batch(payload: bytes) -> bytes:
    return head(144 + len(payload), 16) + payload


def test_what_is_said_of_many_jobs_is_said_once() -> None:
    [data] = batch_of(
        SetAck(JOB, 3),
        SetAck(OTHER_JOB, 3),
        SetAck(JOB, 2),
        SetAck(JOB, 2, 7),
        Queued(JOB, redelivery=True, told=True),
        ReplJob((COPY,), no_reply=True),
    )

    assert data == batch(
        run(8, 2, JOB + OTHER_JOB, aux=3)
        + run(8, 1, JOB, aux=2)
        + run(8, 1, JOB, aux=7, marks=2)
        + run(7, 1, JOB, marks=12)
        + run(4, 1, SENT, marks=1)
    )


@given(batches())
def test_a_batch_is_read_as_its_messages_in_their_order(written: Batch) -> None:
    [data] = batch_of(*written.messages)

    [frame] = FrameParser().feed(data)

    assert frame.messages == list(written.messages)
    assert encode(ME, PORT, MYSELF, written) == encode(ME, PORT, MYSELF, frame.message) == data


def test_a_run_is_read_as_one_message_about_many_jobs() -> None:
    [data] = batch_of(SetAck(JOB, 3), SetAck(OTHER_JOB, 3), SetAck(JOB, 2))

    [frame] = FrameParser().feed(data)

    assert frame.content == (Many(SetAck(JOB, 3), [JOB, OTHER_JOB]), SetAck(JOB, 2))


def test_one_message_about_many_jobs_is_a_run() -> None:
    many = Many(GotAck(JOB, known=True), [JOB, OTHER_JOB])

    assert batch_of(many) == batch_of(GotAck(JOB, known=True), GotAck(OTHER_JOB, known=True))


def test_a_message_about_more_jobs_than_a_frame_holds_is_several_runs() -> None:
    ids = [b"D-aeecadd2-%024d-05a1" % number for number in range(5000)]

    frames = batch_of(WillQueue(JOB), Many(Queued(ids[0], nack=True), ids), WillQueue(JOB))

    assert max(map(len, frames)) < ENOUGH + 1000
    read = [each for frame in FrameParser().feed(b"".join(frames)) for each in frame.messages]
    assert read == [WillQueue(JOB), *[Queued(id, nack=True) for id in ids], WillQueue(JOB)]


@given(batches())
def test_a_batch_can_be_taken_apart_into_what_original_nodes_read(written: Batch) -> None:
    [data] = batch_of(*written.messages)

    apart = one_by_one(data)

    assert apart == [frame_of(message) for message in written.messages]
    assert [each for frame in apart for each in one_by_one(frame)] == apart


def test_a_damaged_batch_is_passed_on_as_it_is() -> None:
    [data] = batch_of(GotJob(JOB), GotJob(JOB))

    assert one_by_one(data[:-1]) == [data[:-1]]
    short = batch(b"no run")
    assert one_by_one(short) == [short]


def test_what_is_not_about_a_job_or_is_long_travels_alone() -> None:
    long = jobs.decode(SENT)[0]
    long.body = bytes(ENOUGH)

    for message in (Ping(), NeedJobs(b"q", 1), YourJobs((COPY,)), ReplJob((long,))):
        assert part_of(message) is None


def test_long_batches_are_split_and_keep_their_order() -> None:
    ids = [b"D-aeecadd2-%024d-05a1" % number for number in range(10_000)]

    frames = batch_of(*map(Working, ids))

    assert max(map(len, frames)) < ENOUGH + 1000
    received = [each for frame in FrameParser().feed(b"".join(frames)) for each in frame.messages]
    assert received == [Working(id) for id in ids]


def test_a_job_that_is_too_long_for_a_batch_with_others_is_in_one_of_its_own() -> None:
    long = jobs.decode(SENT)[0]
    long.body = bytes(ENOUGH - 1)
    part = part_of(ReplJob((long,)))
    assert part is not None

    assert len(bodies([part])) == 1
    assert len(bodies([part, part, part])) == 3
    (frame,) = encode_parts(ME, PORT, MYSELF, [part])
    assert [each.messages for each in FrameParser().feed(frame)] == [[ReplJob((long,))]]


def test_a_job_whose_queue_has_an_endless_name_travels_alone() -> None:
    odd = jobs.decode(SENT)[0]
    odd.queue = bytes(3 * ENOUGH)

    assert part_of(ReplJob((odd,))) is None


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (run(5, 1, JOB) + run(3, 1, JOB), "type unknown"),
        (run(5, 1, JOB) + run(16, 1, JOB), "type unknown"),
        (run(5, 1, JOB) + run(5, 2, JOB), "length wrong for its type"),
        (run(5, 1, JOB) + run(5, 0xFFFFFFFF, JOB), "length wrong for its type"),
        (run(5, 1, JOB) + run(5, 1, JOB)[:-1], "length wrong for its type"),
        (run(5, 1, JOB) + run(5, 1, b"")[:-1], "length wrong for its type"),
        (run(5, 1, JOB) + run(4, 2, SENT), "job cut short"),
        (run(4, 0xFFFFFFFF, SENT), "job cut short"),
        (run(5, 0, b""), "number of jobs wrong"),
        (run(5, 10_000, JOB * 10_000), "length wrong for its type"),
    ],
)
def test_a_batch_that_is_wrong_anywhere_is_left_out_as_a_whole(payload: bytes, reason: str) -> None:
    assert refused(batch(payload)) == {reason: 1}


@given(st.binary(max_size=400))
def test_any_payload_is_a_batch_or_refused(payload: bytes) -> None:
    parser = FrameParser()

    taken = parser.feed(batch(payload))

    assert len(taken) + sum(parser.refused.values()) == 1


def test_a_single_message_is_one_by_one_already() -> None:
    frame = Frame(ME, PORT, MYSELF, GotAck(JOB, known=True))

    assert frame.messages == (frame.message,)


def test_every_message_about_one_job_can_be_in_a_batch() -> None:
    for message in (GotJob(JOB), Enqueue(JOB, 3), WillQueue(JOB), GotAck(JOB, known=False)):
        [data] = batch_of(message)
        [frame] = FrameParser().feed(data)
        assert list(frame.messages) == [message]

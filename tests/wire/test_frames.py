import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.statemachine.base import FAIL, LEAVING, MYSELF
from disque_trio.statemachine.extensions import DeadState
from disque_trio.statemachine.key_facts import HELD, IN_QUEUE, KeyFact
from disque_trio.statemachine.messages import (
    AckHolders,
    DelJob,
    Enqueue,
    Fail,
    Frame,
    Gossip,
    GotAck,
    GotJob,
    HaveJobs,
    Holders,
    JobCopy,
    JobState,
    KeyAnswer,
    KeyCancel,
    KeyClaim,
    Meet,
    Message,
    NeedJobs,
    Pause,
    Ping,
    Pong,
    Purge,
    Queued,
    ReplJob,
    SetAck,
    Suspect,
    Waiting,
    WillQueue,
    Working,
    YourJobs,
)
from disque_trio.wire import jobs
from disque_trio.wire.frames import UNKNOWN_SENDER_LIMIT, FrameParser, encode
from tests.conformance import bus_messages
from tests.strategies import cuts, frames, job_copies, pieces, single
from tests.wire.test_jobs import SENT

ME = b"5d045833e20759fa2d80da2b63ca09a3ee88ae52"
OTHER = b"0123456789abcdef0123456789abcdef01234567"
JOB = b"D-aeecadd2-dNZ9vS2xMWHExBW39zgS0gOV-05a1"
PORT = 7958


def frame_of(message: Message) -> bytes:
    return encode(ME, PORT, MYSELF, message)


def head(length: int, kind: int, count: int = 0, marks: int = 0) -> bytes:
    start = bytes.fromhex(f"4462755a {length:08x} 0001 0000 {kind:04x} {count:04x}")
    return start + ME + bytes(80) + bytes.fromhex(f"1f16 0004 00 {marks:02x} 0000")


def encoded(frame: Frame) -> bytes:
    who = frame.sender, frame.port, frame.flags, frame.message, frame.capabilities
    return encode(*who, frame.incarnation, frame.format, frame.version, frame.ip, frame.bus_port)


def refused(data: bytes) -> dict[str, int]:
    parser = FrameParser()
    survivor = frame_of(GotJob(JOB))

    frames_ = parser.feed(data + survivor)

    assert parser.error is None
    assert [frame.message for frame in frames_] == [GotJob(JOB)]
    return parser.refused


COPY, _ = jobs.decode(SENT)
ID_AND_ZERO = JOB + bytes(4)
GOLDEN: list[tuple[Message, bytes]] = [
    (Ping(), head(144, 0)),
    (Pong(), head(144, 1)),
    (Pong((), b"a", b"web"), head(156, 1) + bytes.fromhex("0001000161 00020003776562")),
    (
        Meet((Gossip(OTHER, b"127.0.0.1", 7959, 0, 0, 0xFA201F08),)),
        head(248, 2, 1)
        + OTHER
        + bytes.fromhex("00000000 fa201f08 3132372e302e302e31")
        + bytes(37)
        + bytes.fromhex("1f17 0000 0000 00000000"),
    ),
    (Fail(OTHER), head(184, 3) + OTHER),
    (Suspect(OTHER), head(184, 37) + OTHER),
    (Suspect(OTHER, is_vote=True), head(184, 37, marks=1) + OTHER),
    (ReplJob((COPY,)), head(0x13F, 4) + bytes.fromhex("00000001 000000a7") + SENT),
    (
        ReplJob((COPY,), no_reply=True),
        head(0x13F, 4, marks=1) + bytes.fromhex("00000001 000000a7") + SENT,
    ),
    (GotJob(JOB), head(188, 5) + ID_AND_ZERO),
    (Enqueue(JOB, 258), head(188, 6) + JOB + bytes.fromhex("00000102")),
    (Queued(JOB), head(188, 7) + ID_AND_ZERO),
    (Queued(JOB, nack=True), head(188, 7, marks=2) + ID_AND_ZERO),
    (Queued(JOB, redelivery=True), head(188, 7, marks=4) + ID_AND_ZERO),
    (Queued(JOB, redelivery=True, told=True), head(188, 7, marks=12) + ID_AND_ZERO),
    (SetAck(JOB, 3), head(188, 8) + JOB + bytes.fromhex("00000003")),
    (SetAck(JOB, 3, 0xABCD), head(188, 8, marks=3) + JOB + bytes.fromhex("0000abcd")),
    (WillQueue(JOB), head(188, 9) + ID_AND_ZERO),
    (GotAck(JOB, known=True), head(188, 10) + JOB + bytes.fromhex("00000001")),
    (GotAck(JOB, known=False), head(188, 10) + ID_AND_ZERO),
    (DelJob(JOB), head(188, 11) + ID_AND_ZERO),
    (NeedJobs(b"zz", 1), head(0x9A, 12) + bytes.fromhex("00000001 00000002 7a7a")),
    (
        NeedJobs(b"zz", 1, waits=True),
        head(0x9A, 12, marks=32) + bytes.fromhex("00000001 00000002 7a7a"),
    ),
    (Waiting(b"zz", 3), head(0x9A, 17) + bytes.fromhex("00000003 00000002 7a7a")),
    (HaveJobs(b"zz", 0), head(0x9A, 18) + bytes.fromhex("00000000 00000002 7a7a")),
    (
        KeyClaim(1, 2, JOB, 3, bytes(40), b"zz", b"key"),
        head(0xFD, 21)
        + bytes.fromhex("0000000000000001 00000002")
        + JOB
        + bytes.fromhex("0000000000000003")
        + bytes(40)
        + bytes.fromhex("00000002 7a7a 6b6579"),
    ),
    (
        JobState(JOB, 5, DeadState(6, True, b"why", 7)),
        head(208, 23) + JOB + bytes.fromhex("0000000000000005 0000000000000007 00000006 01 776879"),
    ),
    (
        KeyAnswer(1, 2, (KeyFact(JOB, 3, HELD, IN_QUEUE, 4),)),
        head(215, 22)
        + bytes.fromhex("0000000000000001 00000002")
        + JOB
        + bytes.fromhex("0000000000000003 0000000000000004 02 03 00"),
    ),
    (KeyCancel(JOB, b"zz", b"k"), head(192, 30) + JOB + bytes.fromhex("00 00000002 7a7a 6b")),
    (Holders(JOB, ()), head(184, 19) + JOB),
    (AckHolders(JOB, (b"b" * 40,)), head(224, 38) + JOB + b"b" * 40),
    (Holders(JOB, (b"b" * 40, b"c" * 40)), head(264, 19) + JOB + b"b" * 40 + b"c" * 40),
    (
        YourJobs((COPY, COPY)),
        head(486, 13) + bytes.fromhex("00000002 0000014e") + SENT + SENT,
    ),
    (
        YourJobs((COPY, COPY), more=True),
        head(486, 13, marks=16) + bytes.fromhex("00000002 0000014e") + SENT + SENT,
    ),
    (Working(JOB), head(188, 14) + ID_AND_ZERO),
    (Purge(b"abc"), head(0x93, 20) + b"abc"),
    (Pause(b"abc", 3), head(0x9B, 15) + bytes.fromhex("00000003 00000003 616263")),
]


@pytest.mark.parametrize(("message", "data"), GOLDEN)
def test_a_message_is_framed_as_original_nodes_do(message: Message, data: bytes) -> None:
    parser = FrameParser()

    assert frame_of(message) == data
    assert parser.feed(data) == [Frame(ME, PORT, MYSELF, message)]
    assert parser.refused == {}


def test_flags_and_capabilities_ride_in_the_header() -> None:
    data = encode(ME, PORT, MYSELF | LEAVING, Ping(), 0x8001)

    assert data[10:12] == b"\x80\x01"
    assert data[138:140] == b"\x00\x84"
    assert FrameParser().feed(data) == [Frame(ME, PORT, MYSELF | LEAVING, Ping(), 0x8001)]


def test_every_frame_of_original_nodes_is_written_back_byte_for_byte() -> None:
    rows = bus_messages()
    assert len(rows) > 250
    for row in rows:
        data = bytes.fromhex(row["hex"])
        parser = FrameParser()

        [frame] = parser.feed(data)

        assert encoded(frame) == data
        assert type(frame.message).__name__.upper() == row["type"]
        assert frame.port == row["from_port"]
        assert parser.refused == {}


def test_a_stream_of_original_frames_is_read_whole_and_in_pieces() -> None:
    rows = bus_messages()
    stream = b"".join(bytes.fromhex(row["hex"]) for row in rows)
    parser = FrameParser()

    taken = [
        frame for at in range(0, len(stream), 100) for frame in parser.feed(stream[at : at + 100])
    ]

    assert taken == FrameParser().feed(stream)
    assert len(taken) == len(rows)


def test_what_stands_behind_the_end_of_an_address_is_not_read() -> None:
    data = bytearray(frame_of(Ping((Gossip(OTHER, b"10.0.0.1\x000.100", 7711, FAIL),))))

    [frame] = FrameParser().feed(bytes(data))

    assert frame.message == Ping((Gossip(OTHER, b"10.0.0.1", 7711, FAIL),))


def test_eight_reserved_bytes_tell_which_process_it_is() -> None:
    data = encode(ME, PORT, MYSELF, Ping(), 1, 0x0102030405060708)

    assert data[104:112] == bytes(range(1, 9))
    assert FrameParser().feed(data) == [Frame(ME, PORT, MYSELF, Ping(), 1, 0x0102030405060708)]


def test_reserved_bytes_and_numbers_without_use_are_not_read() -> None:
    data = bytearray(frame_of(WillQueue(JOB)))
    data[14:16] = b"\x00\x07"
    data[56:104] = b"\xff" * 48
    data[112:136] = b"\xff" * 24
    data[140:144] = b"\xff" * 4
    data[184:188] = b"\xff" * 4

    assert FrameParser().feed(bytes(data)) == [Frame(ME, PORT, MYSELF, WillQueue(JOB))]


@pytest.mark.parametrize(
    "data", [b"DbuX" + bytes(4), b"DbuZ" + (143).to_bytes(4, "big"), b"*1\r\n$4\r\n"]
)
def test_what_is_no_frame_ends_the_link(data: bytes) -> None:
    parser = FrameParser()

    assert len(parser.feed(frame_of(Ping()) + data)) == 1
    assert parser.error is not None
    assert parser.feed(frame_of(Ping())) == []
    assert data.hex() in str(parser.error)


def test_the_first_byte_that_is_of_no_frame_is_an_error() -> None:
    for data, shown in (
        (b"G", "'G'"),
        (b"Dx", "'Dx'"),
        (b"PI\r\n", "50490d0a"),
        (b"GET /", "'GET /'"),
    ):
        parser = FrameParser()
        assert parser.feed(data) == []
        assert str(parser.error) == f"no frame starts with {shown}"
    assert FrameParser().feed(b"DbuZ\0\0\0") == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (head(144, 0)[:8] + b"\x00\x02" + head(144, 0)[10:], "version unknown"),
        (head(144, 16), "number of jobs wrong"),
        (head(144, 99), "type unknown"),
        (head(180, 19) + JOB[:36], "length wrong for its type"),
        (head(185, 19) + JOB + b"b", "length wrong for its type"),
        (head(144, 17), "length wrong for its type"),
        (head(144, 0, count=1), "length wrong for its type"),
        (head(148, 1) + bytes(4), "length wrong for its type"),
        (head(144, 3), "length wrong for its type"),
        (head(185, 3) + OTHER + b"x", "length wrong for its type"),
        (head(144, 5), "length wrong for its type"),
        (head(187, 5) + JOB + bytes(3), "length wrong for its type"),
        (head(189, 14) + JOB + bytes(5), "length wrong for its type"),
        (head(144, 12), "length wrong for its type"),
        (head(151, 12) + bytes(7), "length wrong for its type"),
        (head(153, 12) + bytes(8) + b"x", "length wrong for its type"),
        (head(152, 15) + bytes.fromhex("00000003 ffffffff"), "length wrong for its type"),
        (head(144, 4), "length wrong for its type"),
        (head(152, 4) + bytes.fromhex("00000001 00000001"), "length wrong for its type"),
        (head(152, 4) + bytes(8), "number of jobs wrong"),
        (head(152, 13) + bytes(8), "number of jobs wrong"),
        (head(486, 4) + bytes.fromhex("00000002 0000014e") + SENT + SENT, "number of jobs wrong"),
        (head(486, 13) + bytes.fromhex("00000001 0000014e") + SENT + SENT, "number of jobs wrong"),
        (head(486, 13) + bytes.fromhex("00000003 0000014e") + SENT + SENT, "job cut short"),
        (head(318, 4) + bytes.fromhex("00000001 000000a6") + SENT[:-1], "job cut short"),
        (
            head(319, 4) + bytes.fromhex("00000001 000000a7") + SENT[:72] + b"\xff" + SENT[73:],
            "job lengths do not add up",
        ),
    ],
)
def test_a_frame_that_is_wrong_inside_is_left_out_and_counted(data: bytes, reason: str) -> None:
    assert refused(data) == {reason: 1}


def test_a_frame_that_is_too_long_is_skipped_without_being_held() -> None:
    long = frame_of(NeedJobs(b"q" * 400, 1))
    after = frame_of(GotJob(JOB))
    for cut in range(len(long) + 1):
        parser = FrameParser(longest=500)

        taken = parser.feed(long[:cut]) + parser.feed(long[cut:] + after)

        assert [frame.message for frame in taken] == [GotJob(JOB)]
        assert parser.refused == {"frame too long": 1}
        assert parser.error is None


def test_a_long_frame_in_small_reads_is_taken() -> None:
    copy, _ = jobs.decode(SENT)
    copy.body = bytes(range(256)) * 8192
    data = frame_of(ReplJob((copy,)))
    parser = FrameParser()

    taken = [
        frame for at in range(0, len(data), 4096) for frame in parser.feed(data[at : at + 4096])
    ]

    assert [frame.message for frame in taken] == [ReplJob((copy,))]


@given(frames())
def test_frames_are_read_as_written(frame: Frame) -> None:
    parser = FrameParser()

    assert single(parser.feed(encoded(frame))) == single([frame])
    assert parser.refused == {}


@given(st.lists(frames(), max_size=5), cuts())
def test_frames_mean_the_same_however_they_are_cut(
    written: list[Frame], shares: list[float]
) -> None:
    data = b"".join(map(encoded, written))
    parser = FrameParser()

    found = [frame for part in pieces(data, shares) for frame in parser.feed(part)]
    assert single(found) == written


@given(st.lists(frames(), min_size=1, max_size=3), st.data())
def test_damage_means_the_same_however_it_is_cut(written: list[Frame], draw: st.DataObject) -> None:
    data = bytearray(b"".join(map(encoded, written)))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    whole, cut = FrameParser(), FrameParser()

    taken = whole.feed(bytes(data))

    parts = pieces(bytes(data), draw.draw(cuts()))
    assert [frame for part in parts for frame in cut.feed(part)] == taken
    assert cut.refused == whole.refused
    # The text has the bytes that had come.
    assert (cut.error is None) == (whole.error is None)
    for frame in taken:
        assert single(FrameParser().feed(encoded(frame))) == single([frame])


@given(st.binary(max_size=300), cuts())
def test_any_payload_of_any_type_is_a_message_or_refused(data: bytes, shares: list[float]) -> None:
    parser = FrameParser()

    for kind in range(20):
        for part in pieces(head(144 + len(data), kind, len(data) // 104) + data, shares):
            parser.feed(part)

    assert parser.error is None


def test_every_flipped_byte_gives_a_frame_or_a_reason_or_ends_the_link() -> None:
    for _, data in GOLDEN:
        for at in range(len(data)):
            parser = FrameParser()

            taken = parser.feed(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])

            is_waiting = at in range(4, 8)
            ended = parser.error is not None
            assert len(taken) + sum(parser.refused.values()) + ended == 1 or is_waiting


def test_every_shorter_frame_is_waited_for() -> None:
    for _, data in GOLDEN:
        for length in range(len(data)):
            parser = FrameParser()

            assert parser.feed(data[:length]) == []
            assert parser.refused == {}
            assert parser.error is None


@given(job_copies(), st.integers(0, 400))
def test_a_job_with_one_wrong_byte_is_refused_or_another_job(copy: JobCopy, place: int) -> None:
    data = bytearray(frame_of(ReplJob((copy,))))
    data[min(144 + place, len(data) - 1)] ^= 0x40
    parser = FrameParser()

    taken = parser.feed(bytes(data))

    assert len(taken) + sum(parser.refused.values()) == 1


def test_only_senders_that_are_known_may_send_long_frames() -> None:
    member_id = b"a" * 40
    long = encode(member_id, 7711, 4, NeedJobs(b"q" * UNKNOWN_SENDER_LIMIT, 1))
    short = encode(member_id, 7711, 4, NeedJobs(b"q", 1))

    for cut in (1, 20, 55, 56, 1000, len(long) - 1):
        unknown, member = (
            FrameParser(knows=().__contains__),
            FrameParser(knows=(member_id,).__contains__),
        )
        for parser in (unknown, member):
            frames = parser.feed(long[:cut]) + parser.feed(long[cut:] + short)
            assert len(frames) == (1 if parser is unknown else 2)
        assert unknown.refused == {"frame too long": 1}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"DisqTrC1" + bytes(32), "it has a cluster secret, and this node has none"),
        (b"DisqTr", "it has a cluster secret, and this node has none"),
        (b"\x15\x03\x03\0\x02\x02\x46", "it speaks TLS"),
        (b"HTTP/1.1 400 Bad Request", "no frame starts with 'HTTP/1.1'"),
        (b"\x80\x01", "no frame starts with 8001"),
    ],
)
def test_an_error_says_what_comes_in_the_place_of_a_frame(data: bytes, error: str) -> None:
    parser = FrameParser()

    assert parser.feed(data) == []

    assert str(parser.error).startswith(error)

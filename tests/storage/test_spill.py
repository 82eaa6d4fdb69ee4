"""The spill-directory: files without names, and what is moved there."""

import errno
import gc
import os
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from disque_trio.statemachine.base import MYSELF, Failure, Now, Spilled
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import ReplJob, YourJobs
from disque_trio.storage import spill
from disque_trio.storage.spill import Spiller, SpillError, SpillFiles
from disque_trio.wire import jobs
from disque_trio.wire.frames import FrameParser, encode
from disque_trio.wire.replies import encode_reply
from tests.node.world import MemoryLog
from tests.rig import JOB, ME, ONCE, copy_of


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


class Unreadable(Spilled):
    """A body on a disk that is broken."""

    def __bytes__(self) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


# Files.


def test_what_is_written_is_read(tmp_path: Path) -> None:
    files = SpillFiles(str(tmp_path))

    places = files.write([b"one", b"three", b"x" * 100_000])
    places += files.write([b"more"])

    assert [bytes(place) for place in places] == [b"one", b"three", b"x" * 100_000, b"more"]
    assert [len(place) for place in places] == [3, 5, 100_000, 4]
    assert files.file_bytes == 100_012 + 4 * 4, "each has its checksum"


def test_no_other_process_sees_the_files(tmp_path: Path) -> None:
    files = SpillFiles(str(tmp_path))
    files.write([b"body"])

    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_room_is_given_back_with_the_last_body(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "SEGMENT_BYTES", 100)
    files = SpillFiles(str(tmp_path))
    before = open_files()
    old = files.write([b"x" * 60, b"y" * 60])
    new = files.write([b"z" * 60])
    assert files.file_bytes == 3 * 64
    assert open_files() == before + 1

    del old[0]
    assert bytes(old[0]) == b"y" * 60
    del old

    assert files.file_bytes == 64
    assert open_files() == before
    assert bytes(new[0]) == b"z" * 60


@pytest.mark.slow
def test_all_files_end_with_their_node(tmp_path: Path) -> None:
    before = open_files()
    files = SpillFiles(str(tmp_path))
    places = files.write([b"body"])

    del files, places

    assert open_files() == before


@pytest.mark.slow
def test_much_on_disk_makes_large_files_not_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "SEGMENT_BYTES", 10)
    files = SpillFiles(str(tmp_path))
    before = open_files()

    kept = [files.write([b"0123456789"]) for _ in range(2000)]

    assert len(kept) == 2000
    assert open_files() - before < 5 * spill.PARTS


def test_a_directory_that_is_none_is_named() -> None:
    with pytest.raises(SpillError, match="spill-directory '/nowhere' cannot be used: No such file"):
        SpillFiles("/nowhere")


def test_a_body_that_is_cut_short_is_not_taken_for_whole(tmp_path: Path) -> None:
    files = SpillFiles(str(tmp_path))
    (place,) = files.write([b"body"])
    assert isinstance(place, spill.OnDisk)
    os.ftruncate(place._segment.fd, 2)

    with pytest.raises(OSError, match="shorter"):
        bytes(place)


@pytest.mark.parametrize("bit", range(8 * 8))
def test_a_bit_that_has_flipped_is_found(tmp_path: Path, bit: int) -> None:
    files = SpillFiles(str(tmp_path))
    (place,) = files.write([b"body"])
    assert isinstance(place, spill.OnDisk)
    descriptor = place._segment.fd
    (before,) = os.pread(descriptor, 1, bit // 8)
    os.pwrite(descriptor, bytes([before ^ 1 << bit % 8]), bit // 8)

    with pytest.raises(OSError, match="its content has changed"):
        bytes(place)


def test_a_write_that_fails_half_way_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SpillFiles(str(tmp_path))
    real = os.pwrite
    with monkeypatch.context() as patch:
        calls: list[int] = []

        def fails(fd: int, data: bytes, offset: int) -> int:
            calls.append(offset)
            if len(calls) == 1:
                return real(fd, data[:2], offset)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patch.setattr(os, "pwrite", fails)
        with pytest.raises(OSError, match="No space left"):
            files.write([b"lost"])
        assert calls == [0, 2]

    (place,) = files.write([b"body"])
    assert bytes(place) == b"body"


# A node that uses them.


class Full:
    """A disk without room, until there is some."""

    def __init__(self, inner: SpillFiles) -> None:
        self.inner = inner
        self.is_full = True

    def write(self, bodies: Sequence[bytes]) -> list[Spilled]:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.inner.write(bodies)


def squeezed_machine() -> tuple[Machine, Now]:
    now = Now(1000, 1_800_000_000_000)
    config = Config(spill_directory="/somewhere", maxmemory=250_000)
    machine = Machine(config, Peer(ME, "", 7711, MYSELF), random.Random(0), now)
    client = machine.connect(b"127.0.0.1:1", now)
    assert client is not None
    for number in range(80):
        machine.request(client, [b"ADDJOB", b"q", b"%d" % number * 1000, b"0"], now)
    machine.take()
    return machine, now


def test_a_spiller_moves_what_is_over_the_brim(tmp_path: Path) -> None:
    machine, now = squeezed_machine()
    memory = machine.state.memory
    assert memory.held > memory.spill_above
    spiller = Spiller(machine, SpillFiles(str(tmp_path)))

    spiller.settle(now)
    after = memory.held
    spiller.settle(now)

    assert after == memory.held < memory.spill_above
    bodies = [bytes(job.body or b"") for job in machine.state.jobs.values()]
    assert bodies == [b"%d" % number * 1000 for number in range(80)]


def test_a_full_disk_is_reported_once_and_used_again_later(tmp_path: Path) -> None:
    machine, now = squeezed_machine()
    memory = machine.state.memory
    log = MemoryLog()
    disk = Full(SpillFiles(str(tmp_path)))
    spiller = Spiller(machine, disk, log)

    for _ in range(5):
        spiller.settle(now)
        now = Now(now.mono + 1000, now.wall + 1000)
        machine.tick(now)
    assert memory.held > memory.spill_above
    assert len(log.events()) == 1

    disk.is_full = False
    spiller.settle(now)
    assert memory.held < memory.spill_above


# A disk that cannot be read.


def test_a_reply_without_its_body_is_an_error() -> None:
    reply = encode_reply([[b"q", JOB, Unreadable(1000)]])

    assert reply.startswith(b"-IOERR a body cannot be read from the spill-directory: ")
    assert reply.endswith(b"Input/output error\r\n")
    assert encode_reply([Failure(b"ERR no"), 1]) == b"*2\r\n-ERR no\r\n:1\r\n"


def test_a_message_goes_without_the_jobs_whose_bodies_cannot_be_read() -> None:
    whole, broken = copy_of(), copy_of(ONCE)
    broken.body = Unreadable(1000)

    assert jobs.encode_all([broken, whole]) == [jobs.encode(whole)]
    frame = encode(ME, 7711, 0, YourJobs((broken, whole)))
    (read,) = FrameParser(knows=lambda _id: True).feed(frame)
    assert read.message == YourJobs((whole,))


def test_a_message_with_a_body_on_disk_is_what_it_would_be(tmp_path: Path) -> None:
    plain, spilled = copy_of(), copy_of()
    (spilled.body,) = SpillFiles(str(tmp_path)).write([b"body"])

    one = encode(ME, 7711, 0, ReplJob((plain,), no_reply=False))
    other = encode(ME, 7711, 0, ReplJob((spilled,), no_reply=False))

    assert one == other
    assert encode_reply([spilled.body]) == b"*1\r\n$4\r\nbody\r\n"

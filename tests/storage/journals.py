"""What the tests of the journal share: configurations, journals made by hand, a producer."""

import errno
import os

import trio

from disque_trio.statemachine.base import QUEUED
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.journaling import STOPPED
from disque_trio.statemachine.records import LoadJob
from disque_trio.wire.journal import Format, Writer
from tests.node.world import MemoryClient, World
from tests.rig import copy_of
from tests.storage.disks import MemoryDisk, read

ALWAYS = Config(appendonly=True, appendfsync="always", aof_queues=False)
EVERYSEC = Config(appendonly=True, aof_queues=False)
NO = Config(appendonly=True, appendfsync="no", aof_queues=False)
MISCONF = b"-MISCONF Errors writing to the AOF file: %b\r\n"
NO_SPACE = MISCONF % b"No space left on device"
IO_ERROR = MISCONF % b"Input/output error"
STALLED = MISCONF % b"no answer from the disk"
ADD = b"ADDJOB q x 0 REPLICATE 1\r\n"
WALL_S = 1_800_000_000


def broken() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))


async def started(
    nursery: trio.Nursery, config: Config = ALWAYS, disk: MemoryDisk | None = None
) -> World:
    world = World(config, disk=disk)
    await nursery.start(world.node.run)
    return world


def file_of(*jobs: bytes, format_: Format = Format.FRAMED) -> bytes:
    """A journal with jobs of these ids, queued."""
    writer = Writer(format_, 9)
    records = [LoadJob(copy_of(job, ttl=WALL_S + 600, queue=b"q")) for job in jobs]
    for record in records:
        record.copy.state = QUEUED
    return writer.header + b"".join(map(writer.encode, records))


def ids(number: int) -> list[bytes]:
    return [b"D-bbbbbbbb-%024d-05a1" % each for each in range(number)]


async def add(client: MemoryClient, body: str = "x") -> bytes:
    """Add a job; its id."""
    reply = await client.ask("ADDJOB", "q", body, "0", "REPLICATE", "1")
    assert reply[:3] == b"+D-", reply
    return reply[1:41]


def queued(data: bytes) -> set[bytes]:
    """The ids of the jobs that a node queues at once when it starts from this file."""
    *records, last = read(data)
    jobs: set[bytes] = set()
    for record in records:
        if isinstance(record, LoadJob) and record.copy.state == QUEUED:
            jobs.add(record.copy.id)
        else:
            jobs.discard(record.copy.id if isinstance(record, LoadJob) else record.id)
    return jobs if last == STOPPED else set()


def alive(data: bytes) -> set[bytes]:
    """The ids of the jobs that a node would load."""
    jobs: set[bytes] = set()
    for record in read(data):
        if isinstance(record, LoadJob):
            jobs.add(record.copy.id)
        else:
            jobs.discard(record.id)
    return jobs

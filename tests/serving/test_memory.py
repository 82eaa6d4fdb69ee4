"""`maxmemory` on a real process: what it counts, and what happens when it is reached."""

from pathlib import Path

import pytest

from disque_trio.serving.memory_trimming import malloc_trim
from disque_trio.statemachine.base import JobId
from disque_trio.statemachine.pressure import MOST_RESIDENT_PERCENT
from disque_trio.wire.resp import encode_request
from tests.cluster.processes import eventually, free_port
from tests.cluster.talk import Client, RefusedError, connection
from tests.serving.process import WITHIN_S, run, server

LIMIT = 64 << 20
MOST = MOST_RESIDENT_PERCENT / 100


def memory(client: Client, field: str) -> int:
    """A number of INFO memory."""
    return int(client.info("memory")[field])


def fill(client: Client) -> list[JobId]:
    """Add jobs of 6 kB until there is no room."""
    accepted: list[JobId] = []
    while True:
        try:
            accepted.append(client.add("q", b"%06d" % len(accepted) * 1000))
        except RefusedError as error:
            if not str(error).startswith("OOM "):
                raise
            return accepted


def test_a_limit_below_what_the_process_takes_is_told_of(tmp_path: Path) -> None:
    with server(tmp_path, "--maxmemory", "1mb") as (process, port), connection(port) as client:
        own = memory(client, "used_memory_process")
        process.says(
            "maxmemory is less than the process itself uses: raise it, or new jobs are refused  "
            f"maxmemory={1 << 20} process={own}"
        )
        with pytest.raises(RefusedError, match=r"^OOM "):
            client.add("q", "body")

        client.text("CONFIG", "SET", "maxmemory", "1gb")
        client.add("q", "body")
        client.text("CONFIG", "SET", "maxmemory", 1)
        process.says(
            "maxmemory is less than the process itself uses: raise it, or new jobs are refused  "
            f"maxmemory=1 process={own}"
        )
        with pytest.raises(RefusedError, match=r"^OOM "):
            client.add("q", "body")
        client.text("CONFIG", "SET", "maxmemory", own + 1_000_000)
        process.says(
            "maxmemory is little more than the process itself uses: raise it, or few jobs fit  "
            f"maxmemory={own + 1_000_000} process={own}"
        )


def test_what_a_client_has_sent_in_part_and_what_it_does_not_read_counts(tmp_path: Path) -> None:
    with (
        server(tmp_path) as (_, port),
        connection(port) as observer,
        connection(port) as slow,
        connection(port) as lazy,
    ):
        before = memory(observer, "used_memory")

        slow.send_raw(b"*2\r\n$4\r\nPING\r\n$99000000\r\n" + b"x" * 5_000_000)
        lazy.send("PING", "x" * 20_000_000)

        eventually(
            lambda: 15_000_000 < memory(observer, "used_memory") - before < 26_000_000,
            WITHIN_S,
            "both buffers are accounted",
        )
        slow.close()
        lazy.close()
        eventually(
            lambda: memory(observer, "used_memory") - before < 100_000,
            WITHIN_S,
            "they are let off",
        )


def test_an_endless_producer_is_refused_in_time_and_everything_accepted_is_delivered(
    tmp_path: Path,
) -> None:
    with server(tmp_path, "--maxmemory", "64mb") as (_, port), connection(port) as client:
        accepted = fill(client)

        assert len(accepted) > 1000
        assert memory(client, "memory_level") == 2
        assert memory(client, "used_memory") < LIMIT
        assert memory(client, "used_memory_rss") < MOST * LIMIT

        delivered = []
        while jobs := client.get("q", 100):
            delivered += [job.id for job in jobs]
            client.number("ACKJOB", *[job.id for job in jobs])
        assert delivered == accepted
        client.add("q", "body")


def test_a_backlog_larger_than_the_memory_is_kept_on_disk_and_drained_in_order(
    tmp_path: Path,
) -> None:
    (tmp_path / "spill").mkdir()
    options = ("--maxmemory", "64mb", "--spill-directory", str(tmp_path / "spill"))
    with server(tmp_path, *options) as (_, port), connection(port) as client:
        bodies = [b"%06d" % number * 40_000 for number in range(400)]
        for body in bodies:
            client.add("q", body)

        assert memory(client, "memory_level") == 0
        assert memory(client, "used_memory") < LIMIT
        assert memory(client, "used_memory_rss") < MOST * LIMIT

        for body in bodies:
            (job,) = client.get("q")
            assert job.body == body
            client.number("ACKJOB", job.id)
        assert memory(client, "used_memory_jobs_and_queues") < 1_000_000


@pytest.mark.slow
def test_a_backlog_larger_than_the_memory_comes_back_from_the_journal(tmp_path: Path) -> None:
    (tmp_path / "spill").mkdir()
    options = (
        "--maxmemory", "64mb", "--spill-directory", str(tmp_path / "spill"), "--appendonly", "yes",
    )  # fmt: skip
    bodies = [b"%06d" % number * 40_000 for number in range(600)]
    with server(tmp_path, *options) as (process, port), connection(port) as client:
        process.says("journal loaded")
        for body in bodies:
            client.add("q", body)
        assert peak_rss(process.popen.pid) < MOST * LIMIT
        client.send("SHUTDOWN", "REWRITE-AOF")
        process.popen.wait(WITHIN_S)

    again = ("--aof-enqueue-jobs-once", "yes")
    with server(tmp_path, *options, *again) as (process, port), connection(port) as client:
        process.says("journal loaded")
        assert [client.get("q")[0].body for _ in bodies] == bodies
        assert peak_rss(process.popen.pid) < MOST * LIMIT


def peak_rss(pid: int) -> int:
    """The most memory that the process has had."""
    (line,) = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line
    ]
    return int(line.split()[1]) << 10


def test_a_spill_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    status, output = run(
        tmp_path, "server", "--port", str(free_port()), "--bind", "127.0.0.1",
        "--spill-directory", "/nowhere",
    )  # fmt: skip

    assert status == 1
    assert "spill-directory '/nowhere' cannot be used: No such file or directory" in output
    assert "Traceback" not in output


@pytest.mark.slow
@pytest.mark.skipif(malloc_trim() is None, reason="only glibc gives memory back when asked")
def test_what_a_drained_backlog_took_goes_back_to_the_system(tmp_path: Path) -> None:
    with server(tmp_path) as (process, port), connection(port) as client:
        before = memory(client, "used_memory_rss")
        for _ in range(300):
            client.send_raw(encode_request([b"ADDJOB", b"q", b"x" * 4000, b"0"]) * 100)
            for _ in range(100):
                client.receive()
        full = memory(client, "used_memory_rss")
        assert full > before + (100 << 20)

        while jobs := client.get("q", 200):
            client.number("ACKJOB", *[job.id for job in jobs])

        eventually(
            lambda: memory(client, "used_memory_rss") < before + (full - before) // 2,
            WITHIN_S,
            "most of the memory has gone back",
        )
        assert process.popen.poll() is None


def test_the_limit_can_be_raised_while_it_presses(tmp_path: Path) -> None:
    with server(tmp_path, "--maxmemory", "1mb") as (_, port), connection(port) as client:
        with pytest.raises(RefusedError, match="OOM "):
            client.add("q", "body")

        client.text("CONFIG", "SET", "maxmemory", "256mb")

        client.add("q", "body")

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from disque_trio.net.file_limits import MAX_LINKS, raise_file_limit
from disque_trio.serving.process import SystemClock, SystemHost, facts
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.config import Config


@pytest.fixture
def file_limit() -> Iterator[int]:
    """The hard limit; both are put back afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_file_limit_is_raised_as_far_as_needed(file_limit: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, file_limit))

    assert raise_file_limit(1000) == 1000
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1000 + 2 * MAX_LINKS + 128
    assert raise_file_limit(500) == 500
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 1000 + 2 * MAX_LINKS + 128


def test_more_than_the_system_allows_is_cut(file_limit: int) -> None:
    assert 0 < raise_file_limit(1 << 40) < 1 << 40


def test_the_clock_tells_how_long_to_sleep() -> None:
    clock = SystemClock()
    now = clock.now()

    assert 0.4 < clock.seconds_until(now.mono + 500) <= 0.5
    assert clock.seconds_until(now.mono - 500) == 0
    assert 0 <= now.micros < 1000


def test_vitals_are_those_of_this_process() -> None:
    vitals = SystemHost().vitals()

    assert 1 << 20 < vitals.rss_bytes <= 2 * vitals.peak_rss_bytes
    assert vitals.cpu_user > 0


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert SystemHost().change_directory(str(tmp_path / "no")) == "No such file or directory"
    assert "null" in (SystemHost().change_directory("a\0b") or "")


def test_a_configuration_without_a_file_is_not_written() -> None:
    answer = SystemHost().rewrite_config(Config())

    assert answer == "The server is running without a config file"


def test_one_of_several_nodes_cannot_restart_the_process() -> None:
    host = SystemHost(restart_refusal="one of several")

    assert host.refuse_shutdown(Shutdown()) is None
    assert host.refuse_shutdown(Shutdown(restart=True)) == "one of several"
    assert SystemHost().refuse_shutdown(Shutdown(restart=True)) is None


def test_facts_name_the_process() -> None:
    known = facts(Config(port=7777), "disque.conf")

    assert (known.port, known.config_file, known.multiplexing) == (7777, "disque.conf", "epoll")
    assert len(known.run_id) == 40
    assert facts(Config(multiplexing_api="tasks")).multiplexing == "tasks"

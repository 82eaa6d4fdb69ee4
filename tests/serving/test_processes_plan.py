"""What `workers N` makes of a configuration, and what it refuses."""

import io
from pathlib import Path
from typing import Any

import attrs
import pytest

from disque_trio.serving.config_file import ConfigFileError, load
from disque_trio.serving.processes.joining import own_ip
from disque_trio.serving.processes.plan import WorkersError, make_homes, orders, refuse_strays
from disque_trio.statemachine.config import Config


def planned(config: Config) -> list[Config]:
    return [order.config for order in orders(config)]


def test_each_has_ports_a_directory_and_a_part_of_the_memory() -> None:
    first, second, third = planned(
        Config(workers=3, port=7000, tls_port=7100, dir="/data", maxmemory=3000)
    )

    assert (first.port, second.port, third.port) == (7001, 7002, 7003)
    assert (first.tls_port, third.tls_port) == (7101, 7103)
    assert (first.dir, third.dir) == ("/data/worker-1", "/data/worker-3")
    assert first.maxmemory == 1000


def test_each_announces_ports_of_its_own() -> None:
    first, second = planned(
        Config(workers=2, cluster_announce_port=30_000, cluster_announce_bus_port=31_000)
    )

    assert (first.cluster_announce_port, second.cluster_announce_port) == (30_001, 30_002)
    assert (first.cluster_announce_bus_port, second.cluster_announce_bus_port) == (31_001, 31_002)
    assert planned(Config(workers=2))[1].cluster_announce_port == 0, "0 stays that on which it is"


def test_a_kernel_that_does_not_spread_connections_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.system", lambda: "Darwin")

    with pytest.raises(WorkersError) as caught:
        orders(Config(workers=3))

    assert str(caught.value) == (
        "3 workers cannot share a port on Darwin: of all sockets that listen on it, the kernel "
        "gives every connection to the same one; say 'workers 1', and start more nodes with ports "
        "of their own"
    )


def test_no_limit_of_memory_stays_none_and_a_small_one_stays_one() -> None:
    assert planned(Config(workers=2, maxmemory=0))[0].maxmemory == 0
    assert planned(Config(workers=2, maxmemory=1))[0].maxmemory == 1


def test_files_of_all_are_found_from_any_directory() -> None:
    config = Config(
        workers=2, dir="/data", requirepass_file="secret", logfile="/var/log/x", unixsocket="sock"
    )

    worker = planned(config)[0]

    assert (worker.requirepass_file, worker.logfile) == ("/data/secret", "/var/log/x")
    assert (worker.unixsocket, worker.tls_cert_file) == ("", "")


def test_siblings_are_the_others() -> None:
    assert orders(Config(workers=3, port=7000))[1].siblings == [7001, 7003]
    assert orders(Config(workers=2, port=0, tls_port=7100))[0].siblings == [7102]


@pytest.mark.parametrize("value", ["0", "65", "-1", "x", "2.5", ""])
def test_a_number_that_does_not_do_is_refused_with_advice(value: str) -> None:
    with pytest.raises(ConfigFileError) as caught:
        load(["--workers", value], io.BytesIO())

    assert "is not a whole number from 1 to 64: give as many as this machine" in caught.value.reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"port": 0}, "2 workers need a port"),
        ({"port": 55_534}, "port 55534 is too high for 2 workers"),
        ({"port": 7000, "tls_port": 7002}, "keep them 3 apart"),
        ({"port": 7000, "web_port": 7001}, "port 7000 and web-port 7001 are too close"),
        ({"web_port": 65_534}, "web-port 65534 is too high for 2 workers"),
        ({"cluster_config_file": "/etc/nodes.conf"}, "would be the same file for all workers"),
        ({"trace_file": "../rows"}, "trace-file ../rows would be the same file"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(WorkersError, match=words):
        orders(attrs.evolve(Config(workers=2), **change))


def test_the_files_of_a_single_node_are_not_left_behind(tmp_path: Path) -> None:
    (tmp_path / "nodes.conf").write_text("node")
    (tmp_path / "disque.aof").write_text("")
    config = Config(workers=2, dir=str(tmp_path))

    with pytest.raises(WorkersError) as caught:
        refuse_strays(config)

    assert f"mkdir -p {tmp_path}/worker-1 && mv {tmp_path}/nodes.conf {tmp_path}" in str(
        caught.value
    )


def test_the_files_of_a_single_node_do_not_replace_those_of_a_worker(tmp_path: Path) -> None:
    config = Config(workers=2, dir=str(tmp_path))
    make_homes(config)
    for folder in (tmp_path, tmp_path / "worker-1"):
        (folder / "nodes.conf").write_text("node")

    with pytest.raises(WorkersError, match="move them to a directory of their own") as caught:
        refuse_strays(config)

    assert "mv" not in str(caught.value)


@pytest.mark.parametrize(("count", "is_refused"), [(1, True), (2, True), (3, False)])
def test_jobs_of_workers_that_are_not_started_are_not_left_behind(
    tmp_path: Path, count: int, *, is_refused: bool
) -> None:
    make_homes(Config(workers=3, dir=str(tmp_path)))
    (tmp_path / "worker-3" / "disque.aof").write_text("jobs")
    config = Config(workers=count, dir=str(tmp_path))

    if is_refused:
        with pytest.raises(WorkersError, match="start with --workers 3, empty that worker"):
            refuse_strays(config)
    else:
        refuse_strays(config)


def test_other_names_and_empty_journals_are_no_hindrance(tmp_path: Path) -> None:
    make_homes(Config(workers=3, dir=str(tmp_path)))
    (tmp_path / "worker-x").mkdir()

    refuse_strays(Config(dir=str(tmp_path)))
    refuse_strays(Config(dir=str(tmp_path / "nowhere")))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "worker-1").write_text("a file")

    with pytest.raises(WorkersError, match="worker-1 of a worker: File exists; choose another"):
        make_homes(Config(workers=2, dir=str(tmp_path)))


def test_they_know_each_other_by_the_first_address() -> None:
    assert own_ip(Config(bind=("127.0.0.2", "127.0.0.1"))) == "127.0.0.2"
    assert own_ip(Config(bind=("::1",))) == "::1"


def test_behind_protected_mode_the_loopback_will_do() -> None:
    assert own_ip(Config()) == "127.0.0.1"
    assert own_ip(Config(bind=("0.0.0.0",))) == "127.0.0.1"


def test_let_others_in_and_they_are_told_an_address_that_leads_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("disque_trio.serving.processes.joining._outward_ip", lambda: "10.0.0.1")

    assert own_ip(Config(requirepass=b"word")) == "10.0.0.1"
    assert own_ip(Config(protected_mode=False)) == "10.0.0.1"

from disque_trio.statemachine.base import OK, Failure, Status
from disque_trio.statemachine.chores import RewriteConfig, SaveNodes, Shutdown
from disque_trio.statemachine.client import Blocked
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import DelJob
from tests.rig import N2, Rig

GRAIN = 8


def test_clients_are_numbered_as_they_come() -> None:
    rig = Rig()
    second = rig.connect()
    rig.disconnect(second)

    assert [rig.client.id, second.id, rig.connect().id] == [1, 2, 3]
    assert list(rig.node.clients) == [1, 3]


def test_a_client_too_many_is_turned_away_and_counted() -> None:
    rig = Rig(config=Config(maxclients=2))
    rig.connect()

    assert rig.machine.connect(b"127.0.0.1:1", rig.now) is None

    assert rig.node.stats.connections_rejected == {"maxclients": 1}
    assert rig.node.stats.connections_received == 2
    assert len(rig.node.clients) == 2


def test_a_client_by_a_unix_socket_is_known_as_such() -> None:
    rig = Rig()

    client = rig.machine.connect(b"unix:/run/disque", rig.now, is_unix=True)

    assert client is not None
    assert client.is_unix


def test_a_client_that_goes_leaves_nothing_behind() -> None:
    rig = Rig(peers=1, config=Config(timeout_s=10))
    client = rig.connect()
    rig.ask("MONITOR", client=client)
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=client)
    job = client.pending_adds[0].job
    assert job is not None
    rig.sent()

    rig.disconnect(client)
    rig.disconnect(client)

    assert rig.sent() == [(N2, DelJob(job.id))]
    assert rig.node.monitors == {}
    assert client.id not in rig.node.clients
    assert client.slot is None
    assert not rig.machine.accepts(client)


# Idleness.


def test_a_client_that_asks_for_nothing_for_too_long_is_disconnected() -> None:
    rig = Rig(config=Config(timeout_s=10))
    rig.advance(6_000)
    rig.ask("PING")
    rig.advance(10_000)
    assert rig.closed() == []

    rig.advance(1 + GRAIN)
    assert rig.closed() == [rig.client]


def test_without_a_limit_no_client_is_disconnected() -> None:
    rig = Rig()

    rig.advance(1_000_000)

    assert rig.closed() == []


def test_a_monitor_is_never_idle() -> None:
    rig = Rig(config=Config(timeout_s=10))
    rig.ask("MONITOR")

    rig.advance(60_000)

    assert rig.closed() == []


def test_a_limit_that_is_lifted_disconnects_no_client() -> None:
    rig = Rig(config=Config(timeout_s=10))
    rig.node.config = Config()

    rig.advance(60_000)

    assert rig.closed() == []


# CLIENT PAUSE.


def test_no_request_is_accepted_while_clients_are_paused() -> None:
    rig = Rig()
    other = rig.connect()
    rig.ask("CLIENT", "PAUSE", 1000)
    assert not rig.machine.accepts(rig.client)
    assert not rig.machine.accepts(other)

    rig.advance(999)
    assert not rig.machine.accepts(other)
    rig.advance(GRAIN)

    assert rig.machine.accepts(other)
    assert [client for out in rig.outboxes for client in out.resumed] == [rig.client, other]


def test_only_clients_with_input_are_resumed() -> None:
    rig = Rig()
    silent, gone = rig.connect(), rig.connect()
    rig.ask("CLIENT", "PAUSE", 1000)
    rig.machine.accepts(rig.client)
    rig.machine.accepts(gone)
    rig.disconnect(gone)

    rig.advance(2000)

    resumed = [client for out in rig.outboxes for client in out.resumed]
    assert resumed == [rig.client]
    assert silent not in resumed


def test_a_longer_pause_replaces_a_shorter_one_and_not_the_other_way_round() -> None:
    rig = Rig()
    rig.ask("CLIENT", "PAUSE", 1000)
    rig.ask("CLIENT", "PAUSE", 3000)
    rig.ask("CLIENT", "PAUSE", 2000)

    rig.advance(2999)
    assert not rig.machine.accepts(rig.client)
    rig.advance(GRAIN)
    assert rig.machine.accepts(rig.client)


def test_waits_end_during_a_pause() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "TIMEOUT", 100, "FROM", "q", client=worker)
    rig.ask("CLIENT", "PAUSE", 60_000)

    rig.advance(200)

    assert len(rig.replies(worker)) == 1
    assert not rig.machine.accepts(worker)


# Chores.


def test_a_chore_holds_its_client_until_the_outcome_is_known() -> None:
    rig = Rig()
    rig.request("CLUSTER", "SAVECONFIG")
    assert rig.outboxes[-1].chores == [(rig.client, SaveNodes())]
    assert rig.client.blocked is Blocked.CHORE
    assert not rig.machine.accepts(rig.client)

    rig.machine.done(rig.client, None, rig.now)
    out = rig.take()

    assert rig.reply() == OK
    assert out.resumed == [rig.client]
    assert rig.machine.accepts(rig.client)


def test_a_chore_that_fails_is_the_client_s_error() -> None:
    rig = Rig()
    rig.request("CLUSTER", "SAVECONFIG")

    rig.machine.done(rig.client, "no space left", rig.now)
    rig.take()

    assert rig.reply() == Failure(b"ERR error saving the cluster node config: no space left")


def test_one_chore_may_lead_to_another() -> None:
    rig = Rig()
    rig.node.facts.config_file = "disque.conf"
    rig.request("DEBUG", "RESTART")
    assert rig.outboxes[-1].chores == [(rig.client, RewriteConfig())]

    rig.machine.done(rig.client, None, rig.now)
    out = rig.take()

    assert out.chores == [(rig.client, Shutdown(restart=True))]
    assert out.resumed == []
    assert rig.replies() == []


def test_an_outcome_for_a_client_that_has_gone_is_dropped() -> None:
    rig = Rig()
    rig.request("CLUSTER", "SAVECONFIG")
    rig.disconnect(rig.client)

    rig.machine.done(rig.client, None, rig.now)

    assert not rig.take().replies


def test_an_outcome_without_a_waiting_client_is_dropped() -> None:
    rig = Rig()

    rig.machine.done(rig.client, None, rig.now)

    assert not rig.take()


def test_a_client_is_told_to_go_once() -> None:
    rig = Rig()

    rig.request("QUIT")
    rig.machine.refuse(rig.client, b"ERR Protocol error: unbalanced quotes in request", rig.now)
    rig.take()

    assert rig.closed() == [rig.client]
    assert not rig.machine.accepts(rig.client)


# Flushing.


def test_a_flush_removes_jobs_queues_and_pauses() -> None:
    rig = Rig(peers=1)
    rig.add("REPLICATE", 1)
    rig.ask("PAUSE", "p", "in")
    rig.ask("ACKJOB", "D-bbbbbbbb-AAAAAAAAAAAAAAAAAAAAAAAA-05a1")
    rig.sent()

    assert rig.ask("DEBUG", "FLUSHALL") == Status(b"OK")

    assert (rig.node.jobs, rig.node.queues) == ({}, {})
    assert rig.sent() == []
    rig.add("REPLICATE", 1)
    assert rig.ask("QLEN", "q") == 1


def test_clients_that_are_not_admitted_are_counted_by_reason() -> None:
    rig = Rig()

    rig.machine.turned_away("tls")
    rig.machine.turned_away("tls")
    rig.machine.turned_away("cluster-secret", is_link=True)

    assert rig.node.stats.connections_rejected == {"tls": 2}
    assert rig.node.stats.links_refused == {"cluster-secret": 1}

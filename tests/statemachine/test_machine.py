from collections.abc import Callable

import pytest

from disque_trio.statemachine.base import (
    FOREVER,
    HANDSHAKE,
    MYSELF,
    OK,
    ClientId,
    Failure,
    Now,
    Status,
)
from disque_trio.statemachine.client import ReplyMode
from disque_trio.statemachine.commands.table import BY_NAME
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import DelJob, Frame, GotJob, Ping
from tests.rig import JOB, ME, N2, UNKNOWN, Rig, copy_of

NOAUTH = Failure(b"NOAUTH Authentication required.")


# The checks before a command runs, in their order.


def test_quit_is_answered_and_the_client_goes() -> None:
    rig = Rig()

    assert rig.machine.request(rig.client, [b"QuIt", b"or", b"not"], rig.now) is None
    rig.take()

    assert rig.reply() == OK
    assert rig.closed() == [rig.client]


def test_an_unknown_command_is_shown_as_sent_on_one_line() -> None:
    assert Rig().ask(b"Ho\r\nho") == Failure(b"ERR unknown command 'Ho  ho'")


def test_the_number_of_words_is_checked_before_the_password() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))

    assert rig.ask("QLEN") == Failure(
        b"ERR wrong number of arguments for 'qlen' command: QLEN queue"
    )
    assert rig.ask("XYZZY", "q") == Failure(b"ERR unknown command 'XYZZY'")
    assert rig.ask("QLEN", "q") == NOAUTH
    assert rig.ask("PING") == NOAUTH


def test_nothing_but_auth_reset_and_quit_works_without_the_password() -> None:
    rig = Rig(config=Config(requirepass=b"secret"))

    for name, row in BY_NAME.items():
        if name not in {"auth", "reset"}:
            assert rig.ask(name, *["0"] * max(abs(row.arity) - 1, 0)) == NOAUTH
    assert rig.ask("RESET") == Status(b"RESET")
    assert rig.ask("AUTH", "secret") == OK
    assert rig.ask("PING") == Status(b"PONG")
    assert rig.ask("QUIT", client=rig.connect()) == OK


def test_a_request_that_was_refused_is_not_counted() -> None:
    rig = Rig()
    rig.ask("QLEN")
    rig.ask("NONSENSE")
    assert rig.node.stats.commands_processed == 0

    rig.ask("QLEN", "q")
    assert rig.node.stats.commands_processed == 1
    assert rig.client.command == "qlen"


def test_the_row_that_was_executed_is_handed_back() -> None:
    rig = Rig()

    assert rig.machine.request(rig.client, [b"PING"], rig.now) is BY_NAME["ping"]
    assert rig.machine.request(rig.client, [b"GETJOB", b"x"], rig.now) is BY_NAME["getjob"]
    assert rig.machine.request(rig.client, [b"GETJOB"], rig.now) is None
    assert rig.machine.request(rig.client, [b"nonsense"], rig.now) is None


def test_a_client_that_breaks_the_protocol_is_told_and_goes() -> None:
    rig = Rig()

    rig.machine.refuse(rig.client, b"ERR Protocol error: invalid bulk length", rig.now)
    rig.take()

    assert rig.reply() == Failure(b"ERR Protocol error: invalid bulk length")
    assert rig.closed() == [rig.client]
    assert rig.node.stats.protocol_errors == 1


# CLIENT REPLY.


def test_a_client_may_turn_its_replies_off() -> None:
    rig = Rig()
    rig.request("CLIENT", "REPLY", "OFF")
    rig.request("PING")
    rig.request("NONSENSE")
    rig.request("QLEN")
    assert rig.replies() == []

    assert rig.ask("CLIENT", "REPLY", "ON") == OK


def test_a_client_may_skip_one_reply() -> None:
    rig = Rig()
    rig.request("CLIENT", "REPLY", "SKIP")
    rig.request("PING")
    assert rig.replies() == []
    rig.request("PING")
    assert rig.reply() == Status(b"PONG")


def test_a_job_of_a_client_in_reply_mode_off_serves_waiting_clients() -> None:
    rig = Rig()
    worker = rig.connect()
    rig.request("GETJOB", "FROM", "q", client=worker)
    rig.client.reply_mode = ReplyMode.OFF

    rig.request("ADDJOB", "q", "body", 0)

    assert len(rig.replies(worker)) == 1
    assert rig.replies() == []


def test_a_silent_client_may_quit() -> None:
    rig = Rig()
    rig.client.reply_mode = ReplyMode.OFF

    rig.request("QUIT")

    assert rig.replies() == []
    assert rig.closed() == [rig.client]


# Monitors.


def test_monitors_see_what_is_executed_and_nothing_else() -> None:
    rig = Rig()
    monitor = rig.connect()
    rig.ask("MONITOR", client=monitor)

    rig.ask("PING", "a b")
    rig.ask("PING", "1", "2")
    rig.ask("QLEN")
    rig.ask("NONSENSE")

    stamp = b"%d.000000 [127.0.0.1:50000] " % (rig.now.wall // 1000)
    assert rig.replies(monitor) == [
        Status(stamp + b'"PING" "a b"'),
        Status(stamp + b'"PING" "1" "2"'),
    ]


def test_a_monitor_sees_its_own_commands_too() -> None:
    rig = Rig()
    rig.ask("MONITOR")

    rig.request("MONITOR")

    [line] = rig.replies()
    assert isinstance(line, Status)
    assert line.text.endswith(b'"MONITOR"')


# How long things took.


def test_what_a_command_took_is_counted() -> None:
    rig = Rig(config=Config(slowlog_log_slower_than_us=1000, latency_monitor_threshold=10))
    for usec in (100, 1000, 10_000):
        rig.machine.timed(BY_NAME["addjob"], [b"ADDJOB"], usec * 1000)
    rig.machine.timed(BY_NAME["info"], [b"INFO"], 20_000_000)

    stats = rig.node.stats.commands
    assert (stats["addjob"].calls, stats["addjob"].usec) == (3, 11_100)
    assert [entry.usec for entry in rig.node.slowlog.entries] == [20_000, 10_000, 1000]
    assert {name: samples.worst for name, samples in rig.node.latency.events.items()} == {
        b"fast-command": 10,
        b"command": 20,
    }


def test_a_negative_limit_turns_the_slowlog_off_and_no_threshold_the_monitor() -> None:
    rig = Rig(config=Config(slowlog_log_slower_than_us=-1))

    rig.machine.timed(BY_NAME["ping"], [b"PING"], 1 << 40)

    assert not rig.node.slowlog.entries
    assert rig.node.latency.events == {}


def test_other_pauses_are_observed_as_events() -> None:
    rig = Rig(config=Config(latency_monitor_threshold=10))

    rig.machine.observe(b"jobs-processing", 15, rig.now)

    assert rig.node.latency.events[b"jobs-processing"].worst == 15


# The bus.


def test_a_frame_on_a_link_that_has_ended_is_nothing() -> None:
    rig = Rig(peers=1)
    received = rig.node.cluster.messages_received

    rig.machine.message(9999, Frame(N2, 7711, MYSELF, DelJob(JOB)), rig.now)

    assert rig.node.cluster.messages_received == received


def test_jobs_are_only_spoken_of_with_members() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of())
    link = rig.machine.accepted("127.0.0.1", "127.0.0.9", rig.now)
    received = rig.node.cluster.messages_received

    rig.machine.message(link, Frame(UNKNOWN, 7711, MYSELF, DelJob(JOB)), rig.now)
    rig.machine.message(link, Frame(ME, 7711, MYSELF, DelJob(JOB)), rig.now)
    rig.node.cluster.nodes[N2].flags |= HANDSHAKE
    rig.machine.message(link, Frame(N2, 7711, MYSELF, DelJob(JOB)), rig.now)

    assert JOB in rig.node.jobs
    assert rig.node.stats.frames_refused == {"unknown sender": 3}
    assert rig.node.cluster.messages_received == received + 3


def test_a_member_may_speak_on_any_link() -> None:
    rig = Rig(peers=1)
    rig.hold(copy_of())
    link = rig.machine.accepted("127.0.0.1", "127.0.0.9", rig.now)

    rig.machine.message(link, Frame(N2, 7711, MYSELF, DelJob(JOB)), rig.now)

    assert rig.node.jobs == {}


def test_the_driver_counts_what_never_became_a_frame() -> None:
    rig = Rig()

    rig.machine.refused("bad signature", 1)
    rig.machine.refused("bad signature", 2)

    assert rig.node.stats.frames_refused == {"bad signature": 3}


# Time.


def test_an_idle_node_has_no_deadline() -> None:
    assert Rig().machine.deadline() == FOREVER


def test_time_never_goes_back() -> None:
    rig = Rig()

    rig.machine.tick(Now(rig.now.mono - 5000, rig.now.wall - 5000))

    assert rig.node.mono == rig.now.mono
    assert rig.node.wall == rig.now.wall - 5000


def test_a_wall_clock_that_jumps_neither_loses_jobs_nor_makes_a_storm() -> None:
    rig = Rig()
    job = rig.add("RETRY", 60, "TTL", 300)
    rig.ask("GETJOB", "FROM", "q")

    for jump in (10_000_000, -20_000_000):
        rig.now.wall += jump
        rig.advance(20_000)
        assert job.id in rig.node.jobs
        assert rig.ask("QLEN", "q") == 0


@pytest.mark.timeout(60)
def test_very_much_that_is_due_is_done_in_several_turns() -> None:
    rig = Rig()
    for number in range(rig.node.knobs.due_per_tick + 1):
        rig.machine.request(
            rig.client, [b"ADDJOB", b"q", b"%d" % number, b"0", b"TTL", b"1"], rig.now
        )
    later = Now(rig.now.mono + 1008, rig.now.wall + 1008)

    rig.machine.tick(later)
    assert len(rig.node.jobs) == 1
    assert rig.machine.deadline() <= later.mono
    rig.machine.tick(later)
    assert rig.node.jobs == {}


# The outbox.


def test_what_was_taken_is_not_taken_again() -> None:
    rig = Rig()
    rig.request("PING")

    assert not rig.machine.take()
    assert not rig.machine.take().replies


@pytest.mark.parametrize(
    "act",
    [
        lambda rig: rig.machine.request(rig.client, [b"PING"], rig.now),
        lambda rig: rig.machine.request(rig.client, [b"QUIT"], rig.now),
        lambda rig: rig.machine.request(rig.client, [b"CLUSTER", b"SAVECONFIG"], rig.now),
        lambda rig: rig.machine.message(1, Frame(N2, 7711, MYSELF, Ping()), rig.now),
    ],
)
def test_an_outbox_with_anything_in_it_is_not_empty(act: Callable[[Rig], object]) -> None:
    rig = Rig(peers=1)
    assert not rig.machine.take()

    act(rig)

    assert rig.machine.take()


def test_many_inputs_make_one_outbox() -> None:
    rig = Rig(peers=1)
    for words in ([b"PING"], [b"QLEN", b"q"], [b"FASTACK", JOB]):
        rig.machine.request(rig.client, words, rig.now)

    out = rig.machine.take()

    assert [reply for _, reply in out.replies] == [Status(b"PONG"), 0, 0]
    assert [message for _, message in out.messages] == [DelJob(JOB)]


def test_the_same_inputs_lead_to_the_same_outputs() -> None:
    def run() -> list[tuple[ClientId, object]]:
        rig = Rig(peers=2, seed=42)
        for number in range(30):
            rig.request("ADDJOB", f"q{number % 3}", number, 0, "REPLICATE", number % 2 + 1)
            rig.client = rig.connect()
            rig.message(N2, GotJob(next(iter(rig.node.jobs))))
            rig.advance(50)
        return [(client.id, reply) for out in rig.outboxes for client, reply in out.replies]

    assert run() == run()


@pytest.mark.parametrize("words", [[b"PING"], [b"qlen", b"q"], [b"INFO"], [b"NOSUCH"]])
def test_a_look_is_known_beforehand(words: list[bytes]) -> None:
    assert Rig().machine.is_read_only(words)


@pytest.mark.parametrize("words", [[b"ADDJOB", b"q", b"x", b"0"], [b"getjob", b"FROM", b"q"]])
def test_so_is_what_may_change_jobs(words: list[bytes]) -> None:
    assert not Rig().machine.is_read_only(words)

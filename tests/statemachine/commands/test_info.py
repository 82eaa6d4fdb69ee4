import pytest

from disque_trio.statemachine.base import FORMAT
from disque_trio.statemachine.chores import Connection, JournalVitals, Vitals
from disque_trio.statemachine.commands import info
from disque_trio.statemachine.commands.table import BY_NAME
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.form import FORM
from disque_trio.statemachine.resident_size import measured
from disque_trio.statemachine.stats import Facts
from tests.rig import Rig
from tests.statemachine.commands.informed import fields_of, text_of
from tests.statemachine.commands.refused import Refused

EVERY_SECTION = [
    "Server",
    "Clients",
    "Memory",
    "Jobs",
    "Queues",
    "Persistence",
    "Cluster",
    "Stats",
    "CPU",
    "Commandstats",
    "Tally",
]


def titles(text: str) -> list[str]:
    return [line.removeprefix("# ") for line in text.splitlines() if line.startswith("#")]


# Sections.


def test_the_default_is_everything_but_the_long_ones() -> None:
    rig = Rig()

    assert titles(text_of(rig)) == EVERY_SECTION[:-2]
    assert titles(text_of(rig, "DEFAULT")) == EVERY_SECTION[:-2]


def test_all_is_everything() -> None:
    assert titles(text_of(Rig(), "all")) == EVERY_SECTION


def test_history_is_what_the_driver_has_kept_and_only_shown_alone() -> None:
    vitals = Vitals(history=lambda: [("history_since", "1790000000")])

    assert fields_of(Rig(), "history", vitals) == {"history_since": "1790000000"}
    assert titles(text_of(Rig(), "history")) == ["History"]
    assert "History" not in titles(text_of(Rig(), "all"))


@pytest.mark.parametrize("title", EVERY_SECTION)
def test_a_section_can_be_asked_for_alone(title: str) -> None:
    assert titles(text_of(Rig(), title.upper())) == [title]


def test_sections_are_separated_by_empty_lines() -> None:
    text = text_of(Rig())

    assert text.startswith("# Server\r\ndisque_version:0\r\n")
    assert "\r\n\r\n# Queues\r\nregistered_queues:0\r\n\r\n# Persistence\r\n" in text
    assert text.endswith("standstill_ms:0\r\n")


def test_an_unknown_section_is_empty() -> None:
    assert Rig().ask("INFO", "weather") == b""


def test_two_sections_are_too_many() -> None:
    assert Rig().ask("INFO", "server", "clients") == Refused(b"ERR syntax error")


# Fields.


def test_server_tells_what_runs() -> None:
    rig = Rig()
    rig.node.facts = Facts(
        port=7712,
        pid=4711,
        executable="/usr/bin/disque-trio",
        config_file="/etc/disque.conf",
        os="Linux 6.1 x86_64",
        multiplexing="epoll",
        runtime="CPython 3.12.1",
        run_id="f" * 40,
        version="1.2.3",
    )
    rig.advance(90_061_999)

    assert list(fields_of(rig, "server").items()) == [
        ("disque_version", "1.2.3"),
        ("os", "Linux 6.1 x86_64"),
        ("arch_bits", "64"),
        ("multiplexing_api", "epoll"),
        ("process_id", "4711"),
        ("run_id", "f" * 40),
        ("tcp_port", "7712"),
        ("uptime_in_milliseconds", "90061999"),
        ("uptime_in_seconds", "90061"),
        ("uptime_in_days", "1"),
        ("hz", "10"),
        ("executable", "/usr/bin/disque-trio"),
        ("config_file", "/etc/disque.conf"),
        ("python_version", "CPython 3.12.1"),
        ("disque_form", FORM),
        ("format", str(FORMAT)),
        (
            "features",
            (
                "qstat-counts,purge,unblock,waitjob,withmeta,tokens,release,tied,priority,unique,"
                "dead-letters,nack-delay,backoff,show-key,cancel-key,qscan-stat,"
                "waitjob-nohang,release-delay,held,sync,unqueued,enqueue-queue,"
                "long-periods,long-waits,qstat-unqueued,"
                "sync-auto,last-error,jscan-filters,ended-jobs,results,queue-limits,groups,"
                "show-key-local"
            ),
        ),
    ]


def test_features_are_those_that_the_format_of_the_file_has_a_place_for() -> None:
    rig = Rig(config=Config(appendonly=True, aof_format="disque"))

    features = dict(fields_of(rig, "server"))["features"].split(",")

    assert not {"priority", "unique", "dead-letters", "backoff"}.intersection(features)
    assert "nack-delay" in features


def test_clients_shows_the_largest_buffers_and_the_blocked_clients() -> None:
    rig = Rig(peers=1)
    rig.request("GETJOB", "FROM", "q", client=rig.connect())
    rig.request("ADDJOB", "q", "body", 0, "REPLICATE", 2, client=rig.connect())
    connections = (
        Connection(input_bytes=10, output_chunks=1),
        Connection(input_bytes=500, output_chunks=0),
        Connection(input_bytes=0, output_chunks=7),
    )

    vitals = Vitals(busy_connections=lambda: connections)

    assert list(fields_of(rig, "clients", vitals).items()) == [
        ("connected_clients", "3"),
        ("client_longest_output_list", "7"),
        ("client_biggest_input_buf", "500"),
        ("blocked_clients", "2"),
    ]


def test_memory_is_what_the_process_takes_by_itself_and_what_it_holds() -> None:
    rig = Rig(config=Config(maxmemory=100_000_000))
    rig.node.facts.process_bytes = 40_000_000
    rig.node.facts.traffic.unread = 7_000_000
    rig.node.facts.traffic.unsent = 3_000_000
    held = rig.node.memory.held
    rig.add(body="b" * 2_000_000)
    vitals = Vitals(rss_bytes=104_857_600, peak_rss_bytes=1_610_612_736)

    fields = fields_of(rig, "memory", vitals)

    used = int(fields["used_memory"])
    assert 52_000_000 < used < 52_010_000
    assert fields["used_memory_human"] == "49.60M"
    assert fields["used_memory_rss"] == "104857600"
    assert fields["used_memory_process"] == "40000000"
    assert int(fields["used_memory_jobs_and_queues"]) == rig.node.memory.held > held + 2_000_000
    assert fields["maxmemory"] == "100000000"
    assert fields["memory_level"] == "0"
    assert fields["memory_limited_by"] == "account"
    assert fields["evicted_jobs"] == "0"
    assert fields["mem_fragmentation_ratio"] == "2.02"
    assert fields["mem_allocator"] == "pymalloc"


def test_a_process_that_has_grown_beyond_its_account_is_told_of() -> None:
    rig = Rig(config=Config(maxmemory=100_000_000))
    measured(rig.node, 125_000_000)

    fields = fields_of(rig, "memory")

    assert fields["memory_level"] == "2"
    assert fields["memory_limited_by"] == "resident-size"


def test_the_peak_of_memory_is_never_below_what_is_used() -> None:
    rig = Rig()
    job = rig.add(body="b" * 2_000_000)
    assert fields_of(rig, "memory")["used_memory_peak"] == fields_of(rig, "memory")["used_memory"]

    rig.request("DELJOB", job.id)
    rig.replies()

    fields = fields_of(rig, "memory")
    assert int(fields["used_memory"]) < 100_000
    assert int(fields["used_memory_peak"]) > 2_000_000
    assert fields["used_memory_peak_human"] == "1.91M"


def test_jobs_and_queues_are_counted_whatever_their_state() -> None:
    rig = Rig()
    rig.add(queue="one")
    rig.add("DELAY", 10, queue="two")
    rig.ask("PAUSE", "three", "in")

    assert fields_of(rig, "jobs") == {
        "registered_jobs": "2",
        "dead_jobs": "0",
        "delayed_jobs": "1",
        "delayed_jobs_by_queue": "two=1",
        "delayed_jobs_first_due_ms": "10000",
        "leased_jobs": "0",
        "unqueued_jobs": "1",
        "restored_jobs": "0",
        "expired_while_down": "0",
        "under_replicated_jobs": "0",
        "repaired_copies": "0",
    }
    assert fields_of(rig, "queues") == {"registered_queues": str(len(rig.node.queues))}


def test_persistence_is_off() -> None:
    assert list(fields_of(Rig(), "persistence").items()) == [
        ("loading", "0"),
        ("aof_enabled", "0"),
        ("aof_state", "off"),
        ("aof_rewrite_in_progress", "0"),
        ("aof_rewrite_scheduled", "0"),
        ("aof_last_rewrite_time_sec", "-1"),
        ("aof_current_rewrite_time_sec", "-1"),
        ("aof_last_bgrewrite_status", "ok"),
        ("aof_last_write_status", "ok"),
    ]


def test_persistence_shows_the_journal() -> None:
    journal = JournalVitals(
        state="on", is_rewriting=True, last_rewrite_ok=False, last_write_ok=False, size=200,
        base_size=100, unwritten=7, rewrite_unwritten=8, is_syncing=True, delayed_syncs=9,
    )  # fmt: skip

    shown = fields_of(Rig(), "persistence", Vitals(journal=journal))

    assert shown["aof_state"] == "on"
    assert shown["aof_last_bgrewrite_status"] == shown["aof_last_write_status"] == "err"
    assert list(shown.items())[-7:] == [
        ("aof_current_size", "200"),
        ("aof_base_size", "100"),
        ("aof_pending_rewrite", "0"),
        ("aof_buffer_length", "7"),
        ("aof_rewrite_buffer_length", "8"),
        ("aof_pending_bio_fsync", "1"),
        ("aof_delayed_fsync", "9"),
    ]


def test_persistence_shows_how_far_loading_is() -> None:
    journal = JournalVitals(
        loading_since=1_800_000_000, loading_bytes=400, loaded_bytes=100, loading_left_s=3
    )

    rig = Rig()
    rig.machine.load([], rig.now)

    shown = fields_of(rig, "persistence", Vitals(journal=journal))

    assert shown["loading"] == "1"
    assert list(shown.items())[-5:] == [
        ("loading_start_time", "1800000000"),
        ("loading_total_bytes", "400"),
        ("loading_loaded_bytes", "100"),
        ("loading_loaded_perc", "25.00"),
        ("loading_eta_seconds", "3"),
    ]


def test_stats_counts_what_came_and_went() -> None:
    rig = Rig()
    rig.node.facts.traffic.received = 1000
    rig.node.facts.traffic.sent = 2000
    rig.node.facts.traffic.slow_readers_cut_off = 3
    rig.node.facts.traffic.senders_cut_off = 4
    rig.ask("CONFIG", "SET", "maxclients", 2)
    other = rig.connect()
    assert rig.machine.connect(b"127.0.0.1:50001", rig.now) is None
    rig.machine.refuse(other, b"ERR Protocol error: expected '$', got 'x'", rig.now)
    rig.machine.dropped(0, 7)
    rig.node.stats.frames_refused = {"unknown sender": 2, "bad length": 1}
    rig.machine.turned_away("tls")
    rig.machine.turned_away("cluster-secret", is_link=True)

    assert list(fields_of(rig, "stats").items()) == [
        ("total_connections_received", "2"),
        ("total_commands_processed", "2"),
        ("instantaneous_ops_per_sec", "0"),
        ("total_net_input_bytes", "1000"),
        ("total_net_output_bytes", "2000"),
        ("instantaneous_input_kbps", "0.00"),
        ("instantaneous_output_kbps", "0.00"),
        ("rejected_connections", "2"),
        ("client_output_buffer_limit_disconnections", "3"),
        ("client_query_buffer_limit_disconnections", "4"),
        ("latest_fork_usec", "0"),
        ("protocol_errors", "1"),
        ("wrong_passwords", "0"),
        ("refused_requests", "0"),
        ("bus_frames_dropped", "7"),
        ("bus_frames_refused", "3"),
        ("bus_frames_refused_by_reason", "unknown sender=2,bad length=1"),
        ("rejected_connections_by_reason", "maxclients=1,tls=1"),
        ("bus_links_refused", "1"),
        ("bus_links_refused_by_reason", "cluster-secret=1"),
    ]


def test_cpu_is_told_in_hundredths_of_a_second() -> None:
    vitals = Vitals(
        cpu_system=1.5, cpu_user=20.126, cpu_system_children=0.25, cpu_user_children=3.0
    )

    assert list(fields_of(Rig(), "cpu", vitals).items()) == [
        ("used_cpu_sys", "1.50"),
        ("used_cpu_user", "20.13"),
        ("used_cpu_sys_children", "0.25"),
        ("used_cpu_user_children", "3.00"),
        ("standstill_ms", "0"),
    ]


def test_commandstats_has_a_line_for_each_command_that_was_called() -> None:
    rig = Rig()
    for usec in (3, 4, 3):
        rig.machine.timed(BY_NAME["ping"], [b"PING"], usec * 1000)
    rig.machine.timed(BY_NAME["addjob"], [b"ADDJOB"], 0)

    assert list(fields_of(rig, "commandstats").items()) == [
        ("cmdstat_ping", "calls=3,usec=10,usec_per_call=3.33"),
        ("cmdstat_addjob", "calls=1,usec=0,usec_per_call=0.00"),
    ]


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1.00K"),
        (1_048_575, "1024.00K"),
        (1_048_576, "1.00M"),
        (1 << 30, "1.00G"),
        (5 << 39, "2.50T"),
        (1 << 50, "1.00P"),
        (1 << 62, "4096.00P"),
    ],
)
def test_sizes_are_told_in_the_largest_unit_that_they_fill(size: int, shown: str) -> None:
    assert info.human(size) == shown


def test_cpu_has_the_longest_standstill() -> None:
    vitals = Vitals(standstill=812, standstill_ago=61_999)

    told = fields_of(Rig(), "cpu", vitals)

    assert (told["standstill_ms"], told["standstill_seconds_ago"]) == ("812", "61")

"""For each option of a command about jobs, each directive, and each setting of a worker: the
properties that fail if it is ignored (docs/guarantees.md), or why none does.

A test fails if one of them has no entry here. `tests/sim/promises` ignores one at a time, and shows
that a property of its entry fails in a plan, or the test that the entry names (`make promises`).
"""

from typing import Final

import attrs

from disque_trio.statemachine.joboptions import CARRIED


@attrs.frozen
class Judged:
    """If the option is ignored, one of these properties fails."""

    properties: tuple[str, ...]


@attrs.frozen
class Elsewhere:
    """The simulator cannot violate a property. If the option is ignored, this test fails."""

    test: str
    """The test's pytest id."""


@attrs.frozen
class Nothing:
    """No test can observe whether the option is ignored."""

    why: str


Row = Judged | Elsewhere | Nothing


def _judged(*properties: str) -> Judged:
    return Judged(properties)


def _scanned(**tests: str) -> dict[str, Row]:
    """Return entries by option, from the names of tests without `test_`: the observers of the
    simulator scan without filters."""
    file = "tests/statemachine/commands/test_scans.py"
    return {name: Elsewhere(f"{file}::test_{test}") for name, test in tests.items()}


OPTIONS: Final[dict[str, dict[str, Row]]] = {
    "addjob": {
        **{each.text: _judged("S16") for each in CARRIED},
        "REPLICATE": _judged("S16"),
        "SYNC": _judged("L13"),
        "DELAY": _judged("S6", "S16"),
        "RETRY": _judged("S16", "L2", "L8"),
        "TTL": _judged("S16"),
        "MAXLEN": _judged("S20"),
        "LIMIT": _judged("S26", "S16"),
        "KEEP": _judged("S16", "S24"),
        "IFEXISTS": _judged("S25", "S29"),
        "BACKOFF": _judged("S32", "S16"),
        "ASYNC": _judged("L13"),
    },
    "ackjob": {"RESULT": _judged("S36"), "KEEP": _judged("S36")},
    "getjob": {
        "NOHANG": _judged("L13"),
        "WITHCOUNTERS": _judged("S19"),
        "WITHMETA": _judged("S12"),
        "TIED": _judged("S23"),
        "HELD": _judged("S23"),
        "TIMEOUT": _judged("L13"),
        "COUNT": _judged("S19"),
    },
    "nack": {"DELAY": _judged("S19"), "DEAD": _judged("S19"), "ERROR": _judged("S22")},
    "release": {"DELAY": _judged("S19")},
    "enqueue": {"COUNT": _judged("S19")},
    "waitjob": {
        "NOHANG": _judged("L13"),
        "TIMEOUT": _judged("L13"),
        "WITHRESULT": _judged("S36"),
    },
    "pause": {"BCAST": _judged("S6")},
    "purge": {"DEAD": _judged("S23"), "BCAST": _judged("S19")},
    "redrive": {"COUNT": _judged("S19")},
    "queue": {
        "CONCURRENCY": _judged("S38"),
        "RATE": _judged("S38"),
        "PER": _judged("S38"),
        "BURST": Elsewhere(
            "tests/statemachine/test_keeping.py::test_a_pause_fills_the_bucket_up_to_the_burst"
        ),
        "LOOSE": _judged("L15"),
        "GROUP-CONCURRENCY": _judged("S38"),
        "GROUP-RATE": _judged("S38"),
        "GROUP-PER": _judged("S38"),
        "GROUP-BURST": Elsewhere(
            "tests/statemachine/test_group_limits.py::"
            "test_a_group_that_comes_back_has_no_more_than_its_burst"
        ),
    },
    "qstat": {
        "UNQUEUED": Elsewhere(
            "tests/statemachine/commands/test_queues.py::"
            "test_a_queue_that_has_delayed_jobs_only_has_numbers_if_they_are_asked_for"
        )
    },
    "qscan": _scanned(
        COUNT="count_makes_other_pages",
        BUSYLOOP="all_can_be_had_at_once",
        MINLEN="queues_by_length",
        MAXLEN="queues_by_length",
        IMPORTRATE="queues_by_what_they_import",
        REPLY="each_queue_comes_with_its_figures",
    )
    | {
        "UNQUEUED": Elsewhere("tests/statemachine/test_delayed.py::test_info_and_qscan_tell_it_too")
    },
    "jscan": _scanned(
        COUNT="count_makes_other_pages",
        BUSYLOOP="all_can_be_had_at_once",
        QUEUE="jobs_by_queue_and_state",
        STATE="jobs_by_queue_and_state",
        GROUP="jobs_by_what_they_say",
        KEY="jobs_by_what_they_say",
        ERROR="jobs_by_what_they_say",
        BODY="jobs_by_what_they_say",
        OLDER="jobs_by_age",
        YOUNGER="jobs_by_age",
        REPLY="jobs_can_be_had_whole",
    ),
}
"""By command, then option."""

_NO_EFFECT: Final = Nothing("it is accepted for files of the original, and changes nothing")
_WHEN_SYNCED: Final = Nothing("of how long a sync takes, of which a simulated disk knows nothing")
_OF_TRACES: Final = Nothing("of the size of trace files, as `TraceFile` in tests/tracing")


def _elsewhere(file: str, **tests: str) -> dict[str, Row]:
    """Return entries by directive, written with underscores, from the names of tests in this file
    without `test_`."""
    return {
        name.replace("_", "-"): Elsewhere(f"tests/{file}::test_{test}")
        for name, test in tests.items()
    }


DIRECTIVES: Final[dict[str, Row]] = {
    **dict.fromkeys(
        ("databases", "watchdog-period", "hz", "activerehashing", "maxmemory-samples"), _NO_EFFECT
    ),
    **dict.fromkeys(("no-appendfsync-on-rewrite", "aof-rewrite-incremental-fsync"), _WHEN_SYNCED),
    **dict.fromkeys(("trace-file-sample", "trace-file-max-bytes", "trace-file-keep"), _OF_TRACES),
    **_elsewhere(
        "serving/test_server.py",
        pidfile="it_goes_to_the_background",
        daemonize="it_goes_to_the_background",
    ),
    **_elsewhere(
        "serving/test_config_file.py",
        dir="directories_count_from_the_one_before",
    ),
    **_elsewhere(
        "serving/test_processes_plan.py",
        workers="a_kernel_that_does_not_spread_connections_is_refused",
        cluster_config_file="what_cannot_be_shared_out_is_refused",
        cluster_announce_bus_port="each_announces_ports_of_its_own",
        trace_file="what_cannot_be_shared_out_is_refused",
    ),
    **_elsewhere(
        "serving/test_process.py",
        multiplexing_api="facts_name_the_process",
    ),
    **_elsewhere(
        "statemachine/commands/test_table.py",
        rename_command="a_renamed_command_answers_to_its_new_name_only",
    ),
    **_elsewhere(
        "statemachine/test_resident_size.py",
        spill_directory="bodies_go_to_disk_before_jobs_are_refused",
    ),
    **_elsewhere(
        "observe/test_topics.py",
        node_name="a_node_has_the_same_name_in_each_console_and_in_the_table_of_the_others",
        cluster_name="a_node_has_the_same_name_in_each_console_and_in_the_table_of_the_others",
    ),
    **_elsewhere(
        "net/test_admission.py",
        requirepass="unauthenticated_clients_of_one_address_are_limited",
        cluster_secret="a_node_with_another_secret_or_none_stays_outside",
        protected_mode="a_client_from_elsewhere_reads_why_it_is_refused",
        unauthenticated_clients="unauthenticated_clients_of_one_address_are_limited",
    ),
    **_elsewhere(
        "serving/test_secret_files.py",
        requirepass_file="the_text_of_the_file_is_the_secret",
        cluster_secret_file="a_cluster_secret_may_have_a_successor",
    ),
    **_elsewhere(
        "net/test_listeners.py",
        unixsocket="a_file_that_is_no_socket_is_left_alone",
        port="the_bus_listens_ten_thousand_above",
        bind="names_are_addresses_too",
    ),
    **_elsewhere(
        "serving/test_obeyed.py",
        tcp_keepalive="clients_are_probed_after_so_many_seconds",
        appendfilename="a_journal_of_any_name_is_not_left_behind",
        web_port="each_web_port_has_cookies_of_its_own",
        unixsocketperm="the_socket_file_has_a_mode",
        logfile="lines_of_the_log_go_to_a_file",
        tcp_backlog="so_many_connections_may_wait",
        syslog_enabled="syslog_gets_them_by_name_and_facility",
        syslog_ident="syslog_gets_them_by_name_and_facility",
        syslog_facility="syslog_gets_them_by_name_and_facility",
        web_tls="cookies_of_a_web_port_with_tls_are_for_tls_alone",
        web_reader_password_file="a_readers_password_may_stand_in_a_file",
        web_users_file="users_may_stand_in_a_file",
        proto_max_bulk_len="a_bulk_may_have_so_many_bytes",
        auth_timeout="an_unauthenticated_client_has_so_many_seconds",
        auto_aof_rewrite_percentage="a_journal_that_has_grown_little_is_not_rewritten",
    ),
    **_elsewhere(
        "node/test_node.py",
        timeout="idle_clients_are_closed",
        maxclients="one_client_too_many_is_told_so",
        client_output_buffer_limit="a_hard_limit_cuts_off_a_client_that_does_not_read",
        client_query_buffer_limit="an_endless_request_is_cut_off",
    ),
    **_elsewhere(
        "net/test_hub_bus.py",
        bus_send_buffer="a_peer_that_never_reads_costs_bounded_memory",
    ),
    **_elsewhere(
        "net/test_tls.py",
        tls_port="a_client_with_a_certificate_is_answered",
        tls_cluster_ca_cert_file="a_clients_certificate_opens_no_bus_that_has_an_authority_of_its_own",
        tls_auth_clients="certificates_may_be_left_to_the_clients",
        tls_cluster="a_node_of_no_such_authority_stays_outside",
    ),
    **_elsewhere(
        "net/test_tls_settings.py",
        tls_cert_file="certificates_that_do_not_do_change_nothing",
        tls_key_file="a_key_of_another_certificate_is_refused",
        tls_key_file_pass="a_locked_key_needs_its_password",
        tls_ca_cert_file="certificates_are_read_anew",
    ),
    **_elsewhere(
        "web/test_security.py",
        web_read_only="a_console_that_only_reads_does_so_for_everybody",
        web_reader_password="a_reader_sees_and_changes_nothing",
    ),
    **_elsewhere("web/test_users.py", web_users="a_user_logs_in_by_name"),
    **_elsewhere("web/test_audit.py", web_audit_file="operations_outlive_a_restart"),
    **_elsewhere(
        "web/test_site.py",
        web_names="a_name_that_is_not_ours_leads_nowhere",
        web_metrics_open="metrics_may_be_open",
    ),
    **_elsewhere(
        "statemachine/test_announcing.py",
        cluster_announce_ip="what_is_announced_can_be_changed",
        cluster_announce_port="what_is_announced_can_be_changed",
    ),
    **_elsewhere(
        "statemachine/test_hostnames.py",
        cluster_seeds="seeds_can_be_changed",
    ),
    **_elsewhere(
        "serving/test_logs.py",
        loglevel="levels_are_the_original_s",
        log_format="machines_get_json",
    ),
    **_elsewhere(
        "statemachine/commands/test_slowlog.py",
        slowlog_log_slower_than="a_negative_threshold_remembers_nothing",
        slowlog_max_len="the_newest_entries_come_first_and_the_oldest_go",
    ),
    **_elsewhere(
        "statemachine/commands/test_latency.py",
        latency_monitor_threshold="a_threshold_set_at_runtime_counts_at_once",
    ),
    **_elsewhere(
        "statemachine/test_endings.py",
        ended_jobs="the_limit_can_be_changed_and_0_turns_it_off",
    ),
    **_elsewhere(
        "statemachine/test_results.py",
        result_max_bytes="wrong_options_acknowledge_nothing",
    ),
    **_elsewhere(
        "statemachine/test_jobtraces.py",
        trace_sample="the_size_of_the_sample_can_be_changed",
    ),
    **_elsewhere(
        "storage/test_journal_rewriting.py",
        auto_aof_rewrite_min_size="a_file_that_has_doubled_is_rewritten",
    ),
    **_elsewhere(
        "storage/test_journal_kills.py",
        aof_queues="a_delivery_costs_a_short_record_and_a_file_without_it_none",
    ),
    **_elsewhere(
        "storage/test_journal_start.py",
        aof_load_truncated="a_torn_end_may_be_an_error",
        aof_format="a_node_does_not_start_with_jobs_for_which_its_format_has_no_place",
        aof_enqueue_jobs_once="after_a_controlled_restart_jobs_are_queued_and_the_setting_is_off",
    ),
    "maxmemory": _judged("S34"),
    "maxmemory-policy": _judged("S2"),
    "cluster-node-timeout": _judged("L14"),
    "delivery-lease": _judged("L8", "S11"),
    "default-sync": _judged("L13"),
    "replica-zone": _judged("S30", "S31"),
    "appendfsync": _judged("S15"),
    "appendonly": _judged("S15"),
    "default-replicate": _judged("S16"),
    "replica-repair-after": _judged("L7"),
    "tied-grace": _judged("S23"),
    "dead-letter-ttl": _judged("S26"),
}


def _engine(file: str, test: str) -> Row:
    return Elsewhere(f"tests/worker/engine/{file}.py::test_{test}")


_ENDS: Final = _engine("test_nodes", "its_time_is_bounded")
_WHAT_IT_DOES: Final = Nothing("a worker without it takes no jobs")
WORKER: Final[dict[str, Row]] = {
    "nodes": _WHAT_IT_DOES,
    "queues": _WHAT_IT_DOES,
    "name": _WHAT_IT_DOES,
    "concurrency": _engine("test_beginning", "one_of_many_jobs_is_named_before_it_starts"),
    "has_ties": _engine(
        "test_beginning", "jobs_are_asked_for_as_held_where_the_node_can_and_ties_are_wanted"
    ),
    "is_plain": Nothing("it is for nodes of the original; W13 and W14 judge what is left to it"),
    "is_strict": _judged("W12"),
    "is_burst": _engine("test_bursts", "a_worker_that_runs_what_is_there_stops_when_nothing_is"),
    "prefetch_window": _judged("W5"),
    "drain": _ENDS,
    "abort": _ENDS,
    "prefetch": _engine("test_pace", "as_many_are_held_as_end_in_a_quarter_of_a_second"),
    "limit": _engine("test_leases", "a_run_over_its_limit_is_cancelled_and_goes_on_to_be_renewed"),
    "weight": _engine("test_order", "queues_share_by_their_weights"),
}
"""The fields of `Settings` and `Queue` of the worker library's engine."""

from typing import Any

import attrs
import pytest

from disque_trio.observe.client import ON_PASSWORD
from disque_trio.observe.cluster import NodeFacts, PeerLine
from disque_trio.observe.finding import Finding, Level
from disque_trio.observe.node_checks import judge, unasked
from tests.observe.clusters import cluster, line, node, said, the_one


def test_of_a_cluster_that_is_well_nothing_is_said() -> None:
    assert said(cluster()) == []


def test_one_delayed_job_is_told_in_the_singular() -> None:
    delayed = the_one(cluster(info={"delayed_jobs": "1"}))

    assert delayed.what.startswith("1 job is delayed")


def test_delayed_jobs_of_all_nodes_are_one_finding() -> None:
    nodes = cluster(info={"delayed_jobs": "4", "delayed_jobs_by_queue": "mails=4"})
    info = {"delayed_jobs": "2", "delayed_jobs_by_queue": "mails=1,sms=1"}
    nodes[1] = attrs.evolve(nodes[1], info=nodes[1].info | info)

    finding = the_one(nodes)

    assert finding.where == "the cluster"
    assert finding.what.startswith("at most 6 jobs are delayed")
    assert ": 5 of mails, 1 of sms;" in finding.what


def test_jobs_that_workers_do_not_acknowledge_in_time_are_told_while_it_goes_on() -> None:
    info = {
        "jobs_requeued_lately": "12",
        "jobs_delivered_meanwhile": "100",
        "jobs_requeued_since": "1000",
        "jobs_requeued_last": "1900",
    }

    finding = the_one(cluster(info=info, now_s=1930.0))

    assert (finding.kind, finding.since) == ("redelivered", 1000.0)
    told = "without an acknowledgement, the last 30 s ago; meanwhile 100 jobs were delivered"
    assert told in finding.what
    assert "or the node that had these jobs was lost or restarted" in finding.advice
    assert said(cluster(info=info, now_s=3000.0)) == []
    assert said(cluster(info=info | {"jobs_delivered_meanwhile": "1000"}, now_s=1930.0)) == []


def test_jobs_that_back_off_are_no_warning() -> None:
    finding = the_one(cluster(info={"delayed_jobs": "4"}))

    assert finding.level is Level.NOTE
    assert "4 jobs are delayed" in finding.what
    due = {"delayed_jobs_by_queue": "mails=3,a=1", "delayed_jobs_first_due_ms": "600000"}
    later = the_one(cluster(info={"delayed_jobs": "4"} | due))
    assert later.what == finding.what + ": 3 of mails, 1 of a; the first is enqueued in 10 min"
    assert "JSCAN STATE backing-off" in finding.advice


@pytest.mark.parametrize(
    ("field", "value", "level", "word"),
    [
        ("connected_clients", "950", Level.WARNING, "950 of 1,000 clients"),
        ("rejected_connections_by_reason", "maxclients=3", Level.WARNING, "3 clients were refused"),
        (
            "rejected_connections_by_reason",
            "tls=1",
            Level.WARNING,
            "1 client was refused in the TLS",
        ),
        ("bus_links_refused_by_reason", "cluster-secret=3", Level.WARNING, "prove the cluster's"),
        ("bus_links_refused_by_reason", "by the weather=3", Level.WARNING, "(by the weather)"),
        ("bus_frames_dropped", "7", Level.WARNING, "7 bus frames"),
        ("bus_frames_refused", "7", Level.NOTE, "bus input was refused"),
        ("memory_level", "1", Level.WARNING, "leaves new jobs to other nodes"),
        ("memory_level", "2", Level.PROBLEM, "refuses new jobs"),
        ("aof_enabled", "0", Level.NOTE, "memory only"),
        ("aof_file_status", "removed", Level.PROBLEM, "was removed by another process"),
        ("aof_file_status", "left unsynced", Level.PROBLEM, "could not be synced at its start"),
        ("aof_last_write_status", "err", Level.PROBLEM, "cannot be written"),
        ("aof_last_bgrewrite_status", "err", Level.WARNING, "rewrite"),
        ("aof_delayed_fsync", "4", Level.NOTE, "4 syncs"),
        ("under_replicated_jobs", "12", Level.WARNING, "12 jobs have fewer holders"),
        ("disque_version", "1.1", Level.WARNING, "different versions: 1.0, 1.1"),
    ],
)
def test_a_field_of_info_that_is_amiss_is_told(
    field: str, value: str, level: Level, word: str
) -> None:
    finding = the_one(cluster(info={field: value}))

    assert finding.level is level
    assert word in finding.what
    assert finding.advice or level is Level.NOTE


def test_an_original_server_refuses_clients_for_one_reason() -> None:
    nodes = cluster()
    info = {"disque_version": "1.0-rc1", "aof_enabled": "1", "rejected_connections": "3"}
    nodes[1] = attrs.evolve(nodes[1], info=info)

    assert "3 clients were refused because maxclients was reached" in {
        what for _, what in said(nodes)
    }


def test_refusals_are_told_by_reason_with_what_to_do() -> None:
    counts = {"rejected_connections": "5", "rejected_connections_by_reason": "maxclients=2,tls=3"}

    found = judge(cluster(info=counts))

    assert [finding.what for finding in found] == [
        "2 clients were refused because maxclients was reached",
        "3 clients were refused in the TLS handshake",
    ]
    assert "maxclients" not in found[1].advice


def test_a_node_that_loads_is_not_told_of_as_gone() -> None:
    nodes = cluster()
    info = {"loading": "1", "loading_loaded_perc": "42.00", "loading_eta_seconds": "12"}
    nodes[2] = attrs.evolve(node("n3", info=info), config={})
    for number in (0, 1):
        peers = [
            p if p.id != "n3" else line("n3", "fail", is_connected=False)
            for p in nodes[number].peers
        ]
        nodes[number] = attrs.evolve(nodes[number], peers=tuple(peers))

    finding = the_one(nodes)

    assert (finding.level, finding.where) == (Level.WARNING, "n3 (10.0.0.1:7713)")
    assert "42.00 % loaded, about 12 s left" in finding.what
    assert finding.advice.startswith("wait")
    restoring = {name: told for name, told in nodes[2].info.items() if "loading_" not in name}
    nodes[2] = attrs.evolve(nodes[2], info=restoring)
    assert the_one(nodes).what == "it is loading its append-only file: 100 % loaded"


def test_repair_that_is_off_is_named_as_the_cause() -> None:
    config = {"replica-repair-after": "0", "bind": "127.0.0.1"}

    finding = the_one(cluster(info={"under_replicated_jobs": "1"}, config=config))

    assert "replica-repair-after" in finding.advice


def test_a_node_that_does_not_answer_is_a_problem() -> None:
    nodes = cluster()
    nodes[2] = NodeFacts(where="10.0.0.1:7713", id="n3", error="no answer in time", advice="look")

    assert said(nodes) == [(Level.PROBLEM, "no answer in time")]


def test_a_node_that_does_not_answer_and_is_suspected_is_told_once() -> None:
    nodes = cluster()
    nodes[0] = node("n1", line("n2"), line("n3", "fail?", is_connected=False))
    nodes[2] = NodeFacts(where="10.0.0.1:7713", id="n3", error="refused", advice="look")

    assert said(nodes) == [(Level.PROBLEM, "refused")]


@pytest.mark.parametrize("flags", [("leaving",), ("fail?", "leaving"), ("fail", "leaving")])
def test_a_node_that_was_leaving_and_has_stopped_is_to_be_forgotten(flags: tuple[str, ...]) -> None:
    nodes = cluster()
    nodes[2] = NodeFacts(where="10.0.0.1:7713", id="n3", error="refused", advice="start it")
    for number in (0, 1):
        peers = [
            p if p.id != "n3" else line("n3", *flags, is_connected=False)
            for p in nodes[number].peers
        ]
        nodes[number] = attrs.evolve(nodes[number], peers=tuple(peers))

    finding = the_one(nodes)

    assert (finding.level, finding.operation) == (Level.WARNING, "nodes forget")
    assert finding.what == "it was leaving, and does not answer"
    assert "CLUSTER FORGET n3 on every node" in finding.advice


def test_a_node_that_only_others_know_has_the_start_of_its_id_as_name() -> None:
    id = "2f6c91d0" + 32 * "a"
    gone = PeerLine(id, "10.0.0.1", 7719, frozenset(("fail",)), is_connected=False)
    nodes = [attrs.evolve(each, peers=(*each.peers, gone)) for each in cluster()]

    assert the_one(nodes).where == "2f6c91d0 (10.0.0.1:7719)"
    named = attrs.evolve(gone, name="mill-3")
    nodes = [attrs.evolve(each, peers=(*each.peers[:-1], named)) for each in nodes]
    assert the_one(nodes).where == "mill-3 (10.0.0.1:7719)"


def test_meets_without_an_answer_are_named() -> None:
    meets = {
        "unanswered_meets": "11",
        "unanswered_meet_address": "10.0.0.9:7711@17711",
        "unanswered_meet_others": "10.0.0.8:7711@17711,b.example:7711@17711",
        "unanswered_meet_seconds": "28",
    }

    finding = the_one(cluster(info=meets))

    assert finding.level is Level.WARNING
    assert finding.what == (
        "11 CLUSTER MEET without an answer: 10.0.0.9:7711@17711, 10.0.0.8:7711@17711, "
        "b.example:7711@17711 and 8 more, the first for 28 s: it does not answer"
    )


def test_a_bus_port_that_cannot_be_reached_is_a_problem() -> None:
    finding = the_one(cluster(bus_error="Connection refused"))

    assert finding.level is Level.PROBLEM
    assert "Connection refused" in finding.what


@pytest.mark.parametrize(
    ("bind", "protected", "is_told"),
    [
        ("127.0.0.1 ::1", "no", False),
        ("10.0.0.1", "no", True),
        ("", "no", True),
        ("10.0.0.1", "yes", False),
    ],
)
def test_clients_without_a_password_are_told_of(bind: str, protected: str, is_told: bool) -> None:
    config = {"bind": bind, "protected-mode": protected}

    assert bool(said(cluster(config=config))) == is_told
    assert said(cluster(config=config, has_password=True)) == []


@pytest.mark.parametrize(
    ("flags", "level", "word"),
    [
        (("fail",), Level.PROBLEM, "2 nodes report it as failed"),
        (("fail?",), Level.WARNING, "2 of 2 nodes suspect it"),
        (("noaddr",), Level.WARNING, "address of node n3 is unknown"),
        (("handshake",), Level.NOTE, "join"),
        (("leaving",), Level.NOTE, "leaving"),
    ],
)
def test_what_nodes_think_of_one_is_told_once(
    flags: tuple[str, ...], level: Level, word: str
) -> None:
    nodes = cluster()
    for number in (0, 1):
        peers = [p if p.id != "n3" else line("n3", *flags) for p in nodes[number].peers]
        nodes[number] = attrs.evolve(nodes[number], peers=tuple(peers))

    ((found, what),) = said(nodes)

    assert found is level
    assert word in what


def test_a_node_that_others_hold_for_failed_and_that_does_not_answer_is_told_once() -> None:
    nodes = cluster()
    for number in (0, 1):
        peers = [p if p.id != "n3" else line("n3", "fail") for p in nodes[number].peers]
        nodes[number] = attrs.evolve(nodes[number], peers=tuple(peers))
    nodes[2] = attrs.evolve(nodes[2], error="connection refused")

    finding = the_one(nodes)

    assert (finding.kind, finding.operation) == ("failed", "nodes forget")
    assert finding.what == "2 nodes report it as failed; connection refused"


def failed(**changes: Any) -> Finding:
    """The worst finding about a node that the two others hold for failed."""
    nodes = cluster()
    for number in (0, 1):
        peers = [p if p.id != "n3" else line("n3", "fail") for p in nodes[number].peers]
        nodes[number] = attrs.evolve(nodes[number], peers=tuple(peers))
    nodes[2] = attrs.evolve(nodes[2], **changes)
    return next(each for each in judge(nodes) if each.kind == "failed")


def test_a_failed_node_that_answers_here_is_not_to_be_forgotten() -> None:
    finding = failed()

    assert finding.advice.startswith("it runs and answers here, but the nodes cannot reach")
    assert "FORGET" not in finding.advice
    assert not finding.operation


def test_a_failed_node_that_refuses_to_answer_need_not_be_started_again() -> None:
    told = failed(error="its certificate has expired", advice="Renew it.", is_there=True)
    gone = failed(error="connection refused", advice="Check that a node is running")

    assert told.advice.startswith("it runs, but refuses to answer: Renew it. Or if it is gone")
    assert not told.operation
    assert gone.advice.startswith("start it again, or if it is gone for good: CLUSTER FORGET n3")


@pytest.mark.parametrize("has_password", [True, False])
def test_a_node_with_another_password_is_to_have_that_of_the_others(has_password: bool) -> None:
    nodes = cluster(has_password=has_password)
    nodes[2] = attrs.evolve(nodes[2], error="ERR invalid password", advice=ON_PASSWORD)

    advice = next(each.advice for each in judge(nodes) if each.kind == "silent")

    assert ("CONFIG SET requirepass" in advice) == has_password
    assert ("$DISQUE_AUTH" in advice) != has_password


def test_what_a_single_node_thinks_is_told_of_one() -> None:
    nodes = cluster()
    peers = [p if p.id != "n3" else line("n3", "fail") for p in nodes[0].peers]
    alone = [attrs.evolve(nodes[0], peers=tuple(peers))]

    assert any(what.startswith("1 node reports it as failed") for _, what in said(alone))


def test_a_node_that_another_has_no_link_to_is_told() -> None:
    nodes = cluster(peers=(line("n2", is_connected=False), line("n3")))

    finding = the_one(nodes)

    assert finding.where == "n1 (10.0.0.1:7711)"
    assert "no link to n2 (10.0.0.1:7712), which has one to it: a one-way cut" in finding.what


def test_a_cut_both_ways_is_told_of_both() -> None:
    nodes = cluster(peers=(line("n2", is_connected=False), line("n3")))
    nodes[1] = attrs.evolve(nodes[1], peers=(line("n1", is_connected=False), line("n3")))

    assert [what.endswith("one-way cut") for _, what in said(nodes)] == [False, False]


def test_a_member_that_one_does_not_know_is_told() -> None:
    finding = the_one(cluster(peers=(line("n3"),)))

    assert "does not know n2 (10.0.0.1:7712)" in finding.what
    assert "FORGET n2" in finding.advice


def test_a_clock_that_is_off_is_told_unless_the_answer_was_too_slow_to_know() -> None:
    assert "3.0 s ahead of" in the_one(cluster(skew_ms=3000.0)).what
    assert "2.0 h behind" in the_one(cluster(skew_ms=-7_200_000.0)).what
    assert said(cluster(skew_ms=3000.0, uncertainty_ms=2900.0)) == []


def test_when_all_clocks_agree_and_ours_does_not_it_is_ours() -> None:
    nodes = [attrs.evolve(each, skew_ms=5000.0) for each in cluster()]

    finding = the_one(nodes)

    assert (finding.level, finding.where) == (Level.NOTE, "this machine")


def test_original_servers_are_told_apart() -> None:
    nodes = cluster()
    nodes[1] = attrs.evolve(nodes[1], info={"disque_version": "1.0-rc1", "aof_enabled": "1"})

    assert said(nodes) == [(Level.NOTE, "original servers")]


def hearing(versions: str) -> list[NodeFacts]:
    """Three nodes of format 2, which know of these."""
    info = {"format": "2", "cluster_versions": versions}
    return [attrs.evolve(each, info={**each.info, **info}) for each in cluster()]


@pytest.mark.parametrize(
    ("heard", "named"),
    [
        ("1.0/2=2,1.0/1=1", "1.0/1, 1.0/2"),
        ("1.0/2=2,earlier=1", "1.0/2, an earlier one"),
        ("1.0/2=2,?/3=1", "1.0/2, ?/3"),
    ],
)
def test_builds_of_one_version_are_told_apart_also_where_only_other_nodes_have_heard_of_them(
    heard: str, named: str
) -> None:
    finding = the_one(hearing(heard))

    assert finding.level is Level.WARNING
    assert finding.what == f"nodes run different versions: {named}"


def test_an_original_server_that_does_not_answer_here_is_heard_of() -> None:
    nodes = hearing("1.0/2=3,original=1")

    assert said(nodes) == [(Level.NOTE, "original servers")]


@pytest.mark.parametrize("size", [1, 2])
def test_a_cluster_that_is_too_small_to_agree_is_told(size: int) -> None:
    names = ("n1", "n2")[:size]
    nodes = [node(name, *(line(each) for each in names if each != name)) for name in names]

    assert f"the cluster has {size} node" in the_one(nodes).what


@pytest.mark.parametrize(("yields", "who"), [("1", "This one"), ("0", "The other")])
def test_two_processes_with_one_node_id_are_a_problem(yields: str, who: str) -> None:
    info = {
        "duplicate_node_id": "1",
        "duplicate_node_id_address": "10.0.0.9:7711",
        "duplicate_node_id_yields": yields,
    }

    found = the_one(cluster(info=info))

    assert found.level is Level.PROBLEM
    assert "10.0.0.9:7711, has its node ID" in found.what
    assert f"{who} refuses to serve jobs" in found.what
    assert "remove its nodes.conf" in found.advice


def test_a_node_that_traces_everything_is_told() -> None:
    config = {"trace-file": "rows.jsonl", "trace-file-sample": "1"}
    nodes = cluster(config=config)

    assert the_one(nodes).what == "it traces every job to rows.jsonl"
    assert said(cluster(config=config | {"trace-file-sample": "100"})) == []


def test_jobs_that_had_expired_when_the_file_was_read_are_noted() -> None:
    expired = the_one(cluster(info={"expired_while_down": "21"}))

    assert (expired.level, expired.what.split(" when")[0]) == (Level.NOTE, "21 jobs had expired")


@pytest.mark.parametrize(
    ("stood", "level"), [("999", None), ("1000", Level.NOTE), ("3000", Level.WARNING)]
)
def test_a_loop_that_stood_still_is_told(stood: str, level: Level | None) -> None:
    info = {"standstill_ms": stood, "standstill_seconds_ago": "90"}

    found = judge(cluster(info=info, now_s=1000.0))

    assert [each.level for each in found] == ([] if level is None else [level])
    for each in found:
        assert "90 s ago" in each.what
        assert (each.kind, each.since) == ("standstill", 910.0)


def test_nodes_that_are_not_asked_are_told() -> None:
    nodes = cluster()
    assert list(unasked(nodes)) == []

    [finding] = unasked(nodes[:1])

    others = ", ".join(f"{each.id[:8]} ({each.where})" for each in nodes[1:])
    assert finding.what == f"{len(nodes) - 1} nodes were not queried: {others}"
    assert finding.level is Level.NOTE

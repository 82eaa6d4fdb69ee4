import time

import attrs
import pytest
import yaml

from disque_trio.client.address import Address, Cluster
from disque_trio.client.records import QueueLimits
from disque_trio.explain.zones import lacks
from disque_trio.observe.client import DeadlineClient, Silence
from disque_trio.observe.cluster import NodeFacts, view_of
from disque_trio.observe.finding import Level, grouped, warning
from disque_trio.observe.findings import as_rows, findings
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.queue_counts import QueueCounts
from disque_trio.observe.queue_stats import NOTHING, Stats, parsed
from disque_trio.observe.survey import KnownNode
from disque_trio.observe.top_k import MOST
from disque_trio.observe.workers import served
from disque_trio.worker.operating.admin import KnownWorker
from tests.observe import clusters
from tests.observe.clusters import cluster, line
from tests.observe.test_topics import REPORT
from tests.trees import HOME


def behind(**others: object) -> Stats:
    """Ten jobs, of which the next has waited for three minutes."""
    made = int(time.time() * 1000) - 180_000
    return NOTHING._replace(length=10, made=made)._replace(**others)  # type: ignore[arg-type]


def counts() -> QueueCounts:
    """Of a cluster of one node, which has told of its queues."""
    return QueueCounts(DeadlineClient(Cluster([Address()])), reported={str(Address()): None})


def told(counts: QueueCounts) -> list[str]:
    return [each["text"] for each in as_rows(findings([], counts), 1)]


@pytest.mark.parametrize(
    ("pause", "why"),
    [
        ("none", "the queue has no consumers"),
        ("out", "deliveries are paused: out at n1"),
        ("all", "deliveries are paused: all at n1"),
    ],
)
def test_a_queue_that_is_stuck_says_why_once(pause: str, why: str) -> None:
    seen = counts()
    seen._note("mail", "n1", behind(pause=pause), 0.0)

    assert told(seen) == [f'queue "mail": 10 jobs, the oldest 3 min old; {why}']


def test_a_queue_paused_in_input_is_resumed_before_workers_are_started() -> None:
    seen = counts()
    seen._note("mail", "n1", behind(), 0.0)
    seen._note("mail", "n2", NOTHING._replace(pause="in"), 0.0)

    (found,) = findings([], seen)

    assert found.what == (
        "is paused: in at n2; 10 jobs, the oldest 3 min old; the queue has no consumers"
    )
    assert found.advice.startswith("disque-trio queues resume ends the pause; start workers")
    assert found.operation == "queues resume"


@pytest.mark.parametrize("pause", ["in", "all", "out"])
def test_jobs_may_lack_copies_because_their_queue_is_paused_in_input(pause: str) -> None:
    now = int(time.time())
    info = {"under_replicated_jobs": "3", "last_refused_by_cause": f"NOREPL={now}"}
    seen = counts()
    seen._note("mail", "n2", NOTHING._replace(pause=pause), 0.0)

    found = {each.kind: each.advice for each in findings(cluster(info=info, now_s=now), seen)}

    is_named = 'accepts no copies of its jobs: disque-trio queues resume ends the pause of "mail"'
    assert [is_named in found[kind] for kind in ("under-replicated", "refused")] == [
        pause != "out"
    ] * 2


def test_a_queue_from_which_jobs_are_taken_has_workers_that_do_not_keep_up() -> None:
    seen = counts()
    seen._note("mail", "n1", behind(jobs_out=0), 0.0)
    seen._note("mail", "n1", behind(jobs_out=5), 1.0)

    assert told(seen) == ['queue "mail": 10 jobs, the oldest 3 min old; its workers do not keep up']


def test_a_queue_whose_workers_run_long_jobs_is_not_one_that_nobody_takes() -> None:
    seen = counts()
    seen._note("mail", "n1", behind(), 0.0)
    seen._note("mail", "n2", NOTHING._replace(leased=2), 0.0)

    assert told(seen) == ['queue "mail": 10 jobs, the oldest 3 min old; its workers do not keep up']


@pytest.mark.parametrize("is_counted", [False, True])
def test_what_is_known_of_some_nodes_only_is_no_reason_to_purge(*, is_counted: bool) -> None:
    other = Address(port=7712)
    seen = QueueCounts(DeadlineClient(Cluster([Address(), other])))
    seen._reported = {str(Address()): None, **({str(other): None} if is_counted else {})}
    seen.client.silent[str(other)] = Silence(0.0, "refused")
    seen._note("mail", str(Address()), behind(), 0.0)

    (found,) = findings([], seen)

    assert found.kind == "unattended"
    assert found.what == (
        "10 jobs, the oldest 3 min old; the queue has no consumers, according to 1 of 2 nodes"
    )
    assert "purge" not in found.advice
    assert not found.operation


@pytest.mark.parametrize(
    ("state", "age_s", "kind"),
    [("running", 1.0, "slow"), ("quiet", 1.0, "unattended"), ("running", 60.0, "unattended")],
)
def test_a_queue_of_a_worker_that_is_busy_elsewhere_is_not_one_that_nobody_takes(
    state: str, age_s: float, kind: str
) -> None:
    seen = counts()
    seen._note("ma\udcffil", "n1", behind(), 0.0)
    busy = attrs.evolve(worker(state=state, queues=["other", "ma\\xffil"]), age_s=age_s)
    seen.served = served([busy])

    assert [each.kind for each in findings([], seen)] == [kind]


@pytest.mark.parametrize(
    ("skew_s", "kinds"), [(0, ["unattended"]), (-100, []), (100, ["unattended"])]
)
def test_a_job_stamped_by_a_slow_clock_is_not_old_for_that(skew_s: int, kinds: list[str]) -> None:
    seen = counts()
    seen._note("mail", "n1", behind(made=int(time.time() * 1000) - 110_000), 0.0)

    found = findings(cluster(skew_ms=skew_s * 1000), seen)

    assert [each.kind for each in found if each.where.startswith("queue")] == kinds


@pytest.mark.parametrize("ahead_s", [-3600, 3600])
def test_the_clock_of_the_console_makes_no_job_older_or_younger(ahead_s: int) -> None:
    seen = counts()
    seen.clock_ms = -ahead_s * 1000  # the nodes' clocks, as this one sees them
    made = int(time.time() - ahead_s - 180) * 1000
    seen._note("mail", "n1", behind(made=made), 0.0)

    [text] = [each.what for each in findings([], seen)]

    assert text.startswith("10 jobs, the oldest 3 min")


def test_until_all_queues_are_counted_it_is_not_known_whether_one_is_stuck() -> None:
    [row] = as_rows([], 1, is_counted=False)

    assert row["text"] == "the node answers; not all queues have been counted yet"


def test_there_is_no_finding_about_queues_of_the_library() -> None:
    seen = counts()
    seen._note("disque-trio.workers", "n1", behind(pause="in"), 0.0)

    assert told(seen) == ["the node answers; no queue is stuck"]


def test_a_queue_is_behind_if_it_is_so_at_one_of_its_nodes() -> None:
    seen = counts()
    seen._note("mail", "n1", behind(), 0.0)
    seen._note("mail", "n2", NOTHING._replace(length=1, made=int(time.time() * 1000)), 0.0)
    assert 'queue "mail": 11 jobs' in told(seen)[0]

    seen._drop("mail", "n1")

    assert "no queue is stuck" in told(seen)[0]
    assert not seen.behind.ranks


def test_of_very_many_stuck_queues_the_longest_are_told() -> None:
    seen = counts()
    for number in range(10 * MOST):
        seen._note(f"q{number}", "n1", behind(length=1 + number), 0.0)

    lines = told(seen)

    kept = len(seen.behind.ranks)
    assert kept <= 2 * MOST
    assert lines[0].startswith(f"the cluster: {kept} queues without consumers, ")
    assert f': "q{10 * MOST - 1}", "q{10 * MOST - 2}", ' in lines[0]
    assert lines[0].endswith(f" and {kept - 3} more")
    assert lines[1].startswith(f"the cluster: {10 * MOST - kept} more queues have jobs that")


def test_a_paused_queue_tells_its_waiting_and_its_delayed_jobs() -> None:
    seen = counts()
    seen._note("few", "n1", NOTHING._replace(length=3, pause="all"), 0.0)
    seen._note("later", "n1", NOTHING._replace(delayed=12, pause="all"), 0.0)

    assert told(seen)[:2] == [
        'queue "later": is paused: all at n1; 0 jobs waiting, 12 delayed',
        'queue "few": is paused: all at n1; 3 jobs waiting, 0 delayed',
    ]


def test_several_paused_queues_are_one_finding_with_most_at_stake_first() -> None:
    seen = counts()
    for number in range(5):
        seen._note(f"q{number}", "n1", NOTHING._replace(delayed=number, pause="all"), 0.0)

    assert told(seen)[0] == (
        'the cluster: 5 queues are paused; 0 jobs waiting, 10 delayed: "q4", "q3", "q2" and 2 more'
    )


def test_a_slow_queue_is_told_above_abandoned_ones_with_less_at_stake() -> None:
    seen = counts()
    for number in range(25):
        seen._note(f"ghost{number}", "n1", behind(length=1), 0.0)
    seen._note("orders", "n1", behind(length=3000), 0.0)
    seen._note("orders", "n1", behind(length=2997, jobs_out=3), 1.0)

    first, second = told(seen)

    assert first == 'queue "orders": 2,997 jobs, the oldest 3 min old; its workers do not keep up'
    assert second.startswith("the cluster: 25 queues without consumers, 25 jobs, the oldest 3 min")
    assert second.endswith(" and 22 more")


def test_producers_that_are_refused_come_first() -> None:
    now = int(time.time())
    refusing = NodeFacts(
        where="n1:7711",
        id="a",
        now_s=now,
        info={
            "python_version": "CPython",
            "refused_requests_by_cause": "NOREPL=90",
            "last_refused_by_cause": f"NOREPL={now - 3}",
        },
    )

    first = findings([refusing], counts())[0]

    assert (first.level, first.where) == (Level.PROBLEM, "n1:7711")
    assert first.what.startswith("90 requests were refused with NOREPL, the last 3 s ago")


LIMITS = QueueLimits(20, 100, 60.0)


def test_a_queue_that_waits_for_its_limits_is_a_note_with_its_jobs_and_since_when() -> None:
    seen = counts()
    seen._note("mail", "n1", behind(blocked=3, limits=LIMITS, is_limited=True), 0.0)

    [found] = findings([], seen)

    assert (found.level, found.kind, found.link) == (Level.NOTE, "limited", "#/queue/mail")
    what = "10 jobs waiting because of its limits (20 leased, 100 per 60 s), the oldest for 3 min"
    assert (found.where, found.what) == ('queue "mail"', what)
    assert found.since == pytest.approx(time.time() - 180, abs=30)
    seen._note("mail", "n1", behind(blocked=3, limits=LIMITS), 1.0)
    assert findings([], seen) == []


def test_a_queue_at_its_concurrency_is_neither_slow_nor_abandoned() -> None:
    seen = counts()
    seen._note("mail", "n1", behind(leased=12, limits=LIMITS), 0.0)
    assert [each.kind for each in findings([], seen)] == ["slow"]

    seen._note("mail", "n2", NOTHING._replace(leased=8, limits=LIMITS), 0.0)

    assert [each.kind for each in findings([], seen)] == ["limited"]


def test_many_queues_that_wait_for_their_limits_are_one_note() -> None:
    seen = counts()
    for n in range(5):
        seen._note(f"q{n}", "n1", behind(blocked=1, limits=LIMITS, is_limited=True), 0.0)

    [found] = findings([], seen)

    assert found.what.startswith(
        "5 queues have 50 jobs waiting because of their limits, the oldest"
    )
    assert found.link == "#/queues?only=limited"


def test_nodes_that_do_not_know_limits_are_named() -> None:
    found = cluster(info={"limited_queues": "2", "nodes_without_limits": "1", "features": "x"})
    other = [attrs.evolve(each, info=each.info | {"features": "queue-limits"}) for each in found]

    [told] = [each for each in findings(found[:1] + other[1:], counts()) if each.advice]
    assert told.where == found[0].label
    assert told.what.startswith("1 node delivers jobs of 2 queues without regard to their limits")
    calm = cluster(info={"limited_queues": "2", "nodes_without_limits": "0"})
    assert not [each for each in findings(calm, counts()) if each.kind == "limits-not-held"]


def test_dead_jobs_of_all_holders_count_once() -> None:
    seen = counts()
    for where in ("n1", "n2"):
        seen._note("mail", where, NOTHING._replace(dead=3), 0.0)
    seen._note("sms", "n1", NOTHING._replace(dead=4), 0.0)

    assert told(seen) == ['queue "sms": 4 jobs dead', 'queue "mail": 3 jobs dead']

    seen._note("sms", "n1", NOTHING._replace(dead=0), 1.0)
    assert told(seen) == ['queue "mail": 3 jobs dead']


def test_jobs_that_wait_after_a_restart_are_told_until_they_are_queued() -> None:
    seen = counts()
    due = int(time.time()) + 3450
    seen._note("mail", "n1", parsed(b"0 0 0 0 0 0 0 0 none 20 20 %d" % due), 0.0)

    assert told(seen) == [
        (
            'queue "mail": 20 jobs restored after a restart and waiting for RETRY; '
            "the first is enqueued in 57 min"
        )
    ]

    seen._note("mail", "n1", parsed(b"20 0 20 0 0 0 0 0 none 0 0 0"), 1.0)
    assert told(seen) == ["the node answers; no queue is stuck"]


def test_figures_of_a_node_that_does_not_tell_what_is_not_queued_are_read() -> None:
    assert parsed(b"1 0 1 0 0 0 0 7 none").restored is None


def node(name: str, zone: str, why: str = "") -> KnownNode:
    info = {"python_version": "CPython", "replica_zone": zone}
    view = view_of(name, info, {}, 0.0)
    return KnownNode(
        Address(host=name), view=view, info=info, config={"default-replicate": "3"}, why=why
    )


def of_nodes(*nodes: KnownNode) -> list[str]:
    found = findings([node.facts for node in nodes], counts())
    return [f"{each.where}: {each.what}; {each.advice}" for each in found if "zone" in each.what]


def test_too_few_zones_are_told_in_the_words_of_the_doctor() -> None:
    nodes = [node("n1", "a"), node("n2", "b"), node("n3", "b")]
    [lack] = lacks([each.place for each in nodes], 3)

    [text] = of_nodes(*nodes)

    assert text == f"the cluster: {lack.what}; {lack.advice}"
    assert "a job has 3 copies by default, and the nodes that answer are in 2 zones: a, b" in text


def test_a_zone_of_which_no_node_answers_is_missed() -> None:
    silent = node("n3", "c", why="no answer for 9 s: refused")

    assert "in 2 zones" not in "".join(of_nodes(node("n1", "a"), node("n2", "b"), silent))
    assert "in 1 zone: a" in "".join(of_nodes(node("n1", "a"), node("n2", "a"), silent))


def test_nodes_without_zones_have_no_finding_about_them() -> None:
    assert of_nodes(node("n1", ""), node("n2", "")) == []


def test_a_finding_about_one_queue_names_the_operation_that_fits() -> None:
    seen = counts()
    seen._note("mail", "n1", NOTHING._replace(dead=3), 0.0)
    seen._note("slow", "n1", behind(), 0.0)

    by_kind = {each.kind: each for each in findings([], seen)}

    dead, alone = by_kind["dead"], by_kind["unattended"]
    assert (dead.operation, dead.args) == ("queues redrive", {"queue": "mail"})
    assert (alone.operation, alone.args) == ("queues purge", {"queue": "slow"})
    assert alone.since == pytest.approx(time.time() - 180, abs=30)
    assert {each.operation for each in by_kind.values()} <= OPERATIONS.keys()


def test_findings_of_several_nodes_with_the_same_advice_are_one() -> None:
    found = [
        warning("n1", "7 frames", "look"),
        warning("n2", "9 frames", "look"),
        warning("n3", "7 frames", "look"),
        warning("n3", "7 frames", "look elsewhere"),
    ]

    one, other = grouped(found)

    assert (one.where, one.what) == ("n1, n3", "7 frames; n2: 9 frames")
    assert other.where == "n3"


def worker(**changes: object) -> KnownWorker:
    report = attrs.evolve(REPORT, **changes)  # type: ignore[arg-type]
    return KnownWorker(report=report, age_s=1.0, control="c", node=Address())


def test_a_worker_whose_loop_stands_still_is_told() -> None:
    found = findings([], counts(), [worker(), worker(lag_s=3.24), worker(healthy=False, why="x")])

    assert [(each.kind, each.what) for each in found] == [
        ("worker-lag", "its event loop was blocked for 3.2 s"),
        ("worker-unhealthy", "is not healthy: x"),
    ]
    assert found[0].operation in OPERATIONS


@pytest.mark.parametrize(("up_s", "is_told"), [(3.0, False), (40.0, True)])
def test_a_worker_that_begins_may_wait_for_its_first_answer(up_s: float, *, is_told: bool) -> None:
    begins = worker(healthy=False, why="no node has answered yet", answered_s=None, up_s=up_s)

    assert bool(findings([], counts(), [begins])) is is_told


RULES = HOME / "deploy" / "prometheus" / "disque.rules.yml"
NOW = 1_000_000


def lone(**stats: object) -> QueueCounts:
    seen = counts()
    seen._note("mail", "n1", behind(**stats | {"jobs_out": 0}), 0.0)
    seen._note("mail", "n1", behind(**stats), 1.0)
    return seen


REFUSED = {
    "refused_requests_by_cause": "NOREPL=9",
    "last_refused_by_cause": f"NOREPL={NOW - 3}",
}
REQUEUED = {
    "jobs_requeued_lately": "12",
    "jobs_delivered_meanwhile": "100",
    "jobs_requeued_last": str(NOW),
}
TROUBLES: dict[str, list[NodeFacts] | QueueCounts] = {
    "DisqueNodeDown": cluster(error="Connection refused"),
    "DisqueNotReady": cluster(info={"loading": "1"}),
    "DisquePeerLost": [clusters.node("n1", line("n2", "fail"))],
    "DisqueUnderReplicated": cluster(info={"under_replicated_jobs": "3"}),
    "DisqueQueuesBehind": lone(),
    "DisqueLimitsNotHeld": cluster(info={"limited_queues": "1", "nodes_without_limits": "1"}),
    "DisqueWaitHigh": lone(jobs_out=5),
    "DisqueRedeliveries": cluster(info=REQUEUED, now_s=NOW),
    "DisqueDeadJobs": lone(dead=1),
    "DisqueMemoryShort": cluster(info={"memory_level": "1"}),
    "DisqueOutOfMemory": cluster(info={"memory_level": "2"}),
    "DisqueJournalBroken": cluster(info={"aof_last_write_status": "err"}),
    "DisqueFramesDropped": cluster(info={"bus_frames_dropped": "7"}),
    "DisqueErrors": cluster(info=REFUSED, now_s=NOW),
    "DisqueProducersRefused": cluster(info=REFUSED, now_s=NOW),
}


def rules() -> dict[str, str]:
    """Of each alert the finding that it names."""
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["annotations"]["finding"] for rule in group["rules"]}


def test_each_alert_names_a_finding() -> None:
    assert rules().keys() == TROUBLES.keys()


@pytest.mark.parametrize("alert", TROUBLES)
def test_the_finding_of_an_alert_is_there_in_its_trouble(alert: str) -> None:
    trouble = TROUBLES[alert]

    if isinstance(trouble, QueueCounts):
        found = findings([], trouble)
    else:
        found = findings(trouble, counts())

    assert rules()[alert] in {each.kind for each in found}

"""`disque-trio jobs` and `disque-trio queues`: jobs at one node, which are asked for at another."""

import json
import re
import uuid
from typing import Any, Final

import pytest

from disque_trio.client.replies import facts
from disque_trio.statemachine.base import Status
from tests.cluster.commands import ran
from tests.cluster.processes import CALM, SOON_S, Cluster, Fleet, becomes, eventually
from tests.cluster.test_python_clients import url
from tests.cluster.workers.shop import Shop, opened

NOBODY: Final = "D-00000000-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


def asked(pair: Cluster, *words: str, status: int = 0) -> str:
    """What the command prints, standard error last."""
    ended = ran(*words, "--url", url(pair[1]))
    assert ended.status == status, ended.said
    return ended.said


def told(pair: Cluster, *words: str, status: int = 0) -> Any:
    """The same as JSON, without standard error."""
    ended = ran(*words, "--json", "--url", url(pair[1]))
    assert ended.status == status, ended.said
    return json.loads(ended.output)


def call(pair: Cluster, *words: str | bytes) -> Any:
    """The reply of the first node."""
    reply = pair[0].client.call(*words)
    return reply.text if isinstance(reply, Status) else reply


def add(pair: Cluster, queue: str, *options: str) -> str:
    """A job of the first node alone."""
    body = '{"task": "shop.note", "args": [1]}'
    found: bytes = call(pair, "ADDJOB", queue, body, "0", "REPLICATE", "1", *options)
    return found.decode()


def bury(pair: Cluster, queue: str, reason: str) -> str:
    job = add(pair, queue)
    assert call(pair, "NACK", job, "DEAD", reason) == 1
    return job


@pytest.fixture
def queue() -> str:
    return f"q-{uuid.uuid4().hex[:8]}"


def test_a_job_is_shown_with_what_each_node_knows(pair: Cluster, queue: str) -> None:
    job = add(pair, queue, "RETRY", "60")

    [shown] = told(pair, "jobs", "show", job)

    assert (shown["id"], shown["state"], shown["queue"]) == (job, "queued", queue)
    assert (shown["task"], shown["retry"]) == ("shop.note", 60)
    assert shown["node"].endswith(str(pair[0].port))
    rows = [line.split() for line in asked(pair, "jobs", "show", job).splitlines()]
    assert shown["node_name"] == pair[0].id[:8]
    assert ["nodes", pair[0].id[:8], "(queued)"] in rows


def test_a_job_that_nobody_has_is_told_so(pair: Cluster) -> None:
    said = asked(pair, "jobs", "show", NOBODY, status=1)

    nobody = "it has ended, or was never added\n"
    assert said == f"disque-trio jobs: no node that answers has job {NOBODY}: {nobody}"
    said = asked(pair, "jobs", "acknowledge", NOBODY, status=1)
    assert said == f"disque-trio jobs: no node that answers has {NOBODY}: {nobody}"


def test_a_job_that_has_ended_is_shown_and_listed(pair: Cluster, queue: str) -> None:
    call(pair, "CLIENT", "SETNAME", "mailer")
    jobs = [add(pair, queue) for _ in range(3)]
    call(pair, "ACKJOB", *jobs[:2])
    call(pair, "NACK", jobs[2], "DEAD", "no use")
    call(pair, "PURGE", queue, "DEAD")

    [shown] = told(pair, "jobs", "show", jobs[0])
    listed = told(pair, "jobs", "ended", "--queue", queue)

    assert (shown["state"], shown["outcome"], shown["by"]) == ("ended", "acknowledged", "mailer")
    facts = [line.split() for line in asked(pair, "jobs", "show", jobs[0]).splitlines()]
    assert ["outcome", "acknowledged"] in facts
    assert ["by", "mailer"] in facts
    assert [each["id"] for each in listed] == [jobs[2], jobs[1], jobs[0]]
    assert [each["outcome"] for each in listed] == ["dropped", "acknowledged", "acknowledged"]
    assert [each["task"] for each in listed] == ["shop.note"] * 3
    head, *lines = asked(pair, "jobs", "ended", "--queue", queue, "--limit", "1").splitlines()
    assert head.split() == ["ID", "QUEUE", "TASK", "ENDED", "OUTCOME", "BY", "ERROR"]
    [line, more] = lines
    assert line.split()[0] == jobs[2]
    assert "no use" in line
    assert more == "disque-trio jobs ended: the list may be incomplete: raise --limit"


def test_the_way_of_a_job_is_told_by_all_nodes(pair: Cluster, queue: str) -> None:
    job = add(pair, queue, "RETRY", "60")
    said = asked(pair, "jobs", "show", job, "--timeline", status=1)
    assert said.startswith(f"disque-trio jobs: no node traces {job}: send TRACE JOB {job} to each")
    for node in (pair[0], pair[1]):
        node.client.call("TRACE", "JOB", job)
    call(pair, "GETJOB", "FROM", queue)
    call(pair, "ACKJOB", job)

    first, *events = asked(pair, "jobs", "show", job, "--timeline").splitlines()
    way = told(pair, "jobs", "show", job, "--timeline")

    assert first.startswith(f"{job}, traced on request (TRACE JOB); the first event was at")
    says = [
        found[1]
        for line in events
        if (found := re.match(r" *\+\d+\.\d{6}  [0-9a-f]{8}  (.+)", line))
    ]
    assert says[0].startswith("has a record of the job (traced): replicate=1 retry=60000")
    assert says[1] == "queues the job (traced)"
    assert any(re.fullmatch(r"serves the job to \S+ \(served\)", each) for each in says)
    kinds = [event["kind"] for event in way["events"]]
    assert (kinds[:2], "serve" in kinds, "acked" in kinds) == (["hold", "queue"], True, True)
    assert len(says) == len(kinds)
    assert [node["why"] for node in way["nodes"]] == ["asked", "asked"]


def test_a_trace_without_events_is_told_so(pair: Cluster) -> None:
    """A node traces the job if it comes."""
    job = f"D-00000000-{uuid.uuid4().hex[:24]}-05a1"
    call(pair, "TRACE", "JOB", job)

    said = asked(pair, "jobs", "show", job, "--timeline", status=1)

    assert said == (
        f"disque-trio jobs: {job} is traced, but has no events since tracing was turned on\n"
    )


def test_a_word_that_is_no_id_is_refused(pair: Cluster) -> None:
    assert "argument ID: 'mails' is not the id of a job" in asked(
        pair, "jobs", "show", "mails", status=2
    )


def test_a_job_that_is_cancelled_ends_while_it_runs(pair: Cluster, tmp_path: Any) -> None:
    with opened(pair[0], tmp_path) as shop:
        shop.start("shop", "--name", "kim")
        job = slow(shop, pair)
        shop.says("begin letter")
        assert told(pair, "jobs", "acknowledge", job)["count"] == 1

        eventually(lambda: shop.said()[-1] == "cancelled letter", SOON_S, "its handler ends")
        assert call(pair, "SHOW", job) is None


def slow(shop: Shop, pair: Cluster) -> str:
    """A job of ten minutes, whose lease is renewed every second."""
    body = json.dumps({"task": "note", "args": ["letter", 600]})
    added: bytes = call(pair, "ADDJOB", shop.queue, body, "0", "RETRY", "3")
    return added.decode()


def test_a_job_that_waits_is_queued_now(pair: Cluster, queue: str) -> None:
    late = add(pair, queue, "DELAY", "3600", "RETRY", "60")
    failed = add(pair, f"{queue}-2")
    call(pair, "GETJOB", "FROM", f"{queue}-2")
    call(pair, "NACK", failed, "DELAY", "3600")

    assert told(pair, "jobs", "requeue", late, failed)["count"] == 2
    assert call(pair, "QLEN", queue) == call(pair, "QLEN", f"{queue}-2") == 1
    said = asked(pair, "jobs", "requeue", late, status=1)
    assert said == f"disque-trio jobs: {late} is already queued\n"


def test_a_job_that_a_worker_has_is_queued_only_if_one_is_sure(pair: Cluster, queue: str) -> None:
    job = add(pair, queue)
    call(pair, "GETJOB", "FROM", queue)

    said = asked(pair, "jobs", "requeue", job, status=2)
    assert "the job may then run twice. To confirm, give --yes\n" in said
    assert call(pair, "QLEN", queue) == 0
    asked(pair, "jobs", "requeue", job, "--yes")
    assert call(pair, "QLEN", queue) == 1


def test_jobs_are_listed_by_state_error_and_text(pair: Cluster, queue: str) -> None:
    dead = bury(pair, queue, "card stolen")
    call(pair, "ADDJOB", queue, '{"task": "shop.pay", "args": ["ada"]}', "5000", "DELAY", "600")
    two: bytes = call(pair, "ADDJOB", queue, '{"task": "shop.pay"}', "5000", "REPLICATE", "2")

    listed = told(pair, "jobs", "list", "--queue", queue)
    assert [(each["task"], each["state"]) for each in listed] == [
        ("shop.pay", "waiting"), ("shop.pay", "delayed"), ("shop.note", "dead"),
    ]  # fmt: skip
    assert listed[0]["id"] == two.decode()
    assert listed[1]["due_in"] > 500
    [found] = told(pair, "jobs", "list", "--queue", queue, "--state", "dead")
    assert (found["id"], found["reason"]) == (dead, "card stolen")
    [found] = told(pair, "jobs", "list", "--queue", queue, "--text", "ada")
    assert found["state"] == "delayed"
    assert told(pair, "jobs", "list", "--queue", queue, "--error", "ValueError") == []
    assert len(told(pair, "jobs", "list", "--queue", queue, "--limit", "2")) == 2
    said = asked(pair, "jobs", "list", "--queue", queue)
    assert f"{dead}  {queue}  shop.note  dead     1       20" in said


def test_dead_jobs_are_listed_run_again_and_dropped(pair: Cluster, queue: str) -> None:
    first = bury(pair, queue, "card stolen")
    second = bury(pair, queue, "no such user")
    third = bury(pair, queue, "card expired")

    listed = told(pair, "jobs", "dead", "--queue", queue)
    assert [each["id"] for each in listed] == [third, second, first]
    assert [each["reason"] for each in listed] == ["card expired", "no such user", "card stolen"]
    said = asked(pair, "jobs", "dead", "--queue", queue, "--reason", "CARD")
    assert second not in said
    assert f"{third}  {queue}  shop.note  " in said
    assert told(pair, "jobs", "show", first)[0]["reason"] == "card stolen"

    assert told(pair, "jobs", "redrive", first)["count"] == 1
    assert call(pair, "QLEN", queue) == 1
    said = asked(pair, "jobs", "drop", first, "--yes", status=1)
    assert f"{first} is not dead" in said
    assert told(pair, "queues", "redrive", queue, "--reason", "card")["count"] == 1
    assert told(pair, "queues", "drop", queue, "--yes")["count"] == 1
    assert told(pair, "jobs", "dead", "--queue", queue) == []
    assert "name a queue, or a text of the reason" in asked(pair, "queues", "drop", status=1)


def test_a_dead_job_with_two_copies_counts_once(pair: Cluster, queue: str) -> None:
    job: bytes = call(pair, "ADDJOB", queue, "x", "5000", "REPLICATE", "2")
    call(pair, "NACK", job, "DEAD", "why")
    becomes(lambda: states(pair, job.decode()), ["dead", "dead"], SOON_S, "both know")

    assert len(told(pair, "jobs", "dead", "--queue", queue)) == 1
    assert told(pair, "queues", "redrive", queue)["count"] == 1


def states(pair: Cluster, job: str) -> list[str]:
    return [each["state"] for each in told(pair, "jobs", "show", job)]


def test_a_queue_that_has_delayed_jobs_only_is_listed(pair: Cluster, queue: str) -> None:
    pair[0].client.call("ADDJOB", queue, "b", "0", "DELAY", "3600", "REPLICATE", "1")

    [found] = [each for each in told(pair, "queues", "list") if each["name"] == queue]

    assert (found["length"], found["delayed"]) == (0, 1)
    assert 3500 < found["delayed_due_s"] <= 3600


def test_queues_are_listed_with_the_figures_of_all_nodes(pair: Cluster, queue: str) -> None:
    for server in (pair[0], pair[1]):
        server.client.call("ADDJOB", queue, "x", "0", "REPLICATE", "1")
    bury(pair, f"{queue}-2", "why")
    call(pair, "ADDJOB", "disque-trio.mine", "x", "0", "REPLICATE", "1")

    found = {each["name"]: each for each in told(pair, "queues", "list")}
    assert (found[queue]["length"], found[queue]["leased"], found[queue]["dead"]) == (2, 0, 0)
    assert found[f"{queue}-2"]["dead"] == 1
    assert "disque-trio.mine" not in found
    assert "disque-trio.mine" in asked(pair, "queues", "list", "--all")
    rows = [line.split() for line in asked(pair, "queues", "list").splitlines()]
    assert rows[0][:3] == ["QUEUE", "JOBS", "OLDEST"]
    assert next(row for row in rows if row[0] == queue)[1] == "2"


def test_a_queue_is_paused_and_resumed_at_all_nodes(pair: Cluster, queue: str) -> None:
    add(pair, queue)
    told(pair, "queues", "pause", queue, "out")

    assert [server.client.call("PAUSE", queue, "state").text for server in (pair[0], pair[1])] == [  # type: ignore[union-attr]
        b"out",
        b"out",
    ]
    [found] = [each for each in told(pair, "queues", "list") if each["name"] == queue]
    assert set(found["paused"].values()) == {"out"}
    [row] = [line for line in asked(pair, "queues", "list").splitlines() if queue in line]
    names = [server.id[:8] for server in pair.servers]
    assert all(f"out at {name}" in row for name in names)
    top = asked(pair, "top", "--once", "--interval", "0.1")
    assert all(f"out at {name}" in top for name in names)
    said = asked(pair, "queues", "resume", queue)
    assert [line.partition(": ")[2] for line in said.splitlines()] == 2 * ["resumed"]
    [found] = [each for each in told(pair, "queues", "list") if each["name"] == queue]
    assert found["paused"] == {}


@pytest.mark.slow
def test_limits_of_a_queue_are_set_shown_and_removed(pair: Cluster, queue: str) -> None:
    plan = asked(pair, "queues", "limit", queue, "--concurrency", "1", "--plan")
    assert plan.startswith(f'queue "{queue}" has these limits in the whole cluster: 1 leased\n')
    assert told(pair, "queues", "limit", queue, "--concurrency", "1")["count"] == 1

    for server in (pair[0], pair[1]):
        found = facts(server.client.call("QUEUE", "INFO", queue))
        assert found["concurrency"] == 1
    rows = [line.split() for line in asked(pair, "queues", "list").splitlines()]
    assert next(row for row in rows if row[0] == queue)[-2:] == ["1", "leased"]
    shown = dict(line.split("  ", 1) for line in asked(pair, "queues", "show", queue).splitlines())
    assert shown["limits"].strip() == "1 leased"
    names = {server.id[:8] for server in pair.servers}
    assert {name for name in shown if name.startswith("at ")} == {f"at {name}" for name in names}
    assert shown["keeper"].strip() in names
    assert len(told(pair, "queues", "show", queue)["limits_at"]) == 2
    assert "no node that answers has a queue" in asked(pair, "queues", "show", "no", status=1)

    asked(pair, "queues", "unlimit", queue)
    assert f'queue "{queue}" has no limits' in asked(pair, "queues", "unlimit", queue, status=1)


def test_a_purge_ends_the_jobs_of_all_nodes_if_one_is_sure(pair: Cluster, queue: str) -> None:
    for server in (pair[0], pair[1]):
        server.client.call("ADDJOB", queue, "x", "0", "REPLICATE", "1")
    bury(pair, queue, "why")

    said = asked(pair, "queues", "purge", queue, status=2)
    assert f'2 jobs queued in "{queue}" are purged, and are never delivered' in said
    assert "To confirm, give --yes" in said
    assert told(pair, "queues", "purge", queue, "--yes")["count"] == 2
    assert told(pair, "queues", "drop", queue, "--yes")["count"] == 1
    becomes(lambda: call(pair, "QLEN", queue), 0, SOON_S, "they end")


@pytest.mark.parametrize("family", ["workers", "jobs", "queues", "nodes"])
def test_each_family_has_its_help(family: str) -> None:
    ended = ran(family, "--help")

    assert ended.status == 0
    assert f"usage: disque-trio {family} " in ended.output
    assert "exit status:" in ended.output


def test_a_silent_node_is_named_by_its_name(fleet: Fleet, queue: str) -> None:
    named = fleet.cluster(2, *CALM)
    add(named, queue)
    name, port = named[0].id[:8], named[0].port
    named[0].kill()

    said = asked(named, "queues", "list", status=3)

    assert f"the data of {name} (127.0.0.1:{port}) is missing: " in said

"""Topics tell what clients have done."""

import contextlib
import json
from typing import Any

import anyio
import attrs
import pytest
import trio

from disque_trio.cli.operating.workers import _task_row
from disque_trio.client import commands
from disque_trio.client.address import Address, Cluster
from disque_trio.client.client import Client
from disque_trio.client.errors import ConnectionFailedError, LostError
from disque_trio.observe import client as deadline_client
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.survey import Survey
from disque_trio.observe.values import encoded
from disque_trio.observe.workers import task_rows
from disque_trio.worker.codec import write
from disque_trio.worker.operating.admin import Admin, KnownWorker
from disque_trio.worker.operating.notes import WORKERS, Due, Note
from disque_trio.worker.operating.plans import Json, MistakeError, Outcome
from disque_trio.worker.reporting import Report, RunningJob
from disque_trio.worker.times import RunTimes
from tests.observe.rig import Observed, observed

REPORT = Report(
    name="mailer", host="web3", pid=7, version="1", app="shop", state="running", healthy=True,
    why="", node="n1", queues=["mail"], slots=5, busy=1, held=0, unsettled=0, stuck=0, ended=9,
    answered_s=0.1, lag_s=0.0, rss_bytes=1 << 20, up_s=60.0,
    jobs=[RunningJob(id="D-1", task="send", queue="mail", age_s=12.0, lease_s=40.0)],
)  # fmt: skip


async def told(seen: Observed, topic: str, **args: Any) -> dict[str, Any]:
    """The answer, as a browser gets it."""
    seen.observer.survey.looked = None  # it is not to serve a look that is half a second old
    data, _ = await seen.observer.answer(topic, args)
    found: dict[str, Any] = json.loads(encoded(data))
    return found


def found(view: Json) -> list[Json]:
    """The findings, but those about the memory of the process that runs the tests."""
    return [each for each in view["findings"] if "maxmemory" not in each["text"]]


async def test_the_overview_has_nodes_totals_and_what_is_wrong(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 3)
    await seen.client.addjob("mail", "body", replicate=3)
    await seen.client.addjob("mail", "later", replicate=1, delay=100)
    await seen.client.pause("mail", "out")
    await seen.observer.counts.once()

    view = await told(seen, "overview")

    ids = [node.state.cluster.myself.id.decode() for node in seen.nodes]
    assert [node["name"] for node in view["nodes"]] == sorted(id[:8] for id in ids)
    assert {node["state"] for node in view["nodes"]} == {"up"}
    assert view["totals"]["queued"] == 1
    assert view["totals"]["delayed"] == 1
    [finding] = [each for each in found(view) if each["level"] == "warn"]
    text = finding["text"].removeprefix('queue "mail": is paused: out at ')
    name, _, jobs = text.partition("; ")
    assert name in {node["name"] for node in view["nodes"]}
    assert jobs == "1 job waiting, 1 delayed"
    assert finding["link"] == "#/queue/mail"
    assert len(view["series"]["at"]) == len(view["series"]["queued"]) > 0


async def test_a_node_has_the_same_name_in_each_console_and_in_the_table_of_the_others(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery, 2)
    addresses = [Address(port=node.state.config.port) for node in seen.nodes]
    for address, name in zip(addresses, ("web2", "web1"), strict=True):
        await seen.client.ask(address, [commands.call("CONFIG", "SET", "node-name", name)])
    await seen.client.ask(addresses[0], [commands.call("CONFIG", "SET", "cluster-name", "test")])
    names = {str(addresses[0]): "web2", str(addresses[1]): "web1"}

    for first in addresses:
        async with DeadlineClient(Cluster([first])) as client:
            survey = Survey(client)
            await survey.look()
            assert {each.where: each.name for each in survey.nodes.values()} == names
            assert list(survey.nodes) == [str(addresses[1]), str(addresses[0])], "by name"
            assert survey.cluster_name == "test"


async def test_namesakes_are_told_apart(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    for node in seen.nodes:
        address = Address(port=node.state.config.port)
        await seen.client.ask(address, [commands.call("CONFIG", "SET", "node-name", "web")])

    view = await told(seen, "overview")

    ids = [node.state.cluster.myself.id.decode() for node in seen.nodes]
    assert {node["name"] for node in view["nodes"]} == {f"web-{id[:4]}" for id in ids}
    with pytest.raises(MistakeError, match="2 nodes have the name 'web'"):
        await OPERATIONS["nodes leave"].planned(seen.client, {"node": "web"})


async def test_the_series_has_a_look_that_another_topic_asked_for(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    seen.observer.series.clear()
    seen.observer.survey.looked = None
    await seen.observer.survey.look()

    data, _ = await seen.observer.answer("overview", {})

    assert len(data["series"]["at"]) == 1


async def test_a_healthy_cluster_is_said_to_be_so(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 3)

    view = await told(seen, "overview")

    assert {each["level"] for each in found(view)} <= {"note"}


async def test_nodes_say_how_they_see_each_other(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 3)

    view = await told(seen, "cluster")

    assert len(view["sees"]) == 6
    assert {how for _, _, how in view["sees"]} == {"up"}


async def test_a_silent_node_is_named_and_costs_the_others_nothing(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    mute = Address(port=listener.socket.getsockname()[1])
    seen = await observed(nursery, 1, mute)
    before, seen.client.answer_s = seen.client.answer_s, 0.3
    await seen.observer.look()
    seen.client.answer_s = before
    seen.client.silent.pop(str(seen.client.nodes.seeds[0]), None)  # on a busy machine
    seen.observer.survey.looked = None
    asked: list[str] = []
    ask = Client._exchange

    async def noted(self: Client, address: Address, words: Any) -> Any:
        asked.append(str(address))
        return await ask(self, address, words)

    monkeypatch.setattr(Client, "_exchange", noted)
    view, unreached = await seen.observer.answer("overview", {})

    assert set(asked) == {str(seen.client.nodes.seeds[0])}
    assert list(unreached) == view["uncounted"] == [str(mute)]
    assert [node["state"] for node in view["nodes"]].count("silent") == 1
    worst = next(each for each in found(view) if "no answer within" in each["text"])
    assert (worst["level"], "no answer within 0.3 s" in worst["text"]) == ("bad", True)
    await listener.aclose()


async def test_a_node_that_answers_again_is_asked_again(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await observed(nursery)
    where = str(seen.client.nodes.seeds[0])
    seen.client.silent[where] = deadline_client.Silence(trio.current_time() - 9, "it was away")
    with pytest.raises(ConnectionFailedError, match="no answer for 9 s: it was away"):
        await seen.client.ask(seen.client.nodes.seeds[0], [commands.ping()])

    monkeypatch.setattr(deadline_client, "PROBE_S", 0.01)
    nursery.start_soon(seen.client.probe)
    with trio.fail_after(30):
        while seen.client.silent:
            await trio.sleep(0.01)


def test_how_long_a_node_is_silent_is_told_once_it_matters() -> None:
    silence = deadline_client.Silence(100.0, "it was away")

    assert silence.describe(104.0) == "it was away"
    assert silence.describe(107.0) == "no answer for 7 s: it was away"


async def test_a_command_that_must_not_be_repeated_goes_to_no_other_node(
    nursery: trio.Nursery,
) -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    mute = Address(port=listener.socket.getsockname()[1])
    seen = await observed(nursery, 1, mute)
    seen.client.answer_s = 0.3
    seen.client.silent.clear()

    with pytest.raises(LostError, match="whether the command was carried out"):
        await seen.client.run(commands.call("DEBUG", "CHANGE"), first=mute)
    await listener.aclose()


async def test_a_query_without_an_answer_has_no_unknown_outcome(nursery: trio.Nursery) -> None:
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    mute = Address(port=listener.socket.getsockname()[1])
    seen = await observed(nursery, 1, mute)
    seen.client.answer_s = 0.3
    seen.client.silent.clear()

    with pytest.raises(ConnectionFailedError) as failed:
        await seen.observer.workers._clients(mute)

    assert str(failed.value) == "no answer within 0.3 s."
    await listener.aclose()


async def test_queues_are_sorted_filtered_and_paged(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    adds = [commands.addjob(f"q{n:03}", "body", replicate=1) for n in range(101)]
    await seen.client.run_all(adds)
    await seen.client.addjob("q050", "body")
    await seen.observer.counts.once()

    first = await told(seen, "queues", sort="jobs")
    last = await told(seen, "queues", sort="name", desc=False, page=1)
    some = await told(seen, "queues", match="q00?", sort="name", desc=True)

    assert (first["total"], first["pages"], len(first["rows"])) == (101, 2, 100)
    assert (first["rows"][0]["name"], first["rows"][0]["jobs"]) == ("q050", 2)
    assert [row["name"] for row in last["rows"]] == ["q100"]
    assert [row["name"] for row in some["rows"]] == [f"q00{n}" for n in range(9, -1, -1)]


async def test_names_that_are_no_text_keep_their_bytes(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.client.addjob(b"\xff</script>", b"\xfe", replicate=1)
    await seen.observer.counts.once()

    [row] = (await told(seen, "queues"))["rows"]
    view = await told(seen, "queue", name_b64=row["name_b64"], bodies=True)

    assert row["name"] == "\\xff</script>"
    assert view["queue"]["jobs"] == 1
    assert view["oldest"][0]["body_b64"] == "/g=="


async def test_a_queue_shows_both_of_its_ends(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    for number in range(12):
        await seen.client.addjob("mail", str(number), replicate=1)
    await seen.client.addjob("mail", "delayed", replicate=1, delay=50)

    view = await told(seen, "queue", name="mail", bodies=True)

    assert [job["body"] for job in view["oldest"]] == [str(n) for n in range(10)]
    assert [job["body"] for job in view["youngest"]] == [str(n) for n in range(11, 1, -1)]
    assert [job["body"] for job in view["delayed"]] == ["delayed"]
    assert view["series"]["jobs"] == [12]
    assert (await told(seen, "queue", name="none"))["queue"] is None


async def test_a_job_shows_its_copies_and_what_it_survives(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    id = await seen.client.addjob("mail", "body", replicate=2, retry=60)

    view = await told(seen, "job", id=id)

    assert {copy["state"] for copy in view["copies"]} == {"queued", "active"}
    names = sorted(node.state.cluster.myself.id.decode()[:8] for node in seen.nodes)
    assert all(sorted(copy["holders"]) == names for copy in view["copies"])
    assert (view["facts"]["queue"], view["facts"]["retry_s"], view["body"]) == ("mail", 60, "body")
    assert any("not lost" in line for line in view["explain"])
    assert (await told(seen, "job", id=id[:-4] + "0000"))["found"] is False


async def test_the_last_error_of_a_job_is_none_of_its_plain_facts(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    id = await seen.client.addjob("mail", "body", replicate=1, retry=60)
    [job] = await seen.client.getjob("mail")
    await seen.client.nack(job, error="OSError: no\napp.py:3")

    view = await told(seen, "job", id=id)

    assert view["summary"]["error"]["message"] == "no"
    assert not {"error", "failed-at"} & view["facts"].keys()


async def test_zones_are_shown_of_nodes_and_of_the_holders_of_a_job(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 3)
    for node, zone in zip(seen.nodes, ("a", "b", "b"), strict=True):
        asked = commands.call("CONFIG", "SET", "replica-zone", zone)
        await seen.client.ask(Address(port=node.state.config.port), [asked])
    with trio.fail_after(30):
        while {peer.zone for peer in seen.nodes[0].state.cluster.nodes.values()} != {b"a", b"b"}:
            await trio.sleep(0.05)
    id = await seen.client.addjob("mail", "body", replicate=3, retry=60)

    nodes = (await told(seen, "cluster"))["nodes"]
    view = await told(seen, "overview")
    zones = [each["text"] for each in found(view) if "zone" in each["text"]]
    view = await told(seen, "job", id=id)

    assert sorted(node["zone"] for node in nodes) == ["a", "b", "b"]
    assert ["in 2 zones: a, b" in text for text in zones] == [True]
    assert view["zones"] == {"well": True, "text": "its 3 copies are in zone a, zone b"}
    assert view["holders"][0]["why"] == "it received the ADDJOB"
    assert [holder["why"].partition(":")[0] for holder in view["holders"][1:]] == [
        "the first in zone b",
        "one more in zone b",
    ]


async def test_jobs_of_a_queue_that_wait_for_their_retry_are_queued_at_once(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery)
    ids = [await seen.client.addjob("mail", "body", replicate=1, retry=600) for _ in range(3)]
    await seen.client.dequeue(*ids)

    plan = await OPERATIONS["queues requeue"].planned(seen.client, {"queue": "mail"})
    outcome = Outcome()
    await plan.run(outcome, lambda _: None)

    assert "are enqueued now, at 1 node; restored: 0" in plan.says[0]
    assert [says.partition(": ")[2] for says in outcome.says] == ["enqueued 3 jobs"]
    assert await seen.client.qlen("mail") == 3


async def test_a_lease_is_told_of_the_node_whose_worker_has_the_job(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    id = await seen.client.addjob("mail", "body", replicate=2, retry=60)
    waiting = (await told(seen, "job", id=id))["copies"]
    [job] = await seen.client.getjob("mail")
    at_work = (await told(seen, "job", id=job.id))["copies"]

    assert {(copy["state"], copy["lease_s"]) for copy in waiting} == {
        ("queued", None),
        ("active", None),
    }
    assert [copy["next_s"] is None for copy in waiting] == [
        copy["state"] == "queued" for copy in waiting
    ]
    assert [copy["lease_s"] is None for copy in at_work].count(False) == 1
    assert all((copy["lease_s"] is None) != (copy["next_s"] is None) for copy in at_work)


async def test_dead_and_delayed_jobs_are_listed(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.client.addjob("mail", "body", replicate=1)
    [job] = await seen.client.getjob("mail")
    await seen.client.run(commands.nack(job, dead="no such user"))
    later = await seen.client.addjob("sms", "body", replicate=1, delay=60)
    sooner = await seen.client.addjob("mail", "body", replicate=1)
    [job] = await seen.client.getjob("mail")
    await seen.client.run(commands.nack(job, delay=30))
    await seen.observer.counts.once()

    dead = await told(seen, "dead")
    delayed = await told(seen, "later")

    assert dead["total"] == 1
    assert dead["queues"] == [{"queue": "mail", "dead": 1}]
    assert [(each["error"], each["count"]) for each in dead["groups"]] == [("no such user", 1)]
    waiting = [(each["id"], each["state"]) for each in delayed["delayed"]]
    assert waiting == [(sooner, "backing-off"), (later, "delayed")]
    assert delayed["delayed_total"] == 2
    of_queue = await told(seen, "queue", name="mail")
    assert [(each["id"], each["state"]) for each in of_queue["delayed"]] == waiting[:1]
    assert of_queue["queue"]["delayed"] == 1
    assert (await told(seen, "dead", task="none"))["total"] == 0


async def test_a_schedule_is_shown_once_however_many_workers_keep_it(
    nursery: trio.Nursery,
) -> None:
    seen = await observed(nursery)
    nightly = Due(name="sweep", when="30 2 * * * UTC", next=2_000_000_100)
    earlier = attrs.evolve(nightly, next=2_000_000_040)
    minutely = Due(name="beat", when="every 60 s", next=2_000_000_040)
    for number, due in enumerate([[nightly], [earlier, minutely]]):
        control = f"disque-trio.control.mailer.{number}"
        note = write(Note(control=control, report=REPORT, schedules=due), "json")
        await seen.client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)

    await Admin(seen.client).schedules.add(name="ann", task="beat", cron="@daily")
    await Admin(seen.client).schedules.pause(name="ann")
    declared = {"schedule": "", "state": "declared", "queue": "", "next_ms": 2_000_000_040_000}
    added = {"schedule": "ann", "state": "paused", "queue": "default", "next_ms": None}
    assert (await told(seen, "later"))["schedules"] == [
        {**declared, "name": "beat", "when": "every 60 s", "workers": 1},
        {**added, "name": "beat", "when": "@daily UTC", "workers": 0},
        {**declared, "name": "sweep", "when": "30 2 * * * UTC", "workers": 2},
    ]


async def test_workers_are_judged_by_their_last_sign_of_life(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    note = write(Note(control="disque-trio.control.mailer.1", report=REPORT), "json")
    id = await seen.client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)

    [worker] = (await told(seen, "workers"))["workers"]
    assert (worker["name"], worker["state"], worker["slots"]) == ("mailer", "live", 5)
    [job] = worker["running"]
    assert (job["task"], job["id"]) == ("send", "D-1")
    assert job["since_s"] == pytest.approx(12.0 + worker["beat_s"], abs=0.2)

    await seen.client.deljob(id)
    for followed in seen.observer.workers._workers.values():
        followed.at -= 60  # it was a minute ago
    [worker] = (await told(seen, "workers"))["workers"]
    assert worker["state"] == "gone"


async def test_a_worker_that_has_taken_its_report_away_has_ended(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    ids = []
    for number in (1, 2):
        note = write(Note(control=f"disque-trio.control.mailer.{number}", report=REPORT), "json")
        ids.append(await seen.client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30))
    assert len((await told(seen, "workers"))["workers"]) == 2
    seen.nodes[0].state.stats.started -= 60_000  # a restart would have lost the reports

    await seen.client.deljob(ids[0])

    [worker] = (await told(seen, "workers"))["workers"]
    assert worker["control"] == "disque-trio.control.mailer.2"


async def test_a_worker_whose_reports_are_at_a_silent_node_is_not_taken_for_gone(
    nursery: trio.Nursery,
) -> None:
    silent = Address(port=1)
    seen = await observed(nursery, 1, silent)
    note = write(Note(control="disque-trio.control.mailer.1", report=REPORT), "json")
    id = await seen.client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)
    await told(seen, "workers")

    await seen.client.deljob(id)
    for followed in seen.observer.workers._workers.values():
        followed.at -= 60
        followed.worker = attrs.evolve(followed.worker, node=silent)

    [worker] = (await told(seen, "workers"))["workers"]
    assert worker["state"] == "unknown"


async def test_a_queue_of_a_busy_worker_is_served(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.client.addjob("mail", "body", replicate=1)
    await seen.client.addjob("sms", "body", replicate=1)
    note = write(Note(control="disque-trio.control.mailer.1", report=REPORT), "json")
    await seen.client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)
    await seen.observer.counts.once()

    rows = (await told(seen, "queues", sort="name"))["rows"]
    stuck = (await told(seen, "queues", only="stuck"))["rows"]

    assert {row["name"]: (row["takers"], row["served"]) for row in rows} == {
        "mail": (0, True),
        "sms": (0, False),
    }
    assert [row["name"] for row in stuck] == ["sms"]
    assert (await told(seen, "queue", name="mail"))["queue"]["served"]


async def test_clients_are_listed(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)

    node = seen.client.nodes.seeds[0]
    async with Client(f"disque://{node}", name="checkout") as client:
        await client.run(commands.ping())
        view = await told(seen, "workers")

    assert view["workers"] == []
    assert [each["name"] for each in view["clients"]] == ["checkout"]
    assert view["clients_own"] > 0


async def test_connections_of_workers_are_no_plain_clients(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    note = write(Note(control="disque-trio.control.mailer.1", report=REPORT), "json")
    await seen.client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)
    url = f"disque://{seen.client.nodes.seeds[0]}"

    async with contextlib.AsyncExitStack() as open_:
        for name in ("mailer", "shop.py@web3:7", "shop.py@web4:7", ""):
            client = await open_.enter_async_context(Client(url, name=name))
            await client.run(commands.ping())
        view = await told(seen, "workers")

    assert {each["name"] for each in view["clients"]} == {"shop.py@web4:7", ""}


async def test_rates_are_of_two_looks(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await seen.observer.look()
    for _ in range(5):
        await seen.client.addjob("mail", "body", replicate=1)
    await anyio.sleep(0.6)
    await seen.observer.counts.once()

    view = await told(seen, "overview")

    assert view["totals"]["added_s"] > 0
    assert view["nodes"][0]["added_s"] == view["totals"]["added_s"]


async def test_run_times_of_tasks_are_those_of_all_workers(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    for name, seconds, failures in (("a", [0.1] * 94 + [8.0] * 6, 1), ("b", [0.1] * 100, 2)):
        times = RunTimes()
        for n, each in enumerate(seconds):
            times.note("send", each, n < failures)
        report = attrs.evolve(REPORT, name=name, tasks=times.lately())
        note = write(Note(control=name, report=report), "json")
        await seen.client.addjob(WORKERS, note, replicate=1, retry=0, ttl=30)

    view = await told(seen, "tasks")

    [row] = view["tasks"]
    assert (row["task"], row["runs"], row["failures"]) == ("send", 200, 3)
    assert (row["running"], row["workers"]) == (2, 2)
    assert row["p50_s"] == pytest.approx(0.1, rel=0.25)
    assert row["p95_s"] == pytest.approx(0.1, rel=0.25)
    assert row["p99_s"] == pytest.approx(8, rel=0.25)
    assert row["mean_s"] == pytest.approx((194 * 0.1 + 48) / 200)
    assert [(each["id"], each["worker"]) for each in view["running"]] == [
        ("D-1", "a"),
        ("D-1", "b"),
    ]


def test_the_command_line_shows_run_times_in_units_that_fit() -> None:
    row = {"task": "send", "runs": 3, "failures": 1, "running": 0, "workers": 2}
    times = {"mean_s": 0.0000397, "p50_s": 0.25, "p95_s": 90.0, "p99_s": None}

    shown = _task_row(row | times | {"longest_s": None})
    assert shown == ["send", 3, 1, "0.0397ms", "250ms", "90s", "-", 0, 2]

    first = dict.fromkeys(times) | {"runs": 0, "longest_s": 780.0, "running": 1}
    assert _task_row(row | first) == ["send", 0, 1, *[">=13m"] * 4, 1, 2]


def test_a_task_in_its_first_run_is_as_slow_as_that_is_long() -> None:
    quick = RunTimes()
    quick.note("quick", 2.0, False)
    running = attrs.evolve(REPORT.jobs[0], task="long", age_s=780.0)
    report = attrs.evolve(REPORT, tasks=quick.lately(), jobs=[running])

    rows = task_rows([KnownWorker(report=report, age_s=1.0, control="c", node=Address())])

    assert [(row["task"], row["longest_s"]) for row in rows] == [("long", 781.0), ("quick", None)]

"""Operations of the table, for programs."""

import pytest
import trio

from disque_trio.observe.client import Silence
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.operations.operation import Operation
from disque_trio.web.api.table import ROUTES
from disque_trio.web.problems import problem_of
from disque_trio.worker.operating.plans import Outcome, Plan, SilentNodeError
from tests.observe.arguments import GONE, needed
from tests.observe.rig import observed
from tests.web.api.asking import program


def test_each_operation_has_a_route() -> None:
    paths = {each.path for each in ROUTES}

    for each in OPERATIONS.values():
        assert f"/operations/{each.family}/{each.name}" in paths


async def test_a_queue_is_paused_and_resumed(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add()
    given = {"arguments": {"queue": "mail", "side": "in"}}

    plan = await api.post("/operations/queues/pause", {**given, "plan": True})
    assert (plan["operation"], plan["target"], plan["count"]) == ("queues pause", "mail in", 0)
    assert "refused" in plan["says"][0]
    assert (await api.get("/queues/mail"))["queue"]["paused"] == {}

    done = await api.post("/operations/queues/pause", given)
    assert (done["count"], done["failed"]) == (1, [])
    assert list((await api.get("/queues/mail"))["queue"]["paused"].values()) == ["in"]
    await api.post("/operations/queues/resume", {"arguments": {"queue": "mail"}})
    assert (await api.get("/queues/mail"))["queue"]["paused"] == {}


LEFT_OUT = "n2 is left out: no answer within 1 s"


async def test_each_operation_that_leaves_a_node_out_names_it_here_and_in_the_console(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(outcome: Outcome, _report: object) -> None:
        outcome.says.append("n1: done")
        await trio.lowlevel.checkpoint()

    async def planned(self: Operation, _client: object, _args: object) -> Plan:
        await trio.lowlevel.checkpoint()
        return Plan(target="it", says=["all is done", LEFT_OUT], unasked=[LEFT_OUT], run=run)

    monkeypatch.setattr(Operation, "planned", planned)
    api = await program(nursery)
    async with api.here.browser() as browser:
        for key, each in OPERATIONS.items():
            args = needed(each)
            path = f"/operations/{each.family}/{each.name}"
            plan = await api.post(path, {"arguments": args, "plan": True})
            done = await api.post(path, {"arguments": args, "sure": True})
            assert (plan["unasked"], done["unasked"]) == ([LEFT_OUT], [LEFT_OUT]), key
            assert (await browser.plan(key, **args))["unasked"] == [LEFT_OUT], key
            assert (await browser.do(key, **args))["failed"] == [LEFT_OUT], key

    entries = (await api.get("/audit?limit=1000"))["entries"]
    assert len(entries) == 2 * len(OPERATIONS)
    assert not any(each["is_ok"] for each in entries)


async def test_what_cannot_be_undone_must_be_meant(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add()
    given = {"arguments": {"queue": "mail"}}

    problem = await api.post("/operations/queues/purge", given, 409)
    assert (problem["code"], '"sure": true' in problem["advice"]) == ("UNSURE", True)
    assert (await api.get("/queues/mail"))["queue"]["jobs"] == 1
    assert (await api.post("/operations/queues/purge", {**given, "sure": True}))["count"] == 1


async def test_jobs_that_fit_a_filter_are_acknowledged(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.add(body="one")
    kept = await api.add(body="two")
    given = {"filter": {"text": "one"}}

    plan = await api.post("/operations/jobs/acknowledge", {**given, "plan": True})
    assert plan["says"][0] == "Acknowledge: 1 job"
    assert (await api.post("/operations/jobs/acknowledge", given))["count"] == 1

    assert [each["id"] for each in (await api.get("/jobs"))["jobs"]] == [kept]


async def test_mistakes_are_told(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for given, name in (
        ({"arguments": {"queue": "q", "side": "left"}}, "arguments.side"),
        ({"arguments": {"colour": "red"}}, "arguments.colour"),
        ({"arguments": []}, "arguments"),
        ({"sure": "yes"}, "sure"),
        ({"filter": {}}, "filter"),
    ):
        assert (await api.post("/operations/queues/pause", given, 400))["name"] == name
    wrong = {"filter": {"state": "lost"}}
    assert (await api.post("/operations/jobs/drop", wrong, 400))["name"] == "filter.state"
    assert (await api.post("/operations/queues/dance", {}, 404))["code"] == "NOPATH"
    gone = {"arguments": {"node": "none"}}
    problem = await api.post("/operations/nodes/stay", gone, 422)
    assert "there is no node" in problem["detail"]
    assert problem["advice"]


async def test_an_argument_that_is_missing_is_named(nursery: trio.Nursery) -> None:
    api = await program(nursery)

    for operation in OPERATIONS.values():
        path = f"/operations/{operation.family}/{operation.name}"
        args = needed(operation)
        required = [each.name for each in operation.arguments if each.is_required]
        for name in required:
            others = {each: value for each, value in args.items() if each != name}
            problem = await api.post(path, {"arguments": others}, 400)
            assert (problem["code"], problem["name"]) == ("MISSING", f"arguments.{name}")
        if required:
            assert (await api.post(path, {}, 400))["code"] == "MISSING"


async def test_a_value_is_given_once(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    given = {"queue": "q", "queue_b64": "cQ=="}

    problem = await api.post("/operations/queues/pause", {"arguments": given}, 400)
    assert (problem["code"], problem["name"]) == ("INVALID", "arguments.queue")
    both = {"arguments": {"id": GONE}, "filter": {"queue": "q"}}
    problem = await api.post("/operations/jobs/requeue", both, 400)
    assert (problem["code"], problem["name"]) == ("INVALID", "arguments.id")


async def test_the_log_has_each_operation(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    logged: list[tuple[str, object]] = []
    log = api.here.nodes[0].log
    original = log.notice
    log.notice = lambda event, **facts: logged.append((event, facts))  # type: ignore[method-assign]

    await api.post("/operations/queues/pause", {"arguments": {"queue": "mail"}})
    log.notice = original  # type: ignore[method-assign]

    [facts] = [facts for event, facts in logged if event == "console action"]
    assert isinstance(facts, dict)
    assert (facts["operation"], facts["target"]) == ("queues pause", "mail all")
    assert (facts["role"], facts["address"]) == ("admin", "127.0.0.1")


@pytest.mark.parametrize("name", ["leave", "stay", "kick"])
async def test_a_node_that_does_not_answer_is_asked_again_later(
    nursery: trio.Nursery, name: str
) -> None:
    seen = await observed(nursery, 2)
    where = f"127.0.0.1:{seen.nodes[1].state.config.port}"
    seen.client.silent[where] = Silence(trio.current_time(), "no answer")

    with pytest.raises(SilentNodeError) as error:
        await OPERATIONS[f"nodes {name}"].planned(seen.client, {"node": where, "client": "1"})

    response = problem_of(error.value).response()
    assert (response.status, dict(response.headers)) == (503, {b"Retry-After": b"1"})

"""The audit log: what it keeps, for how long, and who reads it."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import trio

from disque_trio.statemachine.config import Config
from disque_trio.web import audit
from disque_trio.web.audit import FIELDS, KEPT, Audit
from disque_trio.web.roles import MANAGE, User
from disque_trio.worker.operating.plans import Outcome, Plan
from tests.web.api.asking import program
from tests.web.test_users import GIVEN, as_, basic, log_in

PAUSE = {"arguments": {"queue": "mail"}}
RESUME = {"arguments": {"queue": "mail"}}


async def _nothing(_outcome: Outcome, _report: object) -> None:
    await trio.lowlevel.checkpoint()


def made(path: Path | None = None, **more: Any) -> Audit:
    config = Config(web_audit_file=str(path) if path else "")
    return Audit(lambda: config, lambda _event, _facts: None, pytest.fail, **more)


def noted(log: Audit, target: str = "q", outcome: Outcome | None = None) -> None:
    plan = Plan(target=target, says=[], run=_nothing)
    log.note(
        User("ann", "admin"), "10.0.0.7", "http", "queues pause", plan,
        outcome or Outcome(says=["done"]), is_stopped=False,
    )  # fmt: skip


async def test_each_operation_is_told_with_who_and_what(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.post("/operations/queues/pause", PAUSE)
    async with api.here.browser() as browser:
        await browser.do("queues resume", queue="mail")

    entries = (await api.get("/audit"))["entries"]

    assert [each["operation"] for each in entries] == ["queues resume", "queues pause"]
    assert entries[0]["target"] == "mail", "not the word with which PAUSE ends a pause"
    assert [each["by"] for each in entries] == ["console", "http"]
    assert [each["number"] for each in entries] == [2, 1]
    entry = entries[1]
    assert (entry["user"], entry["role"], entry["address"]) == ("", "admin", "127.0.0.1")
    assert (entry["target"], entry["is_ok"]) == ("mail all", True)
    assert entry["outcome"].endswith(": paused")
    assert set(entry) == {*FIELDS, "number"}


async def test_plans_and_refusals_are_no_operations(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    await api.post("/operations/queues/pause", {**PAUSE, "plan": True})
    await api.post("/operations/queues/purge", PAUSE, 409)

    assert (await api.get("/audit"))["entries"] == []


async def test_an_operation_that_fails_is_told_as_such(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    given = {"arguments": {"queue": "mail", "key": "none"}}
    await api.post("/operations/queues/cancel", given)

    [entry] = (await api.get("/audit"))["entries"]

    assert (entry["is_ok"], entry["outcome"]) == (False, "no job has this key")


async def test_users_are_named_and_only_admins_read_it(nursery: trio.Nursery) -> None:
    api = await program(nursery, **GIVEN)
    operator, ann = as_(api.here, basic("operator")), as_(api.here, basic("ann"))
    await operator.post("/operations/queues/pause", PAUSE)
    async with api.here.browser(("Cookie", (await log_in(api.here, "operator"))[1])) as browser:
        await browser.do("queues resume", queue="mail")

    assert (await operator.get("/audit", 403))["right"] == MANAGE
    assert (await as_(api.here, basic("reader")).get("/audit", 403))["right"] == MANAGE
    entries = (await ann.get("/audit"))["entries"]
    assert [(each["user"], each["role"]) for each in entries] == [("operator", "operator")] * 2


async def test_it_comes_in_pages(nursery: trio.Nursery) -> None:
    api = await program(nursery)
    for _ in range(3):
        await api.post("/operations/queues/pause", PAUSE)
        await api.post("/operations/queues/resume", RESUME)

    async def page(cursor: str) -> Any:
        return await api.get(f"/audit?limit=2&operation=queues%20pause{cursor}")

    first = await page("")
    second = await page(f"&cursor={first['next']}")

    assert [each["number"] for each in first["entries"]] == [5, 3]
    assert [each["number"] for each in second["entries"]] == [1]
    assert second["next"] is None
    assert (await api.get("/audit?user=ann"))["entries"] == []


async def test_operations_outlive_a_restart(tmp_path: Path, nursery: trio.Nursery) -> None:
    path = tmp_path / "audit"
    async with trio.open_nursery() as first:
        api = await program(first, web_audit_file=str(path))
        await api.post("/operations/queues/pause", {"arguments": {"queue": '"\n\u202e'}})
        with trio.fail_after(20):
            while not path.exists() or not path.read_bytes():
                await trio.sleep(0.01)
        first.cancel_scope.cancel()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    [line] = path.read_text().splitlines()
    assert json.loads(line)["operation"] == "queues pause"

    api = await program(nursery, web_audit_file=str(path))
    with trio.fail_after(20):
        while not (entries := (await api.get("/audit"))["entries"]):
            await trio.sleep(0.01)
    assert [each["target"] for each in entries] == ['"\n\u202e all']


async def test_the_file_is_bounded(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST", 2000)
    path = tmp_path / "audit"
    for number in range(50):
        audit.append(path, [json.dumps({"n": number, "x": "y" * 100})])

    sizes = [each.stat().st_size for each in tmp_path.iterdir()]

    assert sorted(each.name for each in tmp_path.iterdir()) == ["audit", "audit.1"]
    assert all(size <= 2000 for size in sizes)
    assert '"n": 49' in path.read_text()


def test_what_is_in_memory_is_bounded() -> None:
    log = made()
    for _ in range(KEPT + 10):
        noted(log, outcome=Outcome(says=["x" * 10_000]))

    found, has_more = log.find(None, KEPT * 2, lambda _: True)

    assert (len(found), has_more) == (KEPT, False)
    assert found[0]["number"] == KEPT + 10
    assert len(found[0]["outcome"]) == 1000


def test_lines_that_are_no_entries_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    good = {
        "at_ms": 1, "user": "", "role": "admin", "address": "", "by": "http", "operation": "o",
        "target": "t", "outcome": "", "is_ok": True,
    }  # fmt: skip
    lines = [b"\xff", b"{}", b"[" * 5000, json.dumps({**good, "at_ms": "x"}).encode(), b"1"]
    path.write_bytes(b"\n".join([*lines, json.dumps(good).encode(), b'{"at_ms": 1, "us']))

    assert audit.read(path) == [good]
    assert audit.read(tmp_path / "none") == []


async def test_a_file_that_cannot_be_written_is_told_once_and_tried_again(
    tmp_path: Path,
) -> None:
    told: list[str] = []
    path = tmp_path / "no" / "audit"
    log = made(path)
    log.warn = told.append
    noted(log, "q1")
    await log.close()
    noted(log, "q2")
    await log.close()
    assert len(told) == 1
    assert "No such file" in told[0]

    path.parent.mkdir()
    noted(log, "q3")
    await log.close()

    assert [each["target"] for each in audit.read(path)] == ["q1", "q2", "q3"]
    assert len(log.entries) == 3


async def test_the_log_of_the_node_has_the_same(nursery: trio.Nursery) -> None:
    logged: list[tuple[str, dict[str, Any]]] = []
    log = Audit(Config, lambda event, facts: logged.append((event, facts)), pytest.fail)
    noted(log)

    [(event, facts)] = logged
    assert (event, facts["user"], facts["operation"]) == ("console action", "ann", "queues pause")

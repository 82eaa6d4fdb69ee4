"""The topics `flow` and `flows`, of a real flow that a worker runs."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import attrs
import pytest
import trio

from disque_trio.client import Client
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.observer import Observer
from disque_trio.observe.operations import OPERATIONS
from disque_trio.testing.server.kit import Server
from disque_trio.worker import App, Codec, Dead, EnqueuedFlow
from disque_trio.worker.operating.plans import MistakeError, Outcome

mended: Final[set[str]] = set()


def app_of(server: Server) -> App[None]:
    app = App[None](server.url)

    @app.task(name="cut", queue="film")
    async def cut(film: str) -> None: ...

    @app.task(name="encode", queue="film")
    async def encode(film: str, part: int) -> None:
        if part == 2 and film not in mended:
            raise Dead("no such codec")

    @app.task(name="publish", queue="film")
    async def publish(film: str) -> None: ...

    @app.task(name="hang", queue="film")
    async def hang(film: str) -> None:
        await trio.sleep_forever()

    return app


async def film(app: App[None], name: str) -> EnqueuedFlow:
    """One cut, three parts of which one is dead, and what comes after them."""
    flow = app.flow()
    first = flow.add(app.tasks["cut"].call(name))
    parts = [flow.add(app.tasks["encode"].call(name, n), after=[first]) for n in range(3)]
    flow.add(app.tasks["publish"].call(name), after=[first, *parts])
    return await flow.enqueue()


@attrs.frozen
class Seen:
    observer: Observer

    async def told(self, topic: str, **args: Any) -> dict[str, Any]:
        self.observer.survey.looked = None
        data, _ = await self.observer.answer(topic, args)
        return data

    async def until(self, id: str, state: str) -> dict[str, Any]:
        with trio.fail_after(60):
            while (view := await self.told("flow", id=id)).get("state") != state:
                await trio.sleep(0.1)
        return view

    async def operate(self, operation: str, id: str) -> tuple[list[str], Outcome]:
        plan = await OPERATIONS[operation].planned(self.observer.client, {"id": id})
        outcome = Outcome()
        await plan.run(outcome, lambda _: None)
        return plan.says, outcome


@asynccontextmanager
async def seeing(server: Server) -> AsyncIterator[Seen]:
    async with DeadlineClient(server.url) as client:
        yield Seen(Observer(client))


async def test_a_flow_has_its_members_with_states_and_what_they_wait_for(
    disque_server: Server,
) -> None:
    app = app_of(disque_server)
    async with app, disque_server.worker(app), seeing(disque_server) as seen:
        flow = await film(app, "sea")

        view = await seen.until(flow.id, "failed")

    assert [each["state"] for each in view["members"]] == ["done"] * 3 + ["dead", "pending"]
    after = [each["after"] for each in view["members"]]
    assert after == [[], [[0, 0]], [[0, 0]], [[0, 0]], [[0, 3]]]
    assert view["counts"] == {"done": 3, "dead": 1, "pending": 1}
    [dead] = [each for each in view["members"] if each["state"] == "dead"]
    assert (dead["task"], dead["error"]["message"]) == ("encode", "no such codec")
    assert view["coordinator"]["task"] == "disque-trio.flow"


async def test_dead_members_are_redriven_and_the_end_is_still_shown(disque_server: Server) -> None:
    app = app_of(disque_server)
    async with app, disque_server.worker(app), seeing(disque_server) as seen:
        flow = await film(app, "mended")
        await seen.until(flow.id, "failed")
        mended.add("mended")

        says, outcome = await seen.operate("flows retry", flow.id)

        assert says[0] == "enqueued with all their attempts: 1 encode"
        assert (outcome.count, outcome.says) == (1, ["redriven: 1 job"])
        view = await seen.until(flow.id, "done")
        assert view["counts"] == {"done": 5}
        listed = (await seen.told("flows"))["flows"]
        assert [each["state"] for each in listed if each["id"] == flow.id] == ["done"]
        with pytest.raises(MistakeError, match="it has ended"):
            await seen.operate("flows retry", flow.id)


@pytest.mark.slow
async def test_a_flow_that_is_cancelled_shows_which_members_that_has_ended(
    disque_server: Server,
) -> None:
    app = app_of(disque_server)
    async with app, disque_server.worker(app), seeing(disque_server) as seen:
        flow = app.flow()
        done = flow.add(app.tasks["cut"].call("gone"))
        hangs = flow.add(app.tasks["hang"].call("gone"), after=[done])
        flow.add(app.tasks["publish"].call("gone"), after=[hangs])
        id = (await flow.enqueue()).id
        with trio.fail_after(60):
            while (await seen.told("flow", id=id))["counts"].get("running") != 1:
                await trio.sleep(0.1)

        says, outcome = await seen.operate("flows cancel", id)

        assert says[:2] == ["not added: 1 publish", "cancelled, because they wait or run: 1 hang"]
        assert outcome.says == ["the flow is cancelled"]
        with trio.fail_after(60):
            while (view := await seen.told("flow", id=id))["counts"] != {"done": 1, "cancelled": 2}:
                await trio.sleep(0.1)
        assert view["state"] == "cancelled"


async def test_flows_are_listed_and_their_members_lead_to_them(disque_server: Server) -> None:
    app = app_of(disque_server)
    async with app, seeing(disque_server) as seen:
        flow = await film(app, "listed")
        plain = (await app.tasks["cut"].enqueue("plain")).id
        [row] = [each for each in (await seen.told("flows"))["flows"] if each["id"] == flow.id]

        assert (row["size"], row["counts"], row["queue"]) == (5, {"pending": 5}, "film")
        assert row["tasks"] == ["cut", "encode", "publish"]
        assert (await seen.told("job", id=flow.id))["flow"] == flow.id
        assert (await seen.told("job", id=plain))["flow"] == ""
        async with disque_server.worker(app):
            view = await seen.until(flow.id, "failed")
        members = [each["id"] for each in view["members"] if each["id"]]
        assert {(await seen.told("job", id=id))["flow"] for id in members} == {flow.id}
        with pytest.raises(MistakeError, match="begin with D-"):
            await seen.told("flow", id="x")


async def test_what_is_no_flow_is_told_with_the_reason(disque_server: Server) -> None:
    app, missing = app_of(disque_server), "D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
    async with app, seeing(disque_server) as seen:
        plain = (await app.tasks["cut"].enqueue("plain")).id

        assert "a job of task cut" in (await seen.told("flow", id=plain))["why"]
        assert "it has ended, or was never added" in (await seen.told("flow", id=missing))["why"]


GONE: Final = object()


@pytest.mark.parametrize(
    "wrong",
    [
        {"until": 1e308},
        {"until": -1},
        {"until": "soon"},
        {"flow": None},
        {"flow": GONE},
        {"flow": ["x"]},
        {"members": 7},
        {"members": [{"steps": [], "after": [0]}]},
        {"members": []},
    ],
)
async def test_bodies_that_only_look_like_flows_do_no_harm(
    disque_server: Server, wrong: dict[str, Any]
) -> None:
    app = app_of(disque_server)
    async with app, seeing(disque_server) as seen, Client(disque_server.url) as client:
        flow = await film(app, "real")
        shown = await client.show(flow.id)
        assert shown is not None
        body = json.loads(shown.body or b"")
        kwargs = (body["kwargs"] | wrong).items()
        body["kwargs"] = {name: value for name, value in kwargs if value is not GONE}
        fake = await client.addjob("film", json.dumps(body).encode())

        assert flow.id in [each["id"] for each in (await seen.told("flows"))["flows"]]
        with suppress(MistakeError):
            await seen.told("flow", id=fake)
        await seen.told("job", id=fake)


class Secret(Codec):
    name = "secret"

    def encode(self, body: bytes) -> bytes:
        return body[::-1]

    def decode(self, body: bytes, most: int) -> bytes:  # noqa: ARG002
        return body[::-1]


async def test_a_flow_whose_body_is_encoded_by_its_app_is_counted_as_unread(
    disque_server: Server,
) -> None:
    app = App[None](disque_server.url, codec=Secret())

    @app.task(name="hide", queue="film")
    async def hide() -> None: ...

    flow = app.flow()
    flow.add(hide.call())
    async with app, seeing(disque_server) as seen:
        id = (await flow.enqueue()).id

        assert (await seen.told("flows"))["unread"] == 1
        with pytest.raises(MistakeError, match="cannot be read here: codec secret"):
            await seen.told("flow", id=id)

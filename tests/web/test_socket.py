"""What browsers are told over the console's socket, and what they may do."""

import pytest
import trio
from trio_websocket import ConnectionClosed

from disque_trio.client import Client
from disque_trio.client.address import Address
from disque_trio.observe.operations import operation, queues
from disque_trio.web import subscriptions
from disque_trio.web import websocket_session as sessions
from disque_trio.worker.operating.asking import Found
from tests.web.browser import console


async def test_a_browser_is_greeted(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    async with here.browser() as browser:
        hello = await browser.hear("hello")

    assert (hello["v"], hello["role"], hello["replay"]) == (1, "admin", False)
    assert {"overview", "queues", "job"} <= set(hello["topics"])
    assert {"queues pause", "jobs redrive"} <= {each["key"] for each in hello["operations"]}


async def test_answers_come_when_they_change(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    async with here.browser() as browser:
        await here.client.addjob("mail", "body", replicate=1)
        assert (await browser.see("queue", name="mail"))["queue"]["jobs"] == 1
        await here.client.addjob("mail", "body", replicate=1)
        while (await browser.hear("put", 1))["data"]["queue"]["jobs"] != 2:
            pass


async def test_each_topic_is_told_of_a_whole_cluster(nursery: trio.Nursery) -> None:
    here = await console(nursery, 3)
    id = await here.client.addjob("mail", "body", replicate=2)
    async with here.browser() as browser:
        assert len((await browser.see("overview", 1))["nodes"]) == 3
        assert len((await browser.see("cluster", 2))["sees"]) == 6
        assert (await browser.see("queues", 3))["rows"][0]["name"] == "mail"
        assert len((await browser.see("job", 4, id=id))["copies"]) == 2
        for number, topic in enumerate(("workers", "dead", "later"), 5):
            assert await browser.see(topic, number)


async def test_a_mistake_is_told_in_a_sentence_and_the_socket_goes_on(
    nursery: trio.Nursery,
) -> None:
    here = await console(nursery)
    async with here.browser() as browser:
        for frame in (
            {"t": "sub", "id": 1, "topic": "nothing"},
            {"t": "sub", "id": "x", "topic": "queues"},
            {"t": "sub", "id": 1, "topic": "queues", "args": []},
            {"t": "sub", "id": 1, "topic": "queues", "every": 1e400},
            {"t": "sub", "id": 1, "topic": "queues", "args": {"sort": "colour"}},
            {"t": "sub", "id": 1, "topic": "queue", "args": {"name": 7}},
            {"t": "sub", "id": 1, "topic": "queue", "args": {"name_b64": "?"}},
            {"t": "sub", "id": 1, "topic": "job", "args": {"id": "J-1"}},
            {"t": "do", "id": 1, "operation": "explode"},
            {
                "t": "do",
                "id": 1,
                "operation": "queues pause",
                "args": {"side": "half"},
            },
            {"t": "do", "id": 1, "token": "forged"},
            {"t": "dance", "id": 1},
        ):
            await browser.say(**frame)
            assert (await browser.hear("error"))["says"], frame
        assert await browser.see("overview", 2)


async def test_nobody_asks_when_nobody_looks(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscriptions, "LINGER_S", 0.2)
    here = await console(nursery)
    async with here.browser() as browser:
        await browser.see("overview")
        assert here.nodes[0].state.clients
    with trio.fail_after(20):
        while here.nodes[0].state.clients:
            await trio.sleep(0.05)


# Operations.


async def test_a_plan_changes_nothing_and_is_carried_out_once(nursery: trio.Nursery) -> None:
    here = await console(nursery, 2)
    await here.client.addjob("mail", "body", replicate=1)
    async with here.browser() as browser:
        plan = await browser.plan("queues pause", queue="mail", side="out")
        assert 'deliveries of queue "mail" stop at 2 nodes' in plan["says"]
        assert await here.client.pause("mail", "state") == "none"

        await browser.say(t="do", id=10, token=plan["token"])
        done = await browser.hear("done", 10)
        assert (len(done["says"]), done["failed"]) == (2, [])
        assert await here.client.pause("mail", "state") == "out"

        await browser.say(t="do", id=11, token=plan["token"])
        assert "ask for a new one" in (await browser.hear("error", 11))["says"]


async def test_the_outcome_names_nodes_that_were_left_out(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = await console(nursery)

    async def answering(client: Client) -> Found[Address]:
        found = await operation.answering(client)
        return Found(found.items, {"n2:7711": "no answer within 1 s"})

    monkeypatch.setattr(queues, "answering", answering)
    async with here.browser() as browser:
        done = await browser.do("queues resume", queue="mail")

    assert done["failed"] == ["n2:7711 is left out: no answer within 1 s"]
    assert len(done["says"]) == 1


async def test_jobs_are_ended_queued_and_redriven(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    async with here.browser() as browser:
        id = await here.client.addjob("mail", "body", replicate=1, retry=60)
        [job] = await here.client.getjob("mail")
        plan = await browser.plan("jobs requeue", id=id)
        assert any("run twice" in line for line in plan["says"])
        assert not (await browser.do("jobs requeue", id=id))["failed"]
        assert await here.client.qlen("mail") == 1
        await here.client.getjob("mail")
        assert not (await browser.do("jobs nack", id=id))["failed"]
        assert await here.client.qlen("mail") == 1
        await here.client.getjob("mail")
        await here.client.nack(job, dead="broken")
        done = await browser.do("queues redrive", queue="mail", rate=10, limit=5)
        assert done["says"] == ["redriven: 1 job"]
        assert await here.client.qlen("mail") == 1
        assert not (await browser.do("jobs acknowledge", id=id))["failed"]
        assert await here.client.qlen("mail") == 0


async def test_a_purge_wants_the_name_typed(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    await here.client.addjob("mail", "body", replicate=1)
    async with here.browser() as browser:
        assert (await browser.plan("queues purge", queue="mail"))["confirm"] == "mail"
        assert not (await browser.do("queues purge", queue="mail"))["failed"]
    assert await here.client.qlen("mail") == 0


async def test_connections_are_ended_and_nodes_leave(nursery: trio.Nursery) -> None:
    here = await console(nursery, 2)
    node = here.nodes[0]
    async with here.browser() as browser:
        me = node.state.cluster.myself.id.decode()
        nodes = (await browser.see("cluster"))["nodes"]
        found = sorted(nodes, key=lambda each: each["id"] != me)
        stream = await trio.open_tcp_stream("127.0.0.1", node.state.config.port)
        await stream.send_all(b"CLIENT ID\r\n")
        id = (await stream.receive_some()).decode().strip()[1:]
        done = await browser.do("nodes kick", node=found[0]["node"], client=id)
        assert done["failed"] == []
        assert await stream.receive_some() == b""
        await stream.aclose()

        plan = await browser.plan("nodes leave", node=found[1]["node"])
        assert plan["confirm"] == found[1]["id"][:8]
        await browser.do("nodes leave", node=found[1]["node"])
        assert here.nodes[1].state.cluster.is_leaving


async def test_every_operation_is_in_the_log(
    nursery: trio.Nursery, capsys: pytest.CaptureFixture[str]
) -> None:
    here = await console(nursery)
    async with here.browser() as browser:
        await browser.do("queues pause", queue="mail", side="in")

    [line] = [each for each in capsys.readouterr().err.splitlines() if "console action" in each]
    assert "queues pause" in line
    assert "role=admin" in line
    assert "address=127.0.0.1" in line


# Ends.


async def test_a_frame_that_is_none_ends_the_socket(nursery: trio.Nursery) -> None:
    here = await console(nursery)
    for text in ("no json", "[]", "[" * 5000, "x" * 70_000):
        async with here.browser() as browser:
            with pytest.raises(ConnectionClosed):  # noqa: PT012
                await browser.socket.send_message(text)
                with trio.fail_after(20):
                    while True:
                        await browser.socket.get_message()
    assert (await here.ask("/livez")).status == 200


async def test_a_session_that_ends_takes_the_socket_with_it(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "PING_S", 0.1)
    here = await console(nursery, requirepass=b"sesame")
    async with here.browser(await here.cookie("sesame")) as browser:
        await browser.hear("hello")
        state = here.nodes[0].state
        state.config = state.config.__class__(web_port=here.port, requirepass=b"another")
        assert "log in again" in (await browser.hear("bye"))["says"]

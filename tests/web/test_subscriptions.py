"""Who is given which answers, in virtual time."""

from itertools import pairwise
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from disque_trio.client.address import Address, Cluster
from disque_trio.client.errors import DisqueError
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.observer import Answer, Observer
from disque_trio.observe.values import Json
from disque_trio.web.roles import User
from disque_trio.web.subscriptions import LINGER_S, Broker, Subscriber, View
from disque_trio.web.websocket_session import Visitor, WebSocketSession


@attrs.define(eq=False)
class Scripted(Observer):
    """Counts, instead of asking."""

    asked: int = 0
    runs: int = 0
    took: float = 0.0
    error: Exception | None = None

    async def run(self) -> None:
        self.runs += 1
        try:
            await trio.sleep_forever()
        finally:
            self.runs -= 1

    async def answer(self, topic: str, args: dict[str, Any]) -> Answer:
        assert not args
        await trio.sleep(self.took)
        self.asked += 1
        if self.error is not None:
            raise self.error
        return {"asked": self.asked if topic == "overview" else 0}, {}


@attrs.define
class Rig:
    broker: Broker
    observer: Scripted
    warnings: list[str]


async def rig(nursery: trio.Nursery, **script: Any) -> Rig:
    observer = Scripted(DeadlineClient(Cluster([Address()])), **script)
    warnings: list[str] = []
    broker = Broker(observer, warnings.append)
    nursery.start_soon(broker.run)
    await trio.testing.wait_all_tasks_blocked()
    return Rig(broker, observer, warnings)


async def test_the_same_question_is_asked_once_for_all(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await rig(nursery)
    one: list[View] = []
    other: list[View] = []
    here.broker.subscribe("overview", {}, Subscriber(one.append, 1.0))
    here.broker.subscribe("overview", {}, Subscriber(other.append, 1.0))

    await trio.sleep(9.5)

    assert here.observer.asked == 10
    assert [view.text for view in one] == [view.text for view in other]


class Sandbox:
    """Counts how often it is looked at."""

    looks = 0

    def state(self) -> Json:
        self.looks += 1
        return {}


async def test_all_browsers_share_one_look_at_the_sandbox_whatever_they_send_with_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await rig(nursery)
    there: Any = Sandbox()
    here.broker.sandbox = there
    for number in range(5):
        here.broker.subscribe("sandbox", {"number": number}, Subscriber(lambda _view: None, 1.0))

    await trio.sleep(9.5)

    assert there.looks == 10


async def test_what_has_not_changed_is_not_told_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await rig(nursery)
    views: list[View] = []
    here.broker.subscribe("cluster", {}, Subscriber(views.append, 1.0))

    await trio.sleep(10)

    assert len(views) == 1


async def test_who_wants_it_less_often_is_told_less_often(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await rig(nursery)
    often: list[View] = []
    seldom: list[View] = []
    here.broker.subscribe("overview", {}, Subscriber(often.append, 1.0))
    here.broker.subscribe("overview", {}, Subscriber(seldom.append, 5.0))

    await trio.sleep(10.5)

    assert (len(often), len(seldom)) == (11, 3)
    assert seldom[-1].text == often[-1].text


async def test_a_question_that_takes_long_is_asked_less_often(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await rig(nursery, took=1.0)
    here.broker.subscribe("overview", {}, Subscriber(lambda _: None, 0.5))

    await trio.sleep(20.5)

    assert here.observer.asked == 4  # a fifth of the time


async def test_nobody_looks_nobody_asks(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await rig(nursery)
    leave = here.broker.subscribe("overview", {}, Subscriber(lambda _: None, 1.0))
    await trio.sleep(3.5)
    assert here.observer.runs == 1

    leave()
    asked = here.observer.asked
    await trio.sleep(LINGER_S + 2)

    assert (here.observer.asked, here.observer.runs) == (asked, 0)
    here.broker.subscribe("overview", {}, Subscriber(lambda _: None, 1.0))
    await trio.sleep(1.5)
    assert here.observer.runs == 1


@pytest.mark.parametrize("error", [DisqueError("no node answers"), ZeroDivisionError("ours")])
async def test_what_fails_is_told_and_asked_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, error: Exception
) -> None:
    here = await rig(nursery, error=error)
    views: list[View] = []
    here.broker.subscribe("overview", {}, Subscriber(views.append, 1.0))
    await trio.sleep(2.5)
    here.observer.error = None
    await trio.sleep(1)

    assert [view.is_error for view in views] == [True, False]
    assert bool(here.warnings) == isinstance(error, ZeroDivisionError)


@attrs.define
class SlowSocket:
    """A browser that takes so many seconds for each frame."""

    seconds: float
    frames: list[str] = attrs.Factory(list)

    async def send_message(self, frame: str) -> None:
        await trio.sleep(self.seconds)
        self.frames.append(frame)


async def test_a_slow_browser_gets_the_newest_only(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    here = await rig(nursery)
    socket = SlowSocket(5.0)
    visitor = Visitor(
        user=lambda: User("", "admin"),
        is_still_in=lambda: True,
        note=lambda **_facts: None,
        hello={},
    )
    talk = WebSocketSession(here.broker, visitor, socket)
    nursery.start_soon(talk._send)
    talk._subscribe({"t": "sub", "id": 1, "topic": "overview", "every": 1000})

    await trio.sleep(26)

    told = [int(frame.partition('"asked":')[2].partition("}")[0]) for frame in socket.frames]
    assert len(told) == 5
    assert all(5 <= after - before <= 6 for before, after in pairwise(told[1:]))
    assert not talk._frames

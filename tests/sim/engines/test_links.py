"""Links without anybody real at their ends."""

import random

import attrs
import pytest

from disque_trio.sim.engines.events import Engine
from disque_trio.sim.engines.links import End, FramePacket, LinkHandler, Links
from disque_trio.sim.model.network import DIAL_WAITS, STALL, Network, Rule
from disque_trio.sim.scenarios.plan import Latency, LinkPlan
from disque_trio.statemachine.messages import GotJob, Ping
from disque_trio.statemachine.wording import wording
from disque_trio.wire.frames import FrameParser, encode
from tests.rig import JOB, ME

FRAME = encode(ME, 7711, 0, GotJob(JOB))
PING = encode(ME, 7711, 0, Ping())
LATENCY = 1_000


@attrs.define(eq=False)
class EventLog:
    """A handler that keeps its events."""

    events: list[str] = attrs.Factory(list)

    def linked(self) -> None:
        self.events.append("linked")

    def receive(self, packet: FramePacket) -> None:
        self.events.append(packet.wording.name)

    def ended(self) -> None:
        self.events.append("ended")


class World:
    """Two nodes; n2 listens unless `is_listening` is off."""

    def __init__(self) -> None:
        self.engine = Engine()
        plan = LinkPlan(latency=Latency(fast=(LATENCY, LATENCY)))
        self.network = Network(plan, random.Random(1))
        self.links = Links(self.engine, self.network, self)
        self.is_listening = True
        self.accepted: list[EventLog] = []
        self.ends: list[End] = []
        self.lost_for: list[str] = []
        self.links.listen(2, self._welcome)

    def _welcome(self, end: End) -> LinkHandler | None:
        if not self.is_listening:
            return None
        self.ends.append(end)
        self.accepted.append(EventLog())
        return self.accepted[-1]

    # FrameObserver.

    def sent(self, packet: FramePacket) -> None:
        assert isinstance(packet.frame, bytes)
        [frame] = FrameParser().feed(packet.frame)
        packet.wording = wording(frame.message, {})

    def lost(self, packet: FramePacket, why: str) -> None:
        assert packet.frame
        self.lost_for.append(why)

    def dial(self, target: int = 2) -> tuple[End, EventLog]:
        dialled = EventLog()
        return self.links.dial(1, target, dialled), dialled

    def run(self, duration: int) -> None:
        self.engine.run(self.engine.now + duration)


@pytest.fixture
def world() -> World:
    return World()


def test_what_is_sent_before_the_link_is_up_follows_in_order(world: World) -> None:
    end, dialled = world.dial()
    end.send([FRAME, PING])

    world.run(10 * LATENCY)

    assert dialled.events == ["linked"]
    assert world.accepted[0].events == ["gotjob", "ping"]


def test_the_other_side_answers_on_the_same_connection(world: World) -> None:
    _, dialled = world.dial()
    world.run(10 * LATENCY)

    world.ends[0].send([PING])
    world.run(10 * LATENCY)

    assert dialled.events == ["linked", "ping"]


def test_a_dial_to_nobody_is_refused(world: World) -> None:
    end, dialled = world.dial(target=0)
    end.send([FRAME])

    world.run(10 * LATENCY)

    assert dialled.events == ["ended"]
    assert world.lost_for == ["never linked"]


def test_a_dial_to_a_process_that_is_down_is_refused(world: World) -> None:
    world.is_listening = False
    _, dialled = world.dial()

    world.run(10 * LATENCY)

    assert dialled.events == ["ended"]


def test_a_dial_across_a_cut_knocks_until_it_gives_up(world: World) -> None:
    world.network.cut(2, 1)
    _, dialled = world.dial()

    world.run(sum(DIAL_WAITS))
    assert dialled.events == []
    world.run(10 * LATENCY)

    assert dialled.events == ["ended"]


def test_a_dial_goes_on_when_the_cut_ends(world: World) -> None:
    world.network.cut(1, 2)
    _, dialled = world.dial()
    world.run(LATENCY)
    world.network.mend(1, 2)

    world.run(sum(DIAL_WAITS))

    assert dialled.events == ["linked"]


def test_a_dial_that_is_given_up_gets_no_events(world: World) -> None:
    world.network.cut(1, 2)
    end, dialled = world.dial()
    end.hang_up()
    world.network.mend(1, 2)

    world.run(sum(DIAL_WAITS))

    assert dialled.events == []
    assert world.accepted == []


def test_what_was_sent_before_hanging_up_still_arrives(world: World) -> None:
    end, _ = world.dial()
    world.run(10 * LATENCY)

    end.send([FRAME])
    end.hang_up()
    end.send([FRAME])
    world.run(10 * LATENCY)

    assert world.accepted[0].events == ["gotjob", "ended"]


def test_what_comes_to_a_closed_end_is_lost(world: World) -> None:
    end, dialled = world.dial()
    world.run(10 * LATENCY)

    world.ends[0].send([FRAME])
    end.hang_up()
    world.run(10 * LATENCY)

    assert dialled.events == ["linked"]
    assert world.lost_for == ["closed"]


def test_a_crash_ends_all_connections_of_the_node(world: World) -> None:
    _, dialled = world.dial()
    _, other = world.dial()
    world.run(10 * LATENCY)

    world.links.crashed(2)
    world.run(10 * LATENCY)

    assert dialled.events == other.events == ["linked", "ended"]
    assert world.accepted[0].events == []


def test_a_short_cut_delays_and_loses_nothing(world: World) -> None:
    end, _ = world.dial()
    world.run(10 * LATENCY)
    world.network.cut(1, 2)
    end.send([FRAME])
    world.run(STALL // 2)
    assert world.accepted[0].events == []

    world.network.mend(1, 2)
    world.links.mended(1, 2)
    world.run(STALL)

    assert world.accepted[0].events == ["gotjob"]


def test_a_long_cut_breaks_the_connection_for_both_and_loses_what_was_kept(world: World) -> None:
    end, dialled = world.dial()
    world.run(10 * LATENCY)
    world.network.cut(1, 2)
    end.send([FRAME])

    world.run(STALL + 10 * LATENCY)

    assert dialled.events == ["linked", "ended"]
    assert world.accepted[0].events == ["ended"]
    assert world.lost_for == ["broken"]


def test_a_rule_swallows_the_frames_that_it_names(world: World) -> None:
    end, _ = world.dial()
    world.run(10 * LATENCY)
    world.network.path(1, 2).rules.append(Rule(only="gotjob"))

    end.send([FRAME, PING])
    world.run(10 * LATENCY)

    assert world.accepted[0].events == ["ping"]
    assert world.lost_for == ["dropped"]

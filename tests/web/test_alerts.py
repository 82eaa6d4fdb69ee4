"""Each alert of deploy/prometheus fires when its trouble is there, and is silent when all is well.

The rules are asked of what a node exports before the trouble and after it.
"""

import re
from collections.abc import Callable
from typing import Final

import attrs
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from disque_trio.statemachine.base import FAIL, Status
from disque_trio.statemachine.chores import JournalVitals, Vitals
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.nodetable import mark
from disque_trio.web import metrics
from disque_trio.web.metrics import FAMILIES, Facts, _values, text_of
from tests.rig import N2, Rig
from tests.trees import HOME
from tests.web.promql import Query, Scrape
from tests.web.test_documented import EXPRESSIONS

FILE: Final = HOME / "deploy" / "prometheus" / "disque.rules.yml"
MINUTE: Final = 60_000
BY_PROMETHEUS: Final = (("instance", "10.0.0.1:8711"), ("job", "disque"))


@attrs.define
class World:
    """A node with a peer, and what its process and Prometheus say of it."""

    rig: Rig = attrs.Factory(lambda: Rig(peers=1, config=Config(cluster_node_timeout=10**9)))
    vitals: Vitals = attrs.Factory(Vitals)
    is_ready: bool = True
    up: int = 1

    async def scrape(self) -> Scrape:
        """All metrics, as Prometheus keeps them."""
        sums = await metrics.sums_of(self.rig.node)
        facts = Facts(self.rig.node, self.vitals, sums, self.is_ready)
        text = text_of([(family, _values(family, facts)) for family in FAMILIES]).decode()
        samples = {
            (sample.name, frozenset((*sample.labels.items(), *BY_PROMETHEUS))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
        samples["up", frozenset(BY_PROMETHEUS)] = float(self.up)
        return Scrape(self.rig.node.wall / 1000, samples)

    def work(self, jobs: int = 100) -> None:
        """Jobs come and are done."""
        for _ in range(jobs):
            id = self.rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", 60)
            assert isinstance(id, Status)
            self.rig.ask("GETJOB", "FROM", "q")
            self.rig.ask("ACKJOB", id.text)

    def refused(self) -> None:
        """A producer asks for more copies than there are nodes, again and again."""
        for _ in range(400):
            self.rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 7)

    def left(self) -> None:
        """Jobs that nobody takes."""
        self.rig.ask("ADDJOB", "left", "body", 0, "REPLICATE", 1, "RETRY", 0)
        self.rig.advance(MINUTE + 1_000)

    def limited(self) -> None:
        """A queue has limits, and the peer, which is an original node, does not know them."""
        self.rig.ask("QUEUE", "LIMIT", "q", "CONCURRENCY", 9)

    def late(self) -> None:
        """Jobs that are taken five minutes after they were due."""
        for _ in range(200):
            self.rig.node.tally.wait.note(300_000)

    def unacknowledged(self) -> None:
        """Workers take jobs and never acknowledge them."""
        for _ in range(20):
            self.rig.ask("ADDJOB", "hard", "body", 0, "REPLICATE", 1, "RETRY", 5)
        for _ in range(5):
            self.rig.ask("GETJOB", "COUNT", 20, "FROM", "hard")
            self.rig.advance(10_000)

    def dying(self) -> None:
        """A job is dead after its first delivery."""
        self.rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", 1, "LIMIT", 1)
        self.rig.ask("GETJOB", "FROM", "q")
        self.rig.advance(5_000)

    def lost_peer(self) -> None:
        """The other node has failed."""
        mark(self.rig.node, self.rig.node.cluster.nodes[N2], FAIL)

    def short(self, *, hard: bool) -> None:
        """Jobs take more memory than one of the limits."""
        memory = self.rig.node.memory
        memory.held = (memory.hard if hard else memory.soft) + 1


def _set(**facts: object) -> Callable[[World], None]:
    def happen(world: World) -> None:
        for name, value in facts.items():
            setattr(world, name, value)

    return happen


def _lacking(world: World) -> None:
    world.rig.node.repair.reported = 3


def _dropping(world: World) -> None:
    world.rig.node.stats.frames_dropped += 9


TROUBLES: Final[dict[str, Callable[[World], None]]] = {
    "DisqueNodeDown": _set(up=0),
    "DisqueNotReady": _set(is_ready=False),
    "DisquePeerLost": World.lost_peer,
    "DisqueUnderReplicated": _lacking,
    "DisqueQueuesBehind": World.left,
    "DisqueLimitsNotHeld": World.limited,
    "DisqueWaitHigh": World.late,
    "DisqueRedeliveries": World.unacknowledged,
    "DisqueDeadJobs": World.dying,
    "DisqueMemoryShort": lambda world: world.short(hard=False),
    "DisqueOutOfMemory": lambda world: world.short(hard=True),
    "DisqueJournalBroken": _set(vitals=Vitals(journal=JournalVitals(last_write_ok=False))),
    "DisqueFramesDropped": _dropping,
    "DisqueErrors": World.refused,
    "DisqueProducersRefused": World.refused,
}


def rules() -> dict[str, str]:
    """The expression of each alert."""
    [group] = yaml.safe_load(FILE.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


async def fires(text: str, world: World, happen: Callable[[World], object]) -> bool:
    """Does an alert fire once this has happened?"""
    earlier = await world.scrape()
    world.work()
    world.rig.advance(MINUTE)
    happen(world)
    found = Query(text, earlier, await world.scrape()).value()
    assert isinstance(found, dict)
    return bool(found)


def well() -> World:
    """A node that has seen a little of everything, so that each counter has been exported."""
    world = World()
    world.work(10)
    world.unacknowledged()
    world.dying()
    world.rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 7)
    world.rig.node.tally.wait.note(1)
    for queue in ("hard", "q"):
        world.rig.ask("PURGE", queue)
    world.rig.advance(MINUTE)
    return world


def test_each_alert_has_its_trouble() -> None:
    assert list(TROUBLES) == list(rules())


@pytest.mark.sample(3)
@pytest.mark.parametrize("alert", TROUBLES)
async def test_an_alert_fires_in_its_trouble(alert: str) -> None:
    assert await fires(rules()[alert], well(), TROUBLES[alert])


@pytest.mark.slow
async def test_no_alert_fires_while_all_is_well() -> None:
    world = well()
    fired = [alert for alert, text in rules().items() if await fires(text, world, lambda _: None)]

    assert fired == []


async def test_dead_jobs_that_are_redriven_are_no_new_ones() -> None:
    world = well()
    for _ in range(3):
        world.dying()

    assert not await fires(
        rules()["DisqueDeadJobs"], world, lambda world: world.rig.ask("REDRIVE", "q", "COUNT", 1)
    )


async def test_each_expression_of_the_dashboard_is_understood() -> None:
    world = well()
    earlier = await world.scrape()
    world.rig.advance(MINUTE)
    now = await world.scrape()

    for expression in EXPRESSIONS:
        if "label_values" not in expression:
            Query(expression.replace("$node", ".*"), earlier, now).value()


async def test_values_of_labels_that_are_asked_for_are_exported() -> None:
    """Those that a node exports at any time, and causes."""
    exported = {value for _, labels in (await well().scrape()).samples for _, value in labels}

    for expression in EXPRESSIONS:
        for name, text in re.findall(r'\b(cause|by|state|kind)(?:=~|!~|!=|=)"([^"]*)"', expression):
            known = exported | {str(cause) for cause in Cause} if name in "cause by" else exported
            assert set(text.split("|")) <= known, expression

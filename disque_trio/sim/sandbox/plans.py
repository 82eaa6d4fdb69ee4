"""What a person has done, as a plan: the judge takes its bounds from it, and `sim run` plays it."""

from collections.abc import Iterator

import attrs

from disque_trio.sim.sandbox.stage import Begun, Stage
from disque_trio.sim.scenarios.plan import Consumer, Expect, Fault, Micros, Plan
from disque_trio.sim.scenarios.vocabulary import DUPLICATE_CAUSES

SCENARIO = "sandbox"
NODE_TIMEOUT = "2000"
DRAIN_WORK: tuple[Micros, Micros] = (5_000, 50_000)


def by_hand(nodes: int, seed: int) -> Plan:
    """A cluster in which nothing happens by itself."""
    return Plan(
        scenario=SCENARIO,
        seed=seed,
        nodes=nodes,
        config=(("cluster-node-timeout", NODE_TIMEOUT),),
        codec_every=1,
        chaos=0,
    )


def plan_of(stage: Stage, until: Micros) -> Plan:
    """The plan of the simulation with the deeds in it. The causes of duplicates are known, so that
    only one without a cause is a violation; and it may lose what faults have destroyed."""
    plan = stage.sim.plan
    return attrs.evolve(
        plan,
        adds=(*plan.adds, *stage.added),
        consumers=(*plan.consumers, *_hired(stage), *_drain(stage, plan)),
        faults=(*plan.faults, *_faults(stage)),
        chaos=max(plan.chaos, until + 1),
        expect=Expect(duplicates=DUPLICATE_CAUSES),
    )


def _hired(stage: Stage) -> Iterator[Consumer]:
    for each in stage.hands.hired:
        yield attrs.evolve(each.plan, stop=each.until or 0)


def _drain(stage: Stage, plan: Plan) -> Iterator[Consumer]:
    """At the end each queue has a worker at every node."""
    known = {queue for each in plan.consumers for queue in each.queues}
    for queue in dict.fromkeys(each.queue for each in stage.added):
        if queue not in known:
            for number in stage.sim.world.hosts:
                name = f"drain/{queue}/{number}"
                yield Consumer(
                    name=name, node=number, queues=(queue,), start=stage.sim.now, work=DRAIN_WORK
                )


def _faults(stage: Stage) -> Iterator[Fault]:
    for each in stage.begun:
        if each.trouble is None or each.until != each.fault.at:
            yield attrs.evolve(each.fault, hold=_hold(each))


def _hold(begun: Begun) -> Micros:
    return 0 if begun.trouble is None or begun.until is None else begun.until - begun.fault.at

"""The operations as a plan: the judge derives its bounds from it, and `sim run` plays it."""

from collections.abc import Iterator

import attrs

from disque_trio.sim.sandbox.context import Begun, Context
from disque_trio.sim.scenarios.plan import Consumer, Expect, Fault, Micros, Plan
from disque_trio.sim.scenarios.vocabulary import DUPLICATE_CAUSES

SCENARIO = "sandbox"
NODE_TIMEOUT = "2000"
DRAIN_WORK: tuple[Micros, Micros] = (5_000, 50_000)


def by_hand(nodes: int, seed: int) -> Plan:
    """Return a plan of a cluster without events of its own."""
    return Plan(
        scenario=SCENARIO,
        seed=seed,
        nodes=nodes,
        config=(("cluster-node-timeout", NODE_TIMEOUT),),
        codec_every=1,
        chaos=0,
    )


def plan_of(context: Context, until: Micros) -> Plan:
    """Return the plan of the simulation with its operations. It expects duplicates of all known
    causes, so only one without a cause is a violation. The cluster may lose what faults have
    destroyed."""
    plan = context.sim.plan
    return attrs.evolve(
        plan,
        adds=(*plan.adds, *context.added),
        consumers=(*plan.consumers, *_workers(context), *_drain(context, plan)),
        faults=(*plan.faults, *_faults(context)),
        chaos=max(plan.chaos, until + 1),
        expect=Expect(duplicates=DUPLICATE_CAUSES),
    )


def _workers(context: Context) -> Iterator[Consumer]:
    for each in context.client.workers:
        yield attrs.evolve(each.plan, stop=each.until or 0)


def _drain(context: Context, plan: Plan) -> Iterator[Consumer]:
    """Yield, for the end, a worker at every node for each queue."""
    known = {queue for each in plan.consumers for queue in each.queues}
    for queue in dict.fromkeys(each.queue for each in context.added):
        if queue not in known:
            for number in context.sim.world.hosts:
                name = f"drain/{queue}/{number}"
                yield Consumer(
                    name=name, node=number, queues=(queue,), start=context.sim.now, work=DRAIN_WORK
                )


def _faults(context: Context) -> Iterator[Fault]:
    for each in context.begun:
        if each.active is None or each.until != each.fault.at:
            yield attrs.evolve(each.fault, hold=_hold(each))


def _hold(begun: Begun) -> Micros:
    return 0 if begun.active is None or begun.until is None else begun.until - begun.fault.at

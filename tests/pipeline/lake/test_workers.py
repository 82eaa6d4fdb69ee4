"""What a trace tells of its workers, for the checks in SQL."""

from disque_trio.pipeline.lake import shape
from disque_trio.sim.bounds import absence
from disque_trio.sim.scenarios.plan import Consumer, Plan


def test_a_worker_that_runs_the_engine_may_not_ask_for_longer_than_a_poll() -> None:
    loop = Consumer(name="c1", node=1, queues=("q",))
    engine = Consumer(name="c2", node=2, queues=("q",), kind="engine")
    plan = Plan(scenario="s", seed=1, nodes=2, consumers=(loop, engine))

    (trace,) = shape.traces_table(plan, "r").to_pylist()

    assert [each["poll"] for each in trace["workers"]] == [1_000_000, absence(engine)]

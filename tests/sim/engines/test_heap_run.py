import random
from collections.abc import Sequence

import attrs
import pytest

from disque_trio.sim.engines.heap.nodes import MachineError
from disque_trio.sim.engines.heap.run import simulate
from disque_trio.sim.engines.heap.world import FormingError
from disque_trio.sim.model.recorder import digest_of
from disque_trio.sim.model.vector_clocks import precedes
from disque_trio.sim.scenarios.plan import Add, ClockPlan, Consumer, Fault, LinkPlan, Plan
from disque_trio.statemachine.base import LinkId, Now
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame, GossipMessage
from disque_trio.statemachine.stats import Facts
from disque_trio.tracing.rows import Row
from tests.sim.runs import SECOND, between, of, plan, play, times


def test_a_calm_run_delivers_every_job_once_and_forgets_it() -> None:
    rows = play(plan())

    added = {row.job for row in of(rows, "add.ok")}
    assert len(added) == 20
    assert sorted(row.job for row in of(rows, "get.deliver")) == sorted(added)
    assert {row.job for row in of(rows, "ack.ok")} == added
    for node in ("n1", "n2", "n3"):
        assert {row.job for row in of(rows, "hold", node=node)} == added
        assert {row.job for row in of(rows, "drop", node=node)} == added


def test_a_calm_run_ends_when_nothing_is_left_to_do() -> None:
    rows = play(plan())

    assert rows[-1].kind == "end"
    assert 23 * SECOND <= rows[-1].time < 24 * SECOND


def test_a_run_has_its_parts_in_order() -> None:
    rows = play(plan())

    marks = [row for row in rows if row.kind in {"chaos.end", "heal.end", "rejoin", "end"}]
    assert [row.kind for row in marks] == ["chaos.end", "heal.end", "rejoin", "end"]
    assert [row.time for row in marks[:2]] == [20 * SECOND, 20 * SECOND]
    assert marks[1].detail == "n1,n2,n3"


def test_the_cluster_is_formed_before_time_zero() -> None:
    rows = play(plan())

    assert {row.cause for row in of(rows, "start")} == {"fresh"}
    assert all(row.time < 0 for row in of(rows, "start"))
    assert all(row.time >= 0 for row in of(rows, "add.invoke"))


def test_nodes_may_have_to_meet_first() -> None:
    rows = play(plan(nodes=5, forming="meet"))

    assert of(rows, "send", cause="meet")
    assert len(of(rows, "add.ok")) == 20


def test_rows_are_in_order_of_time_and_bear_the_clocks_of_their_nodes() -> None:
    rows = play(plan(clocks=(ClockPlan(wall_offset_ms=5_000),)))

    assert [row.time for row in rows] == sorted(row.time for row in rows)
    at_one = [row for row in rows if row.node == "n1" and row.mono]
    assert [row.mono for row in at_one] == sorted(row.mono for row in at_one)
    (one, *_), (two, *_) = of(rows, "hold", node="n1"), of(rows, "hold", node="n2")
    assert one.wall - one.mono == two.wall - two.mono + 5_000


def test_every_message_is_sent_once_and_comes_or_is_lost() -> None:
    rows = play(plan(Fault(kind="partition", at=5 * SECOND, groups=((1,), (2, 3)))))

    sent = [row.ref for row in of(rows, "send")]
    assert len(sent) == len(set(sent))
    ended = [row.ref for row in of(rows, "recv", "lost")]
    assert len(ended) == len(set(ended))
    assert set(ended) <= set(sent)
    # What is missing is still on its way at the end, or never left a link that did not come up.
    late = [row for row in of(rows, "send") if row.ref not in set(ended)]
    assert all(row.time > rows[-1].time - SECOND for row in late)


def test_what_one_node_sends_another_gets_later_with_the_same_words() -> None:
    rows = play(plan())

    sent = {row.ref: row for row in of(rows, "send")}
    for row in of(rows, "recv"):
        origin = sent[row.ref]
        assert (origin.node, origin.peer) == (row.peer, row.node)
        assert (origin.cause, origin.job, origin.detail) == (row.cause, row.job, row.detail)
        assert origin.time < row.time


def test_vector_clocks_follow_every_message_and_every_reply() -> None:
    rows = play(plan())

    sent = {row.ref: row for row in of(rows, "send")}
    for row in of(rows, "recv"):
        assert precedes(sent[row.ref].clock, row.clock)
    serves = {row.job: row for row in of(rows, "serve")}
    for row in of(rows, "get.deliver"):
        serve = serves[row.job]
        assert precedes(serve.clock, row.clock)
        assert serve.client == row.client


def test_each_event_of_a_node_has_a_stamp_of_its_own() -> None:
    rows = play(plan(Fault(kind="crash", at=3 * SECOND, hold=SECOND, nodes=(2,))))

    for place, node in enumerate(("n1", "n2", "n3")):
        events = [
            row.clock[place]
            for row in rows
            if row.node == node and (not row.client or row.kind == "serve")
            if row.kind not in {"lost", "nodes"}
        ]
        assert events == sorted(set(events))


def test_vector_clocks_may_be_left_out() -> None:
    rows = play(plan(vector_clocks=False))

    assert {row.clock for row in rows} == {()}


def test_the_outcome_tells_the_digest_of_all_rows() -> None:
    rows: list[Row] = []

    outcome = simulate(plan(), rows.append)

    assert outcome.digest == digest_of(rows)
    assert outcome.end == rows[-1].time
    assert outcome.steps > 1000


def test_an_observer_may_be_spared_the_messages() -> None:
    rows: list[Row] = []

    outcome = simulate(plan(), rows.append, messages=False)

    assert not of(rows, "send", "recv")
    assert outcome == simulate(plan())


def test_the_seed_makes_the_difference() -> None:
    assert simulate(plan(seed=1)).digest == simulate(plan(seed=1)).digest
    assert simulate(plan(seed=1)).digest != simulate(plan(seed=2)).digest


def test_node_ids_come_from_the_seed_alone() -> None:
    ids = [{row.job[2:10] for row in of(play(plan(seed=seed)), "add.ok")} for seed in (1, 1, 2)]

    assert ids[0] == ids[1]
    assert not ids[0] & ids[2]


def test_directives_reach_the_nodes() -> None:
    with_lease = play(plan())
    without = play(plan(config=(("delivery-lease", "no"), ("cluster-node-timeout", "2000"))))

    assert of(with_lease, "send", cause="working")
    assert not of(without, "send", cause="working")


def test_a_core_is_a_majority_that_the_heal_names() -> None:
    crashes = tuple(Fault(kind="crash", at=SECOND, nodes=(node,)) for node in (1, 2, 3, 4, 5))

    rows = play(plan(*crashes, nodes=5, seconds=5, jobs=0, heal="core"))

    (healed,) = of(rows, "heal.end")
    core = healed.detail.split(",")
    assert len(core) == 3
    assert sorted(row.node for row in of(rows, "start", cause="empty")) == sorted(core)
    assert of(rows, "rejoin")


def test_cuts_within_the_core_heal_and_others_stay() -> None:
    everybody = tuple((node,) for node in (1, 2, 3, 4, 5))
    cut = Fault(kind="partition", at=SECOND, groups=everybody)

    rows = play(plan(cut, nodes=5, seconds=5, jobs=0, heal="core"))

    (healed,) = of(rows, "heal.end")
    core = healed.detail.split(",")
    pairs = {(row.node, row.peer) for row in of(rows, "heal")}
    assert pairs == {(one, other) for one in core for other in core if one != other}


def test_a_run_whose_jobs_cannot_all_go_lasts_until_the_bound() -> None:
    forgotten = plan(workers=(), jobs=1, seconds=1, drain=7 * SECOND)

    assert play(forgotten)[-1].time == 8 * SECOND


def test_links_become_reliable_when_chaos_ends() -> None:
    bad = LinkPlan(model="hostile", drop=0.3, duplicate=0.3, reorder=0.3)

    rows = play(plan(link=bad, seconds=12))

    assert of(between(rows, 0, 12), "lost", detail="dropped")
    assert not of(between(rows, 13, 1000), "lost", detail="dropped")


def test_a_hostile_link_may_bring_a_message_twice() -> None:
    rows = play(plan(link=LinkPlan(model="hostile", duplicate=0.5)))

    refs = [row.ref for row in of(rows, "recv")]
    assert len(refs) > len(set(refs)) > 100


def test_bandwidth_slows_large_jobs_down() -> None:
    def copies_take(bytes_per_second: int) -> int:
        add = Add(
            at=0, node=1, producer="p1", queue="q", body="x" * 50_000, timeout_ms=0, replicate=3
        )
        rows = play(plan(jobs=0, adds=(add,), link=LinkPlan(bytes_per_second=bytes_per_second)))
        return times(rows, "add.ok")[0]

    assert copies_take(0) < 10_000
    assert copies_take(100_000) > 500_000


class Clumsy(Machine):
    """Trips over its tenth message about a job."""

    trips = 10

    def message(self, link: LinkId, frame: Frame, now: Now) -> None:
        if not isinstance(frame.message, GossipMessage):
            self.trips -= 1
            if not self.trips:
                raise KeyError("gone")
        super().message(link, frame, now)


def clumsy(
    config: Config,
    myself: Peer,
    rng: random.Random,
    now: Now,
    facts: Facts,
    nodes: Sequence[Peer],
) -> Machine:
    return Clumsy(config, myself, rng, now, facts, nodes)


def test_a_machine_that_raises_ends_the_run_and_says_where() -> None:
    rows: list[Row] = []

    with pytest.raises(MachineError, match=r"n\d at \d+ us: KeyError\('gone'\)"):
        simulate(plan(), rows.append, machine_factory=clumsy)

    assert rows[-1].kind == "error"
    assert rows[-1].cause == "KeyError"


def test_nodes_that_cannot_form_a_cluster_are_no_run() -> None:
    slow = attrs.evolve(LinkPlan().latency, fast=(30 * SECOND, 30 * SECOND))

    with pytest.raises(FormingError, match="seed 1"):
        simulate(plan(link=LinkPlan(latency=slow)))


def test_a_consumer_works_while_its_node_is_away_and_acks_when_it_can() -> None:
    what = Plan(
        scenario="s",
        seed=1,
        nodes=3,
        adds=(Add(at=0, node=2, producer="p1", queue="q", body="b", replicate=3, retry_s=60),),
        consumers=(Consumer(name="c1", node=2, queues=("q",), work=(3 * SECOND, 3 * SECOND)),),
        faults=(Fault(kind="crash", at=SECOND, hold=30 * SECOND, nodes=(2,)),),
        chaos=40 * SECOND,
        config=(("cluster-node-timeout", "2000"),),
    )

    rows = play(what)

    invoked = of(rows, "ack.invoke")
    assert [row.node for row in invoked] == ["n2", "n3"]
    assert [row.cause for row in of(rows, "ack.unknown")] == ["disconnect"]
    assert [row.node for row in of(rows, "ack.ok")] == ["n3"]

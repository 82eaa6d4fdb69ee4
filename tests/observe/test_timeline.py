"""The timeline of one job, of what its nodes tell."""

import json
from typing import Any

import attrs
import pytest
import trio

from disque_trio.client import commands
from disque_trio.client.address import Address
from disque_trio.observe.operations import OPERATIONS
from disque_trio.observe.timeline import TimelineReply, answered, history_of
from disque_trio.observe.values import encoded
from disque_trio.sim.traces.clocks import Clock
from disque_trio.tracing.rows import Row
from disque_trio.tracing.trace_reply import TraceReply
from disque_trio.worker.operating.plans import MistakeError, Outcome
from tests.observe.rig import Observed, observed

ID = "D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
NOON = 1_800_000_000_000_000
A, B = Address(port=1), Address(port=2)


def row(time: int, kind: str, node: str, **rest: Any) -> Row:
    return Row(NOON + time, kind, node, ID, "mail", **rest)


def told(address: Address, short: str, *rows: Row) -> TimelineReply:
    return TimelineReply(
        address, short, TraceReply(list(rows), "sampled", True, True, 0, len(rows))
    )


def test_an_example_of_the_answer() -> None:
    """B's clock is 12 ms ahead, as far as could be measured."""
    one = told(
        A, "aaaaaaaa",
        row(0, "hold", "aaaaaaaa", cause="add"),
        row(100, "send", "aaaaaaaa", peer="bbbbbbbb", cause="repljob"),
        row(2_000, "recv", "aaaaaaaa", peer="bbbbbbbb", cause="gotjob"),
        row(2_100, "queue", "aaaaaaaa", cause="first"),
        row(9_000, "serve", "aaaaaaaa", client="10.0.0.7:5", cause="served"),
    )  # fmt: skip
    two = told(
        B, "bbbbbbbb",
        row(13_000, "recv", "bbbbbbbb", peer="aaaaaaaa", cause="repljob"),
        row(13_100, "hold", "bbbbbbbb", cause="repljob"),
        row(13_200, "send", "bbbbbbbb", peer="aaaaaaaa", cause="gotjob"),
    )  # fmt: skip
    names = {"aaaaaaaa": "n1", "bbbbbbbb": "n2", "cccccccc": "n3"}
    measured = {"aaaaaaaa": Clock(0, 0), "bbbbbbbb": Clock(12_500, 3_000)}

    view = json.loads(encoded(answered(ID, [one, two], names, measured)))

    assert view["nodes"][1] == {
        "node": "127.0.0.1:2",
        "name": "n2",
        "rows": 3,
        "why": "sampled",
        "on": True,
        "here": True,
        "omitted": 0,
        "right_ms": -12.5,
        "error_ms": 0.8,
    }
    assert view["clocks"] == ["n2: clock corrected by −12 ± 1 ms"]
    assert view["traced"] is True
    assert view["run"]["head"]["zero"] == "2027-01-15 08:00:00 UTC"
    run = view["run"]["run"]
    assert run["nodes"] == ["n1", "n2"]
    assert run["agents"] == ["10.0.0.7:5"]
    assert run["jobs"] == [[ID, "mail", 0]]
    kinds = [run["words"][kind] for kind in run["rows"]["kind"]]
    assert kinds == ["hold", "send", "recv", "hold", "send", "recv", "queue", "serve"]
    assert run["rows"]["time"] == [0, 100, 400, 100, 100, 1_300, 100, 6_900]
    assert run["rows"]["mate"] == [0, 0, 1, 0, 0, 1, 0, 0]
    assert run["moves"][:5] == [0, 0, 0, 0, 2]


async def timeline(seen: Observed, id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await seen.observer.answer("job-timeline", {"id": id}))[0]
    return found


def test_messages_set_no_clock_right_if_a_node_has_left_out_rows() -> None:
    """A's row of the second message is left out, and the third was lost: of all that is known, the
    second may be the third."""
    sends = [row(at, "send", "aaaaaaaa", peer="bbbbbbbb", cause="working") for at in (0, 5_000)]
    heard = [row(at, "recv", "bbbbbbbb", peer="aaaaaaaa", cause="working") for at in (200, 2_200)]
    one, two = told(A, "aaaaaaaa", *sends), told(B, "bbbbbbbb", *heard)
    assert one.trace is not None
    cut = attrs.evolve(one, trace=attrs.evolve(one.trace, omitted=1))
    measured = {"aaaaaaaa": Clock(0, 0), "bbbbbbbb": Clock(0, 4_000)}

    assert history_of([cut, two], {}, measured).nodes[1]["right_ms"] == 0
    assert history_of([one, two], {}, measured).nodes[1]["right_ms"] != 0


async def test_nodes_tell_the_life_of_a_job_in_order(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 3)
    await asked_of_all(seen, "CONFIG", "SET", "trace-sample", "1")
    id = await seen.client.addjob("mail", "body", replicate=3, retry=60)
    [job] = await seen.client.getjob("mail")
    await seen.client.ackjob(job)

    with trio.fail_after(30):
        while True:
            view = await timeline(seen, id)
            run = view["run"]["run"]
            kinds = [
                f"{run['words'][kind]} {run['words'][cause]}".strip()
                for kind, cause in zip(run["rows"]["kind"], run["rows"]["cause"], strict=True)
            ]
            if kinds.count("acked setack") + kinds.count("drop deljob") >= 2:
                break
            await trio.sleep(0.05)

    assert kinds[0] == "hold add"
    assert kinds.index("serve served") < kinds.index("recv working")
    assert len([each for each in kinds if each.startswith("hold")]) == 3
    assert [node["why"] for node in view["nodes"]] == ["sampled"] * 3
    recvs = [at for at, kind in enumerate(kinds) if kind.startswith("recv")]
    assert all(run["rows"]["mate"][at] > 0 for at in recvs)
    assert await timeline(seen, id) is view


async def test_a_job_that_is_not_traced_can_be(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)
    await asked_of_all(seen, "CONFIG", "SET", "trace-sample", "0")
    id = await seen.client.addjob("mail", "body", retry=60)

    before = await timeline(seen, id)
    await asked_of_all(seen, "TRACE", "JOB", id)
    after = await timeline(seen, id)

    assert (before["traced"], before["run"]) == (False, None)
    assert before["why"].startswith("it is not traced")
    assert after["traced"]
    assert after["why"] == "traced on request (TRACE JOB)"


async def test_an_id_that_is_none_is_a_mistake(nursery: trio.Nursery) -> None:
    seen = await observed(nursery)

    with pytest.raises(MistakeError, match="'mail' is not the id of a job: ids begin with D-"):
        await timeline(seen, "mail")


@pytest.mark.parametrize(
    ("renamed", "why"),
    [
        ((("time", ""),), "its reply to TIME is invalid: "),
        ((("trace", "t"), ("config", "trace")), "its reply to TRACE GET is invalid"),
    ],
)
async def test_a_node_whose_commands_are_others_tells_nothing(
    nursery: trio.Nursery, renamed: tuple[tuple[str, str], ...], why: str
) -> None:
    seen = await observed(nursery, 2, renamed=renamed)
    id = await seen.client.addjob("mail", "body", replicate=1, retry=60)
    one, other = (str(Address(port=node.state.config.port)) for node in seen.nodes)

    view, unreached = await seen.observer.answer("job-timeline", {"id": id})

    assert [node["node"] for node in view["nodes"]] == [one]
    assert list(unreached) == [other]
    assert unreached[other].startswith(why)


async def asked_of_all(seen: Observed, *words: str) -> None:
    for address in seen.client.nodes.order(trio.current_time()):
        await seen.client.ask(address, [commands.call(*words)])


async def test_trace_on_tells_all_nodes(nursery: trio.Nursery) -> None:
    seen = await observed(nursery, 2)
    id = await seen.client.addjob("mail", "body", replicate=1, retry=60)

    plan = await OPERATIONS["jobs trace"].planned(seen.client, {"id": id})
    outcome = Outcome()
    await plan.run(outcome, print)

    assert plan.says == ["2 nodes record the events of the job, for one hour"]
    assert sorted(each.partition(": ")[2] for each in outcome.says) == [
        "traced",
        "traced when it arrives",
    ]
    assert (await timeline(seen, id))["traced"]

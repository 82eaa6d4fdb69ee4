"""The text that Prometheus reads, and what it costs."""

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from disque_trio.statemachine.tally import Histogram
from disque_trio.web import metrics
from disque_trio.web.metrics import COUNTER, FAMILIES, HISTOGRAM, text_of
from tests.rig import Rig
from tests.web.turns import turns_beside


def test_names_are_what_prometheus_wants() -> None:
    names = [family.name for family in FAMILIES]

    assert len(set(names)) == len(names)
    for family in FAMILIES:
        assert family.name.endswith("_total") == (family.kind == COUNTER), family.name
        assert family.about.endswith((".", "?")), family.name
        assert not {"queue", "job", "client", "id"} & set(family.labels), family.name


def test_buckets_are_summed_up_and_in_seconds() -> None:
    [family] = [each for each in FAMILIES if each.name == "disque_queue_wait_seconds"]
    assert family.kind == HISTOGRAM
    waits = Histogram()
    for took in (0, 1, 1, 5_000, 1 << 40):
        waits.note(took)

    text = text_of([(family, waits)]).decode()
    [metric] = text_string_to_metric_families(text)
    found = {sample.labels.get("le", sample.name): sample.value for sample in metric.samples}

    assert found["0.001"] == 1
    assert found["0.002"] == 3
    assert found["4.096"] == 3
    assert found["8.192"] == 4
    assert found["+Inf"] == found["disque_queue_wait_seconds_count"] == 5


def test_labels_are_written_as_they_must_be() -> None:
    [family] = [each for each in FAMILIES if each.name == "disque_clients_refused_total"]

    text = text_of([(family, [(('a "b"\\\n',), 3)])]).decode()
    [metric] = text_string_to_metric_families(text)

    assert metric.samples[0].labels == {"reason": 'a "b"\\\n'}


def test_a_family_of_many_samples_is_one_family() -> None:
    [family] = [each for each in FAMILIES if each.name == "disque_peer_up"]

    text = text_of([(family, [((f"{n:08x}",), n % 2) for n in range(100)])]).decode()
    [metric] = text_string_to_metric_families(text)

    assert [sample.value for sample in metric.samples] == [n % 2 for n in range(100)]
    assert text.count("# ") == 2


async def test_a_scrape_lets_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    values: metrics.Values = [
        (family, [(tuple(map(str, range(len(family.labels)))), n) for n in range(100)])
        for family in FAMILIES
        if family.kind != HISTOGRAM
    ]

    async def read(_node: object) -> metrics.Values:
        await trio.lowlevel.checkpoint()
        return values

    monkeypatch.setattr(metrics, "read", read)
    turns, text = await turns_beside(metrics.Exposition(Rig()).text)  # type: ignore[arg-type]

    assert text == text_of(values)
    assert turns >= 4 * len(values), "a hundred samples are four pieces"


async def test_sums_count_queues_and_clients() -> None:
    rig = Rig()
    for name in ("paused", "old", "attended"):
        rig.ask("ADDJOB", name, "body", 0)
    rig.advance(70_000)
    rig.ask("ADDJOB", "new", "body", 0)
    rig.ask("ADDJOB", "new", "body", 0, "DELAY", 9)
    rig.ask("GETJOB", "FROM", "attended")
    rig.ask("PAUSE", "paused", "out")
    rig.request("GETJOB", "FROM", "attended", client=rig.connect())

    found = await metrics.sums_of(rig.node)

    assert found == metrics.Sums(
        queued=3,
        paused=1,
        behind=2,
        head_age=70_000,
        leased=1,
        delayed=1,
        dead=0,
        waiting=1,
        unqueued=2,
    )


async def test_sums_of_many_queues_lets_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "COUNTED_AT_ONCE", 5)
    rig = Rig()
    for number in range(20):
        rig.request("ADDJOB", f"q{number}", "body", 0)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        assert (await metrics.sums_of(rig.node)).queued == 20
        nursery.cancel_scope.cancel()

    assert turns >= 3

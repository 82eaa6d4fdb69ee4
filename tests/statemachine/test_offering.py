import pytest

from disque_trio.statemachine import offering
from disque_trio.statemachine.base import NodeId
from disque_trio.statemachine.memory import of_demand
from disque_trio.statemachine.messages import HaveJobs, Message, NeedJobs, Waiting, YourJobs
from disque_trio.statemachine.nodetable import remove
from tests.rig import CALM, N2, N3, N4, Rig
from tests.statemachine.federating import give, ids

GRAIN = 8


def wanted(*who: NodeId, jobs: int = 0) -> Rig:
    """A node that has been told that clients wait at these nodes of ours."""
    rig = Rig(peers=3, config=CALM, ours=True)
    for _ in range(jobs):
        rig.add("REPLICATE", 1)
    for peer in who or (N2,):
        rig.message(peer, Waiting(b"q", 1))
    return rig


def said(rig: Rig) -> list[tuple[NodeId, Message | int]]:
    """Who was told what; of YOURJOBS how many jobs were given."""
    return [
        (to, len(each.copies) if isinstance(each, YourJobs) else each) for to, each in rig.sent()
    ]


def offers(rig: Rig) -> list[tuple[NodeId, int]]:
    return [(to, each.count) for to, each in rig.sent() if isinstance(each, HaveJobs)]


def add(rig: Rig, *words: bytes | str | int) -> None:
    rig.add("REPLICATE", 1, *words)


def test_a_job_that_no_client_waits_for_is_offered_and_stays_here_until_it_is_asked_for() -> None:
    rig = wanted()

    add(rig)

    assert said(rig) == [(N2, HaveJobs(b"q", 1))]
    assert len(rig.queue()) == 1

    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    assert said(rig) == [(N2, 1)]
    assert len(rig.queue()) == 0


def test_a_node_whose_client_begins_to_wait_is_told_of_the_jobs_that_there_are() -> None:
    rig = wanted(jobs=3)

    assert said(rig) == [(N2, HaveJobs(b"q", 3))]


def test_a_client_that_waits_here_comes_first() -> None:
    rig = wanted()
    rig.request("GETJOB", "FROM", "q")
    other = rig.connect()
    rig.sent()

    rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 1, client=other)
    assert said(rig) == []
    rig.ask("ADDJOB", "q", "body", 0, "REPLICATE", 1, client=other)
    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_what_one_waiting_client_leaves_of_a_pipeline_is_offered() -> None:
    rig = wanted()
    rig.request("GETJOB", "FROM", "q")
    other = rig.connect()
    rig.sent()

    for _ in range(3):
        args = [b"ADDJOB", b"q", b"", b"0", b"REPLICATE", b"1"]
        rig.machine.request(other, args, rig.now)
    rig.take()

    assert said(rig) == [(N2, HaveJobs(b"q", 2))]


def test_a_node_that_declines_gets_no_offer_until_it_has_asked() -> None:
    rig = wanted()
    add(rig)
    rig.sent()

    rig.message(N2, Waiting(b"q", 0))
    add(rig)
    rig.advance(10_000)
    assert said(rig) == []

    rig.message(N2, NeedJobs(b"q", 2, waits=True))
    assert said(rig) == [(N2, 2)]
    add(rig)
    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_what_declines_no_offer_has_come_late_and_says_nothing_of_the_clients_of_now() -> None:
    rig = wanted()

    rig.message(N2, Waiting(b"q", 0))
    add(rig)

    assert offers(rig) == [(N2, 1)]


def test_nodes_are_offered_jobs_one_after_the_other() -> None:
    rig = wanted(N3, N2, N4)
    add(rig)
    assert offers(rig) == [(N3, 1)]

    rig.message(N3, Waiting(b"q", 0))
    assert offers(rig) == [(N2, 1)]
    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    assert said(rig) == [(N2, 1)]

    # Who has been given a job is the last to be offered the next one.
    add(rig)
    assert offers(rig) == [(N4, 1)]


def test_when_one_does_not_answer_all_the_others_are_told() -> None:
    rig = wanted(N2, N3, N4)
    add(rig)
    rig.sent()

    rig.advance(offering.ANSWER_WITHIN - GRAIN)
    assert offers(rig) == []
    rig.advance(2 * GRAIN)
    assert offers(rig) == [(N3, 1), (N4, 1)]


def test_an_offer_that_is_not_answered_is_made_again_ever_more_rarely() -> None:
    rig = wanted()
    add(rig)
    rig.sent()
    start = rig.now.mono

    made = []
    while rig.now.mono < start + 20_000:
        rig.advance(10)
        made += [rig.now.mono - start for _ in offers(rig)]

    expected = [550, 1550, 3550, 7550, 15_550]
    assert len(made) == len(expected)
    assert all(0 <= a - b <= 60 for a, b in zip(made, expected, strict=True)), made


def test_nothing_more_is_said_once_the_jobs_are_gone() -> None:
    rig = wanted()
    add(rig)
    rig.ask("GETJOB", "FROM", "q")
    rig.sent()

    rig.advance(20_000)
    assert said(rig) == []

    add(rig)
    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_a_node_that_asks_in_vain_is_told_so_and_offered_the_next_job() -> None:
    rig = wanted()

    rig.message(N2, NeedJobs(b"q", 1))
    assert said(rig) == [(N2, HaveJobs(b"q", 0))]

    add(rig)
    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


@pytest.mark.parametrize("word", ["NACK", "ENQUEUE"])
def test_a_job_that_comes_back_is_offered_like_a_new_one(word: str) -> None:
    rig = wanted()
    add(rig)
    [job_id] = rig.node.jobs
    rig.message(N2, Waiting(b"q", 0))
    rig.ask("GETJOB", "FROM", "q")
    rig.message(N2, NeedJobs(b"q", 1))
    rig.sent()

    rig.ask(word, job_id)

    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_so_is_one_whose_retry_period_or_delay_is_over() -> None:
    rig = wanted()
    add(rig, "RETRY", 5)
    rig.ask("GETJOB", "FROM", "q")
    add(rig, "DELAY", 8)
    rig.sent()

    rig.advance(5500)
    assert offers(rig) == [(N2, 1)]
    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    rig.advance(3000)
    assert offers(rig) == [(N2, 1)]


def test_an_import_that_no_client_waits_for_any_more_is_offered_on_at_once() -> None:
    rig = wanted()

    give(rig, N3, *ids(1))

    assert (N2, HaveJobs(b"q", 1)) in said(rig)
    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    assert said(rig) == [(N2, 1)]


def test_a_node_that_imports_itself_gives_nothing_ahead_but_says_what_it_has() -> None:
    rig = wanted()
    rig.request("GETJOB", "FROM", "q")
    give(rig, N3, *ids(3))
    rig.sent()

    rig.message(N2, NeedJobs(b"q", 10))

    assert said(rig) == [(N2, HaveJobs(b"q", 2))]


def test_a_paused_queue_is_offered_when_the_pause_ends() -> None:
    rig = wanted()
    rig.ask("PAUSE", "q", "out")
    add(rig)
    assert said(rig) == []
    rig.message(N2, NeedJobs(b"q", 1))
    assert said(rig) == [(N2, HaveJobs(b"q", 0))]

    rig.ask("PAUSE", "q", "none")

    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


# Clients for which there was no job yet.


def test_a_node_that_asked_for_more_than_there_was_is_given_the_next_job_without_an_offer() -> None:
    rig = wanted(jobs=1)
    rig.message(N2, NeedJobs(b"q", 3, waits=True))
    rig.sent()

    add(rig)
    add(rig)
    assert said(rig) == [(N2, 1), (N2, 1)]
    add(rig)
    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_but_only_for_a_moment() -> None:
    rig = wanted(jobs=1)
    rig.message(N2, NeedJobs(b"q", 3, waits=True))
    rig.sent()
    rig.advance(rig.node.knobs.credit + GRAIN)

    add(rig)

    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_nor_is_it_given_more_than_clients_wait() -> None:
    rig = wanted(jobs=1)
    rig.message(N2, NeedJobs(b"q", 2, waits=True))
    rig.sent()

    for _ in range(3):
        rig.machine.request(rig.client, [b"ADDJOB", b"q", b"", b"0", b"REPLICATE", b"1"], rig.now)
    rig.take()

    assert said(rig) == [(N2, 1), (N2, HaveJobs(b"q", 2))]


@pytest.mark.parametrize("options", [("RETRY", 0), ("DELAY", 0, "TTL", 1, "RETRY", 0)])
def test_a_job_that_is_delivered_once_at_most_goes_only_to_a_node_that_answers(
    options: tuple[str | int, ...],
) -> None:
    rig = wanted(jobs=1)
    rig.message(N2, NeedJobs(b"q", 3, waits=True))
    rig.sent()

    add(rig, *options)

    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_a_node_that_declines_an_offer_which_the_job_has_followed_is_offered_the_next_one() -> None:
    """workers, seed 300173: a delay ended when the timer of offers was due. The node said that it
    had a job, and gave it at once; the answer to the offer was taken for one to the next job."""
    rig = wanted()
    add(rig, "DELAY", 1)
    rig.advance(1000 - offering.ANSWER_WITHIN)
    add(rig)
    rig.message(N2, NeedJobs(b"q", 2, waits=True))
    rig.sent()
    rig.advance(offering.ANSWER_WITHIN)
    assert said(rig) == [(N2, HaveJobs(b"q", 1)), (N2, 1)]

    rig.message(N2, Waiting(b"q", 0))
    add(rig)

    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


def test_a_node_whose_link_is_gone_has_no_credit() -> None:
    rig = wanted(jobs=1)
    rig.message(N2, NeedJobs(b"q", 3, waits=True))
    rig.lose_link(N2)
    rig.sent()

    add(rig)

    assert said(rig) == []


# Who waits is forgotten.


def test_a_node_that_has_said_nothing_for_a_minute_is_forgotten() -> None:
    rig = wanted()
    held = rig.node.memory.held
    rig.advance(40_000)
    rig.message(N3, Waiting(b"q", 1))
    rig.advance(30_000)

    add(rig)
    assert offers(rig) == [(N3, 1)]

    rig.message(N3, Waiting(b"q", 0))
    rig.advance(70_000)
    assert rig.node.demands == {}
    assert rig.node.memory.held < held + 2000


def test_a_node_that_is_forgotten_does_not_hasten_the_next_offer_to_others() -> None:
    rig = wanted()
    add(rig)
    rig.advance(40_000)
    rig.message(N3, Waiting(b"q", 1))
    rig.advance(24_000)
    rig.sent()

    rig.advance(2_000)

    assert list(rig.node.demands[b"q"].askers) == [N3]
    assert offers(rig) == []


def test_a_node_that_was_removed_is_forgotten() -> None:
    rig = wanted()
    remove(rig.node, rig.node.cluster.nodes[N2])

    add(rig)
    assert said(rig) == []
    rig.advance(70_000)

    assert rig.node.demands == {}


def test_of_too_many_queues_the_one_asked_for_longest_ago_is_forgotten() -> None:
    rig = wanted()
    rig.turn(demands=3)
    for name in (b"a", b"b"):
        rig.message(N2, Waiting(name, 1))
    rig.message(N3, Waiting(b"q", 1))
    before = rig.node.memory.held

    rig.message(N2, Waiting(b"c", 1))

    assert list(rig.node.demands) == [b"b", b"q", b"c"]
    assert rig.node.memory.held == before
    assert of_demand(b"a", 1) == of_demand(b"c", 1)


def test_a_queue_that_is_forgotten_in_the_batch_in_which_it_was_asked_for_is_offered() -> None:
    rig = Rig(peers=2, config=CALM, ours=True)
    rig.turn(demands=1)
    add(rig)
    rig.messages(N2, Waiting(b"q", 1), Waiting(b"other", 1))

    assert said(rig) == [(N2, HaveJobs(b"q", 1))]


# Journals.


def test_a_node_that_cannot_write_its_journal_offers_nothing_until_it_can() -> None:
    rig = wanted(jobs=1)
    rig.message(N2, Waiting(b"q", 0))
    rig.sent()
    rig.machine.journal_failed("no space", rig.now)
    rig.message(N3, Waiting(b"q", 1))
    rig.message(N2, NeedJobs(b"q", 1, waits=True))
    assert said(rig) == []

    rig.machine.journal_mended(rig.now)
    rig.take()

    assert offers(rig) == [(N2, 1)]

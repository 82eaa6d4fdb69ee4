import attrs

from disque_trio.explain.facts import Facts
from disque_trio.explain.rules import MAY, NO, YES, Answer, answers, hints, refusal, remarks
from tests.explain.sweep import job


def told(options: str, facts: Facts) -> dict[str, Answer]:
    request = job(options, facts)
    return {answer.family: answer for answer in answers(request, facts)}


def lost(options: str, facts: Facts) -> dict[str, str]:
    return {family: answer.loss.lost for family, answer in told(options, facts).items()}


def test_two_copies_survive_one_node_and_no_power_cut() -> None:
    found = lost("REPLICATE 2 RETRY 60", Facts(nodes=3))

    assert found == {
        "calm": NO,
        "one-killed": NO,
        "all-copies": MAY,
        "power": YES,
        "one-by-one": NO,
        "rolling": YES,
        "cut-off": NO,
        "worker-dies": NO,
        "worker-slow": NO,
    }


def test_each_policy_of_the_journal_has_its_answer_to_a_power_cut() -> None:
    found = [
        lost("", Facts(nodes=3, journal=each))["power"]
        for each in ("none", "no", "everysec", "always")
    ]

    assert found == [YES, MAY, MAY, NO]


def test_a_journal_survives_all_nodes_killed_at_once() -> None:
    assert lost("", Facts(nodes=3))["all-copies"] == YES
    assert lost("", Facts(nodes=3, journal="no"))["all-copies"] == NO


def test_retry_0_never_comes_twice_and_may_be_lost() -> None:
    found = told("RETRY 0 REPLICATE 1", Facts(nodes=3, journal="always"))

    assert {answer.loss.lost for family, answer in found.items() if family != "calm"} == {MAY}
    assert {answer.twice for answer in found.values()} == {()}
    assert "worker-slow" not in found


def test_a_job_whose_ttl_ends_before_its_retry_may_be_lost() -> None:
    assert lost("RETRY 100 TTL 50", Facts(nodes=3))["one-killed"] == MAY


def test_async_leaves_a_moment_with_one_copy() -> None:
    assert lost("ASYNC", Facts(nodes=3))["one-killed"] == MAY


def test_a_job_of_a_dead_node_comes_when_retry_is_over() -> None:
    found = told("RETRY 60", Facts(nodes=3))

    assert found["one-killed"].late == 61_250
    assert found["cut-off"].late == 1_000
    assert found["power"].late is None


def test_more_copies_than_nodes_are_refused() -> None:
    facts = Facts(nodes=2, silent=1)

    assert told("", facts) == {}
    assert refusal(job("", facts), facts) == (
        "NOREPL: it needs 3 replicas; 2 of 2 nodes can hold it"
    )


def test_originals_keep_no_jobs_with_options_of_ours() -> None:
    facts = Facts(nodes=3, originals=2)

    assert told("REPLICATE 2 PRIORITY 1", facts) == {}
    assert told("REPLICATE 2", facts)


def test_what_always_holds_is_said_of_each_option() -> None:
    facts = Facts(nodes=3)
    options = "DELAY 600 TTL 3600 LIMIT 5 BACKOFF 15 UNIQUE key MAXLEN 9"
    request = attrs.evolve(job(options, facts), timeout=500)

    assert list(remarks(request, facts)) == [
        "3 nodes hold it before ADDJOB returns",
        "NOREPL after 0.5 s without them; a replica may remain (D12)",
        "it is delivered 600 s after ADDJOB, not earlier (S6)",
        "it expires after 3,600 s, acknowledged or not (TTL)",
        "a worker has 300 s; then, or if it dies, the job is redelivered",
        "after 5 deliveries without an ACKJOB it is dead, and kept (S26)",
        "its first NACK delays it by 15 s; each further one doubles that",
        "one job has its key in a connected cluster (S24); in a partition two may (K1)",
        "refused if its queue has 9 jobs at the node of the ADDJOB",
    ]


def test_sync_is_said() -> None:
    facts = Facts(nodes=3)

    assert "2 of 3 nodes confirm it before ADDJOB returns; the rest follow (SYNC)" in list(
        remarks(job("REPLICATE 3 SYNC 2", facts), facts)
    )
    assert "SYNC 2 accepts jobs while one node is down" in list(
        hints(job("REPLICATE 3", facts), facts)
    )
    assert refusal(job("REPLICATE 4 SYNC 3", facts), facts) == ""
    assert refusal(job("REPLICATE 4", facts), facts).startswith("NOREPL")


def test_hints_name_what_would_survive_more() -> None:
    facts = Facts(nodes=3, journal="everysec")

    assert list(hints(job("REPLICATE 2", facts), facts)) == [
        "REPLICATE 3 survives 2 of 3 nodes at once",
        "appendfsync always survives power cuts",
        "a side of a partition with fewer than 2 nodes refuses this ADDJOB (NOREPL)",
    ]


def zoned(zones: str, options: str = "") -> dict[str, str]:
    return lost(options, Facts(nodes=len(zones), zones=tuple(zones)))


def test_a_job_with_copies_in_two_zones_survives_the_loss_of_one() -> None:
    assert "zone-killed" not in lost("", Facts(nodes=3))
    assert "zone-killed" not in zoned("aaa")
    assert zoned("aab")["zone-killed"] == NO
    assert zoned("aab", "REPLICATE 1")["zone-killed"] == MAY
    assert zoned("aab", "ASYNC")["zone-killed"] == MAY


def test_with_sync_the_copy_in_the_other_zone_may_be_late() -> None:
    assert zoned("aabb", "REPLICATE 3 SYNC 2")["zone-killed"] == MAY
    assert zoned("abc", "REPLICATE 3 SYNC 2")["zone-killed"] == NO, "a zone has one node"


def test_of_originals_no_zone_is_known() -> None:
    facts = Facts(nodes=4, originals=2, zones=("a", "b", "", ""))

    assert lost("REPLICATE 2 PRIORITY 1", facts)["zone-killed"] == MAY


def test_zones_are_said() -> None:
    two, four = Facts(nodes=3, zones=tuple("aab")), Facts(nodes=4, zones=tuple("abcd"))

    assert "its 3 replicas go to 2 zones, so a zone has several" in remarks(job("", two), two)
    assert "its 3 replicas go to 3 of 4 zones" in remarks(job("", four), four)
    assert "nodes in 3 zones would give each replica its own zone" in hints(job("", two), two)
    request = job("REPLICATE 3 SYNC 2", four)
    assert "ADDJOB waits for replicas in 2 zones, but 50 ms at most" in remarks(request, four)

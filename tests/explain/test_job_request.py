import pytest

from disque_trio.explain.clusters import NodeReply, facts_of
from disque_trio.explain.facts import Facts
from disque_trio.explain.job_request import InvalidRequestError, JobRequest, read


def request(options: str, nodes: int = 3) -> JobRequest:
    return read(["ADDJOB", "mail", "body", "0", *options.split()], Facts(nodes=nodes))


def test_defaults_are_those_of_a_node() -> None:
    found = request("", nodes=2)

    assert (found.copies, found.retry, found.ttl, found.delay) == (2, 300, 86_400, 0)


def test_the_default_of_retry_is_a_tenth_of_the_ttl() -> None:
    assert request("TTL 100").retry == 10


def test_a_requeue_must_come_before_the_ttl_ends() -> None:
    assert request("RETRY 10 TTL 20").comes_back
    assert not request("DELAY 10 RETRY 10 TTL 20").comes_back
    assert not request("RETRY 0 REPLICATE 1").comes_back


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("GETJOB FROM mail", "only ADDJOB queue body ms-timeout"),
        ("ADDJOB mail body", "only ADDJOB queue body ms-timeout"),
        ("ADDJOB mail body soon", "not 'soon'"),
        ("ADDJOB mail body 0 RETRY soon", "ERR RETRY time must be a non negative number"),
        ("ADDJOB mail body 0 REPLCIATE 2", "did you mean 'REPLICATE'?"),
        ("ADDJOB mail body 0 RETRY 0", "please explicitly set  REPLICATE to 1"),
        ("ADDJOB mail body 0 DELAY 60 TTL 30", "DELAY is greater than TTL"),
    ],
)
def test_what_is_no_addjob_is_refused_with_the_reason(words: str, error: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        read(words.split(), Facts(nodes=3))

    assert error in str(caught.value)


def test_the_defaults_are_those_of_the_nodes() -> None:
    words = ["ADDJOB", "q", "b", "0"]
    facts = Facts(nodes=5, default_replicate=4, default_sync=2)

    assert (read(words, facts).copies, read(words, facts).sync) == (4, 2)
    assert read([*words, "REPLICATE", "1"], facts).confirmed == 1
    assert read([*words, "REPLICATE", "5", "SYNC", "AUTO"], facts).sync == 2
    assert read([*words, "REPLICATE", "5", "SYNC", "AUTO"], Facts(nodes=5)).sync == 3
    assert read([*words, "SYNC", "3"], facts).sync == 3
    assert read([*words, "ASYNC"], facts).sync == 0


def test_of_nodes_with_different_defaults_the_weakest_counts() -> None:
    configs = [
        {"default-replicate": "3", "default-sync": "0"},
        {"default-replicate": "2", "default-sync": "2"},
    ]
    nodes = [NodeReply(is_ours=True, config=config) for config in configs]

    facts = facts_of(nodes, 0)

    assert (facts.default_replicate, facts.default_sync) == (2, 2)


def test_long_times_are_for_nodes_of_ours_alone() -> None:
    found = request("RETRY 3000000 TTL 9999999 PRIORITY 0")

    assert (found.retry, found.is_ours) == (3_000_000, True)
    assert request("RETRY 3000000 TTL 9999999").retry == 2_147_483
    assert not request("RETRY 3000000 TTL 9999999").is_ours

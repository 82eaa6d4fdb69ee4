import pytest

from disque_trio.worker.engine import words
from disque_trio.worker.engine.records import NEVER, SECOND, Job, Node, Outcome, Release, Retry
from tests.worker.engine.talking import ONE, TOKEN

NINE_YEARS = 9 * 365 * 86_400 * SECOND
KNOWN = {words.TOKENS, words.RELEASE_DELAY, words.DELAY}


@pytest.mark.parametrize("outcome", [Retry(NINE_YEARS), Release(NINE_YEARS)])
def test_a_node_is_asked_for_as_long_a_wait_as_it_knows(outcome: Outcome) -> None:
    job = Job(
        id=ONE, queue=b"q", body=b"", node="n1", link=0, token=TOKEN, nacks=0,
        additional_deliveries=0, is_once=False, lease=SECOND, end=NEVER, renew_at=NEVER,
        knows_lease=True,
    )  # fmt: skip
    job.outcome = outcome

    _, whole = words.settle(Node("n1", features=frozenset({*KNOWN, words.LONG_WAITS})), job)
    _, part = words.settle(Node("n1", features=frozenset(KNOWN)), job)

    assert whole == (b"DELAY", b"283824000.000")
    assert part == (b"DELAY", b"2147483.000")

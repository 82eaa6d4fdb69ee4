"""SHOW KEY and CANCEL KEY: what is wrong with bad ones."""

import pytest

from disque_trio.statemachine.base import Failure
from tests.rig import Rig

SHOW_USAGE = "SHOW id [ENDED] | KEY queue key [LOCAL]"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["SHOW", "KEY", "q"],
            b"ERR wrong number of arguments for 'show' command: " + SHOW_USAGE.encode(),
        ),
        (
            ["SHOW", "KEY", "q", "k", "more"],
            b"ERR wrong number of arguments for 'show' command: " + SHOW_USAGE.encode(),
        ),
        (
            ["CANCEL", "KEY", "q"],
            b"ERR wrong number of arguments for 'cancel' command: CANCEL KEY queue key",
        ),
        (
            ["SHOW", "KEYS", "q", "k"],
            b"ERR syntax error: 'KEYS' stands in place of KEY: SHOW KEY queue key",
        ),
        (
            ["cancel", "job", "q", "k"],
            b"ERR syntax error: 'job' stands in place of KEY: CANCEL KEY queue key",
        ),
        (
            ["CANCEL", "KEY", "q", ""],
            (
                b'ERR The key is empty: with UNIQUE "" a job has the SHA-256 of its body as key,'
                b" in hexadecimal digits"
            ),
        ),
        (
            ["SHOW", "KEY", "q", "x" * 257],
            b"ERR A key has at most 256 bytes: '%b...' has 257" % (b"x" * 64),
        ),
    ],
)
def test_bad_input_is_refused_with_the_reason(words: list[str], error: bytes) -> None:
    assert Rig().ask(*words) == Failure(error)


def test_the_client_waits_for_the_other_nodes() -> None:
    rig = Rig(peers=2, ours=True)
    client = rig.connect()

    rig.request("SHOW", "KEY", "q", "k", client=client)

    assert rig.replies(client) == []
    assert not rig.offer("PING", client=client)

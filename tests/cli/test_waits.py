"""How long the node may wait, by the words of a command."""

import math

import pytest

from disque_trio.cli.waits import wait_s
from disque_trio.wire.words import split


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PING", 0),
        ("addjob q body 5000 RETRY 60", 5),
        ("ADDJOB q body 0", math.inf),
        ("ADDJOB q body soon", math.inf),
        ("ADDJOB q body", 0),
        ("getjob timeout 250 from q", 0.25),
        ("GETJOB FROM TIMEOUT 5", math.inf),
        ("GETJOB FROM q", math.inf),
        ("GETJOB TIMEOUT", math.inf),
        ("GETJOB NOHANG TIMEOUT 3 FROM q", 0),
        ("WAITJOB D-1 TIMEOUT 1500 WITHRESULT", 1.5),
        ("WAITJOB D-1", math.inf),
        ("WAITJOB D-1 TIMEOUT 9999999999999999999999", math.inf),
        ("SHOW KEY q k", 5),
        ("SHOW D-1", 0),
        ("CANCEL KEY q k", 5),
        ("DEBUG SLEEP 100", math.inf),
        ("JSCAN 0 BUSYLOOP", math.inf),
        ("MONITOR", math.inf),
    ],
)
def test_the_words_of_a_command_say_how_long_the_node_may_wait(line: str, expected: float) -> None:
    assert wait_s(split(line.encode())) == expected

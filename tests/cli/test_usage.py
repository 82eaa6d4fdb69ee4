import pytest

from disque_trio.cli.usage import candidates, rest, show
from disque_trio.statemachine.commands.usage import forms

ADDJOB = "queue body ms-timeout [DELAY sec] [RETRY sec] [ASYNC]"
GETJOB = "[NOHANG] [TIMEOUT ms] FROM queue [queue ...]"
CLUSTER = "MEET ip port | NODES | LEAVING [yes|no] | RESET [SOFT|HARD]"
JSCAN = "[cursor] [COUNT n] [STATE s ...] [REPLY all|id]"


@pytest.mark.parametrize(
    ("usage", "typed", "left"),
    [
        (ADDJOB, "", ADDJOB),
        (ADDJOB, "q", "body ms-timeout [DELAY sec] [RETRY sec] [ASYNC]"),
        (ADDJOB, "q b 0", "[DELAY sec] [RETRY sec] [ASYNC]"),
        (ADDJOB, "q b 0 RETRY", "sec [DELAY sec] [ASYNC]"),
        (ADDJOB, "q b 0 async retry 3", "[DELAY sec]"),
        (ADDJOB, "DELAY RETRY ASYNC", "[DELAY sec] [RETRY sec] [ASYNC]"),
        (ADDJOB, "q b 0 unknown", "[DELAY sec] [RETRY sec] [ASYNC]"),
        (GETJOB, "NOHANG", "[TIMEOUT ms] FROM queue [queue ...]"),
        (GETJOB, "NOHANG FROM", "queue [queue ...]"),
        (GETJOB, "FROM a", "[queue ...]"),
        (GETJOB, "FROM a b c", "[queue ...]"),
        (GETJOB, "unknown", GETJOB),
        (CLUSTER, "", CLUSTER),
        (CLUSTER, "meet", "ip port"),
        (CLUSTER, "meet 127.0.0.1 7711", ""),
        (CLUSTER, "leaving", "[yes|no]"),
        (CLUSTER, "bogus", ""),
        (JSCAN, "0", "[COUNT n] [STATE s ...] [REPLY all|id]"),
        (JSCAN, "COUNT 5 0", "[STATE s ...] [REPLY all|id]"),
        (JSCAN, "STATE queued", "[cursor] [COUNT n] [STATE s ...] [REPLY all|id]"),
        ("[COUNT | INFO name ...]", "", "COUNT | INFO name [name ...]"),
        ("[COUNT | INFO name ...]", "info a b", "[name ...]"),
        ("", "", ""),
        ("", "surplus", ""),
    ],
)
def test_a_usage_shrinks_by_what_was_typed(usage: str, typed: str, left: str) -> None:
    assert show(rest(forms(usage), typed.split())) == left


@pytest.mark.parametrize(
    ("usage", "typed", "words"),
    [
        (ADDJOB, "", ""),
        (ADDJOB, "q b 0", "DELAY RETRY ASYNC"),
        (ADDJOB, "q b 0 DELAY", ""),
        (ADDJOB, "q b 0 DELAY 5", "RETRY ASYNC"),
        (GETJOB, "", "NOHANG TIMEOUT FROM"),
        (GETJOB, "FROM", ""),
        (CLUSTER, "", "MEET NODES LEAVING RESET"),
        (CLUSTER, "RESET", "SOFT HARD"),
        (JSCAN, "", "COUNT STATE REPLY"),
        (JSCAN, "REPLY", "all id"),
        ("queue in|out|none [bcast]", "q", "in out none"),
    ],
)
def test_the_keywords_that_may_come_next_are_offered(usage: str, typed: str, words: str) -> None:
    assert candidates(rest(forms(usage), typed.split())) == words.split()

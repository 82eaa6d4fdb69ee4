"""Bad input: every option of the commands for jobs and queues, with every kind of bad value, gets
one error that names it, and changes nothing."""

import re
import shlex
from typing import Any, Final

import attrs
import pytest

from disque_trio.statemachine.base import ACTIVE, DEAD, NULL_ARRAY, Failure
from disque_trio.statemachine.commands.addoptions import parse_options
from disque_trio.statemachine.commands.jobs import describe
from disque_trio.statemachine.commands.table import BY_NAME
from tests.rig import CALM, JOB, ME, N2, N3, Rig, copy_of

HUGE: Final = "9" * 400
NO_NUMBERS: Final = "soon nan inf 1e3 0x10 - 1,5 ' 1' '1 ' ²"
NO_WHOLE: Final = f"{NO_NUMBERS} 1.5 {HUGE} -{HUGE} 99999999999999999999"
NO_SECONDS: Final = f"{NO_NUMBERS} -1 -0.5 1.0005 1. .5 1.5.5 {HUGE}"
ADD: Final = "ADDJOB q body 0"

VALUES: Final = [
    # The beginning of the command, the option, what the error begins with, bad values.
    (ADD, "REPLICATE", "ERR REPLICATE must be between 1 and 65535", f"0 -1 65536 '' {NO_WHOLE}"),
    (ADD, "SYNC", "ERR SYNC must be a whole number from 1 to 65535", f"0 -1 65536 '' {NO_WHOLE}"),
    (ADD, "TTL", "ERR TTL must be a number > 0", f"0 -1 '' {NO_WHOLE}"),
    (ADD, "RETRY", "ERR RETRY time must be a non negative number", f"-1 {NO_WHOLE}"),
    (ADD, "DELAY", "ERR DELAY time must be a non negative number", NO_SECONDS),
    (ADD, "DELAY", "ERR The specified DELAY is greater than TTL", "86400 999999999"),
    (f"{ADD} PRIORITY 0", "DELAY", "ERR The specified DELAY is greater than TTL", "86400.001"),
    (ADD, "DELAY", "ERR DELAY time must be a non negative number: 1.5 has", "1.5 1.500"),
    (
        f"{ADD} TTL 999999999 LIMIT 1",
        "DELAY",
        "ERR DELAY must be at most 316224000 seconds",
        "316224000.001 316224001",
    ),
    (f"{ADD} TTL 9999999", "DELAY", "ERR DELAY must be at most 2147483 seconds", "2147484 9999998"),
    (f"{ADD} LIMIT 1", "RETRY", "ERR RETRY must be at most 316224000 seconds", "316224001"),
    (ADD, "MAXLEN", "ERR MAXLEN must be a positive number", f"0 -1 '' {NO_WHOLE}"),
    (ADD, "PRIORITY", "ERR PRIORITY must be a whole number", f"-101 101 '' {NO_WHOLE}"),
    (ADD, "LIMIT", "ERR LIMIT must be a whole number", f"0 -1 10001 '' {NO_WHOLE}"),
    (ADD, "GROUP", "ERR The name behind GROUP is empty", "''"),
    (ADD, "GROUP", "ERR The name behind GROUP has at most 256 bytes", "g" * 257),
    (ADD, "UNIQUE", "ERR A key has at most 256 bytes", "k" * 257),
    (f"{ADD} UNIQUE k", "KEEP", "ERR KEEP must be seconds", f"0 '' 316224000.001 {NO_SECONDS}"),
    (f"{ADD} UNIQUE k", "IFEXISTS", "ERR syntax error: IFEXISTS", "'' maybe 1 return,reject"),
    (ADD, "BACKOFF", "ERR BACKOFF must be seconds", f"0 '' 316224001 {NO_SECONDS}"),
    (f"{ADD} BACKOFF 1", "MAXBACKOFF", "ERR MAXBACKOFF must be", f"0 '' 316224001 {NO_SECONDS}"),
    (f"{ADD} BACKOFF 1", "MAXBACKOFF", "ERR MAXBACKOFF must not be shorter", "0.999"),
    ("GETJOB", "TIMEOUT", "ERR timeout is", f"-1 {NO_WHOLE}"),
    ("GETJOB", "COUNT", "ERR COUNT must be a number greater than zero", f"0 -1 '' {NO_WHOLE}"),
    ("NACK WORKER", "DELAY", "ERR DELAY must be seconds", f"'' 316224001 {NO_SECONDS}"),
    ("NACK WORKER", "DELAY", "ERR DELAY is longer than the life of", "86402 100000.5"),
    ("NACK WORKER", "DEAD", "ERR The reason behind DEAD has at most", "r" * 1025),
    ("NACK WORKER", "ERROR", "ERR The text behind ERROR has at most", "e" * 4097),
    ("REDRIVE q", "COUNT", "ERR COUNT must be a number greater than zero", f"0 -1 '' {NO_WHOLE}"),
    ("ACKJOB WORKER RESULT done", "KEEP", "ERR KEEP must be seconds from 0.001", "0 -1 x"),
    ("ACKJOB WORKER", "RESULT", "ERR syntax error", ""),
    ("WAITJOB WORKER", "TIMEOUT", "ERR timeout is", f"-1 {NO_WHOLE}"),
]
FLAGS: Final = {
    "addjob": {"ASYNC"},
    "getjob": {"NOHANG", "WITHCOUNTERS", "WITHMETA", "TIED", "HELD"},
    "purge": {"DEAD", "BCAST"},
    "waitjob": {"NOHANG", "WITHRESULT"},
    "ackjob": set(),
}
REPEATED: Final = {
    # Of options of the original the last one counts, as there.
    "ADDJOB": "REPLICATE TTL RETRY DELAY MAXLEN",
    "GETJOB": "TIMEOUT COUNT",
}
GOOD: Final = {"IFEXISTS": "reject", "PRIORITY": "-3", "MAXBACKOFF": "3600"}

WORDS: Final = """
ADDJOB q body 0 LIMIT 3 RETRY 0 REPLICATE 1
    ERR syntax error: LIMIT needs a RETRY above 0
ADDJOB q body 0 BACKOFF 3 RETRY 0 REPLICATE 1
    ERR BACKOFF needs RETRY above 0
ADDJOB q body 0 MAXBACKOFF 3
    ERR syntax error: MAXBACKOFF needs BACKOFF sec
ADDJOB q body 0 KEEP 3
    ERR syntax error: KEEP needs UNIQUE key
ADDJOB q body 0 IFEXISTS reject
    ERR syntax error: IFEXISTS needs UNIQUE key
ADDJOB q body 0 RETRY 0 REPLICATE 2
    ERR With RETRY set to 0 please explicitly set
ADDJOB q body 0 UNIQUE k UNIQUE k
    ERR syntax error: UNIQUE is given twice
ADDJOB q body 0 URGENT
    ERR syntax error: 'URGENT' is not an option of ADDJOB
GETJOB WITHMETA WITHMETA FROM q
    ERR syntax error: WITHMETA is given twice
GETJOB HELD FROM q
    ERR syntax error: HELD needs TIED
GETJOB TIED NOHANG TIED FROM q
    ERR syntax error: TIED is given twice
GETJOB TIED 5 FROM q
    ERR syntax error: '5' is not an option of GETJOB
NACK WORKER DELAY 1 DEAD
    ERR syntax error: DELAY and DEAD exclude each other
NACK WORKER DEAD reason more
    ERR syntax error: the reason behind DEAD is one word
NACK WORKER DELAY 1 WORKER
    ERR syntax error: 'D-bbbbbbbb-
NACK DELAY 1
    ERR syntax error: DELAY has no job ids before it
NACK WORKER nobody
    BADID Invalid Job ID format. 'nobody' is
NACK WORKER@soon DELAY 1
    BADTOKEN 'soon' is not a token
WORKING
    ERR wrong number of arguments for 'working' command
WORKING WORKER nobody
    BADID Invalid Job ID format. 'nobody' is
WORKING WORKER@
    BADTOKEN '' is not a token
WORKING WORKER@0123456789abcdef0123456789abcdef
    BADTOKEN '0123456789abcdef0123456789abcdef' is not a token
RELEASE
    ERR wrong number of arguments for 'release' command
RELEASE WORKER -1
    BADID Invalid Job ID format. '-1' is
RELEASE WORKER@nan
    BADTOKEN 'nan' is not a token
REDRIVE
    ERR wrong number of arguments for 'redrive' command
REDRIVE BURIED nobody
    BADID Invalid Job ID format. 'nobody' is
REDRIVE q 5
    ERR syntax error: '5' is not an option of REDRIVE
PURGE
    ERR wrong number of arguments for 'purge' command
PURGE q 5
    ERR syntax error: '5' is not an option of PURGE
PURGE q DEAD DEAD
    ERR syntax error: DEAD is given twice
PURGE q BCAST DEAD bcast
    ERR syntax error: BCAST is given twice
WAITJOB
    ERR wrong number of arguments for 'waitjob' command
WAITJOB nobody
    BADID Invalid Job ID format. 'nobody' is
WAITJOB WORKER 5
    ERR syntax error: '5' is not an option of WAITJOB
SHOW
    ERR wrong number of arguments for 'show' command
SHOW KEY q
    ERR wrong number of arguments for 'show' command
SHOW KEY q k more
    ERR wrong number of arguments for 'show' command
SHOW KEY q k LOCAL more
    ERR wrong number of arguments for 'show' command
SHOW KEY q '' LOCAL
    ERR The key is empty
SHOW KEYS q k
    ERR syntax error: 'KEYS' stands in place of KEY: SHOW KEY queue key
SHOW KEY q ''
    ERR The key is empty
CANCEL KEY q
    ERR wrong number of arguments for 'cancel' command
CANCEL q KEY k
    ERR syntax error: 'q' stands in place of KEY: CANCEL KEY queue key
CANCEL KEY q ''
    ERR The key is empty
CLIENT UNBLOCK
    ERR
CLIENT UNBLOCK 1 2
    ERR
CLIENT UNBLOCK nobody
    ERR
CLIENT UNBLOCK -1
    ERR
CLIENT UNBLOCK 1.5
    ERR
"""
"""What has no value, and what contradicts itself."""


def cases() -> list[tuple[str, str]]:
    """Lines and how their errors begin."""
    found = []
    for begin, option, error, values in VALUES:
        found += [(f"{begin} {option} {shlex.quote(v)}", error) for v in shlex.split(values)]
    for begin, option in dict.fromkeys((row[0], row[1]) for row in VALUES):
        command, good = begin.split()[0], GOOD.get(option, "1")
        if option != "DEAD":
            found.append((f"{begin} {option}", f"ERR syntax error: {option} has no value"))
            if option not in REPEATED.get(command, "").split():
                twice = f"{begin} {option} {good} {option.lower()} {good}"
                found.append((twice, f"ERR syntax error: {option} is given twice"))
    lines = WORDS.strip().splitlines()
    long_key = "k" * 257
    for command in ("SHOW", "CANCEL"):
        found.append((f"{command} KEY q {long_key}", "ERR A key has at most 256 bytes"))
    found.append((f"CLIENT UNBLOCK {HUGE}", "ERR"))
    return found + list(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))


def at_work() -> Rig:
    """A node with peers and a journal. It has a job with a worker, a dead one, a queued one, and a
    client that waits."""
    rig = Rig(peers=2, ours=True, config=attrs.evolve(CALM, appendonly=True))
    for number, queue in enumerate((b"q", b"q", b"other")):
        rig.hold(copy_of(named(number), holders=(N2, N3, ME), queue=queue))
        rig.ask("ENQUEUE", named(number))
    rig.ask("NACK", named(0), "DEAD", "why")
    rig.ask("GETJOB", "FROM", "q")
    assert rig.node.jobs[named(0)].state == DEAD
    assert rig.node.jobs[named(1)].state == ACTIVE
    rig.request("GETJOB", "FROM", "empty", client=rig.connect())
    rig.take()
    rig.sent()
    rig.outboxes.clear()
    return rig


def named(number: int) -> bytes:
    return JOB.replace(b"AAAA", b"AAA%d" % number, 1)


def everything(rig: Rig) -> list[Any]:
    """What a command may change. That no random number was drawn shows that nothing was begun."""
    node = rig.node
    return [
        [describe(node, job) for job in node.jobs.values()],
        [(name, len(queue), len(queue.waiting)) for name, queue in node.queues.items()],
        [(name, list(jobs)) for name, jobs in node.dead.items()],
        (dict(node.keys.index), len(node.keys.claims), len(node.keys.searches)),
        [(id, client.pending_adds) for id, client in node.clients.items()],
        (list(node.delayed), node.due_seconds, node.leased.copy(), list(node.awaited)),
        node.memory.held,
        node.rng.getstate(),
    ]


def typed(line: str) -> list[str | bytes]:
    """The words of a line, with ids in place of their names."""
    names = {"WORKER": named(1).decode(), "BURIED": named(0).decode()}
    return [re.sub("WORKER|BURIED", lambda m: names[m[0]], each) for each in shlex.split(line)]


@pytest.mark.parametrize(("line", "error"), cases(), ids=lambda text: text[:60])
def test_bad_input_has_one_error_and_changes_nothing(line: str, error: str) -> None:
    rig = at_work()
    words = typed(line)
    if words[0] == "GETJOB" and "FROM" not in words:
        words += ["FROM", "q"] if not error.endswith("has no value") else []
    before = everything(rig)

    reply = rig.ask(*words)

    assert isinstance(reply, Failure)
    assert reply.text.decode().startswith(error)
    assert len(reply.text) < 400
    assert everything(rig) == before
    assert rig.sent() == []
    assert [record for out in rig.outboxes for record in out.records] == []


@pytest.mark.parametrize("command", [*FLAGS, "nack", "redrive"])
def test_every_option_is_tried(command: str) -> None:
    options = set(re.findall(r"\[([A-Z]+)", BY_NAME[command].usage))

    tried = {option for begin, option, *_ in VALUES if begin.split()[0].lower() == command}

    assert options == tried | FLAGS.get(command, set())


def test_of_options_of_the_original_the_last_counts() -> None:
    rig = at_work()

    rig.ask("PURGE", "other")
    reply = rig.ask("GETJOB", "NOHANG", "COUNT", 9, "COUNT", 1, "NOHANG", "FROM", "q", "other")

    assert reply is NULL_ARRAY
    parsed = parse_options([b"TTL", b"5", b"DELAY", b"7", b"delay", b"1", b"ttl", b"6"])
    assert (parsed.ttl, parsed.delay) == (6, 1000)

"""What a client's slips are answered, word by word: what was wrong, which value, what to do.

The first words of each are the original's, which programs may look for.
"""

from typing import Final

import pytest

from disque_trio.statemachine.base import Failure
from disque_trio.statemachine.commands.table import BY_NAME
from tests.rig import JOB, Rig

NO_ID: Final = "not the id that ADDJOB answered: 40 characters, of which the first are D-"
TIMEOUT: Final = "ERR timeout is not an integer or out of range"
WAIT: Final = "ms-timeout, the third word of ADDJOB queue body ms-timeout [options]"

SLIPS: Final = f"""
ADDJOB mail
    ERR wrong number of arguments for 'addjob' command: ADDJOB {BY_NAME["addjob"].usage}
ADDJOB mail body soon
    {TIMEOUT}: 'soon' is no whole number for {WAIT}
ADDJOB mail body nan
    {TIMEOUT}: 'nan' is no whole number for {WAIT}
ADDJOB mail body -1
    ERR timeout is negative: '-1' for {WAIT}
ADDJOB mail body RETRY 60
    ERR syntax error: ms-timeout is missing before 'RETRY': ADDJOB queue body ms-timeout [options]
ADDJOB mail body 0 RETYR 60
    ERR syntax error: 'RETYR' is not an option of ADDJOB (did you mean 'RETRY'?)
ADDJOB mail body 0 urgent
    ERR syntax error: 'urgent' is not an option of ADDJOB; there are REPLICATE, TTL, RETRY, MAXLEN,
    ... DELAY, PRIORITY, GROUP, LIMIT, SYNC, BACKOFF, MAXBACKOFF, UNIQUE, KEEP, IFEXISTS, ASYNC
ADDJOB mail body 0 PRIORITY
    ERR syntax error: PRIORITY has no value behind it
ADDJOB mail body 0 PRIORITY high
    ERR PRIORITY must be a whole number from -100 to 100: 'high' is no whole number
ADDJOB mail body 0 PRIORITY 101
    ERR PRIORITY must be a whole number from -100 to 100: '101' is beyond 100
ADDJOB mail body 0 PRIORITY -101
    ERR PRIORITY must be a whole number from -100 to 100: '-101' is less than -100
ADDJOB mail body 0 PRIORITY 99999999999999999999
    ERR PRIORITY must be a whole number from -100 to 100: '99999999999999999999' is beyond 100
ADDJOB mail body 0 PRIORITY 1 PRIORITY 2
    ERR syntax error: PRIORITY is given twice
ADDJOB mail body 0 RETRY
    ERR syntax error: RETRY has no value behind it
ADDJOB mail body 0 RETRY TTL 60
    ERR RETRY time must be a non negative number: 'TTL' is no whole number
ADDJOB mail body 0 RETRY -1
    ERR RETRY time must be a non negative number: '-1' is less than 0
ADDJOB mail body 0 TTL 1.5
    ERR TTL must be a number > 0: '1.5' is no whole number
ADDJOB mail body 0 TTL 99999999999999999999
    ERR TTL must be a number > 0: '99999999999999999999' is beyond 9223372036854775807
ADDJOB mail body 0 REPLICATE 70000
    ERR REPLICATE must be between 1 and 65535: 70000
ADDJOB mail body 0 DELAY 60 TTL 60
    ERR The specified DELAY is greater than TTL. Job refused since would never be delivered:
    ... DELAY is 60, TTL 60
ADDJOB mail body 0 DELAY 400000000.25 TTL 900000000 PRIORITY 0
    ERR DELAY must be at most 316224000 seconds: 400000000.25
ADDJOB mail body 0 DELAY 60.5 TTL 60 PRIORITY 0
    ERR The specified DELAY is greater than TTL. Job refused since would never be delivered:
    ... DELAY is 60.5, TTL 60
ADDJOB mail body 0 DELAY 1.5
    ERR DELAY time must be a non negative number: 1.5 has decimals, for which
    ... an option must be there that the original does not have, such as PRIORITY 0
ADDJOB mail body 0 DELAY 0.0001
    ERR DELAY time must be a non negative number: '0.0001' is not seconds with up to three decimals
ADDJOB mail body 0 DELAY -0.5
    ERR DELAY time must be a non negative number: '-0.5' is not seconds with up to three decimals
ADDJOB mail body 0 DELAY nan
    ERR DELAY time must be a non negative number: 'nan' is not seconds with up to three decimals
ADDJOB mail body 0 DELAY 1e3
    ERR DELAY time must be a non negative number: '1e3' is not seconds with up to three decimals
ADDJOB mail body 0 DELAY 99999999999999999999
    ERR DELAY time must be a non negative number: '99999999999999999999' is beyond
    ... 9223372036854775807
GETJOB mail
    ERR syntax error: FROM is missing before the queues: GETJOB [options] FROM queue [queue ...]
GETJOB TIMEOUT 100 mail
    ERR syntax error: FROM is missing before the queues: GETJOB [options] FROM queue [queue ...]
GETJOB NOHANG FROM
    ERR syntax error: FROM has no queue behind it
GETJOB TIMEOT 100 FROM mail
    ERR syntax error: 'TIMEOT' is not an option of GETJOB (did you mean 'TIMEOUT'?)
GETJOB COUNT FROM mail
    ERR COUNT must be a number greater than zero: 'FROM' is no whole number
GETJOB COUNT 0 FROM mail
    ERR COUNT must be a number greater than zero: '0' is less than 1
GETJOB TIMEOUT inf FROM mail
    {TIMEOUT}: 'inf' is no whole number for TIMEOUT
GETJOB TIMEOUT -5 FROM mail
    ERR timeout is negative: '-5' for TIMEOUT
getjob from mail timeout 5s
    {TIMEOUT}: '5s' is no whole number for TIMEOUT
GETJOB FROM mail TIMEOUT -5
    ERR timeout is negative: '-5' for TIMEOUT
GETJOB NOHANG FROM mail COUNT
    ERR syntax error: COUNT has no value behind it
GETJOB FROM mail COUNT 0
    ERR COUNT must be a number greater than zero: '0' is less than 1
ACKJOB {JOB.decode()} mail
    BADID Invalid Job ID format. 'mail' is {NO_ID}
SHOW mail
    BADID Invalid Job ID format. 'mail' is {NO_ID}
QPEEK mail all
    ERR value is not an integer or out of range: 'all' is no whole number for the count of QPEEK
QSCAN CUONT 5
    ERR invalid cursor or option name: 'CUONT' is neither (did you mean 'COUNT'?)
QSCAN 0 COUNT
    ERR syntax error: COUNT has no value behind it
JSCAN 0 zzz
    ERR syntax error: 'zzz' is neither; there are COUNT, BUSYLOOP, QUEUE, STATE, GROUP, KEY, ERROR,
    ... BODY, OLDER, YOUNGER, REPLY
QSCAN 0 0
    ERR syntax error: '0' comes behind another cursor
QSCAN MINLEN few
    ERR value is not an integer or out of range: 'few' is no whole number for MINLEN
JSCAN STATE quued
    ERR Invalid job state name: 'quued' is none of wait-repl, active, queued, acked, dead,
    ... backing-off, delayed, restored, leased, ended (did you mean 'queued'?)
JSCAN REPLY some
    ERR Invalid REPLY type, try ID or ALL or FULL: 'some' is neither
PAUSE mail of
    ERR syntax error: 'of' is none of in, out, all, none, state, bcast
CLUSTER NODE
    ERR Wrong CLUSTER subcommand or number of arguments: there is no CLUSTER 'NODE' (did you mean
    ... 'NODES'?)
CLUSTER MEET 10.0.0.1
    ERR Wrong CLUSTER subcommand or number of arguments: it is CLUSTER MEET host port [bus-port]
CLUSTER MEET 10.0.0.1 seven
    ERR Invalid TCP port specified: seven: 'seven' is no whole number
CLUSTER FORGET 10.0.0.1
    ERR Invalid node identifier: '10.0.0.1' has not 40 digits; CLUSTER NODES shows them all
CLUSTER RESET softly
    ERR syntax error: 'softly' is none of SOFT, HARD (did you mean 'SOFT'?)
CLUSTER LEAVING now
    ERR Wrong argument for CLUSTER LEAVING. Use 'yes' or 'no', not 'now'
CONFIG GTE port
    ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE: there is no CONFIG 'GTE'
    ... (did you mean 'GET'?)
CONFIG SET maxmemory
    ERR Wrong number of arguments for CONFIG SET: it is CONFIG SET name value
CONFIG SET maxmemroy 1gb
    ERR Unsupported CONFIG parameter: maxmemroy (did you mean 'maxmemory'?)
CONFIG SET maxmemory 1gbit
    ERR Invalid argument '1gbit' for CONFIG SET 'maxmemory': '1gbit' is not a size such as
    ... 1048576, 100kb or 1gb
CLIENT KILL 10.0.0.1:1
    ERR No such client: none has the address '10.0.0.1:1'
CLIENT KILL NAME worker
    ERR syntax error: 'name' is not an option of CLIENT KILL; there are ID, TYPE, ADDR, SKIPME
CLIENT KILL SKIPME maybe
    ERR syntax error: SKIPME is yes or no, not 'maybe'
CLIENT REPLY of
    ERR syntax error: 'of' is none of ON, OFF, SKIP (did you mean 'OFF'?)
CLIENT PAUSE long
    {TIMEOUT}: 'long' is no whole number for PAUSE
SLOWLOG GETT
    ERR Unknown SLOWLOG subcommand or wrong # of args. Try GET, RESET, LEN. (there is no SLOWLOG
    ... 'GETT' (did you mean 'GET'?))
LATENCY HEAL
    ERR syntax error: there is no LATENCY 'HEAL'; there are LATEST, HISTORY, GRAPH, DOCTOR, RESET
DEBUG SLEEP long
    ERR value is not a valid float: 'long' is no number of seconds
INFO server clients
    ERR syntax error: INFO takes one section at most
SHUTDOWN NOSAVE
    ERR syntax error: SHUTDOWN takes REWRITE-AOF or nothing
HELLO 4
    NOPROTO unsupported protocol version: there are 2 and 3, not 4
HELLO 3 AUTH default
    ERR syntax error: the user of AUTH has no value behind it
HELLO 3 AUHT default secret
    ERR syntax error: HELLO [version] [AUTH user password] [SETNAME name]
TIME now
    ERR wrong number of arguments for 'time' command: TIME
"""


def slips() -> list[tuple[str, str]]:
    lines = SLIPS.strip().replace("\n    ... ", " ").splitlines()
    return list(zip(lines[::2], map(str.strip, lines[1::2]), strict=True))


@pytest.mark.parametrize(("typed", "text"), slips())
def test_a_slip_is_answered_with_what_was_wrong(typed: str, text: str) -> None:
    rig = Rig()

    assert rig.ask(*typed.split()) == Failure(text.encode())
    assert not rig.node.queues
    assert not rig.node.jobs


@pytest.mark.parametrize(
    "queues",
    [
        ["TIMEOUT"],
        ["timeout", "100", "mail"],
        ["COUNT", "NOHANG", "WithCounters", "TIMEOUT", "mail"],
        ["mail", "COUNT", "mail"],
        ["mail", "TIMEOUTS", "5"],
        ["mail", "FROM", "RETRY", "5"],
    ],
    ids=" ".join,
)
def test_queues_may_be_called_like_options_where_they_cannot_be_meant_so(queues: list[str]) -> None:
    for words in (["NOHANG", "FROM"], ["nohang", "from"]):
        rig = Rig()
        rig.add(queue=queues[0])

        reply = rig.ask("GETJOB", *words, *queues)

        assert isinstance(reply, list)
        assert reply[0][0] == queues[0].encode()  # type: ignore[index]


def test_an_error_echoes_no_whole_body() -> None:
    reply = Rig().ask("ADDJOB", "mail", "body", "0", "X" * 100_000)

    assert isinstance(reply, Failure)
    assert len(reply.text) < 300

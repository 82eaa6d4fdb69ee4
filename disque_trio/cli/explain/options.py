"""The options of `disque-trio explain`."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from disque_trio.cli.frame import port
from disque_trio.cli.operating.jobs import job_id
from disque_trio.cli.options import add_password, add_tls, parser_for, password_from, tls_from
from disque_trio.client.address import Address
from disque_trio.explain.facts import JOURNALS, NO_JOURNAL, Facts

_DESCRIPTION: Final = """\
Tells what a job survives: node crashes, power cuts, cuts of the network, workers that die; what
makes it come twice, and how late it may be. The rules are those of docs/guarantees.md; --trials
runs the simulator with the same faults, and shows whether rules and trials agree.
"""
_EPILOG: Final = """\
examples:
  disque-trio explain ADDJOB mail body 0 RETRY 60
  disque-trio explain --nodes 5 --journal everysec --trials 20 ADDJOB mail body 0 REPLICATE 2
  disque-trio explain -p 7711 ADDJOB mail body 0     about the cluster of this node
  disque-trio explain --queue mail                   about its jobs, at 127.0.0.1:7711

exit status: 0 done; 1 the job is refused, or rules and trials do not agree; 2 wrong usage, or no
answer; 130 interrupted by Ctrl-C
"""
_DEFAULT_NODES: Final = 3
_MOST_TRIALS: Final = 10_000
_MOST_NODES: Final = 1_000


@attrs.frozen(kw_only=True)
class Options:
    """The command line, read and checked."""

    words: tuple[str, ...]
    """The ADDJOB; none with a job or a queue."""
    job: str | None
    """The id of a job of a running cluster."""
    queue: str | None
    """The name of a queue of a running cluster."""
    facts: Facts | None
    """The cluster that is assumed; None: one is asked."""
    address: Address
    password: bytes | None
    trials: int
    is_json: bool


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options of a command line; exits with 2 if it is wrong."""
    parser = _parser()
    given = parser.parse_args(argv)
    is_found = given.job is not None or given.queue is not None
    if is_found and given.words:
        parser.error(f"--job and --queue need no ADDJOB: leave out '{' '.join(given.words)}'")
    is_asked = is_found or given.host is not None or given.port is not None
    described = (given.nodes, given.zones, given.journal)
    if is_asked and any(each is not None for each in described):
        parser.error(
            "--nodes, --zones and --journal describe a cluster that is not asked: without -h, -p, "
            "--job"
        )
    nodes = given.nodes or _DEFAULT_NODES
    if given.zones is not None and given.zones > nodes:
        parser.error(f"{given.zones} zones need as many nodes; there are {nodes}: see --nodes")
    return Options(
        words=tuple(given.words),
        job=given.job,
        queue=given.queue,
        facts=None
        if is_asked
        else Facts(
            nodes=nodes,
            journal=given.journal or NO_JOURNAL,
            zones=tuple(f"z{1 + node % given.zones}" for node in range(nodes))
            if given.zones
            else (),
        ),
        address=Address(
            host=given.host or "127.0.0.1", port=given.port or 7711, tls=tls_from(parser, given)
        ),
        password=password_from(parser, given, environment),
        trials=given.trials,
        is_json=given.is_json,
    )


def _parser() -> argparse.ArgumentParser:
    usage = "disque-trio explain [options] ADDJOB queue body ms-timeout [options of the job]"
    parser = parser_for("explain", _DESCRIPTION, _EPILOG, usage)
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    assumed = parser.add_argument_group("a cluster that is assumed")
    assumed.add_argument(
        "--nodes",
        type=lambda word: _number(word, 1, _MOST_NODES),
        metavar="N",
        help=f"how many nodes it has ({_DEFAULT_NODES})",
    )
    assumed.add_argument(
        "--zones",
        type=lambda word: _number(word, 1, _MOST_NODES),
        metavar="N",
        help="in how many zones they are, evenly (they name none)",
    )
    assumed.add_argument(
        "--journal",
        choices=JOURNALS,
        help="none, or the appendfsync of nodes with appendonly yes (none)",
    )
    asked = parser.add_argument_group("a cluster that is asked")
    asked.add_argument("-h", "--host", metavar="HOST", help="one of its nodes (127.0.0.1)")
    asked.add_argument("-p", "--port", metavar="PORT", type=port, help="its port (7711)")
    which = asked.add_mutually_exclusive_group()
    which.add_argument("--job", metavar="ID", type=job_id, help="a job that it has")
    which.add_argument("--queue", metavar="NAME", help="what most jobs of a queue ask")
    add_password(asked)
    add_tls(parser)
    parser.add_argument(
        "--trials",
        type=lambda word: _number(word, 0, _MOST_TRIALS),
        default=0,
        metavar="N",
        help="how many runs of the simulator for each kind of fault (0)",
    )
    parser.add_argument("--json", dest="is_json", action="store_true", help="one JSON object")
    parser.add_argument("--help", action="help", help="print this and exit")
    return parser


def _number(word: str, least: int, most: int) -> int:
    if word.isdecimal() and least <= int(word) <= most:
        return int(word)
    raise argparse.ArgumentTypeError(f"'{word}' is not a number from {least} to {most}")

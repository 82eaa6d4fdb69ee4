"""`disque-trio top`: what the nodes and queues of a cluster do now, on one screen that renews
itself, or as text and JSON for other programs.
"""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import anyio

from disque_trio.cli.frame import INTERRUPTED, USAGE, discard_output
from disque_trio.cli.top import tables
from disque_trio.client import Client
from disque_trio.client.errors import DisqueError
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.observe.sampling import Sampler
from disque_trio.terminal.arguments import Parser
from disque_trio.terminal.output import complain, flush, say_json, say_lines, terminal_width

FAILED: Final = 1
_NO_TEXTUAL: Final = (
    "the screen needs Textual: pip install 'disque-trio[top]'; --once and --json do without"
)
_EPILOG: Final = """\
The nodes are those of --url, or of $DISQUE_URL: disque://:password@host:port,host:port (DEFAULT).
Rates are of the time between two looks, so the first ones appear after one interval.

keys: q queues, n nodes, / filter, s next column to sort by, space freeze, Esc end

exit status: 0 done, 1 no node answers, 2 wrong usage, 130 interrupted by Ctrl-C
""".replace("DEFAULT", DEFAULT_URL)


def main(argv: Sequence[str]) -> int:
    """Show it. The exit status."""
    try:
        given = _parser().parse_args(argv)
        client = Client(given.url or os.environ.get("DISQUE_URL") or DEFAULT_URL)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    except (ValueError, OSError) as error:
        return _fail(str(error), USAGE)
    try:
        if not sys.stdout.isatty() and not given.is_json:
            given.is_once = True  # There is no screen.
        if given.is_json or given.is_once:
            anyio.run(_print, client, given)
            return 0
        return _watch(client, given)
    except DisqueError as error:
        return _fail(str(error), FAILED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="disque-trio top",
        description="Watch the nodes and queues of a cluster.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--url", help="nodes of the cluster ($DISQUE_URL)")
    parser.add_argument(
        "--interval", type=_seconds, default=2.0, metavar="SEC", help="between two looks (2)"
    )
    parser.add_argument(
        "--sort", choices=tables.SORTS, default="jobs", help="what queues are sorted by (jobs)"
    )
    parser.add_argument(
        "--once",
        dest="is_once",
        action="store_true",
        help="look twice, print, and end; so it does without a terminal",
    )
    parser.add_argument(
        "--json",
        dest="is_json",
        action="store_true",
        help="print an object for each look, one a line",
    )
    return parser


def _seconds(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = math.nan
    if not 0.1 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"'{word}' is not a number of seconds from 0.1 to 3600")
    return seconds


def _fail(reason: str, status: int) -> int:
    complain(f"disque-trio top: {reason}")
    return status


async def _print(client: Client, given: argparse.Namespace) -> None:
    """The first look has no rates, so it is left out."""
    async with client:
        sampler = Sampler(client)
        await sampler.look()
        while True:
            await anyio.sleep(given.interval)
            view = await sampler.look()
            if given.is_json:
                say_json(tables.as_json(view, given.sort))
            else:
                say_lines(tables.as_text(view, given.sort, terminal_width()))
            flush()
            if given.is_once:
                return


def _watch(client: Client, given: argparse.Namespace) -> int:
    try:
        screen: Any = import_module("disque_trio.cli.top.screen")
    except ModuleNotFoundError:
        return _fail(_NO_TEXTUAL, FAILED)
    error: str | None = screen.Top(Sampler(client), given.interval, given.sort).run()
    return _fail(error, FAILED) if error else 0

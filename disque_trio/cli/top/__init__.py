"""`disque-trio top`: what the nodes and queues of a cluster do now, on one screen that renews
itself, or as text and JSON for other programs.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import anyio
import attrs

from disque_trio.cli.frame import (
    INTERRUPTED,
    NotDoneError,
    fail,
    json_switch,
    run,
)
from disque_trio.cli.operating.frame import client_of, cluster_url
from disque_trio.cli.top import tables
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.observe.client import ANSWER_S, DeadlineClient
from disque_trio.observe.observer import Observer
from disque_trio.observe.sampling import Sampler
from disque_trio.terminal.options import Command, one_of, option, seconds, switch
from disque_trio.terminal.output import (
    discard_output,
    flush,
    say_json,
    say_lines,
    terminal_width,
)

_NO_TEXTUAL: Final = (
    "the live screen needs Textual: pip install 'disque-trio[top]'; --once and --json work without"
)
_EPILOG: Final = """\
--url or $DISQUE_URL names nodes: disque://:password@host:port,host:port (DEFAULT). Rates are
measured over one interval, so the first ones appear after one interval.

keys: q queues, n nodes, / filter, s sort by the next column, space freeze, Esc quit

exit status: 0 done, 1 no node answers, 2 wrong usage, 130 interrupted by Ctrl-C
""".replace("DEFAULT", DEFAULT_URL)


@attrs.frozen(kw_only=True)
class Options:
    """The command line, read and checked."""

    url: str = cluster_url()
    interval: float = option("--interval", seconds(0.1, 3600), "time between two updates", 2.0)
    sort: str = option("--sort", one_of(*tables.SORTS), "sort order of queues", "jobs")
    is_once: bool = switch(
        "--once", "print one snapshot after one interval, and exit; the default without a terminal"
    )
    is_json: bool = json_switch("print one JSON object per update, one per line")


def main(argv: Sequence[str]) -> int:
    """Show it. The exit status."""
    return run("top", PROGRAM, argv)


def _main(options: Options) -> int:
    client = client_of(options.url, ANSWER_S)
    try:
        if options.is_json or options.is_once or not sys.stdout.isatty():
            anyio.run(_print, client, options)
            return 0
        return _watch(client, options)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return 0


async def _print(client: DeadlineClient, options: Options) -> None:
    """The first look has no rates, so it is left out."""
    async with client:
        sampler = Sampler(Observer(client))
        await sampler.look()
        while True:
            await anyio.sleep(options.interval)
            view = await sampler.look()
            if options.is_json:
                say_json(tables.as_json(view, options.sort))
            else:
                say_lines(tables.as_text(view, options.sort, terminal_width()))
            flush()
            if options.is_once or not options.is_json:
                return


def _watch(client: DeadlineClient, options: Options) -> int:
    try:
        screen: Any = import_module("disque_trio.cli.top.screen")
    except ModuleNotFoundError:
        return fail("top", _NO_TEXTUAL)
    error: str | None = screen.Top(Sampler(Observer(client)), options.interval, options.sort).run()
    if error:
        raise NotDoneError(error)
    return 0


PROGRAM: Final = Command(
    record=Options,
    run=_main,
    about="Watch the nodes and queues of a cluster.",
    epilog=_EPILOG,
)

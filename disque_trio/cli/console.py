"""`disque-trio console`: the console of a cluster, in a process of its own."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import attrs
import trio

from disque_trio.cli.frame import USAGE, UsageError
from disque_trio.client.address import Cluster
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.client.url import parse_url
from disque_trio.net.listeners import ListenError, listen_for_browsers
from disque_trio.serving.logs import open_log
from disque_trio.serving.secret_files import SecretFileError, with_secrets
from disque_trio.statemachine.config import Config
from disque_trio.terminal.arguments import Parser
from disque_trio.terminal.output import complain, flush, say

PORT: Final = 8710
FAILED: Final = 1
_EPILOG: Final = """\
An ADDRESS is host:port of a node, or a URL such as disques://10.0.0.1:7711; one is enough, for it
knows the others. Without any it is that of $DISQUE_URL (DEFAULT).

With --trace or --scenario the console shows that run, step by step, with what the judge says of
it; without an ADDRESS it alone. From any moment of a scenario you can take over.

With --sandbox there is a simulated cluster to break by hand: cut links, kill nodes, add and take
jobs, heal, and see what the judge says. Nothing in it is real, and it is gone when this ends.

The password is the nodes', and what the console asks browsers for. Without one it serves this
machine only. The page is plain HTTP: beyond this machine, put a proxy with TLS before it.

exit status: 0 ended by Ctrl-C, 1 the port cannot be listened on, 2 wrong usage
""".replace("DEFAULT", DEFAULT_URL)


def main(argv: Sequence[str]) -> int:
    """Serve it until Ctrl-C. The exit status."""
    try:
        given = _parser().parse_args(argv)
        config = _config(given)
        _check(given)
        sandbox, picture = _sandbox(given), _picture(given)
        is_alone = bool(picture or sandbox) and not given.addresses
        cluster = None if is_alone else _cluster(given.addresses, config.requirepass)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    except (ValueError, SecretFileError, UsageError) as error:
        return _fail(str(error), USAGE)
    if not config.requirepass and cluster is not None:
        config = attrs.evolve(config, requirepass=cluster.secret() or b"")
    try:
        sockets = listen_for_browsers(config)
    except ListenError as error:
        return _fail(str(error).replace("--web-port", "--port"), FAILED)
    with contextlib.ExitStack() as cleanup:
        for sock in sockets:
            cleanup.callback(sock.close)
        trio.run(_serve, config, cluster, sockets, picture, sandbox)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="disque-trio console",
        description="Show a cluster in a browser, and look after it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("addresses", nargs="*", metavar="ADDRESS", help="a node of the cluster")
    parser.add_argument("-p", "--port", type=int, default=PORT, help=f"to listen on ({PORT})")
    parser.add_argument(
        "--bind", default="127.0.0.1", metavar="ADDRESS", help="to listen on (127.0.0.1)"
    )
    parser.add_argument("--password-file", default="", metavar="FILE", help="has the password")
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        help="by which browsers may ask for it, beside addresses and localhost",
    )
    parser.add_argument("--read-only", action="store_true", help="change nothing in the cluster")
    parser.add_argument("--trace", nargs="+", metavar="FILE", help="show this recorded run, too")
    parser.add_argument("--scenario", metavar="FILE", help="play this scenario, and show the run")
    parser.add_argument("--sandbox", action="store_true", help="a simulated cluster to break")
    parser.add_argument("--nodes", type=int, help="of the sandbox (3)")
    parser.add_argument("--seed", type=int, help="of the scenario or the sandbox (0)")
    return parser


def _check(given: argparse.Namespace) -> None:
    """Do the options go together? Raises `UsageError`."""
    if given.trace and given.scenario:
        raise UsageError("--trace and --scenario are two runs: choose one")
    if given.trace and given.sandbox:
        raise UsageError("--trace is over, and --sandbox is to begin: choose one")
    if given.nodes is not None and (given.scenario or not given.sandbox):
        raise UsageError("--nodes is for --sandbox; a scenario has its own number of nodes")
    if given.seed is not None and not (given.scenario or given.sandbox or given.trace):
        raise UsageError("--seed is for --scenario and --sandbox")


def _picture(given: argparse.Namespace) -> Any:
    """Of the run that is to be shown; None for none. Raises `UsageError`."""
    paths = given.trace or ([given.scenario] if given.scenario else [])
    if not paths:
        return None
    single: Any = import_module("disque_trio.cli.sim.single")
    pages: Any = import_module("disque_trio.sim.picture.page")
    subjects: Any = import_module("disque_trio.web.source")
    _warn(f"reading {paths[0]} …" if given.trace else f"playing {paths[0]} …")
    found = single.recorded(paths, given.seed, "heap")
    shown = pages.content(found.plan, found.rows, found.done.verdict, found.command)
    if found.done.verdict is None:
        _tell_of_crash(shown["head"], found.done.result)
    page = pages.page_of(found.plan, shown)
    return subjects.Picture(page.encode(), pages.embedded(shown).encode())


def _tell_of_crash(head: dict[str, Any], result: Any) -> None:
    """A run that broke off has no verdict, but what broke it."""
    head["ok"] = result.is_ok
    head["findings"] = [(each.property, each.job, each.time, each.text) for each in result.findings]


def _sandbox(given: argparse.Namespace) -> Any:
    """Of a scenario, or of its own; None for none. Raises `UsageError`."""
    if not given.sandbox and not given.scenario:
        return None
    rooms: Any = import_module("disque_trio.web.sandbox")
    seed = given.seed or 0
    if given.scenario:
        sources: Any = import_module("disque_trio.cli.sim.sources")
        return rooms.SandboxRoom(sources.plan_from(given.scenario, given.seed), given.scenario)
    nodes = 3 if given.nodes is None else given.nodes
    if not 1 <= nodes <= rooms.NODES:
        raise UsageError(f"--nodes {nodes} is not a number from 1 to {rooms.NODES}")
    if not 0 <= seed <= rooms.SEED:
        raise UsageError(f"--seed {seed} is not a number from 0 to {rooms.SEED}")
    return rooms.SandboxRoom(nodes=nodes, seed=seed)


def _config(given: argparse.Namespace) -> Config:
    """Of a node that has but a web port. Raises `ValueError` or `SecretFileError`."""
    if not 1 <= given.port <= 65535:
        raise ValueError(f"port {given.port} is not a number from 1 to 65535")
    config = Config(
        port=0,
        web_port=given.port,
        bind=(given.bind,),
        web_names=tuple(name.lower() for name in given.name),
        web_read_only=given.read_only,
        requirepass_file=given.password_file,
    )
    return with_secrets(config, _warn)


def _cluster(addresses: Sequence[str], password: bytes) -> Cluster:
    """Raises `ValueError`."""
    if not addresses:
        addresses = [os.environ.get("DISQUE_URL") or DEFAULT_URL]
    urls = [each if "://" in each else f"disque://{each}" for each in addresses]
    clusters = [parse_url(url) for url in urls]
    seeds = [seed for each in clusters for seed in each.seeds]
    found = next((each.password for each in clusters if each.password), None)
    return Cluster(seeds, password or found)


def _warn(text: str) -> None:
    complain(f"disque-trio console: {text}")


def _fail(reason: str, status: int) -> int:
    _warn(reason)
    return status


async def _serve(
    config: Config,
    cluster: Cluster | None,
    sockets: Sequence[Any],
    picture: Any,
    sandbox: Any,
) -> None:
    """Until a signal ends it."""
    site: Any = import_module("disque_trio.web.site")
    subjects: Any = import_module("disque_trio.web.source")
    subject = subjects.alone(config, cluster, open_log(config, sys.stderr), picture, sandbox)
    host = f"[{config.bind[0]}]" if ":" in config.bind[0] else config.bind[0]
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(site.serve, subject, sockets)
            say(f"Console: http://{host}:{config.web_port}/  (Ctrl-C ends it)")
            flush()
            async for _ in signals:
                nursery.cancel_scope.cancel()
                break

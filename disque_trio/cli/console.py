"""`disque-trio console`: the console of a cluster, in a process of its own."""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import attrs
import trio

from disque_trio.cli.frame import fail, run
from disque_trio.client.address import Cluster
from disque_trio.client.settings import DEFAULT_URL
from disque_trio.client.url import parse_url
from disque_trio.net.listeners import ListenError, listen_for_browsers
from disque_trio.serving.logs import open_log
from disque_trio.serving.secret_files import SecretFileError, with_secrets
from disque_trio.statemachine.config import Config
from disque_trio.terminal.options import (
    COUNT,
    FILE,
    Command,
    UsageError,
    argument,
    option,
    switch,
    text,
    whole,
)
from disque_trio.terminal.options import PORT as PORTS
from disque_trio.terminal.output import complain, flush, say

PORT: Final = 8710
_EPILOG: Final = """\
ADDRESS is host:port of a node, or a URL such as disques://10.0.0.1:7711. One address is enough: the
node reports the others. The default is $DISQUE_URL (DEFAULT).

With --trace or --scenario the console shows that run step by step, with the violations that the
judge finds. Without an ADDRESS it shows only the run. You can take control at any moment of a
scenario.

With --sandbox the console simulates a cluster that you control: cut links, kill nodes, add and take
jobs, heal, and see the verdict of the judge. The sandbox is deleted when the console ends.

Nodes and browsers use the same password. Without a password the console accepts only connections
from this machine. It serves plain HTTP: for access from other machines, use a proxy with TLS.

exit status: 0 ended by Ctrl-C, 1 cannot listen on the port, 2 wrong usage
""".replace("DEFAULT", DEFAULT_URL)


@attrs.frozen(kw_only=True)
class Options:
    """The command line, read and checked."""

    addresses: tuple[str, ...] = argument(text("ADDRESS"), "a node of the cluster", "*")
    port: int = option("-p --port", PORTS, "port to listen on", PORT)
    bind: str = option("--bind", text("ADDRESS"), "address to listen on", "127.0.0.1")
    password_file: str = option("--password-file", FILE, "read the password from this file", "")
    users_file: str = option(
        "--users-file", FILE, "read users from this file (`disque-trio users`)", ""
    )
    audit_file: str = option(
        "--audit-file", FILE, "append the operations of users to this file", ""
    )
    name: tuple[str, ...] = option(
        "--name", text("NAME"),
        "host name that browsers may use, besides IP addresses and localhost",
        is_repeated=True,
    )  # fmt: skip
    read_only: bool = switch("--read-only", "reject operations that change the cluster")
    trace: tuple[str, ...] = option("--trace", FILE, "show this recorded run", (), nargs="+")
    scenario: str = option("--scenario", FILE, "run this scenario, and show the run", "")
    sandbox: bool = switch("--sandbox", "simulate a cluster that you control")
    nodes: int | None = option("--nodes", COUNT, "number of nodes of the sandbox (3)")
    seed: int | None = option("--seed", whole(), "seed of the scenario or the sandbox (0)")

    def __attrs_post_init__(self) -> None:
        if self.trace and self.scenario:
            raise UsageError("give either --trace or --scenario, not both")
        if self.trace and self.sandbox:
            raise UsageError("give either --trace or --sandbox, not both")
        if self.nodes is not None and (self.scenario or not self.sandbox):
            raise UsageError("--nodes needs --sandbox; a scenario sets its own number of nodes")
        if self.seed is not None and not (self.scenario or self.sandbox or self.trace):
            raise UsageError("--seed needs --scenario or --sandbox")


def main(argv: Sequence[str]) -> int:
    """Serve it until Ctrl-C. The exit status."""
    return run("console", PROGRAM, argv)


def _main(options: Options) -> int:
    try:
        config = _config(options)
        sandbox, picture = _sandbox(options), _picture(options)
        is_alone = bool(picture or sandbox) and not options.addresses
        cluster = None if is_alone else _cluster(options.addresses, config.requirepass)
    except (ValueError, SecretFileError) as error:
        raise UsageError(str(error)) from error
    if not config.requirepass and cluster is not None:
        config = attrs.evolve(config, requirepass=cluster.secret() or b"")
    try:
        sockets = listen_for_browsers(config)
    except ListenError as error:
        return fail("console", str(error).replace("--web-port", "--port"))
    with contextlib.ExitStack() as cleanup:
        for sock in sockets:
            cleanup.callback(sock.close)
        trio.run(_serve, config, cluster, sockets, picture, sandbox)
    return 0


def _picture(options: Options) -> Any:
    """Of the run that is to be shown; None for none. Raises `UsageError`."""
    paths = options.trace or ([options.scenario] if options.scenario else [])
    if not paths:
        return None
    single: Any = import_module("disque_trio.cli.sim.single")
    pages: Any = import_module("disque_trio.sim.picture.page")
    subjects: Any = import_module("disque_trio.web.source")
    _warn(f"reading {paths[0]} …" if options.trace else f"playing {paths[0]} …")
    found = single.recorded(paths, options.seed, "heap")
    shown = pages.content(found.plan, found.rows, found.done.verdict, found.command)
    if found.done.verdict is None:
        _note_crash(shown["head"], found.done.result)
    page = pages.page_of(found.plan, shown)
    return subjects.Picture(page.encode(), pages.embedded(shown).encode())


def _note_crash(head: dict[str, Any], result: Any) -> None:
    """A run that broke off has no verdict, but what broke it."""
    head["ok"] = result.is_ok
    head["findings"] = [(each.property, each.job, each.time, each.text) for each in result.findings]


def _sandbox(options: Options) -> Any:
    """Of a scenario, or of its own; None for none. Raises `UsageError`."""
    if not options.sandbox and not options.scenario:
        return None
    rooms: Any = import_module("disque_trio.web.sandbox")
    seed = options.seed or 0
    if options.scenario:
        sources: Any = import_module("disque_trio.cli.sim.sources")
        return rooms.SandboxRoom(
            sources.plan_from(options.scenario, options.seed), options.scenario
        )
    nodes = 3 if options.nodes is None else options.nodes
    if not 1 <= nodes <= rooms.NODES:
        raise UsageError(f"--nodes {nodes} is not a number from 1 to {rooms.NODES}")
    if not 0 <= seed <= rooms.SEED:
        raise UsageError(f"--seed {seed} is not a number from 0 to {rooms.SEED}")
    return rooms.SandboxRoom(nodes=nodes, seed=seed)


def _config(options: Options) -> Config:
    """Of a node that has but a web port. Raises `SecretFileError`."""
    config = Config(
        port=0,
        web_port=options.port,
        bind=(options.bind,),
        web_names=tuple(name.lower() for name in options.name),
        web_read_only=options.read_only,
        requirepass_file=options.password_file,
        web_users_file=options.users_file,
        web_audit_file=options.audit_file,
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


PROGRAM: Final = Command(
    record=Options,
    run=_main,
    about="View and operate a cluster in a browser.",
    epilog=_EPILOG,
)

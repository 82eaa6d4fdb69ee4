"""``disque-trio up``: a cluster to try things on, in one process.

Every node has its own event loop, ports and, with ``--dir``, its own nodes.conf. They join over
their sockets, like nodes of a real cluster.
"""

import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final

import attrs
import trio
from rich.console import Console

from disque_trio.net.file_limits import raise_file_limit
from disque_trio.net.listeners import ListenError, Listeners, listen
from disque_trio.net.multiplexing import NAMES, MultiplexingError
from disque_trio.net.tls import Keeper
from disque_trio.node import Node
from disque_trio.serving.logs import LEVELS, open_log
from disque_trio.serving.memory_trimming import bound_threads
from disque_trio.serving.process import SystemHost, on_signals, tame_collector
from disque_trio.serving.server import assemble, event_loop_for, web_tasks
from disque_trio.statemachine.address import MAX_PORT
from disque_trio.statemachine.base import HANDSHAKE
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.form import FORM
from disque_trio.storage.nodes_conf import NodesConf, NodesConfError, NoNodesConf
from disque_trio.terminal.consoles import console
from disque_trio.terminal.counting import counted
from disque_trio.terminal.options import (
    DIR,
    PORT,
    Command,
    one_of,
    option,
    parse,
    text,
    whole,
)
from disque_trio.terminal.output import complain
from disque_trio.wire.resp import encode_request

Task = Callable[[], Awaitable[None]]
Known = tuple[Peer, Iterable[Peer]]
"""This node, and those that it knew."""

MAX_NODES: Final = 64
_POLL_S: Final = 0.02
_WEB_OFFSET: Final = 1000
_WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@attrs.frozen(kw_only=True)
class Options:
    """The command line, read and checked."""

    nodes: int = option("--nodes", whole(1, MAX_NODES), "how many", 3)
    port: int = option("-p --port", whole(1, MAX_PORT, "port", "PORT"), "of the first node", 7711)
    web_port: int | None = option(
        "--web-port", PORT, "for HTTP, of the first node", shown="1000 above --port"
    )
    bind: str = option("--bind", text("ADDRESS"), "to listen on", "127.0.0.1")
    multiplexing_api: str = option(
        "--multiplexing-api", one_of("auto", *NAMES), "how nodes wait for sockets", "auto",
        shown="the best that this system has",
    )  # fmt: skip
    dir: str | None = option("--dir", DIR, "keep each node's identity under DIR/<port>")
    loglevel: str = option(
        "--loglevel", one_of(*LEVELS), "of the messages on standard error", "warning"
    )
    log_format: str = option("--log-format", one_of("human", "json"), "how they look", "human")


PROGRAM: Final = Command(
    record=Options,
    about="Run a cluster in this process, to try things out. Ctrl-C ends it.",
)


def main(arguments: Sequence[str]) -> int:
    """Run a cluster until Ctrl-C. The exit status."""
    options: Options = parse(PROGRAM, "disque-trio up", arguments, os.environ).options
    last = options.port + options.nodes - 1
    if last > MAX_PORT:
        return _fail(f"ports {options.port} to {last} are too high: the highest is {MAX_PORT}")
    raise_file_limit(options.nodes * 1000)
    bound_threads()
    nodes: list[Node] = []
    doors: list[Task] = []
    with contextlib.ExitStack() as cleanup:
        try:
            nodes.extend(_node(config, options, cleanup, doors) for config in _configs(options))
        except (ListenError, MultiplexingError, NodesConfError) as error:
            return _fail(str(error))
        shown = console()
        trio.run(live, nodes, partial(_show, nodes, shown), *doors)
    shown.print("All nodes have ended." if len(nodes) > 1 else "The node has ended.")
    return 0


def _node(
    config: Config, options: Options, cleanup: contextlib.ExitStack, doors: list[Task]
) -> Node:
    """Without a web port if that is taken and nobody has asked for it."""
    try:
        return node(config, options.dir, cleanup, doors)
    except ListenError:
        if options.web_port is not None:
            raise
        return node(attrs.evolve(config, web_port=0), options.dir, cleanup, doors)


def _fail(reason: str) -> int:
    complain(f"disque-trio up: {reason}")
    return 1


def _configs(options: Options) -> list[Config]:
    return [
        Config(
            port=options.port + index,
            web_port=(options.web_port or options.port + _WEB_OFFSET) + index,
            bind=(options.bind,),
            dir=os.getcwd(),
            multiplexing_api=options.multiplexing_api,
            loglevel=options.loglevel,
            trace_sample=1,
            log_format=options.log_format,
        )
        for index in range(options.nodes)
    ]


def node(
    config: Config,
    directory: str | None,
    cleanup: contextlib.ExitStack,
    doors: list[Task] | None = None,
) -> Node:
    """A node that listens, with its identity in this directory, if there is one. What serves its
    web port is added to `doors`. Raises `ListenError`, `MultiplexingError` or `NodesConfError`."""
    listeners: Listeners = listen(config)
    cleanup.callback(listeners.close)
    log = open_log(config, sys.stderr).bind(port=config.port)
    refusal = "it is one of several nodes in a process"
    host = SystemHost(restart_refusal=refusal, tls=Keeper(config))
    event_loop = event_loop_for(config, listeners, host.tls)
    store, known = _store(config, directory, cleanup)
    found = assemble(
        config, event_loop, store, known, host, log, names=store.names, limits=store.limits
    )
    if doors is not None:
        doors += web_tasks(found, listeners, event_loop, host.tls)
    return found


def _store(
    config: Config, directory: str | None, cleanup: contextlib.ExitStack
) -> tuple[NodesConf | NoNodesConf, Known | None]:
    """Where the node table is kept, and what it has."""
    if directory is None:
        return NoNodesConf(), None
    home = os.path.join(directory, str(config.port))
    try:
        os.makedirs(home, exist_ok=True)
    except OSError as error:
        raise NodesConfError(
            f"cannot make the directory {error.filename}: {error.strerror}; choose another with "
            "--dir"
        ) from None
    store = NodesConf(os.path.join(home, config.cluster_config_file))
    cleanup.callback(store.close)
    return store, store.load()


async def live(nodes: list[Node], joined: Callable[[], object], *beside: Task) -> None:
    """Run the nodes until a signal ends them. `joined` is called when they are a cluster. The tasks
    `beside` them end with the last node."""

    def stop_all(signal_name: str) -> None:
        for node in nodes:
            node.stop(Shutdown(), signal_name)

    on_signals(stop_all)
    tame_collector()
    async with trio.open_nursery() as around:
        for task in beside:
            around.start_soon(task)
        async with trio.open_nursery() as running:
            for node in nodes:
                await running.start(node.run)
            async with trio.open_nursery() as joining:
                joining.start_soon(_join, nodes, joined, joining.cancel_scope)
                joining.start_soon(_until_stopped, nodes, joining.cancel_scope)
        around.cancel_scope.cancel()


async def _until_stopped(nodes: list[Node], scope: trio.CancelScope) -> None:
    """Stop waiting for nodes to join when one is ending."""
    while not any(node.life.shutdown for node in nodes):
        await trio.sleep(_POLL_S)
    scope.cancel()


async def _join(nodes: list[Node], joined: Callable[[], object], scope: trio.CancelScope) -> None:
    """Join all nodes, and wait until every node is connected to every other."""
    for index, node in enumerate(nodes):
        for other in nodes[index + 1 :]:
            await _meet(node, other)  # gossip would do it, in a second or two
    while not all(_knows(node, nodes) for node in nodes):
        await trio.sleep(_POLL_S)
    joined()
    scope.cancel()


def _show(nodes: list[Node], console: Console) -> None:
    for number, node in enumerate(nodes, 1):
        address = _shown(*_address(node))
        name = node.state.cluster.myself.id.decode()
        console.print(f"[bold]node {number:<2}[/]  [cyan]{address:<21}[/]  [dim]{name}[/]")
    joined = counted(len(nodes), "node", "nodes joined")
    ending = f"Ctrl-C ends {'them' if len(nodes) > 1 else 'it'}."
    console.print(f"[green]{joined}[/], in the {FORM} form. {ending}")
    if web_port := nodes[0].state.config.web_port:
        console.print(f"Console: http://{_shown(_address(nodes[0])[0], web_port)}/")


def _shown(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _address(node: Node) -> tuple[str, int]:
    bind = node.state.config.bind[0]
    return _WILDCARDS.get(bind, bind), node.state.config.port


async def _meet(node: Node, other: Node) -> None:
    ip, port = _address(other)
    async with await trio.open_tcp_stream(*_address(node)) as stream:
        await stream.send_all(encode_request([b"CLUSTER", b"MEET", ip.encode(), b"%d" % port]))
        await stream.receive_some()


def _knows(node: Node, others: list[Node]) -> bool:
    table = node.state.cluster.nodes
    for other in others:
        peer = table.get(other.state.cluster.myself.id)
        if peer is None or peer.flags & HANDSHAKE:
            return False
        if other is not node and not peer.is_connected:
            return False
    return True

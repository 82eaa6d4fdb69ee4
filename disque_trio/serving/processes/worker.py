"""One worker: a node like any other, that joins its siblings and shares their port.

`supervisor` starts it with a socket, on which it gets its order and reports its status. When the
socket closes, the supervisor has ended, and the worker ends as well.
"""

import contextlib
import os
import pickle
import socket
import sys
import time
from collections.abc import Sequence

import trio

from disque_trio.net.listeners import Listeners, listen, listen_for_nodes, share
from disque_trio.net.tls import Keeper
from disque_trio.serving.logs import LogFileError, open_log
from disque_trio.serving.process import SystemHost, let_go_of_terminal
from disque_trio.serving.processes.joining import Joining
from disque_trio.serving.processes.plan import AGAIN, LONGEST_ORDER, Order
from disque_trio.serving.secret_files import with_secrets
from disque_trio.serving.server import (
    STARTING_ERRORS,
    assemble,
    event_loop_for,
    fail,
    live,
    web_tasks,
    with_room_for_clients,
)
from disque_trio.serving.systemd import Supervisor
from disque_trio.statemachine.chores import Shutdown
from disque_trio.storage.nodes_conf import NodesConf


def main(arguments: Sequence[str]) -> int:
    """Run the order that comes on descriptor `arguments[0]`. The exit status."""
    line = socket.socket(fileno=int(arguments[0]))
    order: Order = pickle.loads(line.recv(LONGEST_ORDER))
    os.chdir(order.config.dir)
    try:
        shutdown = _run(order, line)
    except (LogFileError, *STARTING_ERRORS) as error:
        return fail(order.config, f"worker {order.number}: {error}")
    if shutdown.restart:
        time.sleep(shutdown.delay / 1000)
        return AGAIN
    return 0


def _run(order: Order, line: socket.socket) -> Shutdown:
    warnings: list[str] = []
    config = with_secrets(order.config, warnings.append)
    host = _host(order, Keeper(config))
    with contextlib.ExitStack() as cleanup:
        listeners = listen(config)
        cleanup.callback(listeners.close)
        if order.number == 1:
            # A node that meets the shared port meets the first worker.
            listeners.bus += listen_for_nodes(config, order.shared.known_port)
        shared = _shared(order)
        cleanup.callback(shared.close)
        store = NodesConf(config.cluster_config_file)
        cleanup.callback(store.close)
        known = store.load()
        log = open_log(config).bind(worker=order.number)
        for warning in warnings:
            log.warning(warning)
        config = with_room_for_clients(config, log)
        event_loop = event_loop_for(config, listeners, host.tls, shared)
        event_loop.linger()
        node = assemble(
            config,
            event_loop,
            store,
            known,
            host,
            log,
            order.config_file,
            store.names,
            store.limits,
        )

        def open_doors() -> None:
            event_loop.open_doors()
            if order.shared.daemonize:
                let_go_of_terminal()

        joining = Joining(node, order, log, open_doors)

        async def depend() -> None:
            await trio.lowlevel.wait_readable(line)
            node.stop(Shutdown(), "the supervisor has ended")

        supervisor = Supervisor(os.environ, line)
        is_starting = joining.is_going_on
        return live(
            node,
            host,
            log,
            supervisor,
            joining.run,
            depend,
            *web_tasks(node, listeners, event_loop, host.tls),
            is_starting=is_starting,
        )


def _host(order: Order, tls: Keeper) -> SystemHost:
    identity = f"this is worker {order.number} of {order.shared.workers}"
    return SystemHost(
        order.config_file,
        rewrite_refusal=f"{identity}, which share the file: change it by hand",
        journal_refusal=f"{identity}, and the others would exit without a journal: set appendonly",
        tls=tls,
    )


def _shared(order: Order) -> Listeners:
    shared = share(order.shared)
    if order.unix_socket is not None:
        shared.clients.append(socket.socket(fileno=order.unix_socket))
    return shared


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""``disque-trio server``: one node, on this machine's sockets, files and clocks.

Everything that can fail (settings, ports, nodes.conf) is tried before the process goes to the
background, so that its user reads the reason on the terminal. Then the node runs in `trio.run`, and
is restarted at its end if it asked for that.
"""

import contextlib
import functools
import importlib
import os
import random
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

import attrs
import trio

from disque_trio import __version__
from disque_trio.driver.operator_log import warn_of_little_memory
from disque_trio.net.admission import is_of_this_machine
from disque_trio.net.event_loop import SocketEventLoop
from disque_trio.net.file_limits import FileLimitError, check_file_limit, raise_file_limit
from disque_trio.net.listeners import ListenError, Listeners, listen
from disque_trio.net.multiplexing import MultiplexingError, resolve
from disque_trio.net.resolver import Resolver
from disque_trio.net.tls import Keeper, TlsError
from disque_trio.node import Node
from disque_trio.ports import JournalError, NodesStore
from disque_trio.serving.config_file import ConfigFileError, Loaded, load
from disque_trio.serving.exhaustion import Exhaustion, is_exhausted
from disque_trio.serving.logs import LogFileError, ServerLog, check_log, open_log
from disque_trio.serving.memory_trimming import bound_threads, trimmer_for
from disque_trio.serving.process import (
    PidFileError,
    SystemClock,
    SystemHost,
    check_pid_file,
    facts,
    go_to_background,
    on_signals,
    pid_file,
    remove,
    tame_collector,
)
from disque_trio.serving.processes.plan import WorkersError, refuse_strays
from disque_trio.serving.processes.supervisor import supervise
from disque_trio.serving.secret_files import (
    SecretFileError,
    warn_of_open_configuration,
    with_secrets,
)
from disque_trio.serving.systemd import Supervisor
from disque_trio.statemachine import hostnames, limiting
from disque_trio.statemachine.address import BUS_OFFSET, new_node_id
from disque_trio.statemachine.base import MYSELF
from disque_trio.statemachine.chores import Shutdown
from disque_trio.statemachine.cluster import HostName, Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.form import FORM
from disque_trio.statemachine.limit import Setting
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.nodesfile import nodes_text
from disque_trio.storage.journal import Journal
from disque_trio.storage.journal_file import JournalDisk
from disque_trio.storage.nodes_conf import NodesConf, NodesConfError
from disque_trio.storage.spill import Spiller, SpillError, SpillFiles
from disque_trio.terminal.output import complain, complain_lines, say_lines
from disque_trio.tracing.live import TracedMachine
from disque_trio.tracing.live_file import JOB_BYTES, TraceFile, TraceFileError

_FROM_STDIN: Final = "its configuration came from standard input, which cannot be read again"
STARTING_ERRORS: Final = (
    FileLimitError, ListenError, MultiplexingError, NodesConfError, JournalError, PidFileError,
    SecretFileError, SpillError, TlsError, TraceFileError, WorkersError,
)  # fmt: skip
"""Each says why the node cannot start, and what to do about it."""
WHOLE_TRACE: Final = (
    f"every job is traced: it uses about {JOB_BYTES >> 10} kB of disk at each of its nodes; "
    "'trace-file-sample 100' keeps one job in 100, 'trace-file-max-bytes' and 'trace-file-keep' "
    "bound the files"
)
USAGE: Final = """\
usage: disque-trio server [FILE | -] [--DIRECTIVE VALUE ...]

Run one node in the foreground, with its state files in the working directory.

  FILE                    a configuration file; - reads it from standard input
  --DIRECTIVE VALUE ...   any directive of the file; these come after the file's
  -p PORT                 the same as --port PORT
  --workers N             so many processes behind one port, for machines with several cores;
                          each is a node, with the port N above --port and the directory
                          worker-N (docs/deploying.md)

examples:
  disque-trio server
  disque-trio server /etc/disque.conf --port 7712
  disque-trio server --port 7713 --dir /var/lib/disque --loglevel verbose
  disque-trio server /etc/disque.conf --workers 4
"""


def main(arguments: Sequence[str]) -> int:
    """Run a node until it is told to end. The exit status."""
    if arguments[:1] in (["-h"], ["--help"]):
        say_lines(USAGE)
        return 0
    try:
        loaded = load(arguments, sys.stdin.buffer)
    except ConfigFileError as error:
        complain_lines(error.render())
        return 1
    came_from = os.getcwd()
    os.chdir(loaded.config.dir)
    bound_threads()
    try:
        if loaded.config.workers > 1:
            return supervise(loaded, came_from)
        shutdown = _run(loaded, from_stdin=arguments[:1] == ["-"])
    except LogFileError as error:
        complain(f"disque-trio: {error}")
        return 1
    except STARTING_ERRORS as error:
        return fail(loaded.config, str(error))
    if shutdown.restart:
        time.sleep(shutdown.delay / 1000)
        os.chdir(came_from)
        os.execv(sys.executable, sys.orig_argv)
    return 0


def fail(config: Config, reason: str) -> int:
    """Report it on the terminal, and in the log if there is one elsewhere. The exit status."""
    complain(f"disque-trio: {reason}")
    if config.logfile or config.syslog_enabled:
        open_log(config).warning("cannot start", error=reason)
    return 1


def _run(loaded: Loaded, *, from_stdin: bool) -> Shutdown:
    check_log(loaded.config)
    check_pid_file(loaded.config)
    resolve(loaded.config.multiplexing_api)
    refuse_strays(loaded.config)
    warnings: list[str] = []
    warn_of_open_configuration(loaded.path, loaded.config, warnings.append)
    config = with_secrets(loaded.config, warnings.append)
    tls = Keeper(config)
    listeners = listen(config)
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(listeners.close)
        store = NodesConf(config.cluster_config_file)
        cleanup.callback(store.close)
        known = store.load()
        detach = go_to_background() if config.daemonize else None
        if config.unixsocket:
            # Absolute: after CONFIG SET dir another file would be removed.
            cleanup.callback(remove, os.path.abspath(config.unixsocket))
        log = open_log(config)
        for warning in warnings:
            log.warning(warning)
        config = with_room_for_clients(config, log)
        refusal = _FROM_STDIN if from_stdin else ""
        host = SystemHost(loaded.path, restart_refusal=refusal, tls=tls)
        event_loop = event_loop_for(config, listeners, tls)
        event_loop.linger()
        node = assemble(
            config, event_loop, store, known, host, log, loaded.path, store.names, store.limits
        )
        if detach is not None:
            cleanup.enter_context(pid_file(os.path.abspath(config.pidfile), log))
            detach()
        return live(
            node, host, log, Supervisor(os.environ), *web_tasks(node, listeners, event_loop, tls)
        )


def web_tasks(
    node: Node, listeners: Listeners, event_loop: SocketEventLoop, tls: Keeper | None = None
) -> list[Callable[[], Awaitable[None]]]:
    """What serves the web port, if there is one. A node without does not load what it needs."""
    if not listeners.web:
        return []
    site = importlib.import_module("disque_trio.web.site")
    return [functools.partial(site.serve_node, node, listeners.web, event_loop.connect_inside, tls)]


def event_loop_for(
    config: Config, listeners: Listeners, tls: Keeper, shared: Listeners | None = None
) -> SocketEventLoop:
    """The sockets of a node. `shared` has the client ports that other processes share."""
    return SocketEventLoop(
        listeners.clients,
        listeners.bus,
        source_ip=config.bind[0] if config.bind else "",
        tls_sockets=listeners.tls,
        tls=tls,
        shared=shared,
        multiplexing=config.multiplexing_api,
    )


def assemble(
    config: Config,
    event_loop: SocketEventLoop,
    store: NodesStore,
    known: tuple[Peer, Iterable[Peer]] | None,
    host: SystemHost,
    log: ServerLog,
    config_file: str = "",
    names: Iterable[HostName] = (),
    limits: Iterable[tuple[bytes, Setting]] = (),
) -> Node:
    """A node on real ports, not running yet.

    NodesConfError, TraceFileError or SpillError if nodes.conf, the trace file or the spill
    directory cannot be written.
    """
    clock = SystemClock()
    rng = random.Random(os.urandom(32))
    myself, others = known or (Peer(new_node_id(rng), flags=MYSELF), ())
    myself.port = config.known_port
    kind = TracedMachine if config.trace_file else Machine
    machine = kind(config, myself, rng, clock.now(), facts(config, config_file), others)
    hostnames.restore(machine.state, names)
    limiting.restore(machine.state, limits)
    if isinstance(machine, TracedMachine):
        _trace(machine, "fresh" if known is None else "empty", log)
    try:
        store.save(nodes_text(machine.state, handshakes=False))
    except OSError as error:
        raise NodesConfError(
            f"cannot write the node table {config.cluster_config_file}: {error.strerror}; make "
            "room, or let the node's user write in its directory"
        ) from None
    journal = Journal(JournalDisk(config.appendfilename), machine.state, log)
    node = Node(machine, clock, event_loop, store, host, log, journal, Resolver())
    if config.spill_directory:
        node.spiller = Spiller(machine, SpillFiles(config.spill_directory), log)
    return node


def _trace(machine: TracedMachine, cause: str, log: ServerLog) -> None:
    config = machine.state.config
    file = TraceFile(
        config.trace_file,
        log.warning,
        sample=config.trace_file_sample,
        max_bytes=config.trace_file_max_bytes,
        keep=config.trace_file_keep,
    )
    if config.trace_file_sample == 1:
        log.warning(WHOLE_TRACE, trace_file=config.trace_file)
    machine.trace(file.write, cause)


def live(
    node: Node,
    host: SystemHost,
    log: ServerLog,
    supervisor: Supervisor,
    *beside: Callable[[], Awaitable[None]],
    is_starting: Callable[[], bool] | None = None,
) -> Shutdown:
    """Run the node to its end, and say how it ended. JournalError: it could not start.

    `supervisor` is told when the node serves clients: once `is_starting` is False, by default once
    the journal is loaded. The tasks `beside` it end with it.
    """
    starting = is_starting or (lambda: is_loading(node))
    exhaustion = Exhaustion(log)
    try:
        shutdown = trio.run(_live, node, host, log, supervisor, beside, starting, exhaustion)
    except Exception as error:
        if is_exhausted(error):
            exhaustion.end()
        # Without a terminal people look into the log file.
        log.warning("crashed: this is a bug", traceback=traceback.format_exc())
        raise
    if node.life.failure:
        raise JournalError(node.life.failure)
    log.notice("ended", restart=shutdown.restart)
    return shutdown


async def _live(
    node: Node,
    host: SystemHost,
    log: ServerLog,
    supervisor: Supervisor,
    beside: Sequence[Callable[[], Awaitable[None]]],
    is_starting: Callable[[], bool],
    exhaustion: Exhaustion,
) -> Shutdown:
    async def guarded(task: Callable[[], Awaitable[None]]) -> None:
        with exhaustion.fatal():
            await task()

    def stop(signal_name: str) -> None:
        supervisor.notify("STOPPING=1")
        node.stop(Shutdown(), signal_name)

    on_signals(stop, lambda: _reload(node, host, log))
    tame_collector()
    # Signal handlers come first: a process that waits for this line may end the node.
    _announce(node, log)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(supervisor.attend, is_starting, "serving clients")
        for task in beside:
            nursery.start_soon(guarded, task)
        if trimmer := trimmer_for(node.state, log):
            nursery.start_soon(guarded, trimmer.attend)
        await guarded(node.run)
        nursery.cancel_scope.cancel()
    return node.life.shutdown or Shutdown()


def is_loading(node: Node) -> bool:
    """Does it still load its journal, and serve no client yet?"""
    refusal = node.state.refusal
    return refusal is not None and refusal.text.startswith(b"LOADING")


def _reload(node: Node, host: SystemHost, log: ServerLog) -> None:
    """SIGHUP: read secrets and certificates again. What cannot be used stays as it was."""
    try:
        config = with_secrets(node.state.config, log.warning)
    except SecretFileError as error:
        log.warning("secrets not reloaded: the current ones stay valid", error=str(error))
        config = node.state.config
    else:
        node.machine.adopt(config, node.now)
    error_text = host.reload_tls(config)
    if error_text is None:
        log.notice("secrets and certificates reloaded", asked_by="SIGHUP")
    else:
        log.warning("certificates not reloaded: the current ones stay valid", error=error_text)


def _announce(node: Node, log: ServerLog) -> None:
    state = node.state
    log.notice(
        "node started",
        version=__version__,
        form=FORM,
        node=state.cluster.myself.id.decode(),
        name=state.config.node_name or "none",
        port=state.config.port,
        tls_port=state.config.tls_port,
        bus_port=state.config.known_port + BUS_OFFSET if state.config.known_port else "none",
        bind=",".join(state.config.bind) or "all interfaces",
        pid=state.facts.pid,
        known_nodes=len(state.cluster.nodes) - 1,
        multiplexing_api=state.facts.multiplexing,
    )
    _warn_of_open_ports(state.config, log)
    warn_of_little_memory(state, log)


def _warn_of_open_ports(config: Config, log: ServerLog) -> None:
    if not config.known_port or (all(map(is_of_this_machine, config.bind)) and config.bind):
        return
    is_protected = config.protected_mode and not config.requirepass
    if not config.cluster_secret and not config.tls_cluster and not is_protected:
        log.warning(
            "any machine that reaches the bus port can join: set 'cluster-secret-file' or "
            "'tls-cluster', or restrict access with 'bind' or a firewall"
        )
    if config.web_port and (config.requirepass or config.web_users) and not config.web_tls:
        log.warning(
            "the web port uses plain HTTP: anyone who can read network traffic gets the password; "
            "set 'web-tls', put a proxy with TLS before it, or restrict access with 'bind'"
        )
    if not config.requirepass and not config.protected_mode:
        log.warning(
            "clients need no password, and protected-mode is off: the node serves any client"
        )


def with_room_for_clients(config: Config, log: ServerLog) -> Config:
    """The configuration, with maxclients lowered to what the file limit allows. FileLimitError if
    that is too little for a node."""
    room = raise_file_limit(config.maxclients)
    check_file_limit(config.maxclients, room)
    if room == config.maxclients:
        return config
    log.warning("maxclients lowered: the open file limit is too low", maxclients=room)
    return attrs.evolve(config, maxclients=room)

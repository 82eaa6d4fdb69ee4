"""CONFIG: read and change the configuration of the running node (original 2.13).

Owns `NodeState.config`, a frozen record that is replaced by each change. Every use reads it again,
so most directives need no further action. Directives that need a chore of the driver take effect
after the chore has succeeded.
"""

from typing import Final

import attrs

from disque_trio.statemachine import (
    directives,
    hostnames,
    journaling,
    metrics,
    pressure,
    sessions,
    trace,
    waiters,
)
from disque_trio.statemachine.base import OK, CommandError, Reply, map_for
from disque_trio.statemachine.chores import (
    ChangeDirectory,
    RaiseFileLimit,
    ReloadTls,
    RewriteConfig,
    StartJournal,
    StopJournal,
)
from disque_trio.statemachine.client import Blocked, Client
from disque_trio.statemachine.commands.usage import mistake
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.values import decode, encode

USAGE: Final = "GET pattern | SET name value | RESETSTAT | REWRITE"
_SUBCOMMANDS: Final = (b"get", b"set", b"resetstat", b"rewrite")


def config(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """CONFIG GET | SET | RESETSTAT | REWRITE."""
    match [args[1].lower(), *args[2:]]:
        case [b"get", pattern]:
            shown = directives.get(node.config, pattern)
            return map_for(client.protocol, dict(zip(shown[::2], shown[1::2], strict=True)))
        case [b"set", name, value]:
            return _set(node, client, name, value)
        case [b"resetstat"]:
            metrics.reset(node)
            return OK
        case [b"rewrite"]:
            if not node.facts.config_file:
                raise CommandError(b"ERR The server is running without a config file")
            return sessions.ask(node, client, RewriteConfig(), _rewritten)
    wrong = b": " + mistake("CONFIG", USAGE, args)
    if args[1].lower() in _SUBCOMMANDS:
        raise CommandError(b"ERR Wrong number of arguments for CONFIG %b%b" % (args[1], wrong))
    raise CommandError(b"ERR CONFIG subcommand must be one of GET, SET, RESETSTAT, REWRITE" + wrong)


def _set(node: NodeState, client: Client, name: bytes, value: bytes) -> Reply:
    match name.lower():
        case b"dir":
            return _change_directory(node, client, value)
        case b"maxclients":
            return _set_maxclients(node, client, value)
        case b"appendonly":
            return _set_appendonly(node, client, value)
        case word if word.startswith(b"tls-"):
            return _set_tls(node, client, name, value)
        case b"timeout":
            node.config = directives.set_value(node.config, name, value)
            _watch_idle_anew(node)
        case b"maxmemory":
            # The limit applies at once. Operators may set one that leaves no room, to stop new
            # jobs.
            node.config = directives.set_value(node.config, name, value)
            pressure.review(node)
            pressure.relieve(node)
        case (
            b"replica-zone"
            | b"node-name"
            | b"cluster-announce-ip"
            | b"cluster-announce-port"
            | b"cluster-announce-bus-port"
            | b"cluster-seeds"
        ):
            node.config = directives.set_value(node.config, name, value)
            hostnames.configure(node)
        case b"ended-jobs":
            node.config = directives.set_value(node.config, name, value)
            node.endings.configure(node.config.ended_jobs)
            pressure.review(node)
        case b"trace-sample":
            node.config = directives.set_value(node.config, name, value)
            trace.sample(node)
        case _:
            node.config = directives.set_value(node.config, name, value)
    return OK


def _set_appendonly(node: NodeState, client: Client, value: bytes) -> Reply:
    """The driver opens or closes the file; recording starts or stops when its chore is done."""
    wanted = directives.set_value(node.config, b"appendonly", value)
    if wanted.appendonly == node.config.appendonly:
        return OK
    if journaling.has_no_place(node, wanted):
        raise CommandError(
            b"ERR There are jobs with extensions, such as PRIORITY, for which aof-format disque has"
            b" no place; nothing has been changed"
        )

    def then(node: NodeState, _client: Client, error: str | None) -> Reply:
        if error is not None:
            raise CommandError(b"ERR Unable to turn on AOF. Check server logs.")
        node.config = directives.set_value(node.config, b"appendonly", value)
        journaling.record(node, on=wanted.appendonly)
        return OK

    chore = StartJournal() if wanted.appendonly else StopJournal()
    return sessions.ask(node, client, chore, then)


def turn_off_once(node: NodeState) -> None:
    """`aof-enqueue-jobs-once` applies to one restart: turn it off."""
    if node.config.aof_enqueue_jobs_once:
        node.config = attrs.evolve(node.config, aof_enqueue_jobs_once=False)


def _change_directory(node: NodeState, client: Client, value: bytes) -> Reply:
    """A relative path is relative to the current directory. For an empty one, the system reports
    the error."""
    now = encode(node.config.dir)
    path = value if not now or not value or value.startswith(b"/") else b"%b/%b" % (now, value)
    directives.set_value(node.config, b"dir", path)

    def then(node: NodeState, _client: Client, error: str | None) -> Reply:
        if error is not None:
            raise CommandError(b"ERR Changing directory: %b" % encode(error))
        node.config = directives.set_value(node.config, b"dir", path)
        return OK

    return sessions.ask(node, client, ChangeDirectory(decode(path)), then)


def _set_maxclients(node: NodeState, client: Client, value: bytes) -> Reply:
    """A higher limit needs more file descriptors, which the driver requests; a lower one always
    succeeds."""
    wanted = directives.set_value(node.config, b"maxclients", value).maxclients
    if wanted <= node.config.maxclients:
        node.config = directives.set_value(node.config, b"maxclients", value)
        return OK

    def then(node: NodeState, _client: Client, possible: int) -> Reply:
        if possible < wanted:
            raise CommandError(
                b"ERR The operating system is not able to handle the specified number of clients,"
                b" try with %d" % possible
            )
        node.config = directives.set_value(node.config, b"maxclients", value)
        return OK

    return sessions.ask(node, client, RaiseFileLimit(wanted), then)


def _set_tls(node: NodeState, client: Client, name: bytes, value: bytes) -> Reply:
    """The driver reads the certificates before the change is accepted. Setting the same file again
    rereads it."""
    changed = directives.set_value(node.config, name, value)

    def then(node: NodeState, _client: Client, error: str | None) -> Reply:
        if error is not None:
            raise CommandError(b"ERR TLS stays as it was: %b" % encode(error))
        node.config = directives.set_value(node.config, name, value)
        return OK

    return sessions.ask(node, client, ReloadTls(changed), then)


def adopt(node: NodeState, config: Config) -> None:
    """Adopt the configuration after the driver has reread the secrets from their files."""
    node.config = config


def _watch_idle_anew(node: NodeState) -> None:
    """`timeout` has changed: rearm the timers of all clients that are not blocked."""
    for client in node.clients.values():
        if client.blocked is Blocked.NO:
            node.timers.disarm(client)
            waiters.watch_idle(node, client)


def _rewritten(_node: NodeState, _client: Client, error: str | None) -> Reply:
    if error is not None:
        raise CommandError(b"ERR Rewriting config file: %b" % encode(error))
    return OK

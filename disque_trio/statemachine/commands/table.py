"""The command table: one row per command (original 2.1).

It is the source of the dispatch, the arity errors, COMMAND, the completion of `disque-trio cli` and
docs/commands.md.
"""

from typing import Final

from disque_trio.statemachine.base import Reply
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.commandoptions import (
    ACKJOB,
    COUNTED,
    GETJOB,
    JSCAN,
    NACK,
    PURGE,
    QSCAN,
    QSTAT,
    RELEASE,
    WAITJOB,
    usage,
)
from disque_trio.statemachine.commands.addjob import addjob
from disque_trio.statemachine.commands.clients import USAGE as CLIENT_USAGE
from disque_trio.statemachine.commands.clients import client
from disque_trio.statemachine.commands.cluster import USAGE as CLUSTER_USAGE
from disque_trio.statemachine.commands.cluster import cluster
from disque_trio.statemachine.commands.config import USAGE as CONFIG_USAGE
from disque_trio.statemachine.commands.config import config
from disque_trio.statemachine.commands.greeting import USAGE as HELLO_USAGE
from disque_trio.statemachine.commands.greeting import hello, reset
from disque_trio.statemachine.commands.info import info
from disque_trio.statemachine.commands.introspection import USAGE as COMMAND_USAGE
from disque_trio.statemachine.commands.introspection import describe_table
from disque_trio.statemachine.commands.jobs import (
    ackjob,
    deljob,
    dequeue,
    enqueue,
    fastack,
    waitjob,
    working,
)
from disque_trio.statemachine.commands.keys import SHOW_USAGE, cancel, show
from disque_trio.statemachine.commands.latency import USAGE as LATENCY_USAGE
from disque_trio.statemachine.commands.latency import latency
from disque_trio.statemachine.commands.limits import USAGE as QUEUE_USAGE
from disque_trio.statemachine.commands.limits import queue
from disque_trio.statemachine.commands.nack import nack
from disque_trio.statemachine.commands.ping import ping
from disque_trio.statemachine.commands.queues import (
    getjob,
    pause,
    purge,
    qlen,
    qpeek,
    qstat,
    redrive,
)
from disque_trio.statemachine.commands.release import begin, release
from disque_trio.statemachine.commands.rows import Command, Flag
from disque_trio.statemachine.commands.scans import jscan, qscan
from disque_trio.statemachine.commands.server import (
    DEBUG_USAGE,
    auth,
    bgrewriteaof,
    debug,
    echo,
    loadjob,
    monitor,
    select,
    shutdown,
    time,
)
from disque_trio.statemachine.commands.slowlog import USAGE as SLOWLOG_USAGE
from disque_trio.statemachine.commands.slowlog import slowlog
from disque_trio.statemachine.commands.traces import USAGE as TRACE_USAGE
from disque_trio.statemachine.commands.traces import traces
from disque_trio.statemachine.joboptions import OPTIONS
from disque_trio.statemachine.state import NodeState
from disque_trio.statemachine.values import encode


def command(node: NodeState, client: Client, args: list[bytes]) -> Reply:
    """COMMAND: describe this table."""
    return describe_table(BY_NAME, args, client.protocol)


W: Final = Flag.WRITE
R: Final = Flag.READONLY
MEMORY: Final = Flag.DENYOOM
ADMIN: Final = Flag.ADMIN
LOADING: Final = Flag.LOADING
FAST: Final = Flag.FAST

_IDS = "id [id ...]"
_IDS_WITH_TOKENS = "id[@token] [id[@token] ...]"

ROWS: Final = (
    Command("addjob", addjob, -4, W | MEMORY | FAST,
            "queue body ms-timeout " + " ".join([f"[{each.form}]" for each in OPTIONS]),
            "Add a job; returns its id when enough nodes hold a replica."),
    Command("getjob", getjob, -2, W | FAST,
            f"{usage(GETJOB)} FROM queue [queue ...]",
            "Take jobs from queues; waits if there are none, unless NOHANG is given."),
    Command("begin", begin, -2, W | FAST, _IDS_WITH_TOKENS,
            "Report that jobs taken with GETJOB HELD begin."),
    Command("ackjob", ackjob, -1, W | FAST, f"{_IDS} {usage(ACKJOB)}",
            "Acknowledge jobs as done, which removes all replicas. With RESULT, keep the result of"
            " one job."),
    Command("fastack", fastack, -1, W | FAST, _IDS,
            "Acknowledge jobs with fewer messages; failures cause more duplicates."),
    Command("working", working, -2, W | FAST, _IDS_WITH_TOKENS,
            "Renew the lease of a job that a worker still runs: its next delivery is RETRY later."),
    Command("nack", nack, -1, W | MEMORY | FAST,
            f"{_IDS_WITH_TOKENS} {usage(NACK)}",
            "Return jobs as failed. They are enqueued again, at once or later, or with DEAD kept as"
            " dead. ERROR has the reason."),
    Command("release", release, -2, W | FAST, f"{_IDS_WITH_TOKENS} {usage(RELEASE)}",
            "Return jobs that have not begun. They are enqueued again, at once or later, and count"
            " neither as failed nor as delivered."),
    Command("enqueue", enqueue, -1, W | MEMORY | FAST, f"{_IDS} | QUEUE queue {usage(COUNTED)}",
            "Enqueue jobs now: those with these ids, or with QUEUE those of a queue that wait for"
            " the end of their RETRY, such as after a restart."),
    Command("dequeue", dequeue, -1, W | FAST, _IDS,
            "Remove jobs from their queue until their RETRY is over."),
    Command("deljob", deljob, -1, W | FAST, _IDS,
            "Drop jobs from this node only."),
    Command("waitjob", waitjob, -2, R, f"id {usage(WAITJOB)}",
            "Wait for the end of a job."),
    Command("show", show, -2, R | FAST, SHOW_USAGE,
            "Show all that this node knows of a job, or which job of the cluster has a key."),
    Command("cancel", cancel, 4, W, "KEY queue key",
            "End the job that has a key, and free the key."),
    Command("qlen", qlen, 2, R | FAST, "queue",
            "Return the length of a queue on this node."),
    Command("qpeek", qpeek, 3, R, "queue count",
            "Show the next jobs of a queue, or with a negative count the last, without taking"
            " them."),
    Command("qstat", qstat, -2, R | FAST, f"queue {usage(QSTAT)}",
            "Show counters and state of a queue."),
    Command("qscan", qscan, -1, R, f"[cursor] {usage(QSCAN)}",
            "Iterate over the queues."),
    Command("jscan", jscan, -1, R, f"[cursor] {usage(JSCAN)}",
            "Iterate over the jobs."),
    Command("pause", pause, -3, R | FAST, "queue in|out|all|none|state [bcast]",
            "Pause a queue's input or output, on this node or, with bcast, on all nodes."),
    Command("queue", queue, -2, W, QUEUE_USAGE,
            "Limit the deliveries of a queue in the whole cluster, and show its limits."),
    Command("purge", purge, -2, W, f"queue {usage(PURGE)}",
            "Acknowledge all queued or all dead jobs of a queue, on this node or, with BCAST, on"
            " all nodes."),
    Command("redrive", redrive, -2, W | MEMORY, f"id-or-queue [id ...] {usage(COUNTED)}",
            "Enqueue dead jobs again, as if they were new."),
    Command("hello", hello, -1, R | FAST, HELLO_USAGE,
            "Show this node's id and the nodes of the cluster with their priorities; with a"
            " version, the greeting of Redis clients."),
    Command("cluster", cluster, -2, R | ADMIN,
            CLUSTER_USAGE,
            "Show and change the cluster."),
    Command("ping", ping, -1, R | FAST, "[message]",
            "Return PONG, or the message."),
    Command("echo", echo, 2, R | FAST, "message",
            "Return the message."),
    Command("auth", auth, -2, R | LOADING | FAST, "[user] password",
            "Authenticate this connection."),
    Command("select", select, 2, R | LOADING | FAST, "index",
            "Select database 0, the only one; for clients that select one."),
    Command("reset", reset, 1, R | LOADING | FAST, "",
            "Reset this connection: RESP 2, without name, without authentication."),
    Command("info", info, -1, R | LOADING, "[section]",
            "Show state and counters of the node."),
    Command("time", time, 1, R | FAST, "",
            "Return the node's clock: Unix seconds and microseconds."),
    Command("config", config, -2, R | ADMIN,
            CONFIG_USAGE,
            "Read and change the configuration."),
    Command("client", client, -2, R | ADMIN,
            CLIENT_USAGE,
            "Show and manage connections."),
    Command("command", command, 0, R | LOADING,
            COMMAND_USAGE,
            "Describe the commands."),
    Command("slowlog", slowlog, -2, R, SLOWLOG_USAGE,
            "Show commands that took long."),
    Command("latency", latency, -2, R | ADMIN | LOADING,
            LATENCY_USAGE,
            "Show pauses of the node, by cause."),
    Command("trace", traces, -2, R | ADMIN, TRACE_USAGE,
            "Show the events of single jobs, and choose which jobs are traced."),
    Command("monitor", monitor, 1, R | ADMIN, "",
            "Stream every command that the node executes."),
    Command("debug", debug, -2, ADMIN,
            DEBUG_USAGE,
            "Tools for tests and developers."),
    Command("shutdown", shutdown, -1, R | ADMIN | LOADING, "[REWRITE-AOF]",
            "End the node."),
    Command("loadjob", loadjob, 2, W, "serialized-job",
            "Not for clients: a record of the append-only file."),
    Command("bgrewriteaof", bgrewriteaof, 1, R | ADMIN, "",
            "Rewrite the append-only file."),
)  # fmt: skip

BY_NAME: Final[dict[str, Command]] = {row.name: row for row in ROWS}


def renamed(names: tuple[tuple[str, str], ...]) -> dict[bytes, Command]:
    """The commands by lower- and upper-case name, with `rename-command` applied.

    An empty new name removes the command.
    """
    rows = dict(BY_NAME)
    for old, new in names:
        row = rows.pop(old.lower(), None)
        if row is not None and new:
            rows[new.lower()] = row
    called = {encode(name): row for name, row in rows.items()}
    return called | {name.upper(): row for name, row in called.items()}

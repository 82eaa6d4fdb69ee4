"""The commands of `disque-trio`."""

from typing import Final

import attrs


@attrs.frozen
class Program:
    """A command of `disque-trio`."""

    module: str
    """It has a `main`, and is imported only when used, so that a client starts fast."""
    summary: str
    """What it does: an example."""


COMMANDS: Final = {
    "server": Program(
        "disque_trio.serving.server",
        "run one node: disque-trio server [disque.conf] [--port 7711 ...]",
    ),
    "up": Program(
        "disque_trio.serving.up",
        "run a cluster of three nodes, to try it out",
    ),
    "cli": Program(
        "disque_trio.cli",
        "send commands to a node: disque-trio cli -p 7711",
    ),
    "sim": Program(
        "disque_trio.cli.sim",
        "run a cluster in simulated time, with faults: disque-trio sim run FILE",
    ),
    "aof": Program(
        "disque_trio.cli.aof",
        "check, repair and convert append-only files: disque-trio aof check disque.aof",
    ),
    "doctor": Program(
        "disque_trio.cli.doctor",
        "check a cluster and recommend what to do: disque-trio doctor -p 7711",
    ),
    "pipeline": Program(
        "disque_trio.cli.pipeline",
        "analyze traces, sweeps and queues with Spark: disque-trio pipeline doctor",
    ),
    "worker": Program(
        "disque_trio.cli.worker",
        "run the tasks of an app: disque-trio worker shop.tasks:app",
    ),
    "workers": Program(
        "disque_trio.cli.operating.workers",
        "list and control workers: disque-trio workers list",
    ),
    "jobs": Program(
        "disque_trio.cli.operating.jobs",
        "list, redrive and end jobs: disque-trio jobs dead",
    ),
    "queues": Program(
        "disque_trio.cli.operating.queues",
        "list, pause, limit and purge queues: disque-trio queues list",
    ),
    "flows": Program(
        "disque_trio.cli.operating.flows",
        "list, cancel and retry flows: disque-trio flows list",
    ),
    "schedules": Program(
        "disque_trio.cli.operating.schedules",
        "list, pause and remove schedules: disque-trio schedules list",
    ),
    "nodes": Program(
        "disque_trio.cli.operating.nodes",
        "list, join and remove nodes: disque-trio nodes list",
    ),
    "top": Program(
        "disque_trio.cli.top",
        "watch nodes and queues: disque-trio top",
    ),
    "explain": Program(
        "disque_trio.cli.explain",
        "show which failures a job survives: disque-trio explain ADDJOB mail body 0 RETRY 60",
    ),
    "console": Program(
        "disque_trio.cli.console",
        "view and operate a cluster in a browser: disque-trio console 127.0.0.1:7711",
    ),
    "users": Program(
        "disque_trio.cli.users",
        "manage users of the console and of HTTP: disque-trio users add FILE NAME --role operator",
    ),
    "completion": Program(
        "disque_trio.cli.shells",
        "complete command lines in bash, zsh or fish: disque-trio completion bash",
    ),
}
EXTRAS: Final = {
    **dict.fromkeys(("server", "up", "sim", "aof", "pipeline", "console"), "server"),
    "explain": "cli",
}
"""What must be installed for all of a command. Others do most things without."""

"""The commands of `disque-trio`."""

from typing import Final

COMMANDS: Final = {
    "server": "disque_trio.serving.server",
    "up": "disque_trio.serving.up",
    "cli": "disque_trio.cli",
    "sim": "disque_trio.cli.sim",
    "aof": "disque_trio.cli.aof",
    "doctor": "disque_trio.cli.doctor",
    "pipeline": "disque_trio.cli.pipeline",
    "worker": "disque_trio.cli.worker",
    "workers": "disque_trio.cli.operating.workers",
    "jobs": "disque_trio.cli.operating.jobs",
    "queues": "disque_trio.cli.operating.queues",
    "flows": "disque_trio.cli.operating.flows",
    "schedules": "disque_trio.cli.operating.schedules",
    "nodes": "disque_trio.cli.operating.nodes",
    "top": "disque_trio.cli.top",
    "explain": "disque_trio.cli.explain",
    "console": "disque_trio.cli.console",
    "users": "disque_trio.cli.users",
    "completion": "disque_trio.cli.shells",
}
"""Modules with a `main`, imported only when used, so that a client starts fast."""
EXTRAS: Final = {
    **dict.fromkeys(("server", "up", "sim", "aof", "pipeline", "console"), "server"),
    "explain": "cli",
}
"""What must be installed for all of a command. Others do most things without."""

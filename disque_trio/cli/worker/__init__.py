"""`disque-trio worker`: runs the tasks of an app (docs/worker-process.md)."""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from disque_trio.cli.frame import INTERRUPTED, USAGE, UsageError
from disque_trio.cli.worker.early import ends_early
from disque_trio.cli.worker.loading import load
from disque_trio.cli.worker.options import OPTIONS, Options, parse
from disque_trio.cli.worker.running import CHILD, queues_of, run_one, run_several
from disque_trio.terminal.output import complain, say_lines
from disque_trio.worker import App


def main(argv: Sequence[str]) -> int:
    """Run workers until they are told to stop. The exit status; `--help` says what it means."""
    child = os.environ.pop(CHILD, "")  # not for commands that jobs run
    try:
        options = parse(argv, os.environ)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        if options.check:
            # It speaks HTTP, whose import is slow.
            status: int = import_module("disque_trio.cli.worker.checking").check(options)
            return status
        return _run(argv, options, child)
    except UsageError as error:
        for line in str(error).splitlines():
            complain(f"disque-trio worker: {line}")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(argv: Sequence[str], options: Options, child: str) -> int:
    with ends_early():
        app = load(options.app)
        queues = queues_of(app, options)
        if options.explain:
            say_lines(_explained(options, queues))
            return 0
        return _work(app, argv, options, child)


def _work(app: App[Any], argv: Sequence[str], options: Options, child: str) -> int:
    if options.processes > 1 and not child:
        return run_several(app, argv, options)
    return run_one(app, options, child)


def _explained(options: Options, weights: Mapping[str, int]) -> str:
    queues = [f"{name}={weight}" if weight > 1 else name for name, weight in weights.items()]
    lines = [f"{'app':<12} {options.app}"]
    for option in OPTIONS:
        value = getattr(options, option.field)
        shown = ", ".join(queues) if option.name == "queues" else str(value)
        lines.append(f"{option.name:<12} {shown:<24} {options.origins[option.field]}".rstrip())
    return "\n".join(lines) + "\n"

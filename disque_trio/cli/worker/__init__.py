"""`disque-trio worker`: runs the tasks of an app (docs/worker-process.md)."""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from disque_trio.cli.frame import INTERRUPTED, USAGE, fail
from disque_trio.cli.worker.early import ends_early
from disque_trio.cli.worker.loading import load
from disque_trio.cli.worker.options import EPILOG, Options
from disque_trio.cli.worker.running import CHILD, RELOADED, queues_of, run_one, run_several
from disque_trio.terminal.options import Call, Command, UsageError, options_of, parse
from disque_trio.terminal.output import say_lines


def main(argv: Sequence[str]) -> int:
    """Run workers until a signal stops them. Return the exit status, as described in `--help`."""
    child = os.environ.pop(CHILD, "")  # not for commands that jobs run
    is_reloaded = bool(os.environ.pop(RELOADED, ""))
    try:
        call = parse(PROGRAM, "disque-trio worker", argv, os.environ)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        if call.options.check:
            # It speaks HTTP, whose import is slow.
            status: int = import_module("disque_trio.cli.worker.checking").check(call.options)
            return status
        if call.options.reload and not (child or is_reloaded):
            found: int = import_module("disque_trio.cli.worker.reloading").reload(
                argv, call.options
            )
            return found
        return _run(argv, call, child, is_reloaded=is_reloaded)
    except UsageError as error:
        return fail("worker", str(error), USAGE)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(argv: Sequence[str], call: Call[Options], child: str, *, is_reloaded: bool) -> int:
    options = call.options
    with ends_early():
        app = load(options.app)
        queues = queues_of(app, options)
        if options.explain:
            say_lines(_explained(call, queues))
            return 0
        if options.processes > 1 and not child:
            return run_several(app, argv, options, has_parent=is_reloaded)
        return run_one(app, options, child, has_parent=bool(child) or is_reloaded)


def _explained(call: Call[Options], weights: Mapping[str, int]) -> str:
    queues = [f"{name}={weight}" if weight > 1 else name for name, weight in weights.items()]
    lines = [f"{'app':<12} {call.options.app}"]
    for field, option in options_of(Options):
        if option.names:
            shown = ", ".join(queues) if field == "queues" else str(getattr(call.options, field))
            name = option.name.removeprefix("--")
            lines.append(f"{name:<12} {shown:<24} {call.origins[field]}".rstrip())
    return "\n".join(lines) + "\n"


PROGRAM: Final = Command(
    record=Options,
    about="""\
Runs the tasks of an app. MODULE:APP names the app: MODULE is imported, first from the current
directory, and APP is a variable of the module (app).""",
    epilog=EPILOG,
)

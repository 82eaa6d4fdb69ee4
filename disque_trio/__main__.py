"""The command line: ``disque-trio server``, ``up``, ``cli``, ``sim``, ``aof``, ``doctor`` …"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from disque_trio import __version__, extras
from disque_trio.programs import COMMANDS, EXTRAS
from disque_trio.terminal.arguments import Parser
from disque_trio.terminal.interrupts import is_interrupt
from disque_trio.terminal.output import discard_output, escape_the_rest, flush

_EPILOG: Final = "\n".join(
    [
        "commands:",
        *(f"  {name:10} {program.summary}" for name, program in COMMANDS.items()),
        "",
        "disque-trio COMMAND --help describes a command.",
    ]
)

_FASTER: Final = (
    "pure: Python only; a compiled node uses less than half of the processor time per job: "
    "DISQUE_FORM=compiled pip install --no-binary disque-trio 'disque-trio[server]'\n"
)
_INTERRUPTED: Final = 130
_OWN_OPTIONS: Final = ("-h", "--help", "-v", "--version")
_NOT_HERE: Final = (
    "disque-trio: Windows is not supported; run it on Linux or macOS, or on Windows in WSL 2 or a "
    "container\n"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. The exit status."""
    escape_the_rest()
    try:
        try:
            return _main(arguments)
        finally:
            flush()
    except BrokenPipeError:
        discard_output()
        return 2
    except (KeyboardInterrupt, BaseExceptionGroup) as error:
        if not is_interrupt(error):
            raise
        return _INTERRUPTED  # while it is being imported; commands handle their own


def _main(arguments: Sequence[str] | None) -> int:
    parser = Parser(
        prog="disque-trio",
        description="Disque, the distributed in-memory at-least-once job queue, on Trio.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="disque-trio [-h] [-v] COMMAND ...",
    )
    parser.add_argument("-v", "--version", action=_Version, nargs=0, help="the version")
    words = list(sys.argv[1:] if arguments is None else arguments)
    if sys.platform == "win32":
        sys.stderr.write(_NOT_HERE)
        return 1
    if words and words[0] in COMMANDS:
        return _run(words[0], words[1:])  # which parses its own options
    if words and words[0] not in _OWN_OPTIONS:
        parser.error(_slip(words))
    return _help_or_version(parser, words[:1] or ["--help"])


def _help_or_version(parser: Parser, words: list[str]) -> int:
    try:
        try:
            parser.parse_args(words)
        finally:
            flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        parser.exit(2, f"{parser.prog}: cannot write the output: {error.strerror}\n")
    return 0


def _run(command: str, words: list[str]) -> int:
    what, extra = f"disque-trio {command}", EXTRAS.get(command)
    try:
        if extra is not None:
            extras.check(what, extra)
        with extras.needed(what, "cli"):
            run: Callable[[list[str]], int] = import_module(COMMANDS[command].module).main
            return run(words)
    except extras.MissingExtraError as missing:
        sys.stderr.write(f"{missing}\n")
        return 1


def _slip(words: Sequence[str]) -> str:
    """The error for a word that is no command, with a suggestion."""
    word = words[0]
    rest = " ".join(words)
    if word.startswith("-"):
        return f"unrecognized option {word}: options follow a command: disque-trio cli {rest}"
    # Imported only here: the table of commands imports the whole state machine.
    if word.lower() in import_module("disque_trio.statemachine.commands.table").BY_NAME:
        return f"invalid choice: '{word}' is a command of a node: disque-trio cli {rest}"
    nearest = import_module("disque_trio.statemachine.suggestions").nearest
    near: bytes | None = nearest(os.fsencode(word), [name.encode() for name in COMMANDS])
    hint = f"did you mean '{near.decode()}'?" if near else f"there are {', '.join(COMMANDS)}"
    return f"invalid choice: '{word}' is not a command; {hint}"


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Tell the version of the package and of Python, and which form of the package runs."""
        python = f"{platform.python_implementation()} {platform.python_version()}"
        form = import_module("disque_trio.statemachine.form").FORM
        number = import_module("disque_trio.statemachine.base").FORMAT
        sys.stdout.write(f"disque-trio {__version__} (format {number}, {python}, {form})\n")
        if form == "pure" and sys.stdout.isatty():  # programs get one line
            sys.stdout.write(_FASTER)
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())

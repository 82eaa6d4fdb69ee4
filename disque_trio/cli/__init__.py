"""The command-line client: `disque-trio cli`."""

import getpass
import math
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

from disque_trio.cli import formats
from disque_trio.cli.frame import FAILED, INTERRUPTED, run, say_error
from disque_trio.cli.options import FOREVER, Options
from disque_trio.cli.pipe import Pipe
from disque_trio.cli.session import Session
from disque_trio.client.connection import Connection
from disque_trio.client.errors import OPTION_TERMS, ConnectionFailedError
from disque_trio.terminal.options import Command
from disque_trio.terminal.output import complain, discard_output

_FORMS: Final = {
    "people": formats.for_people,
    "raw": formats.for_pipes,
    "json": formats.for_programs,
}


_OF_REDIS: Final = {
    "-n": "Disque has queues instead of databases",
    "-u": "use --url disque://HOST:PORT; with TLS, disques://",
    "--user": "Disque has no user names; give only the password: -a or --password-file",
}
"""Options of redis-cli that this client does not have, with advice."""
_EPILOG: Final = """\
examples:
  disque-trio cli ADDJOB mails 'hello' 0 RETRY 30
  disque-trio cli -X BODY ADDJOB photos BODY 0 < photo.jpg
  disque-trio cli GETJOB FROM mails
  disque-trio cli -r -1 -i 1 QLEN mails
  disque-trio cli --json HELLO

exit code: 0 done; 1 an error reply, or no connection; 2 wrong usage; 130 interrupted by Ctrl-C
(0 for MONITOR and -r -1, which only Ctrl-C ends)
"""


def main(argv: list[str]) -> int:
    """Run the client; the exit code is 0, or as `--help` says."""
    return run("cli", PROGRAM, argv, is_terminable=False)


def _main(options: Options) -> int:
    try:
        return _run(options)
    except ConnectionFailedError as error:
        say_error(options, text := error.worded(OPTION_TERMS))
        complain(text)
        return FAILED
    except (KeyboardInterrupt, EOFError):
        if sys.stderr.isatty():
            complain("")  # A new line after the ^C.
        return 0 if _is_endless(options) else INTERRUPTED
    except BrokenPipeError:
        discard_output()
        return FAILED


def _is_endless(options: Options) -> bool:
    """Is Ctrl-C the way to end it?"""
    return options.repeat == FOREVER or [word.upper() for word in options.command] == [b"MONITOR"]


def _run(options: Options) -> int:
    session = _session(options)
    try:
        if options.is_pipe:
            is_well = _pipe(session)
        elif options.command:
            is_well = session.repeat(_command(options), options.repeat)
        elif sys.stdin.isatty():
            is_well = _interact(session)
        else:
            is_well = _lines(session)
    finally:
        session.connection.close()
    return 0 if is_well else 1


def _session(options: Options) -> Session:
    is_terminal = sys.stdout.isatty()
    form = options.form or ("people" if is_terminal else "raw")
    password = options.password
    if options.asks_password:
        password = os.fsencode(getpass.getpass("Password: "))
    return Session(
        connection=Connection(options.address, password, options.connect_timeout_s),
        form=_FORMS[form],
        out=sys.stdout.buffer,
        has_color=options.has_color and is_terminal and not os.environ.get("NO_COLOR"),
        reply_timeout_s=options.reply_timeout_s or math.inf,
        times=options.repeat,
        interval_s=options.interval_s,
    )


def _command(options: Options) -> list[bytes]:
    args = list(options.command)
    if options.last_from_stdin:
        args.append(sys.stdin.buffer.read())
    if options.tag_from_stdin is not None:
        body = sys.stdin.buffer.read()
        args = [body if word == options.tag_from_stdin else word for word in args]
    return args


def _pipe(session: Session) -> bool:
    session.connect()
    pipe = Pipe(session.connection, sys.stdin.fileno())
    is_well = pipe.run()
    complain(f"errors: {pipe.errors}, replies: {pipe.replies}")
    return is_well


def _lines(session: Session) -> bool:
    is_well = True
    for line in sys.stdin.buffer:
        is_well &= session.line(line)
    return is_well


def _interact(session: Session) -> bool:
    # Only here when needed: prompt_toolkit takes longer to import than a command takes to run.
    interact: Callable[[Session], bool] = import_module("disque_trio.cli.interactive").interact
    return interact(session)


PROGRAM: Final = Command(
    record=Options,
    run=_main,
    about="""\
Sends one command to a Disque node and prints the reply. Without a command it reads commands from
a prompt with history and completion, or line by line from a pipe or file on standard input.""",
    epilog=_EPILOG,
    usage="%(prog)s [OPTION ...] [COMMAND [ARGUMENT ...]]",
    has_host=True,
    advice=_OF_REDIS,
)

"""The options of `disque-trio cli`, spelled as in redis-cli where it has them."""

import argparse
import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

import attrs

from disque_trio import __version__
from disque_trio.cli.frame import port
from disque_trio.client.address import Address, Tls
from disque_trio.client.errors import OPTION_TERMS
from disque_trio.terminal.arguments import Parser

FOREVER: Final = -1
"""`-r -1`: repeat until interrupted."""

_DESCRIPTION: Final = """\
Sends one command to a Disque node and prints the reply. Without a command it reads commands:
from the keyboard, with history and completion, or line by line from what is piped into it.
"""
_OF_REDIS: Final = {
    "-n": "there are no databases, only queues",
    "-u": "give -h HOST and -p PORT, and --tls where it is rediss://",
    "--user": "there is one user, so the password will do: -a or --password-file",
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
(MONITOR and -r -1 end no other way: 0)
"""


@attrs.frozen(kw_only=True)
class Options:
    """The command line, read and checked."""

    address: Address
    password: bytes | None
    asks_password: bool
    connect_timeout_s: float
    repeat: int
    interval_s: float
    form: str
    """`people`, `raw` or `json`; empty is: people on a terminal, raw elsewhere."""
    has_color: bool
    last_from_stdin: bool
    tag_from_stdin: bytes | None
    is_pipe: bool
    command: list[bytes]


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options of a command line; exits with 2 if it is wrong."""
    parser = _parser()
    given, unknown = parser.parse_known_args(argv)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_hint(parser, unknown[0])}")
    words = given.command[1:] if given.command[:1] == ["--"] else given.command
    if (given.last_from_stdin or given.tag_from_stdin is not None) and not words:
        parser.error("-x and -X need a command to put standard input into")
    if given.tag_from_stdin is not None and given.tag_from_stdin not in words:
        parser.error(f"-X: no argument of the command reads {given.tag_from_stdin}")
    if given.is_pipe and words:
        parser.error("--pipe reads its commands from standard input; give none")
    return Options(
        address=Address(
            host=given.host, port=given.port, path=given.socket, tls=tls_from(parser, given)
        ),
        password=password_from(parser, given, environment),
        asks_password=given.asks_password,
        connect_timeout_s=given.connect_timeout_s,
        repeat=given.repeat,
        interval_s=given.interval_s,
        form=given.form,
        has_color=given.has_color and not environment.get("NO_COLOR"),
        last_from_stdin=given.last_from_stdin,
        tag_from_stdin=None if given.tag_from_stdin is None else os.fsencode(given.tag_from_stdin),
        is_pipe=given.is_pipe,
        command=[os.fsencode(word) for word in words],
    )


def _hint(parser: argparse.ArgumentParser, word: str) -> str:
    """A suggestion for an unknown option."""
    if word in _OF_REDIS:
        return f": {_OF_REDIS[word]}"
    names = re.findall(r"(?<!\S)--[a-z-]+", parser.format_help())
    # Imported only when needed, so that the client starts quickly.
    nearest = import_module("disque_trio.statemachine.suggestions").nearest
    near: bytes | None = nearest(os.fsencode(word), [name.encode() for name in names])
    return f" (did you mean '{near.decode()}'?)" if near else "; --help lists the options"


def password_from(
    parser: argparse.ArgumentParser, given: argparse.Namespace, environment: Mapping[str, str]
) -> bytes | None:
    """The password. The command line has precedence over the environment, a password over a
    file."""
    if given.password is not None or given.password_file is not None:
        password, path = given.password, given.password_file
    else:
        password, path = environment.get("DISQUE_AUTH"), environment.get("DISQUE_AUTH_FILE")
    if password or not path:
        return os.fsencode(password) if password else None
    try:
        with open(path, "rb") as file:
            return file.read().removesuffix(b"\n").removesuffix(b"\r") or None
    except OSError as error:
        parser.error(f"cannot read the password from {path}: {error.strerror}")


def tls_from(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Tls | None:
    """The TLS options; None without --tls. Certificates without --tls are an error."""
    if given.key is not None and given.cert is None:
        parser.error("--key is the key of a certificate: give --cert too")
    if not given.has_tls:
        named = (given.cacert, given.cert, given.server_name)
        if given.is_insecure or any(value is not None for value in named):
            parser.error("--cacert, --cert, --key, --sni and --insecure need --tls")
        return None
    return Tls(
        cacert=given.cacert,
        cert=given.cert,
        key=given.key,
        server_name=given.server_name,
        is_insecure=given.is_insecure,
        terms=OPTION_TERMS,
    )


def _parser() -> argparse.ArgumentParser:
    usage = "%(prog)s [OPTION ...] [COMMAND [ARGUMENT ...]]"
    parser = parser_for("cli", _DESCRIPTION, _EPILOG, usage)
    _add_connection(parser)
    add_tls(parser)
    _add_output(parser)
    _add_input(parser)
    parser.add_argument("--help", action="help", help="print this and exit")
    parser.add_argument("--version", action="version", version=f"disque-trio {__version__}")
    # Everything from the first word that is not an option belongs to the command.
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def parser_for(
    name: str, description: str, epilog: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """A parser in which -h is free for the host."""
    return Parser(
        prog=f"disque-trio {name}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )


def _add_connection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connection")
    group.add_argument(
        "-h",
        "--host",
        dest="host",
        metavar="HOST",
        default="127.0.0.1",
        help="node to talk to (127.0.0.1)",
    )
    group.add_argument(
        "-p", "--port", dest="port", metavar="PORT", type=port, default=7711, help="its port (7711)"
    )
    group.add_argument(
        "-s",
        "--socket",
        dest="socket",
        metavar="SOCKET",
        help="its Unix socket, instead of host and port",
    )
    add_password(group)
    group.add_argument(
        "--askpass",
        dest="asks_password",
        action="store_true",
        help="ask for the password, without echo",
    )
    group.add_argument(
        "-t",
        dest="connect_timeout_s",
        metavar="SECONDS",
        type=_seconds,
        default=5.0,
        help="give up connecting after this long (5)",
    )


def add_password(parser: argparse._ActionsContainer) -> None:
    """The options about the password."""
    parser.add_argument(
        "-a",
        "--password",
        metavar="PASSWORD",
        help="password; other users of this machine can see it here, so prefer --password-file",
    )
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        help="read the password from there; so does $DISQUE_AUTH_FILE",
    )


def add_tls(parser: argparse.ArgumentParser) -> None:
    """The options about TLS."""
    group = parser.add_argument_group("TLS (files in PEM)")
    group.add_argument(
        "--tls", dest="has_tls", action="store_true", help="speak TLS; -p is the node's tls-port"
    )
    group.add_argument(
        "--cacert", metavar="FILE", help="authorities to trust, instead of the system's"
    )
    group.add_argument("--cert", metavar="FILE", help="your certificate")
    group.add_argument("--key", metavar="FILE", help="its key, unless it is in the same file")
    group.add_argument(
        "--sni", dest="server_name", metavar="NAME", help="whose certificate to expect (the host's)"
    )
    group.add_argument(
        "--insecure", dest="is_insecure", action="store_true", help="take any certificate"
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    form = group.add_mutually_exclusive_group()
    form.add_argument(
        "--raw",
        dest="form",
        action="store_const",
        const="raw",
        default="",
        help="bare bytes (the rule when standard output is no terminal)",
    )
    form.add_argument(
        "--no-raw",
        dest="form",
        action="store_const",
        const="people",
        help="formatted replies (the rule on a terminal)",
    )
    form.add_argument(
        "--json", dest="form", action="store_const", const="json", help="one JSON value per reply"
    )
    group.add_argument(
        "--no-color", dest="has_color", action="store_false", help="no colors; so does $NO_COLOR"
    )


def _add_input(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("commands")
    group.add_argument(
        "-r",
        dest="repeat",
        metavar="N",
        type=_count,
        default=1,
        help="run the command N times; -1 is forever",
    )
    group.add_argument(
        "-i",
        dest="interval_s",
        metavar="SECONDS",
        type=_seconds,
        default=0.0,
        help="with -r, wait between two runs",
    )
    source = group.add_mutually_exclusive_group()
    source.add_argument(
        "-x",
        "--stdin",
        dest="last_from_stdin",
        action="store_true",
        help="standard input is the last argument",
    )
    source.add_argument(
        "-X",
        dest="tag_from_stdin",
        metavar="TAG",
        help="standard input is the argument that reads TAG",
    )
    source.add_argument(
        "--pipe",
        dest="is_pipe",
        action="store_true",
        help="send standard input as it is, count the replies",
    )


def _count(text: str) -> int:
    with contextlib.suppress(ValueError):
        if (count := int(text)) >= 1 or count == FOREVER:
            return count
    raise argparse.ArgumentTypeError(f"{text} is no number of times: 1 or more, or -1")


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (seconds := float(text)) < 1e9:
            return seconds
    raise argparse.ArgumentTypeError(f"{text} is no number of seconds: 0 or more")

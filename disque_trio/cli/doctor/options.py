"""The options of `disque-trio doctor`."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from disque_trio.cli.frame import port
from disque_trio.cli.options import add_password, add_tls, parser_for, password_from, tls_from
from disque_trio.client.address import Address

_DESCRIPTION: Final = """\
Asks a node, and every node that it knows, how they are, and tells what is wrong and what to do.
With --config it looks at a configuration file instead, or as well when a port is given.
"""
_EPILOG: Final = """\
examples:
  disque-trio doctor
  disque-trio doctor --host 10.0.0.1 --json
  disque-trio doctor --config /etc/disque/disque.conf
  disque-trio doctor --quiet              in a container: HEALTHCHECK CMD

exit code: 0 all is well; 1 warnings; 2 problems, or wrong usage
with --quiet: 0 this one node serves its clients; 1 it does not; nothing is printed
"""


@attrs.frozen(kw_only=True)
class Options:
    """The command line, read and checked."""

    address: Address | None
    """The node to begin with; None when only a file is asked about."""
    password: bytes | None
    config: str | None
    timeout_s: float
    is_json: bool
    is_quiet: bool


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> Options:
    """The options of a command line; exits with 2 if it is wrong."""
    parser = _parser()
    given = parser.parse_args(argv)
    has_node = given.host is not None or given.port is not None or given.config is None
    return Options(
        address=_address(parser, given) if has_node else None,
        password=password_from(parser, given, environment),
        config=given.config,
        timeout_s=given.timeout_s,
        is_json=given.is_json,
        is_quiet=given.is_quiet,
    )


def _address(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Address:
    tls = tls_from(parser, given)
    return Address(host=given.host or "127.0.0.1", port=given.port or 7711, tls=tls)


def _parser() -> argparse.ArgumentParser:
    parser = parser_for("doctor", _DESCRIPTION, _EPILOG)
    add = parser.add_argument
    add("-h", "--host", metavar="HOST", help="node to begin with (127.0.0.1)")
    add("-p", "--port", metavar="PORT", type=port, help="its port (7711)")
    add_password(parser)
    add("--config", metavar="FILE", help="a configuration file to look at")
    add(
        "-t",
        dest="timeout_s",
        metavar="SECONDS",
        type=_seconds,
        default=3.0,
        help="how long each answer may take (3)",
    )
    add("--json", dest="is_json", action="store_true", help="findings as one JSON object")
    add("--quiet", dest="is_quiet", action="store_true", help="only the exit code, of one node")
    add_tls(parser)
    add("--help", action="help", help="print this and exit")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return seconds

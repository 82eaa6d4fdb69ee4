"""The options of `disque-trio cli`, spelled as in redis-cli where it has them, and those that other
commands share with it: which node, its password, TLS."""

import os
from typing import Final

import attrs

from disque_trio.client.address import Address, Tls
from disque_trio.client.errors import OPTION_TERMS
from disque_trio.terminal.options import (
    FILE,
    PORT,
    Kind,
    UsageError,
    argument,
    modes,
    option,
    seconds,
    switch,
    text,
)

FOREVER: Final = -1
"""`-r -1`: repeat until interrupted."""

_CONNECTION: Final = "connection"
_TLS: Final = "TLS (files in PEM)"
_OUTPUT: Final = "output"
_COMMANDS: Final = "commands"


def _times(word: str) -> int:
    if (times := int(word)) < 1 and times != FOREVER:
        raise ValueError
    return times


_TIMES: Final = Kind("a number of times: 1 or more, or -1", _times, "N")


@attrs.frozen(kw_only=True)
class NodeOptions:
    """Which node, its password, TLS. Certificates without --tls are an error."""

    host: str | None = option(
        "-h --host", text("HOST"), "node to talk to", shown="127.0.0.1", group=_CONNECTION
    )
    port: int | None = option("-p --port", PORT, "its port", shown="7711", group=_CONNECTION)
    given_password: str | None = option(
        "-a --password", text("PASSWORD"),
        "password; other users of this machine can see it here, so prefer --password-file",
        group=_CONNECTION,
    )  # fmt: skip
    password_file: str | None = option(
        "--password-file", FILE, "read the password from there; so does $DISQUE_AUTH_FILE",
        group=_CONNECTION,
    )  # fmt: skip
    has_tls: bool = switch("--tls", "speak TLS; -p is the node's tls-port", group=_TLS)
    cacert: str | None = option(
        "--cacert", FILE, "authorities to trust, instead of the system's", group=_TLS
    )
    cert: str | None = option("--cert", FILE, "your certificate", group=_TLS)
    key: str | None = option("--key", FILE, "its key, unless it is in the same file", group=_TLS)
    server_name: str | None = option(
        "--sni", text("NAME"), "whose certificate to expect (the host's)", group=_TLS
    )
    is_insecure: bool = switch("--insecure", "take any certificate", group=_TLS)

    def __attrs_post_init__(self) -> None:
        if self.key is not None and self.cert is None:
            raise UsageError("--key is the key of a certificate: give --cert too")
        named = (self.cacert, self.cert, self.server_name)
        if not self.has_tls and (self.is_insecure or any(each is not None for each in named)):
            raise UsageError("--cacert, --cert, --key, --sni and --insecure need --tls")

    @property
    def tls(self) -> Tls | None:
        """How to speak TLS, or None."""
        if not self.has_tls:
            return None
        return Tls(
            cacert=self.cacert,
            cert=self.cert,
            key=self.key,
            server_name=self.server_name,
            is_insecure=self.is_insecure,
            terms=OPTION_TERMS,
        )

    @property
    def is_node_named(self) -> bool:
        """Was a node named?"""
        return self.host is not None or self.port is not None

    @property
    def address(self) -> Address:
        """Its address."""
        return Address(host=self.host or "127.0.0.1", port=self.port or 7711, tls=self.tls)

    @property
    def password(self) -> bytes | None:
        """The password. The command line has precedence over the environment, a password over a
        file. Raises `UsageError`."""
        password, path = self.given_password, self.password_file
        if password is None and path is None:
            password, path = os.environ.get("DISQUE_AUTH"), os.environ.get("DISQUE_AUTH_FILE")
        if password or not path:
            return os.fsencode(password) if password else None
        try:
            with open(path, "rb") as file:
                return file.read().removesuffix(b"\n").removesuffix(b"\r") or None
        except OSError as error:
            raise UsageError(f"cannot read the password from {path}: {error.strerror}") from None


@attrs.frozen(kw_only=True)
class Options(NodeOptions):
    """The command line, read and checked."""

    socket: str | None = option(
        "-s --socket", text("SOCKET"), "its Unix socket, instead of host and port",
        group=_CONNECTION,
    )  # fmt: skip
    asks_password: bool = switch(
        "--askpass", "ask for the password, without echo", group=_CONNECTION
    )
    connect_timeout_s: float = option(
        "-t", seconds(), "give up connecting after this long", 5.0, group=_CONNECTION
    )
    form: str = modes(
        "",
        ("--raw", "raw", "bare bytes (the rule when standard output is no terminal)"),
        ("--no-raw", "people", "formatted replies (the rule on a terminal)"),
        ("--json", "json", "one JSON value per reply"),
        group=_OUTPUT,
    )
    has_color: bool = switch(
        "--no-color", "no colors; so does $NO_COLOR", is_set=False, group=_OUTPUT
    )
    repeat: int = option(
        "-r", _TIMES, "run the command N times; -1 is forever", 1, shown="", group=_COMMANDS
    )
    interval_s: float = option(
        "-i", seconds(), "with -r, wait between two runs", 0.0, shown="", group=_COMMANDS
    )
    last_from_stdin: bool = switch(
        "-x --stdin", "standard input is the last argument", group=_COMMANDS, excludes="stdin"
    )
    tag_from_stdin: bytes | None = option(
        "-X", Kind("text", os.fsencode, "TAG"), "standard input is the argument that reads TAG",
        group=_COMMANDS, excludes="stdin",
    )  # fmt: skip
    is_pipe: bool = switch(
        "--pipe", "send standard input as it is, count the replies", group=_COMMANDS,
        excludes="stdin",
    )  # fmt: skip
    words: tuple[str, ...] = argument(text("COMMAND"), None, nargs="...")
    """Everything from the first word that is not an option."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if (self.last_from_stdin or self.tag_from_stdin is not None) and not self.command:
            raise UsageError("-x and -X need a command to put standard input into")
        if self.tag_from_stdin is not None and self.tag_from_stdin not in self.command:
            tag = os.fsdecode(self.tag_from_stdin)
            raise UsageError(f"-X: no argument of the command reads {tag}")
        if self.is_pipe and self.command:
            raise UsageError("--pipe reads its commands from standard input; give none")

    @property
    def is_json(self) -> bool:
        """Is each value of the output JSON?"""
        return self.form == "json"

    @property
    def command(self) -> list[bytes]:
        """The command and its arguments."""
        words = self.words[1:] if self.words[:1] == ("--",) else self.words
        return [os.fsencode(word) for word in words]

    @property
    def address(self) -> Address:
        """The node's address."""
        return attrs.evolve(super().address, path=self.socket)

"""The options of `disque-trio cli`, spelled as in redis-cli where it has them, and those that other
commands share with it: which node, its password, TLS."""

import os
from typing import Final

import attrs

from disque_trio.client.address import Address, Cluster, Tls
from disque_trio.client.errors import OPTION_TERMS
from disque_trio.client.url import parse_url
from disque_trio.terminal.options import (
    FILE,
    PORT,
    URL,
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

    url: str | None = option(
        "--url", URL, "nodes of the cluster, instead of -h, -p and the TLS options",
        shown="$DISQUE_URL", group=_CONNECTION,
    )  # fmt: skip
    host: str | None = option(
        "-h --host", text("HOST"), "host of the node", shown="127.0.0.1", group=_CONNECTION
    )
    port: int | None = option(
        "-p --port", PORT, "client port of the node", shown="7711", group=_CONNECTION
    )
    given_password: str | None = option(
        "-a --password", text("PASSWORD"),
        "password; other users of this machine can see it, so prefer --password-file",
        group=_CONNECTION,
    )  # fmt: skip
    password_file: str | None = option(
        "--password-file", FILE, "read the password from this file, like $DISQUE_AUTH_FILE",
        group=_CONNECTION,
    )  # fmt: skip
    has_tls: bool = switch("--tls", "use TLS; -p is then the tls-port of the node", group=_TLS)
    cacert: str | None = option(
        "--cacert", FILE, "authorities to trust, instead of those of the system", group=_TLS
    )
    cert: str | None = option("--cert", FILE, "certificate of the client", group=_TLS)
    key: str | None = option(
        "--key", FILE, "key of the certificate, unless it is in the same file", group=_TLS
    )
    server_name: str | None = option(
        "--sni",
        text("NAME"),
        "name that the certificate of the node must have (the host)",
        group=_TLS,
    )
    is_insecure: bool = switch(
        "--insecure", "accept any certificate, even an attacker's", group=_TLS
    )

    def __attrs_post_init__(self) -> None:
        if self.key is not None and self.cert is None:
            raise UsageError("--key needs --cert, its certificate")
        named = (self.cacert, self.cert, self.server_name)
        if not self.has_tls and (self.is_insecure or any(each is not None for each in named)):
            raise UsageError("--cacert, --cert, --key, --sni and --insecure need --tls")
        if self.url is not None and self._is_spelled_out:
            raise UsageError("--url cannot be combined with -h, -p and --tls")

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
    def _is_spelled_out(self) -> bool:
        """Do options other than --url name the node?"""
        return self.host is not None or self.port is not None or self.has_tls

    @property
    def is_node_named(self) -> bool:
        """Does the command line name a node?"""
        return self.url is not None or self._is_spelled_out

    @property
    def cluster(self) -> Cluster:
        """The nodes and the password. The command line has precedence over the environment, a
        password of its own over that of the URL. Raises `UsageError`."""
        return self._cluster_of(
            self.url or (None if self._is_spelled_out else os.environ.get("DISQUE_URL"))
        )

    def _cluster_of(self, url: str | None) -> Cluster:
        if not url:
            address = Address(host=self.host or "127.0.0.1", port=self.port or 7711, tls=self.tls)
            return Cluster([address], self._given_password or self._password_of_environment)
        try:
            found = parse_url(url)
        except ValueError as error:
            raise UsageError(f"{'--url' if self.url else 'DISQUE_URL'}: {error}") from error
        password = self._given_password or found.password or self._password_of_environment
        return attrs.evolve(found, password=password)

    @property
    def address(self) -> Address:
        """The first of the nodes."""
        return self.cluster.seeds[0]

    @property
    def password(self) -> bytes | None:
        """The password of the nodes. Raises `UsageError`."""
        return self.cluster.secret()

    @property
    def _given_password(self) -> bytes | None:
        return _password(self.given_password, self.password_file)

    @property
    def _password_of_environment(self) -> bytes | None:
        is_given = self.given_password is not None or self.password_file is not None
        return None if is_given else password_of_environment()  # an empty one is none


def password_of_environment() -> bytes | None:
    """The password of $DISQUE_AUTH or $DISQUE_AUTH_FILE. Raises `UsageError`."""
    return _password(os.environ.get("DISQUE_AUTH"), os.environ.get("DISQUE_AUTH_FILE"))


def _password(password: str | None, path: str | None) -> bytes | None:
    """A password has precedence over a file with one. Raises `UsageError`."""
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
        "-s --socket", text("SOCKET"), "Unix socket of the node, instead of host and port",
        group=_CONNECTION,
    )  # fmt: skip
    asks_password: bool = switch(
        "--askpass", "prompt for the password, without echo", group=_CONNECTION
    )
    connect_timeout_s: float = option(
        "-t", seconds(), "timeout for connecting; 0 is that of the system", 5.0, group=_CONNECTION
    )
    reply_timeout_s: float = option(
        "--reply-timeout", seconds(),
        "timeout for a reply, in addition to the timeout of GETJOB and ADDJOB; 0 is none",
        30.0, group=_CONNECTION,
    )  # fmt: skip
    form: str = modes(
        "",
        ("--raw", "raw", "plain bytes (the default if standard output is not a terminal)"),
        ("--no-raw", "people", "formatted replies (the default on a terminal)"),
        ("--json", "json", "one JSON value per reply"),
        group=_OUTPUT,
    )
    has_color: bool = switch(
        "--no-color", "print no colors, as with $NO_COLOR", is_set=False, group=_OUTPUT
    )
    repeat: int = option(
        "-r", _TIMES, "run the command N times; -1 is forever", 1, shown="", group=_COMMANDS
    )
    interval_s: float = option(
        "-i", seconds(), "with -r, pause between two runs", 0.0, shown="", group=_COMMANDS
    )
    last_from_stdin: bool = switch(
        "-x --stdin",
        "append standard input as the last argument",
        group=_COMMANDS,
        excludes="stdin",
    )
    tag_from_stdin: bytes | None = option(
        "-X", Kind("text", os.fsencode, "TAG"), "replace the argument TAG by standard input",
        group=_COMMANDS, excludes="stdin",
    )  # fmt: skip
    is_pipe: bool = switch(
        "--pipe", "send standard input unchanged, and count the replies", group=_COMMANDS,
        excludes="stdin",
    )  # fmt: skip
    words: tuple[str, ...] = argument(text("COMMAND"), None, nargs="...")
    """Everything from the first word that is not an option."""

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        if (self.last_from_stdin or self.tag_from_stdin is not None) and not self.command:
            raise UsageError("-x and -X need a command, which gets standard input as an argument")
        if self.tag_from_stdin is not None and self.tag_from_stdin not in self.command:
            tag = os.fsdecode(self.tag_from_stdin)
            raise UsageError(f"-X: the command has no argument {tag}")
        if self.is_pipe and self.command:
            raise UsageError("--pipe reads commands from standard input; give no command")

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
    def _is_spelled_out(self) -> bool:
        return self.socket is not None or super()._is_spelled_out

    @property
    def address(self) -> Address:
        """The node's address."""
        return attrs.evolve(super().address, path=self.socket) if self.socket else super().address

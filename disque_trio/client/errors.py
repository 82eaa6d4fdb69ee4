"""Errors of connections between a client and its nodes, with advice.

The advice refers to parts of the URL of the nodes, or to options of a command line. Errors of
OpenSSL are recognised by their attributes, because importing `ssl` takes longer than a command of a
plain client.
"""

import socket
from collections.abc import Mapping, Sequence
from typing import Final

from disque_trio.statemachine.base import Failure, Reply
from disque_trio.terminal.escapes import printable_lines

Terms = Mapping[str, str]
OPTION_TERMS: Final[Terms] = {
    "host": "given with -h",
    "another": "-h and -p select another",
    "port": "-p",
    "tls": "--tls",
    "no tls": "leave --tls out",
    "files": "--cert and --key",
    "cacert": "--cacert",
    "cert": "--cert",
    "key": "--key",
    "authority": "with --cacert; --insecure takes any certificate",
    "server": "with --sni",
}
"""Terms of the advice for a command line."""
URL_TERMS: Final[Terms] = {
    "host": "in the URL",
    "another": "the URL selects another",
    "port": "the port of the URL",
    "tls": "a URL that begins with disques://",
    "no tls": "write disque:// in place of disques://",
    "files": "tls_cert_file and tls_key_file of the URL",
    "cacert": "tls_ca_file of the URL",
    "cert": "tls_cert_file of the URL",
    "key": "tls_key_file of the URL",
    "authority": "as tls_ca_file of the URL",
    "server": "as tls_server_name of the URL",
}
"""Terms of the advice for a URL."""


class DisqueError(Exception):
    """The base class of all errors of clients and of the worker library. Control characters in the
    text are escaped, because it may contain names of jobs and replies of nodes."""

    def __str__(self) -> str:
        return printable_lines(super().__str__())


class OtherLoopError(DisqueError):
    """The client has connections in another event loop, or another thread uses it."""

    def __init__(self) -> None:
        super().__init__(
            "this client has connections in another event loop: make a client for each event loop "
            "and each thread, or close it first (`await client.close()`); an App has one for each, "
            "and BlockingClient needs no event loop"
        )


class BusyError(DisqueError):
    """Two threads use a blocking client at the same time."""

    def __init__(self) -> None:
        super().__init__(
            "another thread uses this BlockingClient now: make one for each thread, as "
            "`app.blocking.client` does"
        )


class ConnectionFailedError(DisqueError):
    """A node cannot be reached, or its connection has ended. The text has a reason and advice."""

    def __init__(self, reason: str, template: str = "", *, is_there: bool = False) -> None:
        super().__init__(reason, template)
        self.is_there = is_there
        """Did a server reject the connection?"""
        self.reason = reason
        self.template = template
        """The advice, with names of terms in braces."""

    @property
    def advice(self) -> str:
        """The advice, for users of a command line."""
        return self._advice(OPTION_TERMS)

    def _advice(self, terms: Terms) -> str:
        text = self.template
        for name, term in terms.items():
            text = text.replace(f"{{{name}}}", term)
        return text

    def worded(self, terms: Terms) -> str:
        """The text, with advice in these terms."""
        return printable_lines(f"{self.reason}. {self._advice(terms)}".rstrip())

    def __str__(self) -> str:
        """The text with advice for programs, which configure nodes by a URL."""
        return self.worded(URL_TERMS)


class LostError(ConnectionFailedError):
    """The connection ended before a reply arrived, so the outcome of the request is unknown."""

    def __init__(
        self,
        reason: str,
        template: str = "",
        replies: Sequence[Reply] = (),
        *,
        is_there: bool = False,
    ) -> None:
        super().__init__(reason, template, is_there=is_there)
        self.replies = replies
        """The replies to the first of the requests that were sent together."""

    def worded(self, terms: Terms) -> str:
        """The text, with advice in these terms."""
        unknown = "it is unknown whether the command was carried out"
        return printable_lines(f"{self.reason}: {unknown}. {self._advice(terms)}".rstrip())

    def before_the_request(self) -> ConnectionFailedError:
        """The error for a connection that ended during the greeting, when the request was not sent
        yet."""
        return ConnectionFailedError(self.reason, self.template, is_there=self.is_there)


def not_connected(
    where: str, error: OSError, path: str | None, *, has_tls: bool
) -> ConnectionFailedError:
    """The error of a connection that could not be opened; `path` is the path of a Unix socket."""
    reason = f"Could not connect to Disque at {where}: {_reason(error)}"
    is_there = bool(getattr(error, "reason", ""))  # OpenSSL's
    return ConnectionFailedError(reason, _advice(error, path, has_tls=has_tls), is_there=is_there)


def _advice(error: OSError, path: str | None, *, has_tls: bool) -> str:
    if path is not None:
        return f"Check that the node's configuration has `unixsocket {path}`."
    if has_tls and not isinstance(error, ConnectionRefusedError | TimeoutError):
        return _tls_advice(error)
    if isinstance(error, socket.gaierror):
        return "Check the host name {host}."
    advice = "Check that a node is running there: `disque-trio server` starts one, and {another}."
    if isinstance(error, TimeoutError):
        # A port for plain clients waits for the end of a line, which TLS may never send.
        kind = "this is the node's tls-port, and that " if has_tls else ""
        return f"Check that {kind}no firewall blocks the port. {advice}"
    return advice


def lost(where: str, error: OSError | None, *, has_answered: bool, has_tls: bool) -> LostError:
    """The error of an open connection that has ended."""
    why = "" if error is None else f" ({_reason(error)})"
    reason = f"Lost the connection to {where}{why} before the reply arrived"
    if has_answered:
        return LostError(reason)
    if isinstance(error, TimeoutError):
        return LostError(
            reason,
            "It accepts connections but does not answer: its process is paused or blocked, or "
            "{port} is the port of another service. See its log, or its console.",
        )
    if has_tls:
        # With TLS 1.3 a client detects such a rejection only when it reads, or not at all.
        return LostError(
            reason,
            "A node closes connections like this if the client has no certificate, or one that "
            "the node does not trust: give {files}, signed by an authority that it trusts. See "
            "its log.",
            is_there=True,
        )
    return LostError(
        reason,
        "TLS ports and bus ports close connections like this: {port} must be the node's client "
        "port, or its tls-port with {tls}.",
        is_there=True,
    )


def ended(where: str, reply: Failure) -> ConnectionFailedError:
    """The error of a connection that the node has rejected."""
    text = reply.text.decode(errors="backslashreplace")
    return ConnectionFailedError(f"{where} closed the connection: {text}", is_there=True)


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    found = getattr(error, "verify_message", "") or getattr(error, "reason", "")
    if isinstance(found, str) and found:
        return _MEANINGS.get(found, found.lower().replace("_", " ").rstrip("."))
    text = error.strerror or str(error)
    return "it closed the connection" if text.startswith("EOF occurred") else text


def _tls_advice(error: OSError) -> str:
    verify = getattr(error, "verify_message", "")
    if verify:
        return next((text for word, text in _JUDGEMENTS.items() if word in verify), _DISTRUST)
    if getattr(error, "reason", "") in _NO_TLS:
        return "{port} must be the node's tls-port; otherwise {no tls}."
    return "Check that this is the node's tls-port, and check {files}. See the log of the node."


_DISTRUST: Final = "Give the file of the authority that signed the node's certificate {authority}."
_JUDGEMENTS: Final = {
    "expired": "The operator of the node must renew it.",
    "not yet valid": "Check the clocks of this machine and of the node.",
    "mismatch": "Give the name that is in the node's certificate {server}.",
}
"""Advice, by the verification error of OpenSSL."""
_SPEAKS_NONE: Final = "the port does not use TLS"
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")
_MEANINGS: Final = {
    **dict.fromkeys(_NO_TLS, _SPEAKS_NONE),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the node requires a certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the node reports that the certificate has expired",
    "TLSV1_ALERT_UNKNOWN_CA": "the node does not trust the authority of the certificate",
    "UNEXPECTED_EOF_WHILE_READING": "it closed the connection in the TLS handshake",
}

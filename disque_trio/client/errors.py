"""What went wrong between a client and its nodes, in words for people.

Advice names options of the command line; programs have them by the same names. Errors of OpenSSL
are recognised by their attributes: importing `ssl` takes longer than a command of a plain client.
"""

import socket
from typing import Final


class DisqueError(Exception):
    """Whatever a client raises."""


class ConnectionFailedError(DisqueError):
    """What went wrong, as a clause without a full stop, and what to do about it, in sentences."""

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason, advice)
        self.reason = reason
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.reason}. {self.advice}".rstrip()


class LostError(ConnectionFailedError):
    """The connection ended while a reply was due."""

    def __str__(self) -> str:
        unknown = "whether the command was carried out is not known"
        return f"{self.reason}: {unknown}. {self.advice}".rstrip()

    def before_the_request(self) -> ConnectionFailedError:
        """It ended while the client greeted the node: the request was not sent."""
        return ConnectionFailedError(self.reason, self.advice)


def not_connected(
    where: str, error: OSError, path: str | None, *, has_tls: bool
) -> ConnectionFailedError:
    """The error of a connection that never opened; `path` is a Unix socket's."""
    reason = f"Could not connect to Disque at {where}: {_reason(error)}"
    return ConnectionFailedError(reason, _advice(error, path, has_tls=has_tls))


def _advice(error: OSError, path: str | None, *, has_tls: bool) -> str:
    if path is not None:
        return f"Is `unixsocket {path}` in the node's configuration?"
    if has_tls and not isinstance(error, ConnectionRefusedError | TimeoutError):
        return _tls_advice(error)
    if isinstance(error, socket.gaierror):
        return "Check the host name given with -h."
    advice = "Is a node running there? `disque-trio server` starts one; -h and -p name another."
    if isinstance(error, TimeoutError):
        # A port for plain clients waits for the end of a line, which TLS may never send.
        kind = "Is this the node's tls-port, and is" if has_tls else "Is"
        return f"{kind} it reached from here? A firewall may be in between. {advice}"
    return advice


def lost(where: str, error: OSError | None, *, has_answered: bool, has_tls: bool) -> LostError:
    """The error of a connection that was open."""
    why = "" if error is None else f" ({_reason(error)})"
    reason = f"Lost the connection to {where}{why} before the reply came"
    if has_answered:
        return LostError(reason)
    if has_tls:
        # With TLS 1.3 a client learns of such a refusal only when it reads, or not at all.
        return LostError(
            reason,
            "A node that misses the client's certificate, or does not trust it, ends connections "
            "like this: give --cert and --key, signed by an authority that it trusts. Its log says "
            "more.",
        )
    return LostError(
        reason,
        "Ports for TLS, and bus ports, end connections like this: -p must be the node's port for "
        "clients, and its tls-port needs --tls.",
    )


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    found = getattr(error, "verify_message", "") or getattr(error, "reason", "")
    if isinstance(found, str) and found:
        return _MEANINGS.get(found, found.lower().replace("_", " ").rstrip("."))
    text = error.strerror or str(error)
    return "it hung up" if text.startswith("EOF occurred") else text


def _tls_advice(error: OSError) -> str:
    verify = getattr(error, "verify_message", "")
    if verify:
        return next((text for word, text in _JUDGEMENTS.items() if word in verify), _DISTRUST)
    if getattr(error, "reason", "") in _NO_TLS:
        return "-p must be the node's tls-port; else leave --tls out."
    return "Check whether this is the node's tls-port, and --cert and --key. Its log says more."


_DISTRUST: Final = (
    "Give the file of the authority that signed the node's certificate with --cacert; --insecure "
    "takes any certificate."
)
_JUDGEMENTS: Final = {
    "expired": "Its operator has to renew it.",
    "not yet valid": "Check the clocks of this machine and of the node's.",
    "mismatch": "Name whom the node's certificate is for with --sni.",
}
"""Advice by what OpenSSL says of the node's certificate."""
_SPEAKS_NONE: Final = "it speaks no TLS there"
_NO_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL")
_MEANINGS: Final = {
    **dict.fromkeys(_NO_TLS, _SPEAKS_NONE),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the node asks for a certificate",
    "TLSV1_ALERT_UNKNOWN_CA": "the node does not trust the authority of the certificate",
    "UNEXPECTED_EOF_WHILE_READING": "it hung up in the TLS handshake",
}

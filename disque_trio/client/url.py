"""URLs of clusters."""

from typing import Any, Final
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

from disque_trio.client.address import Address, Cluster, Tls
from disque_trio.statemachine.base import LAST_PORT

_SCHEMES: Final = ("disque", "disques", "disque+unix")
_PORT: Final = "7711"
_TLS_FIELDS: Final = {
    "tls_ca_file": "cacert",
    "tls_cert_file": "cert",
    "tls_key_file": "key",
    "tls_server_name": "server_name",
}


def parse_url(url: str) -> Cluster:
    """The nodes and the password in a URL.

    `disque://[:password@]host[:port][,host[:port]...]`; `disques://` is the same with TLS, whose
    options follow `?` (`tls_ca_file`, `tls_cert_file`, `tls_key_file`, `tls_server_name`);
    `disque+unix:///path` is a Unix socket. The default port is 7711. Raises `ValueError`.
    """
    shown = url.rpartition("@")[2]  # without the password
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(f"{shown!r} is not the address of a cluster: {error}") from None
    if parts.scheme not in _SCHEMES:
        raise ValueError(
            f"{shown!r} is not the address of a cluster, such as disque://127.0.0.1:7711"
        )
    if parts.fragment or ("@" in url and "@" not in parts.netloc):
        raise ValueError(f"{shown!r}: write / ? # and @ of the password as %2F %3F %23 and %40")
    login, _, hosts = parts.netloc.rpartition("@")
    password = unquote_to_bytes(login.partition(":")[2]) or None
    options = parse_qs(parts.query, strict_parsing=bool(parts.query), keep_blank_values=True)
    allowed = _TLS_FIELDS if parts.scheme == "disques" else {}
    for name in options:
        if name not in allowed:
            raise ValueError(f"{name!r} is not an option of {parts.scheme}://")
    if parts.scheme == "disque+unix":
        return Cluster([Address(path=unquote(parts.path))], password)
    if parts.path.strip("/"):
        raise ValueError(f"{parts.path!r}: the address of a cluster has no path")
    tls = _tls(options) if parts.scheme == "disques" else None
    return Cluster([parse_node(each, tls) for each in hosts.split(",")], password)


def _tls(options: dict[str, list[str]]) -> Tls:
    if "tls_key_file" in options and "tls_cert_file" not in options:
        raise ValueError("tls_key_file is the key of a certificate: give tls_cert_file as well")
    files: dict[str, Any] = {_TLS_FIELDS[name]: found[-1] for name, found in options.items()}
    return Tls(**files)


def parse_node(text: str, tls: Tls | None = None) -> Address:
    """The address `host:port`; the default port is 7711. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, _PORT
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= LAST_PORT:
        raise ValueError(f"{text!r} is not host:port, such as 127.0.0.1:7711")
    return Address(host=host.removeprefix("[").removesuffix("]"), port=int(port), tls=tls)

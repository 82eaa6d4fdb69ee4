"""Certificates for tests: authorities, and files that they have signed."""

import datetime
from pathlib import Path
from typing import Any

import attrs
import trustme

from disque_trio.statemachine.config import Config


@attrs.frozen
class Signed:
    """A certificate and its key, as files."""

    cert: str
    key: str


class Authority:
    """Signs, and stands in a file for those who trust it."""

    def __init__(self, directory: Path, name: str) -> None:
        self._ca = trustme.CA()
        self._place = directory / name
        self._count = 0
        self.file = f"{self._place}.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def sign(self, *, is_expired: bool = False) -> Signed:
        """A new certificate, for nodes and clients alike."""
        self._count += 1
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        begin, end = (now - 2 * day, now - day) if is_expired else (now - day, now + day)
        leaf = self._ca.issue_cert("localhost", "127.0.0.1", not_before=begin, not_after=end)
        signed = Signed(f"{self._place}-{self._count}.crt", f"{self._place}-{self._count}.key")
        leaf.cert_chain_pems[0].write_to_path(signed.cert)
        leaf.private_key_pem.write_to_path(signed.key)
        return signed


def tls_config(authority: Authority, signed: Signed | None = None, **more: Any) -> Config:
    """A node with this certificate, which trusts the authority; TLS for clients unless told not."""
    signed = signed or authority.sign()
    config = Config(
        tls_port=1,
        tls_cert_file=signed.cert,
        tls_key_file=signed.key,
        tls_ca_cert_file=authority.file,
    )
    return attrs.evolve(config, **more)

"""An object store: moto's server, a process of its own, because what Delta asks of it holds the
interpreter."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.processes import SOON_S, eventually
from tests.pipeline.conftest import IN_STORE, STORE


@contextmanager
def object_store() -> Iterator[str]:
    """The address of a bucket, which the environment tells how to reach."""
    host, port = STORE.removeprefix("http://").split(":")
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", host, "-p", port],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in IN_STORE.items():
            patch.setenv(name, value)
        try:
            eventually(lambda: _made(f"{STORE}/lakes"), 4 * SOON_S, "the store answers")
            yield "s3://lakes"
        finally:
            server.kill()
            server.wait()


def _made(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(urllib.request.Request(address, method="PUT")))
    except OSError:
        return False

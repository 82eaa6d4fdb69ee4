"""Queries of a cluster that wants TLS, a client's certificate and a password."""

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest
from pyspark.errors import PySparkException

from tests.certificates import Authority
from tests.cluster.processes import Cluster, Fleet, Server, free_port
from tests.pipeline.connector.desk import drain

Options = dict[str, str]


@attrs.frozen
class Vault:
    """A node behind locks."""

    server: Server
    keys: Options
    """What opens them."""


@pytest.fixture
def vault(fleet: Fleet, tmp_path: Path) -> Vault:
    """A node whose port for TLS asks for a certificate and a password."""
    authority = Authority(tmp_path, "ca")
    node, client = authority.sign(), authority.sign()
    port = free_port()
    files = ("--tls-cert-file", node.cert, "--tls-key-file", node.key)
    server = fleet.server("--tls-port", str(port), *files, "--tls-ca-cert-file", authority.file)
    server.client.call("CONFIG", "SET", "requirepass", "sesame")
    server.client.call("AUTH", "sesame")
    password = tmp_path / "password"
    password.write_text("sesame\n")
    keys = {
        "nodes": f"127.0.0.1:{port}",
        "timeout": "20",
        "tls": "true",
        "tlsCaFile": authority.file,
        "tlsCertFile": client.cert,
        "tlsKeyFile": client.key,
        "passwordFile": str(password),
    }
    return Vault(server, keys)


@pytest.mark.slow
def test_who_has_the_keys_reads_and_writes(session: Any, vault: Vault, tmp_path: Path) -> None:
    rows = session.range(0, 40, 1, 2).selectExpr("concat('n ', id) as body")
    rows.write.format("disque").mode("append").options(**vault.keys, queue="in").save()
    table = session.read.format("disque").options(**vault.keys, queue="in").load()
    assert {row.state for row in table.collect()} == {"queued"}

    stream = session.readStream.format("disque").options(**vault.keys, queue="in").load()
    through = stream.select("body").writeStream.format("disque")
    through = through.options(**vault.keys, queue="out", checkpointLocation=str(tmp_path / "c"))
    through.trigger(availableNow=True).start().awaitTermination()

    bodies = Counter(job.body for job in drain(Cluster([vault.server]), "out", 40))
    assert bodies == Counter(b"n %d" % n for n in range(40))


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"passwordFile": "", "password": "open"}, "refuses the password.*options password and"),
        ({"passwordFile": ""}, "requires a password"),
        ({"passwordFile": "/nowhere"}, "option passwordFile: cannot read '/nowhere'"),
        ({"tlsCaFile": ""}, "no node answers.*certificate"),
    ],
)
def test_who_has_wrong_keys_is_told_which(
    session: Any, vault: Vault, wrong: Options, said: str
) -> None:
    table = session.read.format("disque").options(**vault.keys | wrong).load()

    with pytest.raises(PySparkException, match=said):
        table.collect()

import os
from pathlib import Path

from tests.cluster.talk import connection
from tests.serving.process import server


def test_files_of_a_node_are_closed_to_other_users(tmp_path: Path) -> None:
    options = ("--appendonly", "yes")
    before = os.umask(0)
    try:
        with server(tmp_path, *options) as (_, port), connection(port) as client:
            client.add("q", "body")
            client.text("BGREWRITEAOF")
            made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    finally:
        os.umask(before)

    for name in ("disque.aof", "nodes.conf"):
        assert made[name] & ~0o640 == 0, (name, oct(made[name]))

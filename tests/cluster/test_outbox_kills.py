"""Relays of an outbox that are killed between adding a job and deleting its row, on a real node."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.processes import SOON_S, Server
from tests.cluster.test_python_clients import url
from tests.trees import HOME

sql = pytest.importorskip("sqlalchemy")

JOBS: Final = 300
PROGRAM: Final = """\
import os, signal, sys
import sqlalchemy as sql
from disque_trio.contrib.outbox import relay, sqlalchemy
from disque_trio.worker import App

app, metadata = App(os.environ["DISQUE_URL"]), sql.MetaData()

@app.task(name="pay", queue=os.environ["QUEUE"])
def pay(number: int) -> None: ...

outbox = sqlalchemy.Outbox(app, metadata)
engine = sql.create_engine("sqlite:///shop.db")
what = sys.argv[1]
if what == "place":
    metadata.create_all(engine)
    with engine.begin() as connection:
        outbox.add(connection, *[pay.call(each) for each in range(int(sys.argv[2]))])
if what == "die":
    # After the nodes have accepted the jobs, and before their rows are deleted.
    sqlalchemy._Transaction.delete = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
if what != "place":
    outbox.relay(engine).drain()
"""


def run(directory: Path, server: Server, *words: str) -> int:
    environment = {
        **os.environ,
        "DISQUE_URL": url(server),
        "QUEUE": directory.name,
        "PYTHONPATH": str(HOME),
    }
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, cwd=directory, env=environment, check=False, timeout=SOON_S)
    return done.returncode


@pytest.mark.slow
def test_each_job_is_added_once_though_relays_are_killed(server: Server, tmp_path: Path) -> None:
    assert run(tmp_path, server, "place", str(JOBS)) == 0
    for _ in range(3):
        assert run(tmp_path, server, "die") == -9

    assert run(tmp_path, server, "relay") == 0

    engine = sql.create_engine(f"sqlite:///{tmp_path}/shop.db")
    with engine.connect() as connection:
        assert connection.execute(sql.text("SELECT count(*) FROM disque_outbox")).scalar() == 0
    engine.dispose()
    assert server.client.call("QLEN", tmp_path.name) == JOBS

"""`disque-trio schedules` and `App.schedules` on three nodes, with worker processes that are
killed."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import attrs
import pytest

from disque_trio.worker import App
from tests.cluster.processes import SOON_S, Cluster, Fleet, Server, eventually
from tests.cluster.test_python_clients import url
from tests.trees import HOME

PROGRAM: Final = """\
import os
from datetime import datetime
from disque_trio.worker import App

app = App(os.environ["DISQUE_URL"])

@app.task(name="note", queue="notes")
async def note(who: str, *, scheduled: datetime) -> None:
    with open("said", "a") as file:
        file.write(f"{who} {scheduled.timestamp():.0f}\\n")
"""


@attrs.define(eq=False)
class Notes:
    """Worker processes that write down the ticks they run."""

    cluster: Cluster
    directory: Path
    workers: list[subprocess.Popen[bytes]] = attrs.Factory(list)

    def start(self) -> None:
        (self.directory / "notes.py").write_text(PROGRAM)
        nodes = "disque://" + ",".join(f"127.0.0.1:{each.port}" for each in self.cluster.servers)
        environment = {**os.environ, "DISQUE_URL": nodes, "PYTHONPATH": str(HOME)}
        with open(self.directory / "log", "ab") as log:
            command = [sys.executable, "-m", "disque_trio", "worker", "notes", "-c", "4"]
            self.workers.append(
                subprocess.Popen(
                    command, cwd=self.directory, env=environment, stdout=log, stderr=log
                )
            )

    def runs(self, who: str = "ann") -> list[int]:
        """The ticks that were run, as they ended."""
        path = self.directory / "said"
        lines = path.read_text().splitlines() if path.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(f"{who} ")]

    def goes_on(self, more: int = 3) -> None:
        """Wait for so many ticks more."""
        count = len(set(self.runs()))
        what = f"ticks are run; log: {(self.directory / 'log').read_text()[-3000:]}"
        eventually(lambda: len(set(self.runs())) >= count + more, SOON_S, what)

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.wait()


def schedules(server: Server, *words: str, status: int = 0) -> Any:
    """What the command prints."""
    command = [sys.executable, "-m", "disque_trio", "schedules", *words, "--url", url(server)]
    ended = subprocess.run([*command, "--json"], capture_output=True, check=False, cwd=HOME)
    assert ended.returncode == status, ended.stderr.decode()
    return json.loads(ended.stdout) if status == 0 else ended.stderr.decode()


@pytest.mark.slow
def test_ticks_go_on_once_each_though_workers_and_a_node_are_killed(
    fleet: Fleet, tmp_path: Path
) -> None:
    cluster = fleet.cluster(3)
    notes = Notes(cluster, tmp_path)
    try:
        notes.start()
        notes.start()
        add = ("add", "ann", "note", "--queue", "notes", "--every", "1", "--scheduled")
        kwargs = ("--missed", "all", "--args", '["ann"]')
        assert schedules(cluster[0], *add, *kwargs)["count"] == 1
        notes.goes_on()

        notes.workers[0].kill()
        notes.goes_on()
        _holder(cluster).kill()
        notes.goes_on()
        cluster.heal()
        notes.start()
        notes.goes_on()
        notes.workers[1].kill()
        notes.goes_on()

        up = cluster[0]
        assert schedules(up, "pause", "ann")["says"] == ["paused"]
        [row] = schedules(up, "list")
        assert (row["schedule"], row["state"], row["when"]) == ("ann", "paused", "every 1 s")
        before = set(notes.runs())
        assert schedules(up, "run", "ann")["count"] == 1
        eventually(lambda: set(notes.runs()) - before, SOON_S, "the run out of turn")
        assert schedules(up, "resume", "ann")["says"] == ["resumed"]
        notes.goes_on()
        assert schedules(up, "remove", "ann", "--yes")["says"] == ["removed"]
        assert schedules(up, "list") == []
        assert "no schedule has the name ann" in schedules(up, "pause", "ann", status=1)
    finally:
        notes.close()

    # A worker that is killed may leave one job that it has run and not acknowledged.
    counts = Counter(notes.runs())
    assert sum(counts.values()) - len(counts) <= 3, counts


def _holder(cluster: Cluster) -> Server:
    """A node that has the record queued."""
    for server in cluster.servers:
        if server.client.call("QLEN", "disque-trio.timetable"):
            return server
    raise AssertionError("no node has the record")


@pytest.mark.slow
def test_a_schedule_of_an_app_runs_and_workers_report_it(fleet: Fleet, tmp_path: Path) -> None:
    cluster = fleet.cluster(1)
    app: App[None] = App(url(cluster[0]))

    @app.task(name="note", queue="notes")
    async def note(who: str, *, scheduled: str = "") -> None: ...

    app.blocking.schedules.add("bob", note.call("bob"), every=1)
    notes = Notes(cluster, tmp_path)
    try:
        notes.start()
        eventually(lambda: len(notes.runs("bob")) >= 3, SOON_S, "ticks are run")
        rows = eventually(
            lambda: [each for each in schedules(cluster[0], "list") if each["workers"]],
            SOON_S,
            "the worker reports that it keeps the schedule",
        )
        assert [(row["schedule"], row["name"], row["queue"]) for row in rows] == [
            ("bob", "note", "notes")
        ]
    finally:
        notes.close()
        app.blocking.client.close()

"""Real clusters are judged by what their clients saw, with nothing known of the nodes.

`make soak` does it longer: `HISTORY_KILLS` kills, 30 if it is not set.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from disque_trio.cli.sim import main
from disque_trio.cli.sim.outcomes import PASSED, VIOLATED
from disque_trio.client import BlockingClient, Recorder
from disque_trio.sim.histories.reading import Reader
from disque_trio.sim.histories.records import Limits
from tests.cluster.histories import storm
from tests.cluster.processes import DISQUE_TRIO, SOON_S, Fleet, Server, free_port
from tests.cluster.workers.shop import opened
from tests.trees import HOME

SETTLE_S: Final = 5.0
SLACK_S: Final = 5.0
KILLS: Final = int(os.environ.get("HISTORY_KILLS", "30"))
JOURNAL: Final = ("--appendonly", "yes", "--appendfsync", "always")
Capture = pytest.CaptureFixture[str]


def judged(path: Path, capsys: Capture) -> tuple[int, dict[str, Any]]:
    capsys.readouterr()
    limits = ("--settle", str(SETTLE_S), "--slack", str(SLACK_S))
    status = main(["judge", "--json", *limits, str(path)])
    verdict: dict[str, Any] = json.loads(capsys.readouterr().out)
    return status, verdict


def stormed(fleet: Fleet, path: Path, kills: int, capsys: Capture) -> dict[str, Any]:
    recorder = storm(
        fleet.cluster(3, *JOURNAL), path, kills, settle_s=SETTLE_S + 1, slack_s=SLACK_S
    )
    status, verdict = judged(recorder.path, capsys)
    assert status == PASSED, verdict["violations"][:3]
    assert verdict["open"] == 0
    assert verdict["faults"] == kills
    assert verdict["keys"] > 0
    return verdict


@pytest.mark.slow
def test_clients_of_a_cluster_whose_nodes_are_killed_see_nothing_wrong(
    fleet: Fleet, tmp_path: Path, capsys: Capture
) -> None:
    stormed(fleet, tmp_path / "h.jsonl", 2, capsys)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nor_after_many_kills(fleet: Fleet, tmp_path: Path, capsys: Capture) -> None:
    verdict = stormed(fleet, tmp_path / "h.jsonl", KILLS, capsys)
    del verdict["violations"], verdict["notes"]
    with capsys.disabled():
        print(verdict)  # noqa: T201


@pytest.mark.slow
def test_a_job_that_is_taken_out_of_a_history_is_missed(
    fleet: Fleet, tmp_path: Path, capsys: Capture
) -> None:
    # What a lossy cluster looks like to its clients: this one hides a job by DELJOB.
    server = fleet.server()
    path = tmp_path / "h.jsonl"
    recorder = Recorder(path, has_all_faults=True)
    with BlockingClient(f"disque://127.0.0.1:{server.port}", recorder=recorder) as client:
        id = client.addjob("q", b"body", retry=1)
        server.client.call("DELJOB", id)
        assert client.getjob("q", timeout=2 * SLACK_S + 3) == []
    recorder.close()

    status, verdict = judged(path, capsys)

    assert status == VIOLATED
    assert [(each["property"], each["job"]) for each in verdict["violations"]] == [("H4", id)]


@pytest.mark.slow
def test_the_program_of_the_page_judges_its_cluster(tmp_path: Path, capsys: Capture) -> None:
    page = (HOME / "docs" / "histories.md").read_text("utf-8")
    (text,) = re.findall(r"^```python\n# judged.py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    command = [sys.executable, *DISQUE_TRIO[1:]]
    shorter = {
        "PORTS = (7711, 7712, 7713)": f"PORTS = {tuple(free_port() for _ in range(3))}",
        "KILLS = 3": "KILLS = 1",
        "SETTLE = 10": f"SETTLE = {SETTLE_S}",
        "RETRY + 15": f"RETRY + {2 * SLACK_S}",
        '"disque-trio", "server"': ", ".join(map(repr, command)),
    }
    for long, short in shorter.items():
        assert text.count(long) == 1
        text = text.replace(long, short)
    (tmp_path / "judged.py").write_text(text)
    subprocess.run((sys.executable, "judged.py"), cwd=tmp_path, check=True, timeout=SOON_S)

    status, verdict = judged(tmp_path / "history.jsonl", capsys)

    assert status == PASSED, verdict["violations"][:3]
    assert verdict["faults"] == 1


def test_a_worker_records_what_it_and_its_tasks_ask(server: Server, tmp_path: Path) -> None:
    with opened(server, tmp_path) as shop:
        path = tmp_path / "h.jsonl"
        for number in range(3):
            shop.add(f"{number}")
        worker = shop.start("shop", "--burst", "--history", str(path))
        shop.ends(worker)

        reader = Reader()
        reader.read(str(path))
        calls = reader.history(Limits()).calls

    assert worker.returncode == 0
    jobs = [job for call in calls if call.command == "GETJOB" and call.reply for job in call.reply]
    acked = {id for call in calls if call.command == "ACKJOB" for id in call.request[1:]}
    assert len(jobs) == 3
    assert {job[1] for job in jobs} == acked

"""docs/pipeline-lake.md names what there is, and the worked examples of docs/pipeline.md work."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from disque_trio.__main__ import main
from disque_trio.pipeline.lake.views import VIEWS
from tests.cluster.processes import Fleet
from tests.pipeline.test_sweep_on_cluster import scenario

DOCS = Path(__file__).parents[3] / "docs"
Capture = pytest.CaptureFixture[str]


def commands(heading: str) -> list[list[str]]:
    """The command lines of a chapter, without the name of the program."""
    _, _, rest = (DOCS / "pipeline.md").read_text("utf-8").partition(f"### {heading}\n")
    lines = re.findall(r"^    disque-trio (.+)$", rest.partition("\n### ")[0], re.MULTILINE)
    assert lines
    return [shlex.split(line) for line in lines]


def run(words: list[str], capsys: Capture) -> tuple[int, str]:
    if words[0] == "pipeline":
        words = [*words, "--master", "local[2]"]
    status = main(words)
    return status, capsys.readouterr().out


def _section(text: str, head: str) -> str:
    return text.partition(head)[2].partition("\n##")[0]


def test_every_view_is_told() -> None:
    text = (DOCS / "pipeline-lake.md").read_text("utf-8")

    views = re.findall(r"^\| `(\w+)` \| ", _section(text, "## Querying the lake"), re.MULTILINE)
    assert views == list(VIEWS)


@pytest.mark.slow
def test_a_night_of_seeds_ends_in_a_report(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    swept, report, query = commands("A nightly sweep with a report")
    small = {
        "scenarios/split-brain-halves.toml": scenario(tmp_path, "calm"),
        "scenarios/kill-restart.toml": scenario(tmp_path, "careless", 40),
        "nightly": "0:3",
        "local[*]": "local[2]",
        "0.01": "1",
    }

    assert run([small.get(word, word) for word in swept], capsys)[0] == 1
    assert run(report, capsys)[0] == 0
    status, traced = run(query, capsys)

    assert status == 0
    assert "careless  D1" in traced
    page = Path("night.html").read_text("utf-8")
    assert "FAILED" in page
    assert all(word in page for word in ("calm", "careless", "Unseen jobs", "Coverage", "Latency"))
    assert not re.search(r"(src|href)=|url\(|@import", page), "it needs nothing else"


@pytest.mark.slow
def test_a_live_clusters_traces_tell_latency_and_duplicates(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    fleet = Fleet(tmp_path)
    try:
        client = fleet.cluster(2, "--trace-file", "trace.jsonl").servers[0].client
        for number in range(20):
            client.call("ADDJOB", "q", f"b{number}", 5000, "RETRY", 2, "REPLICATE", 2)
        client.call("GETJOB", "COUNT", 20, "FROM", "q")
        again = client.call("GETJOB", "TIMEOUT", 20_000, "FROM", "q")
        assert isinstance(again, list), "nobody has acknowledged it"
    finally:
        fleet.close()
    ingested, latency, causes, deliveries, violations = (
        run(words, capsys)
        for words in commands("From a live cluster's traces to latency and duplicates")
    )

    assert ingested[0] == 0
    assert ingested[1].startswith("2 files, ")
    assert re.search(r"answered +20 ", latency[1])
    assert re.search(r"D1 +1 +50,000\.000", causes[1])
    assert re.search(r"D-\w+.* retry +D1", deliveries[1])
    assert violations[1].strip() == "property  scenario  run  seed  job  node  time  detail"

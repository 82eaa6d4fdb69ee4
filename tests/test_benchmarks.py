"""The benchmarks that need no other program: of the simulator, and with it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import duplicates, simulator
from benchmarks.__main__ import main

SMALL = """
schema = 1
name = "small"
[cluster]
nodes = 3
[[producer]]
rate = 2
job = { replicate = 2, retry = "1s" }
[[consumer]]
ack = { none = 1 }
[end]
chaos = "3s"
drain = "2s"
[expect]
duplicates = ["D1", "D5"]
"""


def test_the_tally_of_duplicates_has_a_column_for_each_number_of_copies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario, target = tmp_path / "small.toml", tmp_path / "out.json"
    scenario.write_text(SMALL, "utf-8")

    assert main(["duplicates", str(scenario), "--seeds", "0:2", "--json", str(target)]) == 0

    out = capsys.readouterr().out
    assert "REPLICATE 1" in out
    assert "D1 per 1,000 jobs" in out
    tallies = json.loads(target.read_text("utf-8"))["small"]
    assert list(tallies) == ["1", "2", "3"]
    assert {tally["seeds"] for tally in tallies.values()} == {2}
    assert all(tally["causes"]["D1"] > 0 for tally in tallies.values())


def test_a_run_that_is_violated_makes_the_tally_fail(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL.replace('["D1", "D5"]', "[]"), "utf-8")

    assert duplicates.main([str(scenario), "--seeds", "1"]) == 1


@pytest.mark.slow
def test_a_node_without_sockets_costs_more_for_a_job_than_for_nothing(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    few = ["--rounds", "3", "--requests", "2000", "--pipeline", "16"]

    cases = ["--case", "PING", "--case", "ADDJOB"]
    assert main(["inprocess", *few, *cases, "--json", str(target)]) == 0

    found = json.loads(target.read_text("utf-8"))
    assert 0 < found["PING"]["16"] < found["ADDJOB"]["16"]


def test_gossip_costs_a_node_more_among_more_nodes() -> None:
    few, many = simulator.gossip(3, 5), simulator.gossip(12, 5)

    assert few.messages < many.messages
    assert few.size < many.size


def test_the_longest_bar_is_that_of_the_largest() -> None:
    title, few, many = simulator.bars("gossip", [("3 nodes", 10), ("100 nodes", 1_000)], "B/s")

    assert title == "gossip"
    assert (few.count("█"), many.count("█")) == (1, simulator.BAR)


def test_benchmarks_of_queues_need_no_extra_of_the_pipeline() -> None:
    code = (
        "import sys; sys.modules |= dict.fromkeys(('deltalake', 'pyspark', 'duckdb'))\n"
        "from benchmarks.__main__ import main; sys.exit(main(['--list']))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")

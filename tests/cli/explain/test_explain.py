"""`disque-trio explain`, as it is called."""

import json
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from disque_trio.__main__ import main
from disque_trio.client import BlockingClient
from disque_trio.explain.facts import Facts
from disque_trio.explain.job_request import read
from disque_trio.explain.rules import answers
from disque_trio.testing.server.kit import Server

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / "docs" / "explain.md").read_text()
ADDJOB: Final = ["ADDJOB", "mail", "body", "0"]


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["explain", *words]) == 0
    return capsys.readouterr().out


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "block", re.findall(r"```\n\$ disque-trio explain (.*?)\n```", PAGE, re.DOTALL)
)
def test_the_page_shows_what_is_printed(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, shown = block.partition("\n")

    assert lines(explained(capsys, *shlex.split(command))) == lines(shown)


def rows() -> list[list[str]]:
    table = PAGE.partition("| `ADDJOB …` |")[2].partition("\n\n")[0]
    return [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]


COLUMNS: Final = ("one-killed", "all-copies", "power", "rolling", "cut-off", "worker-dies")


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_table_has_the_answers_of_the_rules(row: list[str]) -> None:
    facts = Facts(nodes=3)
    found = {each.family: each for each in answers(read(row[0].split(), facts), facts)}
    late = found["one-killed"].late

    assert row[1:-1] == [found[name].loss.lost if name in found else "" for name in COLUMNS]
    assert row[-1] == ("" if late is None else f"{late / 1000:,g} s")


def test_the_table_has_the_examples_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()

    assert [row[0] for row in rows()] == re.findall(r"\| `(ADDJOB mail body .*?)` \|", readme)


def test_json_has_rules_and_trials(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(explained(capsys, "--json", "--trials", "1", "--nodes", "1", *ADDJOB))
    by_name = {fault["name"]: fault for fault in told["faults"]}

    assert by_name["power"]["lost"] == "yes"
    assert by_name["power"]["trials"]["lost"] >= 20
    assert by_name["calm"]["trials"] == {
        "runs": 1,
        "jobs": 40,
        "lost": 0,
        "twice": 0,
        "causes": [],
        "refused": 0,
        "dead": 0,
        "longest_ms": by_name["calm"]["trials"]["longest_ms"],
    }
    assert told["disagreements"] == []


def at(server: Server) -> list[str]:
    seed = server.cluster.seeds[0]
    return ["-h", seed.host, "-p", str(seed.port), "--json"]


def test_a_running_cluster_is_asked(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(explained(capsys, *at(disque_server), *ADDJOB))

    assert told["cluster"]["nodes"] == told["job"]["copies"] == len(disque_server.cluster.seeds)
    assert told["cluster"]["originals"] == 0


def test_one_node_of_a_url_that_answers_is_enough(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"disque://127.0.0.1:1,{disque_server.cluster.seeds[0]}"
    told = json.loads(explained(capsys, "--url", url, "--json", *ADDJOB, "REPLICATE", "1"))

    assert (told["cluster"]["nodes"], told["cluster"]["silent"]) == (1, 1)


def test_a_job_of_a_running_cluster_is_explained(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingClient(disque_server.cluster) as client:
        id = client.addjob("mail", "body", replicate=1, retry=7, limit=3, unique="key")
    found = json.loads(explained(capsys, *at(disque_server), "--job", id))
    told = found["job"]

    assert (told["queue"], told["copies"], told["retry"]) == ("mail", 1, 7)
    assert (told["limit"], told["unique"]) == (3, True)
    (holder,) = found["holders"]
    assert (holder["state"], holder["why"]) == ("queued", "it received the ADDJOB")
    shown = explained(capsys, *at(disque_server)[:-1], "--job", id)
    assert "confirmed by 1 of 1 node\n" in shown


def test_a_queue_is_explained_by_what_most_of_its_jobs_ask_for(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingClient(disque_server.cluster) as client:
        for retry in (5, 9, 9):
            client.addjob("mail", "body", replicate=1, retry=retry)
    shown = explained(capsys, *at(disque_server)[:-1], "--queue", "mail")

    assert "2 of 3 jobs read from mail have these options" in shown
    assert "a worker has 9 s" in shown


def test_a_job_that_waits_for_the_limits_of_its_queue_says_so(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingClient(disque_server.cluster) as client:
        client.limit_queue("mail", concurrency=1)
        id = client.addjob("mail", "body", replicate=1)
        says = "queue mail has reached its limits, 1 leased: 1 job waits"
        assert says not in explained(capsys, *at(disque_server)[:-1], "--job", id)

        client.addjob("mail", "body", replicate=1)
        [taken] = client.getjob("mail")
        other = client.qpeek("mail", 1)[0].id

        for about in (("--job", other), ("--queue", "mail")):
            assert says in explained(capsys, *at(disque_server)[:-1], *about)
        assert says not in explained(capsys, *at(disque_server)[:-1], "--job", taken.id)


def test_what_no_node_has_is_an_error(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *at(disque_server), "--queue", "nothing"]) == 2
    assert capsys.readouterr().err == ("disque-trio explain: no node has a job of queue nothing\n")
    absent = "D-5a1f30c2-Wd0m1Zk3bq0dJYpB6LkYl0kN-05a1"
    assert main(["explain", *at(disque_server), "--job", absent]) == 2
    assert f"no node has job {absent}" in capsys.readouterr().err


def test_of_a_job_that_has_ended_it_is_told_how(
    disque_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    with BlockingClient(disque_server.cluster) as client:
        id = client.addjob("mail", "body", replicate=1)
        client.deljob(id)

    assert main(["explain", *at(disque_server), "--job", id]) == 2
    assert f"job {id} has ended: deleted at 20" in capsys.readouterr().err


def test_a_job_that_is_refused_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--nodes", "2", *ADDJOB, "REPLICATE", "3"]) == 1

    assert "refused NOREPL: it needs 3 replicas; 2 of 2 nodes can hold it" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("ADDJOB mail", "only ADDJOB queue body ms-timeout [options] can be explained"),
        ("", "only ADDJOB queue body ms-timeout [options] can be explained"),
        ("--nodes 0 ADDJOB mail body 0", "'0' is not a number from 1 to 1000"),
        ("--nodes 3 -p 7711 ADDJOB mail body 0", "omit --url, -h, -p, --job"),
        ("--queue mail ADDJOB mail body 0", "omit 'ADDJOB mail body 0'"),
        ("--job 7", "'7' is not the id of a job"),
        ("-p 1 ADDJOB mail body 0", "Could not connect to Disque at 127.0.0.1:1"),
        ("--nodes 9 --trials 1 ADDJOB mail body 0 REPLICATE 8", "omit --trials"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    words: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *words.split()]) == 2

    assert error in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--zones", "4", *ADDJOB], "4 zones need at least 4 nodes, not 3: give --nodes"),
        (["--zones", "2", "-p", "7711", *ADDJOB], "--zones"),
    ],
)
def test_zones_of_a_cluster_that_is_assumed_fit_it(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *words]) == 2
    assert why in " ".join(capsys.readouterr().err.split())

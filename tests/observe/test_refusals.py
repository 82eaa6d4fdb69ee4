"""What the doctor says of requests that were refused."""

import ast
from pathlib import Path

import attrs
import pytest

import disque_trio
from disque_trio.observe.finding import Level
from disque_trio.observe.refusals import CLIENTS, LINKS
from tests.observe.clusters import cluster, the_one


@pytest.mark.parametrize(
    ("code", "ago", "level"),
    [
        ("NOREPL", 3, Level.PROBLEM),
        ("PAUSED", 3, Level.WARNING),
        ("NOREPL", 7200, Level.NOTE),
        ("NEWER", 3, Level.PROBLEM),
    ],
)
def test_refused_requests_are_told_with_their_cause_while_they_are_new(
    code: str, ago: int, level: Level
) -> None:
    info = {
        "refused_requests_by_cause": f"{code}=90",
        "last_refused_by_cause": f"{code}={1_000_000 - ago}",
    }

    finding = the_one(cluster(info=info, now_s=1_000_000.5))

    assert finding.level == level
    when = "3 s" if ago == 3 else "2 hours"
    assert finding.what.startswith(f"90 requests were refused with {code}, the last {when} ago")
    assert (code == "NEWER") == (": " not in finding.what)


def test_the_advice_on_norepl_names_what_asks_for_copies() -> None:
    info = {"refused_requests_by_cause": "NOREPL=1", "last_refused_by_cause": "NOREPL=5"}

    finding = the_one(cluster(info=info, now_s=6.0))

    assert finding.what == (
        "1 request was refused with NOREPL, the last 1 s ago: too few nodes could store the "
        "copies of a job"
    )
    assert "default-replicate" in finding.advice


def test_producers_refused_by_several_nodes_are_one_finding_with_rate_and_beginning() -> None:
    nodes = cluster(now_s=2000.0)
    for place, (count, since, last) in {0: (90, 1000, 1990), 2: (9, 1900, 1999)}.items():
        info = {
            "refused_requests_by_cause": "NOREPL=500",
            "last_refused_by_cause": f"NOREPL={last}",
            "refused_since_by_cause": f"NOREPL={since}",
            "refused_lately_by_cause": f"NOREPL={count}",
        }
        nodes[place] = attrs.evolve(nodes[place], info=nodes[place].info | info, now_s=2000.0)

    finding = the_one(nodes)

    assert (finding.kind, finding.where, finding.since) == (
        "refused",
        "n1 (10.0.0.1:7711), n3 (10.0.0.1:7713)",
        1000,
    )
    assert finding.what.startswith(
        "99 requests were refused with NOREPL, 0.1/s for 16 min, the last 1 s ago: too few nodes"
    )


def test_each_reason_for_which_somebody_is_turned_away_has_its_meaning() -> None:
    found: set[tuple[bool, object]] = set()
    for file in Path(disque_trio.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "turned_away":
                is_link = any(each.arg == "is_link" for each in call.keywords)
                told = [each.value for each in call.args[1:] if isinstance(each, ast.Constant)]
                found |= {(is_link, reason) for reason in told}

    assert {(False, "web-password"), (True, "protected-mode")} <= found
    known = {(False, reason) for reason in CLIENTS} | {(True, reason) for reason in LINKS}
    assert found <= known

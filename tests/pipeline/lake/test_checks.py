"""The checks as queries, compared with the Python checkers on the same traces."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

import pytest

from disque_trio.pipeline.lake.checks import CHECKS, COLUMNS
from tests.pipeline.lake.conftest import Ask
from tests.pipeline.lake.runs import TracedRun

Accused = Mapping[tuple[str, str], set[str]]
"""By run and property: the jobs."""

EQUAL: Final = ("S3", "S4", "S5", "S6", "S7", "L1", "L3")
"""Properties of which the queries find exactly what the checkers find, in these runs."""


@pytest.fixture(scope="session")
def accused(ask: Ask, runs: dict[str, TracedRun]) -> Accused:
    found = defaultdict(set)
    for row in ask("SELECT * FROM violations"):
        found[runs[row.run].name, row.property].add(row.job)
    return found


def test_nothing_is_found_in_nodes_that_are_whole(
    accused: Accused, cases: dict[str, TracedRun]
) -> None:
    whole = [name for name, case in cases.items() if case.verdict.ok]

    assert len(whole) >= 6
    assert [key for key in accused if key[0] in whole] == []


@pytest.mark.parametrize("name", ["S3", "S4", "S5", "S6", "S6-in", "S6-out", "S7", "L1", "L3"])
def test_what_is_broken_is_found(accused: Accused, cases: dict[str, TracedRun], name: str) -> None:
    property = name.partition("-")[0]

    assert cases[name].accused(property), "the checkers find it"
    assert accused[name, property]


def test_no_job_is_accused_that_the_judge_acquits(
    accused: Accused, cases: dict[str, TracedRun]
) -> None:
    for (name, property), jobs in accused.items():
        if property != "duplicates":
            judged = cases[name].accused(property)
            if property == "S7":
                # A record that says too long a life is found at once by the judge, as S16; to the
                # query the job is late.
                judged |= cases[name].accused("S16")
            assert jobs <= judged, (name, property)


@pytest.mark.parametrize("property", EQUAL)
def test_a_query_and_the_judge_accuse_the_same_jobs(
    accused: Accused, cases: dict[str, TracedRun], property: str
) -> None:
    for name, case in cases.items():
        also = case.accused("S16") if property == "S7" else set()
        assert accused[name, property] - also == case.accused(property) - also, name


def test_there_are_as_many_duplicates_as_the_judge_counts(
    ask: Ask, runs: dict[str, TracedRun]
) -> None:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in ask("SELECT run, cause FROM deliveries WHERE number > 1"):
        found[runs[row.run].name][row.cause] += 1

    for case in runs.values():
        judged = Counter(case.verdict.duplicates)
        expected = Counter({cause: judged.pop(cause, 0) for cause in ("D0", "D1")})
        expected["D2-D12"] = judged.total()
        assert found[case.name] == +expected, case.name


def test_a_duplicate_in_calm_is_found(accused: Accused, cases: dict[str, TracedRun]) -> None:
    judged = cases["duplicates"].verdict.records

    assert accused["duplicates", "duplicates"] == {
        each.job for each in judged if each.cause not in {"D0", "D1"}
    }
    assert accused["duplicates", "duplicates"]


def test_a_view_of_violations_has_the_columns_that_are_told(ask: Ask) -> None:
    for check in CHECKS.values():
        assert ask.columns(check.view) == list(COLUMNS)

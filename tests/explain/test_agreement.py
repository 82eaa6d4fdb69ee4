import attrs
import pytest

from disque_trio.explain.agreement import disagreements
from disque_trio.explain.facts import Facts
from disque_trio.explain.rules import NO, YES, Loss, answers
from disque_trio.explain.trials import run
from tests.explain.sweep import Case, against, cases, job

EVERY = 41
"""One case in so many, or the file takes longer than it may; `make explain-sweep` has them all."""


def name_of(case: Case) -> str:
    return f"{case[0]} {case[2].nodes} {case[2].journal} {case[3].family}"


@pytest.mark.sample(15)
@pytest.mark.parametrize("case", list(cases())[::EVERY], ids=name_of)
def test_rules_and_trials_agree(case: Case) -> None:
    trial = run(case[3].family, case[1], case[2], seed=1)

    assert list(against(case, trial)) == []
    assert trial.added > 0


@pytest.mark.slow
def test_a_copy_that_is_made_again_during_a_delay_waits_for_one_retry() -> None:
    facts = Facts(nodes=5)
    request = job("DELAY 600 REPLICATE 3 TTL 3600", facts)
    [answer] = [each for each in answers(request, facts) if each.family == "one-by-one"]
    trial = run("one-by-one", request, facts, seed=0)
    one_retry = request.retry * 1000 // 2  # the trial halves all times

    assert list(disagreements(answer, request, [trial])) == []
    assert one_retry <= trial.longest_ms < one_retry + 20_000


FACTS = Facts(nodes=3)
ASKED = job("REPLICATE 2 RETRY 5", FACTS)
ANSWERS = {answer.family: answer for answer in answers(ASKED, FACTS)}


def test_a_rule_that_denies_losses_is_refuted_by_a_power_cut() -> None:
    wrong = attrs.evolve(ANSWERS["power"], loss=Loss(NO, ""))

    [found] = disagreements(wrong, ASKED, [run("power", ASKED, FACTS, seed=1)])

    assert found.startswith("power, seed 1: ")
    assert found.endswith("jobs were lost, and none may be")


def test_a_rule_that_claims_losses_is_refuted_if_jobs_come() -> None:
    wrong = attrs.evolve(ANSWERS["one-killed"], loss=Loss(YES, ""), late=None)

    [found] = disagreements(wrong, ASKED, [run("one-killed", ASKED, FACTS, seed=1)])

    assert found.endswith("20 of 20 jobs that waited were delivered, but all must be lost")


def test_a_rule_that_denies_duplicates_is_refuted_by_slow_workers() -> None:
    wrong = attrs.evolve(ANSWERS["worker-slow"], twice=("D5",))

    [found] = disagreements(wrong, ASKED, [run("worker-slow", ASKED, FACTS, seed=1)])

    assert found.endswith("jobs were delivered twice by D1, which the rules do not allow")


def test_a_rule_that_promises_too_early_is_refuted_by_the_wait_for_retry() -> None:
    request = attrs.evolve(ASKED, retry=60)
    wrong = attrs.evolve(ANSWERS["one-killed"], late=0)

    [found] = disagreements(wrong, request, [run("one-killed", request, FACTS, seed=1)])

    assert found.endswith("ms, but 2000 ms is the latest")

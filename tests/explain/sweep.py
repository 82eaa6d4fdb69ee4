"""Rules against trials, over options and clusters: `python -m tests.explain.sweep FROM:TO`."""

import argparse
import contextlib
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from disque_trio.explain.agreement import disagreements
from disque_trio.explain.facts import JOURNALS, Facts
from disque_trio.explain.job_request import JobRequest, read
from disque_trio.explain.rules import MAY, Answer, answers
from disque_trio.explain.trials import Trial, run
from tests.arguments import seeds

OPTIONS: Final = (
    "",
    "REPLICATE 1",
    "REPLICATE 2 RETRY 60",
    "REPLICATE 3 RETRY 5",
    "REPLICATE 1 RETRY 0",
    "ASYNC RETRY 10",
    "DELAY 20 RETRY 10",
    "DELAY 600 REPLICATE 3 TTL 3600",
    "BACKOFF 15 LIMIT 5",
    "UNIQUE key",
    "RETRY 100 TTL 50",
    "RETRY 1 PRIORITY 5",
    "REPLICATE 3 SYNC 2 RETRY 10",
)
CLUSTERS: Final = (
    *[Facts(nodes=n, journal=journal) for journal in JOURNALS for n in (1, 2, 3, 5)],
    Facts(nodes=7),
    Facts(nodes=3, has_lease=False),
    Facts(nodes=3, repair_s=0),
    Facts(nodes=4, node_timeout_ms=1000),
    Facts(nodes=3, zones=("a", "b", "c")),
    Facts(nodes=5, zones=("a", "b", "a", "b", "b")),
)
Case = tuple[str, JobRequest, Facts, Answer]


def job(options: str, facts: Facts) -> JobRequest:
    """An ADDJOB with these options."""
    return read(["ADDJOB", "mail", "body", "0", *options.split()], facts)


def cases() -> Iterator[Case]:
    """Every answer of the rules."""
    for options, facts in itertools.product(OPTIONS, CLUSTERS):
        request = job(options, facts)
        yield from ((options, request, facts, answer) for answer in answers(request, facts))


def against(case: Case, trial: Trial) -> Iterator[str]:
    """Where the trial contradicts the rules."""
    options, request, facts, answer = case
    for found in disagreements(answer, request, [trial]):
        yield f"ADDJOB mail body 0 {options} with {facts}: {found}"


def _try(case: Case, seed: int, count: Counter[str]) -> None:
    _, request, facts, answer = case
    trial = run(answer.family, request, facts, seed)
    count["trials"] += 1
    count["jobs"] += trial.added
    if answer.loss.lost == MAY:
        count[f"{answer.family}: may, {'lost' if trial.gone else 'none lost'}"] += 1
    for found in against(case, trial):
        count["disagreements"] += 1
        sys.stdout.write(f"{found}\n")
        sys.stdout.flush()


def main(arguments: list[str]) -> int:
    """Run them all with these seeds, until Ctrl-C at the latest. The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.explain.sweep")
    parser.add_argument("seeds", nargs="?", type=seeds, default="0:5", help="FROM:TO (0:5)")
    chosen = parser.parse_args(arguments).seeds
    began = time.monotonic()
    count: Counter[str] = Counter()
    with contextlib.suppress(KeyboardInterrupt):
        for seed, case in itertools.product(chosen, cases()):
            _try(case, seed, count)
    sys.stdout.write(f"{time.monotonic() - began:.0f} s {dict(sorted(count.items()))}\n")
    return 1 if count["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

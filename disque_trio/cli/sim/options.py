"""The options of `disque-trio sim`."""

import re
from collections.abc import Callable
from typing import Any, Final, Self

import attrs

from disque_trio.cli.frame import json_switch, spark_settings
from disque_trio.sim.scenarios.vocabulary import ENGINES
from disque_trio.terminal.options import (
    COUNT,
    DIR,
    FILE,
    SHARE,
    Kind,
    argument,
    one_of,
    option,
    seconds,
    switch,
    text,
    whole,
)

_SEEDS: Final = re.compile(r"(\d+)(?::(\d+))?")
_PATHS: Final = ("html", "trace", "history", "out", "replay")


def _seeds(word: str) -> range | str:
    if word in {"ci", "nightly"}:
        return word
    match = _SEEDS.fullmatch(word)
    first, last = (int(match[1]), int(match[2] or int(match[1]) + 1)) if match else (0, 0)
    if last <= first:
        raise ValueError
    return range(first, last)


SEEDS: Final = Kind("a range of seeds, such as 0:1000, or ci or nightly", _seeds, "A:B")
_PLAN: Final = text("PLAN.json")


def _file(about: str, nargs: int | str | None = None) -> Any:
    return argument(FILE, about, nargs)


def _seed() -> Any:
    return option("--seed", whole(), "seed of the scenario (0)")


def _engine() -> Any:
    about = "heap: nodes in an event loop, fast; trio: each node in a Trio task; tcp: real "
    return option("--engine", one_of(*ENGINES), f"{about}processes in real time", "heap")


def _html(about: str) -> Any:
    return option("--html", text("OUT"), about)


@attrs.frozen(kw_only=True)
class Options:
    """One command line."""

    files: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The first file; those that are shipped have no name."""
        return self.files[0] if self.files else "sim"

    def located(self, path_in: Callable[[str], str]) -> Self:
        """The same with the path that is in each address of a file."""
        changes: dict[str, Any] = {"files": tuple(map(path_in, self.files))}
        for name in _PATHS:
            if (path := getattr(self, name, None)) is not None:
                changes[name] = path_in(path)
        return attrs.evolve(self, **changes)


@attrs.frozen(kw_only=True)
class Replay(Options):
    """`sim replay`."""

    files: tuple[str, ...] = _file("a plan, a trace, or live traces", "+")
    seed: int | None = _seed()
    engine: str = _engine()
    html: str | None = _html("draw the run into this HTML file")
    is_json: bool = json_switch()
    trace: str | None = None
    history: str | None = None


@attrs.frozen(kw_only=True)
class Run(Replay):
    """`sim run`."""

    files: tuple[str, ...] = _file("a scenario, or a plan", "+")
    html: str | None = _html("draw the run into this HTML file")
    trace: str | None = option(
        "--trace", text("OUT"), "write every row to this .jsonl, .arrow or .parquet file"
    )
    history: str | None = option(
        "--history", text("OUT"), "write the history of the clients to this file, for 'sim judge'; "
        "the run lasts 40 s longer, so that a lost job can be detected",
    )  # fmt: skip


@attrs.frozen(kw_only=True)
class Judge(Options):
    """`sim judge`."""

    files: tuple[str, ...] = _file("histories of the clients of one cluster", "+")
    faults: str | None = option(
        "--faults", one_of("known", "unknown"),
        "known: the files have all faults of the cluster (as the files state)",
    )  # fmt: skip
    are_others: bool = switch(
        "--others", "clients without a history used the same queues; less is checked"
    )
    settle: float = option(
        "--settle", seconds(), "time after a fault until the cluster is calm again", 30.0
    )
    slack: float = option("--slack", seconds(), "maximum delay of messages in a calm cluster", 2.0)
    skew: float = option(
        "--skew", seconds(), "maximum difference between the clocks of machines", 0.05
    )
    is_json: bool = json_switch()


@attrs.frozen(kw_only=True)
class Sweep(Options):
    """`sim sweep`."""

    files: tuple[str, ...] = _file("scenarios", "+")
    seeds: range | str = option(
        "--seeds", SEEDS,
        "seeds A to B-1; N is only seed N; 'ci' and 'nightly' are numbers of seeds that the "
        "scenario sets", "ci",
    )  # fmt: skip
    jobs: int | None = option(
        "--jobs", COUNT, "number of processes (one per processor)", excludes="where"
    )
    spark: str | None = option(
        "--spark", text("MASTER"), "run on Spark: local[*], or spark://HOST:PORT", excludes="where"
    )
    spark_settings: tuple[tuple[str, str], ...] = spark_settings()
    engine: str = _engine()
    out: str | None = option(
        "--out", DIR, "write results.jsonl and the plans of failures to this directory"
    )
    lake: str | None = option(
        "--lake", DIR,
        "write results, and the rows of failures, as Parquet to this lake; with Spark, all "
        "machines must mount it at this path",
    )  # fmt: skip
    trace_share: float = option(
        "--trace-share", SHARE,
        "share of the passing seeds whose rows are also written to the lake; at least one per "
        "scenario", 0.0,
    )  # fmt: skip
    is_mark_required: bool = switch(
        "--require-marks", "exit with 3 if no seed hits a mark that a scenario expects sometimes"
    )
    most_failures: int | None = option(
        "--max-failures", COUNT, "stop after this number of failures"
    )
    recheck: float = option(
        "--recheck", SHARE, "share of the seeds to run twice, to compare the digests", 0.05
    )
    limit_s: int = option(
        "--limit", whole(1, what="number of seconds", metavar="SECONDS"),
        "timeout for each seed; a seed that times out has failed", 600,
    )  # fmt: skip
    is_guided: bool = switch(
        "--guided", "search guided by coverage: keep and mutate plans with new behaviour "
        "(docs/guided.md)",
    )  # fmt: skip
    corpus: str | None = option(
        "--corpus", DIR, "with --guided: directory for the kept plans; the same command "
        "continues from it",
    )  # fmt: skip
    minutes: int | None = option(
        "--minutes", COUNT, "with --guided: stop after this processor time of the runs (10)"
    )
    seed: int = option("--seed", whole(), "with --guided: seed of the search", 0)
    is_compared: bool = switch(
        "--compare", "with --guided: also run random seeds for the same time, and compare"
    )
    is_json: bool = json_switch()


@attrs.frozen(kw_only=True)
class Expand(Options):
    """`sim expand`."""

    files: tuple[str, ...] = _file("a scenario", 1)
    seed: int | None = _seed()
    out: str | None = option("-o --out", _PLAN, "write the plan to this file")


@attrs.frozen(kw_only=True)
class Shrink(Expand):
    """`sim shrink`."""

    files: tuple[str, ...] = _file("a scenario, or a plan", 1)
    out: str | None = option(
        "-o --out", _PLAN, "write the smaller plan to this file (NAME-SEED.json)"
    )
    property: str | None = option(
        "--property", text("NAME"), "property whose violation to keep, such as L1 or DX"
    )
    budget: int = option("--budget", COUNT, "maximum number of runs", 2_000)


@attrs.frozen(kw_only=True)
class Draw(Options):
    """`sim draw`."""

    files: tuple[str, ...] = _file("a scenario, a plan, or a trace", 1)
    seed: int | None = _seed()
    engine: str = _engine()
    html: str | None = option("-o --out", text("OUT.html"), "write to this file (NAME-SEED.html)")


@attrs.frozen(kw_only=True)
class Pin(Expand):
    """`sim pin`."""

    files: tuple[str, ...] = _file("a scenario, or a plan", 1)
    note: str = option("--note", text("TEXT"), "what the run has found", is_required=True)
    out: str | None = option(
        "-o --out", _PLAN, "write to this file (pins/NAME-SEED.json beside FILE)"
    )


@attrs.frozen(kw_only=True)
class Explore(Options):
    """`sim explore`."""

    files: tuple[str, ...] = _file(
        "names of built-in scopes, or .toml files (all built-in scopes)", "*"
    )
    lists: bool = switch("--list", "list the scopes and their descriptions, and exit")
    replay: str | None = option(
        "--replay", text("STEPS.json"), "replay the steps of a violation, and exit"
    )
    html: str | None = _html("with --replay: draw the steps into this HTML file")
    late: int | None = option(
        "--late", whole(0), "how often a timer may run while another event is possible"
    )
    faults: int | None = option("--faults", whole(0), "maximum number of faults")
    seconds: int | None = option("--seconds", COUNT, "stop after this number of seconds")
    states: int | None = option("--states", COUNT, "stop after this number of states")
    out: str | None = option(
        "-o --out", text("STEPS.json"), "write the steps of a violation to this file (SCOPE.json)"
    )
    is_json: bool = json_switch()

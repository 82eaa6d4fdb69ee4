"""`disque-trio pipeline doctor`: whether Spark will run here, and how to get what is missing."""

import os
import re
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any, Final

import attrs

from disque_trio.cli.frame import json_switch
from disque_trio.observe.finding import (
    STATUS_NAMES,
    Finding,
    Level,
    note,
    problem,
    warning,
    worst,
)
from disque_trio.pipeline import java, session, shipping
from disque_trio.pipeline.errors import INSTALL, PipelineError
from disque_trio.terminal.options import option, switch, text
from disque_trio.terminal.output import say, say_json

HELP: Final = "Check whether Spark can run here, and how to install what is missing."
_PACKAGES: Final = ("pyspark", "pyarrow", "pandas", "deltalake")
_NEED: Final = re.compile(r"([\w-]+)([^;]*);.*extra == .spark.")
_LIMIT: Final = re.compile(r"(>=|<)\s*([\d.]+)")
"""How a package's metadata puts what pyproject.toml says: `pandas<3,>=2.2; extra == 'spark'`."""
_WHERE: Final = "this machine"


@attrs.frozen(kw_only=True)
class Options:
    """`pipeline doctor`."""

    start: bool = switch("--start", "also start Spark and run a small job")
    master: str | None = option(
        "--master", text("MASTER"),
        "also start it on this master, such as spark://HOST:7077 or yarn",
        shown="local[2]",
    )  # fmt: skip
    is_json: bool = json_switch()


def run(options: Options) -> int:
    """Look, tell, and return the exit status."""
    if options.master is not None:
        session.check_master(options.master)
    findings = [*_packages(), *_elsewhere(), *_java()]
    is_tried = options.start or options.master is not None
    if is_tried and worst(findings) < Level.PROBLEM:
        findings += _tried(options.master or "local[2]")
    level = worst(findings)
    if options.is_json:
        say_json(_as_json(findings, level), indent=2)
    else:
        for line in _as_text(findings, level):
            say(line)
    return level.value


def _packages() -> Iterator[Finding]:
    ranges = _ranges()
    for name in _PACKAGES:
        try:
            has = version(name)
        except PackageNotFoundError:
            yield problem(_WHERE, f"{name} is not installed", INSTALL)
            continue
        first, after = ranges.get(name, ("", ""))
        if name not in ranges or _numbers(first) <= _numbers(has) < _numbers(after):
            yield note(_WHERE, f"{name} {has}")
        else:
            span = f"{first} or newer, before {after}"
            yield warning(_WHERE, f"{name} {has} is untested; tested versions are {span}", INSTALL)


def _ranges() -> dict[str, tuple[str, str]]:
    """From, and to before, which versions are known to work; nothing where this package is not
    installed but lies on a path."""
    try:
        needs = requires("disque-trio") or []
    except PackageNotFoundError:
        return {}
    found = {}
    for match in filter(None, map(_NEED.match, needs)):
        limits = dict(_LIMIT.findall(match[2]))
        found[match[1]] = (limits[">="], limits["<"])
    return found


def _elsewhere() -> Iterator[Finding]:
    """Another Spark than that of the package."""
    if home := os.environ.get("SPARK_HOME"):
        yield warning(
            _WHERE,
            f"SPARK_HOME is set: Spark in {home} is used instead of the package",
            "unset it, unless both have the same release",
        )


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3] if part.isdecimal())


def _java() -> Iterator[Finding]:
    found, refusals = java.search()
    for each in refusals:
        advice = "unset it, or set it to a working Java" if each.source == "JAVA_HOME" else ""
        make: Callable[[str, str, str], Finding] = warning if advice else note
        yield make(_WHERE, f"the Java of {each.source} cannot be used: {each.reason}", advice)
    if found is None:
        advice = f"{INSTALL} installs one"
        yield problem(_WHERE, f"there is no Java {java.OLDEST} or newer", advice)
        return
    how = ", without the vector module that Spark requests" if found.is_wrapped else ""
    yield note(_WHERE, f"Java {found.version} of {found.source}{how} ({found.home})")


_HASTE: Final = {
    "spark.hadoop.yarn.resourcemanager.connect.max-wait.ms": "10000",
    "spark.hadoop.yarn.resourcemanager.connect.retry-interval.ms": "1000",
    "spark.hadoop.ipc.client.connect.max.retries": "1",
}
"""Otherwise a YARN that does not answer is waited for a quarter of an hour."""


def _tried(master: str) -> Iterator[Finding]:
    began = time.monotonic()
    try:
        app = "disque-trio doctor"
        with shipping.running(master, app=app, memory=session.MEMORY, settings=_HASTE) as spark:
            started = time.monotonic()
            spark.range(100).mapInArrow(_same, "id long").count()
            ended = time.monotonic()
    except PipelineError as error:
        yield problem(master, str(error), "the output above may have the cause")
    except ConnectionError:  # to the Java process
        what = "Spark's Java process has ended; does the cluster answer at this address?"
        yield problem(master, what, "the output above may have the cause")
    except Exception as error:  # whatever Spark says of a job that fails
        what = session.why(error, "a small job failed")
        yield problem(master, what, "the output above may have the cause")
    else:
        yield note(
            master,
            f"Spark started in {started - began:.1f} s and ran a small job in "
            f"{ended - started:.1f} s",
        )


def _same(batches: Any) -> Any:
    return batches


def _as_json(findings: list[Finding], level: Level) -> dict[str, object]:
    return {
        "status": STATUS_NAMES[level],
        "findings": [finding.as_dict() for finding in findings],
    }


def _as_text(findings: list[Finding], level: Level) -> list[str]:
    lines = []
    for finding in findings:
        lines.append(f"{finding.level.name.lower():8} {finding.where}: {finding.what}")
        if finding.advice:
            lines.append(f"{'':8} → {finding.advice}")
    verdict = {
        Level.NOTE: "Spark can run here",
        Level.WARNING: "Spark may run here",
        Level.PROBLEM: "Spark cannot run here",
    }[level]
    return [*lines, verdict]

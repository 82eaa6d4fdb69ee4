"""`disque-trio doctor`: what is wrong with a cluster, and what to do about it (docs/doctor.md)."""

import shutil
import textwrap
from collections.abc import Sequence
from typing import Final

import anyio

from disque_trio.cli.doctor import machine
from disque_trio.cli.doctor.options import Options
from disque_trio.cli.frame import run
from disque_trio.client.address import Cluster
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import STATUS_NAMES, Finding, Level, grouped, ordered, worst
from disque_trio.observe.observer import Observer
from disque_trio.observe.survey import Survey
from disque_trio.terminal.counting import counted
from disque_trio.terminal.escapes import printable
from disque_trio.terminal.options import Command
from disque_trio.terminal.output import say, say_json

BETWEEN_S: Final = 1.0
"""Between two counts of the queues."""
_EPILOG: Final = """\
examples:
  disque-trio doctor
  disque-trio doctor --host 10.0.0.1 --json
  disque-trio doctor --config /etc/disque/disque.conf
  disque-trio doctor --quiet              in a container: HEALTHCHECK CMD

exit code: 0 all is well; 1 warnings; 2 problems, or wrong usage
with --quiet: 0 the node serves clients; 1 it does not; nothing is printed
"""


def main(argv: Sequence[str]) -> int:
    """Examine and report. Return the exit status, as described in `--help`."""
    return run("doctor", PROGRAM, argv)


def _main(options: Options) -> int:
    return _serves(options) if options.is_quiet else _examine_all(options)


def _serves(options: Options) -> int:
    """For health checks of containers: 0 if the node serves its clients, otherwise 1.

    A node that loads does not serve yet, and one that cannot write its append-only file refuses
    commands. One that asks for a password does: the check need not know it.
    """
    if not options.has_node:
        findings = list(machine.judge_file(options.config or "", is_running=False))
        return 1 if worst(findings) is Level.PROBLEM else 0
    node = anyio.run(_alone, options)
    if node.error:
        return 0 if node.error.startswith("NOAUTH") else 1
    is_refusing = node.is_loading or not node.can_record or node.number("duplicate_node_id_yields")
    return 1 if is_refusing else 0


async def _alone(options: Options) -> NodeFacts:
    async with _client(options, options.own_node, discovers=False) as client:
        survey = Survey(client)
        await survey.look()
        [node] = survey.nodes.values()
        return node.facts


def _examine_all(options: Options) -> int:
    nodes: list[NodeFacts] = []
    findings: list[Finding] = []
    if options.has_node:
        nodes, findings = anyio.run(_asked, options)
        for node in nodes:
            findings += machine.judge_node(node)
    if options.config is not None:
        is_running = any(not node.error for node in nodes)
        findings += machine.judge_file(options.config, is_running=is_running)
    findings += machine.judge()
    findings = ordered(findings)
    level = worst(findings)
    if options.is_json:
        say_json(_as_json(nodes, findings), indent=2)
    else:
        for line in _as_text(nodes, findings):
            say(line)
    return level.value


async def _asked(options: Options) -> tuple[list[NodeFacts], list[Finding]]:
    """The nodes and the findings, as the console has them. Two counts of the queues tell which of
    them move."""
    async with _client(options, options.cluster) as client:
        observer = Observer(client)
        await observer.survey.look()
        await observer.counts.once()
        if observer.counts.behind_names:
            await anyio.sleep(BETWEEN_S)
            await observer.counts.once()
        nodes = list(observer.survey.nodes.values())
        return [each.facts for each in nodes], await observer.findings(nodes)


def _client(options: Options, cluster: Cluster, *, discovers: bool | None = None) -> DeadlineClient:
    limit_s = options.timeout_s
    return DeadlineClient(
        cluster,
        discover=discovers,
        connect_timeout_s=limit_s,
        patience_s=limit_s,
        answer_s=limit_s,
        follows_tls=discovers is None,
    )


def _as_json(nodes: list[NodeFacts], findings: list[Finding]) -> dict[str, object]:
    return {
        "status": STATUS_NAMES[worst(findings)],
        "nodes": [
            {
                "address": node.where,
                "name": node.name,
                "id": node.id,
                "version": node.info.get("disque_version", ""),
                "is_original": not node.is_ours and not node.error,
                "error": node.error,
                "clock_skew_ms": round(node.skew_ms),
                "under_replicated_jobs": node.number("under_replicated_jobs"),
            }
            for node in nodes
        ],
        "findings": [finding.as_dict() for finding in findings],
    }


def _as_text(nodes: list[NodeFacts], findings: list[Finding]) -> list[str]:
    lines: list[str] = []
    for finding in grouped(findings):
        level = finding.level.name.lower()
        lines += _wrapped(f"{finding.where}: {finding.what}", f"{level:8} ", " " * 9)
        if finding.advice:
            lines += _wrapped(finding.advice, " " * 9 + "→ ", " " * 11)
    well = sum(not node.error for node in nodes)
    answering = counted(len(nodes), "node answers", "nodes answer")
    asked = f"{well} of {answering}; " if nodes else ""
    counts = [_counted(findings, level) for level in (Level.PROBLEM, Level.WARNING)]
    verdict = ", ".join(filter(None, counts)) or "all is well"
    return [*lines, f"{asked}{verdict}"]


def _wrapped(text: str, first: str, others: str) -> list[str]:
    """Lines that are as wide as the terminal, with escapes for what names have."""
    wrapper = textwrap.TextWrapper(
        shutil.get_terminal_size().columns,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.wrap(printable(text))


def _counted(findings: list[Finding], level: Level) -> str:
    count = sum(finding.level is level for finding in findings)
    return counted(count, level.name.lower()) if count else ""


PROGRAM: Final = Command(
    record=Options,
    run=_main,
    about="""\
Checks a node and every node that it knows, reports what is wrong, and recommends what to do. With
--config it checks a configuration file instead, or both if the options name a node.""",
    epilog=_EPILOG,
    has_host=True,
)

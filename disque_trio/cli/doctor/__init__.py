"""`disque-trio doctor`: what is wrong with a cluster, and what to do about it (docs/doctor.md)."""

from collections.abc import Sequence
from typing import Final

import anyio

from disque_trio.cli.doctor import machine
from disque_trio.cli.doctor.nodes import examine, survey
from disque_trio.cli.doctor.options import Options
from disque_trio.cli.frame import run
from disque_trio.client.address import Cluster
from disque_trio.observe import node_checks as checks
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.cluster import NodeFacts
from disque_trio.observe.finding import STATUS_NAMES, Finding, Level, worst
from disque_trio.observe.findings import unattended
from disque_trio.observe.queue_counts import QueueCounts
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
with --quiet: 0 this one node serves its clients; 1 it does not; nothing is printed
"""


def main(argv: Sequence[str]) -> int:
    """Examine and report. Returns the exit status; `--help` says what it means."""
    return run("doctor", PROGRAM, argv)


def _main(options: Options) -> int:
    return _serves(options) if options.is_quiet else _examine_all(options)


def _serves(options: Options) -> int:
    """For health checks of containers: 0 if the node serves its clients, otherwise 1.

    A node that loads does not serve yet. One that asks for a password does: the check need not
    know it.
    """
    if not options.has_node:
        findings = list(machine.judge_file(options.config or "", is_running=False))
        return 1 if worst(findings) is Level.PROBLEM else 0
    node = examine(options.address, options.password, options.timeout_s)
    if node.error:
        return 0 if node.error.startswith("NOAUTH") else 1
    is_waiting = node.is_loading or node.number("duplicate_node_id_yields")
    return 1 if is_waiting else 0


def _examine_all(options: Options) -> int:
    nodes: list[NodeFacts] = []
    findings: list[Finding] = []
    if options.has_node:
        nodes = survey(options.address, options.password, options.timeout_s)
        findings += checks.judge(nodes)
        if any(node.is_ours for node in nodes):
            findings += anyio.run(_queues, options)
        for node in nodes:
            findings += machine.judge_node(node)
    if options.config is not None:
        is_running = any(not node.error for node in nodes)
        findings += machine.judge_file(options.config, is_running=is_running)
    findings += machine.judge()
    findings.sort(key=lambda finding: (-finding.level, -finding.stake))
    level = worst(findings)
    if options.is_json:
        say_json(_as_json(nodes, findings), indent=2)
    else:
        for line in _as_text(nodes, findings):
            say(line)
    return level.value


async def _queues(options: Options) -> list[Finding]:
    """Queues whose jobs nobody takes, or too slowly: two counts tell which of them move."""
    async with DeadlineClient(Cluster([options.address], options.password)) as client:
        counts = QueueCounts(client)
        await counts.once()
        if not counts.behind_names:
            return []
        await anyio.sleep(BETWEEN_S)
        await counts.once()
        return list(unattended(counts))


def _as_json(nodes: list[NodeFacts], findings: list[Finding]) -> dict[str, object]:
    return {
        "status": STATUS_NAMES[worst(findings)],
        "nodes": [
            {
                "address": node.where,
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
    lines = []
    for finding in findings:
        lines.append(f"{finding.level.name.lower():8} {finding.where}: {finding.what}")
        if finding.advice:
            lines.append(f"{'':8} → {finding.advice}")
    well = sum(not node.error for node in nodes)
    asked = f"{well} of {len(nodes)} nodes answer; " if nodes else ""
    counts = [_counted(findings, level) for level in (Level.PROBLEM, Level.WARNING)]
    verdict = ", ".join(filter(None, counts)) or "all is well"
    return [*lines, f"{asked}{verdict}"]


def _counted(findings: list[Finding], level: Level) -> str:
    count = sum(finding.level is level for finding in findings)
    return f"{count} {level.name.lower()}{'s' if count > 1 else ''}" if count else ""


PROGRAM: Final = Command(
    record=Options,
    run=_main,
    about="""\
Asks a node, and every node that it knows, how they are, and tells what is wrong and what to do.
With --config it looks at a configuration file instead, or as well when a port is given.""",
    epilog=_EPILOG,
    has_host=True,
)

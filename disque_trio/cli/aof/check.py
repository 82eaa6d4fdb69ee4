"""`disque-trio aof check`: what is in a file, and whether it is sound."""

import time

from disque_trio.cli.aof.options import Check
from disque_trio.cli.aof.report import out
from disque_trio.cli.aof.scan import scan_and_count
from disque_trio.cli.aof.source import Source
from disque_trio.cli.aof.tally import sum_up
from disque_trio.terminal.counting import counted
from disque_trio.terminal.output import say_json


def check(options: Check) -> int:
    """Read the whole file and report."""
    source = Source(options.file)
    found, tally = scan_and_count(source, "checking")
    source.close()
    jobs, counts = sum_up(tally, time.time()), tally.counts
    if options.is_json:
        facts = {
            **found.facts,
            "loads": counts["LOADJOB"],
            "deletes": counts["DELJOB"],
            "dequeued": counts["DEQUEUED"],
            "notes": counts["NOTE"],
            "results": counts["RESULT"],
            "jobs": jobs.alive,
            "queues": jobs.queues,
            "acked": jobs.acked,
            "expired": jobs.expired,
        }
        say_json(facts, is_compact=True)
        return found.status
    say = out().print
    say(f"{options.file}: {found.name}, {counted(source.size, 'byte')}")
    kinds = ", ".join([f"{count:,} {kind}" for kind, count in counts.items()])
    say(f"  {counted(tally.records, 'record')}" + (f": {kinds}" if kinds else ""))
    say(
        f"  {counted(jobs.alive, 'job')} alive in {counted(jobs.queues, 'queue')}"
        + (f", {jobs.acked:,} acknowledged" if jobs.acked else "")
        + (f", {jobs.expired:,} expired" if jobs.expired else "")
    )
    say(f"  {found.verdict}")
    if source.is_held:
        say("  a running node uses it")
    return found.status

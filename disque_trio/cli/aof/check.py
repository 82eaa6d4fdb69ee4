"""`disque-trio aof check`: what is in a file, and whether it is sound."""

import time

from disque_trio.cli.aof.options import Options
from disque_trio.cli.aof.report import as_json, counted, out
from disque_trio.cli.aof.scan import NAMES, scan_and_count
from disque_trio.cli.aof.source import Source


def check(options: Options) -> int:
    """Read it all, tell what was found."""
    source = Source(options.file)
    found, tally = scan_and_count(source, "checking")
    source.close()
    now = time.time()
    alive = tally.alive(now)
    expired = len(tally.jobs) - alive
    if options.is_json:
        facts = {
            **found.facts,
            "loads": tally.loads,
            "deletes": tally.deletes,
            "jobs": alive,
            "queues": tally.queues(now),
            "expired": expired,
        }
        print(as_json(facts))
        return found.status
    say = out().print
    say(f"{options.file}: {NAMES[found.format]}, {counted(source.size, 'byte')}")
    say(f"  {counted(tally.records, 'record')}: {tally.loads:,} LOADJOB, {tally.deletes:,} DELJOB")
    say(
        f"  {counted(alive, 'job')} alive in {counted(tally.queues(now), 'queue')}"
        + (f", and {expired:,} expired" if expired else "")
    )
    say(f"  {found.verdict}")
    if source.is_held:
        say("  a running node holds it")
    return found.status

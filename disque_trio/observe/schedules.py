"""Schedules in the lists of the console and the command line: declared ones, which workers report,
and those that were added at run time, which the cluster keeps."""

from collections.abc import Sequence

from disque_trio.observe.values import Json, readable
from disque_trio.worker.operating.admin import KnownWorker
from disque_trio.worker.timetable.records import Entry


def rows(workers: Sequence[KnownWorker], added: Sequence[Entry], now: float) -> list[Json]:
    """Return each schedule once, however many workers run it. The next tick of a declared one is
    the earliest that workers report. `now` is Unix time."""
    nexts: dict[tuple[str, str], list[int]] = {}
    keeps: dict[str, int] = {}
    for worker in workers:
        for each in worker.schedules:
            if each.schedule:
                keeps[each.schedule] = keeps.get(each.schedule, 0) + 1
            else:
                nexts.setdefault((each.name, each.when), []).append(each.next)
    declared: list[Json] = [
        {
            "schedule": "", "state": "declared", "name": name, "queue": "", "when": when,
            "next_ms": min(ticks) * 1000, "workers": len(ticks),
        }
        for (name, when), ticks in nexts.items()
    ]  # fmt: skip
    of_cluster = [_row(each, keeps.get(each.name, 0), now) for each in added]
    return sorted(
        declared + of_cluster, key=lambda row: (row["name"], row["schedule"], row["when"])
    )


def _row(entry: Entry, workers: int, now: float) -> Json:
    try:
        when, upcoming = entry.when, entry.next(now)
    except (ValueError, TypeError) as error:  # such as an unknown time zone
        when, upcoming = f"unreadable: {error}", None
    return {
        "schedule": readable(entry.name),
        "state": "paused" if entry.is_paused else "running",
        "name": readable(entry.task),
        "queue": readable(entry.queue),
        "when": when,
        "next_ms": None if upcoming is None else upcoming * 1000,
        "workers": workers,
    }

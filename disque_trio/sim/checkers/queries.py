"""Queries (S22): the replies of a node about its jobs and queues are true.

Rows ``query`` (`tracing.query_rows`) contain the queries of clients and the replies. A reply is
true if it agrees with the node's own rows at some moment between the query and the reply. For that,
the checker records the states of all jobs of the node at the query, and each change until the
reply. The pages of a scan are one query.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from disque_trio.sim.checkers import copy_options, errors, results
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.copy_options import rounded
from disque_trio.sim.checkers.obligations import GRAIN, MILLI
from disque_trio.sim.checkers.records import FOREVER, Copy, Job
from disque_trio.sim.checkers.requests import Query
from disque_trio.terminal.counting import counted
from disque_trio.tracing.details import fields, numbers
from disque_trio.tracing.rows import Row

GONE: Final = ""
DUMMY: Final = "dummy"
ACTIVE: Final = "active"
"""Held, and neither queued nor acknowledged; its replicas may still be created."""
QUEUED: Final = "queued"
ACKED: Final = "acked"
DEAD: Final = "dead"
_STATES: Final = {
    "wait-repl": (ACTIVE,),
    "active": (ACTIVE,),
    "queued": (QUEUED,),
    "acked": (ACKED, DUMMY),
    "dead": (DEAD,),
}
"""By state in a reply: the states that the job may have."""
_SCANNED: Final = {
    "wait-repl": ACTIVE,
    "active": ACTIVE,
    "backing-off": ACTIVE,
    "queued": QUEUED,
    "acked": ACKED,
    "dead": DEAD,
}
"""By state in a request of JSCAN: the state of the jobs."""


def _standing(copy: Copy | None) -> str:
    if copy is None or copy.is_offline:
        return GONE
    if copy.is_dummy:
        return DUMMY
    if copy.is_acked:
        return ACKED
    if copy.state[1] and not copy.is_waiting:
        return DEAD
    return ACTIVE if copy.queueing is None else QUEUED


# Events between a query and its reply.


def on_invoke(case: Case, row: Row) -> None:
    """A client sends a query, or requests the next page of a scan."""
    of_node = case.queries.setdefault(row.node, {})
    words = row.detail.split()
    scan = of_node.pop((row.client, row.cause, 0), None) if _is_page(row, words) else None
    if scan is None and _is_page(row, words) and words[0] != "0":
        return
    query = scan if scan is not None and words[0] != "0" else _query(case, row)
    query.words = words
    of_node[row.client, row.cause, row.ref] = query


def _is_page(row: Row, words: list[str]) -> bool:
    return row.cause in {"qscan", "jscan"} and words[:1] != [] and words[0].isdigit()


def _query(case: Case, row: Row) -> Query:
    before = {job_id: _standing(copy) for job_id, copy in case.table(row.node).items()}
    listed = case.job(row.job).listed.get(row.node, {}) if row.job else {}
    return Query(row.time, before, listed=dict.fromkeys(listed))


def note(case: Case, row: Row, job: Job) -> None:
    """The state of a job at the node changes."""
    of_node = case.queries.get(row.node)
    if of_node:
        change = (job.id, _standing(job.copies.get(row.node)))
        for query in of_node.values():
            query.changes.append(change)


def on_restart(case: Case, row: Row) -> None:
    """A query ends with the process that received it."""
    case.queries.pop(row.node, None)


def on_unanswered(case: Case, row: Row) -> None:
    """The query gets no reply, or an error."""
    case.queries.get(row.node, {}).pop((row.client, row.cause, row.ref), None)


def on_ok(case: Case, row: Row) -> None:
    """S22: judge the reply."""
    query = case.queries.get(row.node, {}).pop((row.client, row.cause, row.ref), None)
    if row.cause == "hello":
        case.node_ids[row.detail] = row.node
    elif query is not None and case.has_node_rows and not case.is_live:
        case.check("S22")
        for problem in _JUDGE[row.cause](case, row, query):
            request = f"{row.cause.upper()} {row.queue}".strip()
            case.violate("S22", f"{request}: {problem}", row.job, row.node)


# The states of the jobs.


def _lengths(case: Case, query: Query, wanted: str = QUEUED) -> dict[str, tuple[int, int]]:
    """Return, by queue, the smallest and the largest number of jobs in this state."""
    stands = dict(query.before)
    now: dict[str, int] = {}
    for job_id, standing in query.before.items():
        if standing == wanted:
            queue = case.job(job_id).queue
            now[queue] = now.get(queue, 0) + 1
    found = {queue: (count, count) for queue, count in now.items()}
    for job_id, standing in query.changes:
        queue = case.job(job_id).queue
        now[queue] = now.get(queue, 0) + (standing == wanted) - (stands.get(job_id) == wanted)
        stands[job_id] = standing
        least, most = found.get(queue, (0, 0))
        found[queue] = min(least, now[queue]), max(most, now[queue])
    return found


def _ever(query: Query) -> dict[str, dict[str, None]]:
    """Return, by job, its states at the query and after each change."""
    stood = {job_id: {standing: None} for job_id, standing in query.before.items()}
    for job_id, standing in query.changes:
        stood.setdefault(job_id, {GONE: None})[standing] = None
    return stood


def _chosen(
    stood: dict[str, dict[str, None]], fits: Callable[[str, str], bool]
) -> tuple[dict[str, None], dict[str, None]]:
    """Return the jobs that matched at some moment, and those that matched all the time."""
    ever = {job: None for job, how in stood.items() if any(fits(job, each) for each in how)}
    always = {job: None for job in ever if all(fits(job, each) for each in stood[job])}
    return ever, always


def _is_in(case: Case, queue: str, *wanted: str) -> Callable[[str, str], bool]:
    """Return a predicate: is the job in one of these states, and in this queue (or in any, if
    empty)?"""

    def fits(job_id: str, standing: str) -> bool:
        return standing in wanted and queue in ("", case.job(job_id).queue)

    return fits


def _compare(
    stood: dict[str, dict[str, None]], fits: Callable[[str, str], bool], reply: list[str]
) -> Iterator[str]:
    """Yield jobs that are missing from the reply, wrongly in it, or in it twice."""
    ever, always = _chosen(stood, fits)
    for job in reply:
        if job not in ever:
            yield f"names {job}, which {_how(stood, job)}"
    for job in always:
        if job not in reply:
            yield f"leaves {job} out, which {_how(stood, job)}"
    named: dict[str, None] = {}
    for job in reply:
        if job in named and GONE not in stood.get(job, {}):
            yield f"names {job} twice"
        named[job] = None


def _how(stood: dict[str, dict[str, None]], job: str) -> str:
    how = stood.get(job, {GONE: None})
    return "is " + " or ".join(standing or "not held" for standing in how)


# One function for each command, which yields errors in the reply.


def _judge_qlen(case: Case, row: Row, query: Query) -> Iterator[str]:
    least, most = _lengths(case, query).get(row.queue, (0, 0))
    if not least <= int(row.detail) <= most:
        yield f"{counted(int(row.detail), 'job')}, and there are {_between(least, most)}"


def _between(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _judge_qstat(case: Case, row: Row, query: Query) -> Iterator[str]:
    least, most = _lengths(case, query).get(row.queue, (0, 0))
    if not row.detail:
        if least:
            yield f"no such queue, and there are {_between(least, most)}"
        return
    values = numbers(row.detail)
    if not least <= values["len"] <= most:
        yield f"{counted(values['len'], 'job')}, and there are {_between(least, most)}"
    fewest, greatest = _lengths(case, query, DEAD).get(row.queue, (0, 0))
    if not fewest <= values.get("dead", fewest) <= greatest:
        yield f"{counted(values['dead'], 'dead job')}, and there are {_between(fewest, greatest)}"
    if values["in"] - values["out"] < values["len"]:
        came = counted(values["in"], "job")
        yield f"{came} came, {values['out']} went, {values['len']} are there"


def _judge_qpeek(case: Case, row: Row, query: Query) -> Iterator[str]:
    """The reply has, in order, up to COUNT of the first jobs, or of the last ones if COUNT < 0."""
    count = int(query.words[0])
    pairs = [job.rpartition(":") for job in row.detail.split()]
    shown = [id for id, _, _ in pairs]
    stood = _ever(query)
    fits = _is_in(case, row.queue, QUEUED)
    ever, always = _chosen(stood, fits)
    yield from (f"shows {job}, which {_how(stood, job)}" for job in shown if job not in ever)
    if len(shown) > abs(count) or len(dict.fromkeys(shown)) < len(shown):
        yield f"shows {counted(len(shown), 'job')} for a count of {count}, or one of them twice"
    # Groups take turns within a priority. From the other end the order is by age.
    of_all = [(_place(case, row.node, job), _group(case, job) if count > 0 else 0) for job in shown]
    last = {group: place for place, group in of_all}
    ranks = [(place[0], 0, "") for place, _ in of_all]
    for places in (ranks, *([each for each, group in of_all if group == one] for one in last)):
        if any(
            (one > next) != (count < 0) and one != next for one, next in itertools.pairwise(places)
        ):
            yield f"shows jobs in the wrong order: {' '.join(shown)}"
            break
    for job in always:
        place, group = _place(case, row.node, job), _group(case, job) if count > 0 else 0
        is_before = group in last and (place < last[group]) != (count < 0)
        is_before |= count > 0 and bool(shown) and place[0] < ranks[-1][0]
        if job not in shown and (len(shown) < abs(count) or is_before):
            yield f"leaves {job} out, which {_how(stood, job)}"
    for job, _, body in pairs:
        yield from _judge_body(case.job(job), body)


def _group(case: Case, job_id: str) -> int:
    return copy_options.group_of(case.job(job_id))


def _place(case: Case, node: str, job_id: str) -> tuple[int, int, str]:
    """Return the sort key of a job, with the creation stamp of the node's copy, which repair may
    change."""
    job = case.job(job_id)
    made = job.moved_on.get(node) or numbers(job.first_record).get("made", 0)
    return -copy_options.priority_of(job), made, job_id


def _judge_body(job: Job, body: str) -> Iterator[str]:
    asked = numbers(job.first_record).get("body")
    if body and asked is not None and int(body) != asked:
        yield f"another body of {job.id} than its first record"


def _judge_show(case: Case, row: Row, query: Query) -> Iterator[str]:
    job = case.job(row.job)
    stood = _ever(query).get(row.job, {GONE: None})
    if not row.detail:
        results.judge(case, row, job, query.time, "")
        if GONE not in stood:
            yield f"not held, and it {_how({row.job: stood}, row.job)}"
        return
    values = fields(row.detail, "queue")
    if "result" in values or values["state"] == "acked":
        results.judge(case, row, job, query.time, values.get("result", ""))
    if "result" in values and GONE in stood:
        return
    if not any(each in stood for each in _STATES[values["state"]]):
        yield f"state {values['state']}, and it {_how({row.job: stood}, row.job)}"
    elif values["state"] == "wait-repl" and _is_settled(job, row.node, query):
        yield "state wait-repl, and its ADDJOB does not wait for copies"
    if values["queue"] and GONE not in stood:
        yield from _judge_terms(job, values, row.node)
        yield from _judge_life(case, row, job, query, int(values["ttl"]))
        yield from errors.judge(case, row, job, query.time, values)
        yield from _judge_holders(case, row, job, query, values["holders"].split(","))


def _is_settled(job: Job, node: str, query: Query) -> bool:
    """Had the ADDJOB a reply before the query, or does another node create the replicas?"""
    copy = job.copies.get(node)
    is_elsewhere = copy is not None and copy.cause not in {"add", "loaded"}
    return is_elsewhere or (job.add is not None and job.add.answered < query.time)


def _judge_terms(job: Job, values: dict[str, str], node: str) -> Iterator[str]:
    """The options are those of the ADDJOB. A copy made by repair has the rest of DELAY, and an ack
    from a journal has no body."""
    first = numbers(job.first_record)
    for name in ("replicate", "retry"):
        if name in first and int(values[name]) != first[name]:
            yield f"{name}={values[name]}, the first record {first[name]}"
    if "delay" in first and int(values["delay"]) > rounded(first["delay"]):
        yield f"delay={values['delay']}, the first record {first['delay']}"
    if job.queue and values["queue"] != job.queue:
        yield f"the queue {values['queue']}, the first record {job.queue}"
    copy = job.copies.get(node)
    is_loaded = copy is not None and copy.cause == "loaded"
    if not is_loaded or (values["state"], values["body"]) != (ACKED, "0"):
        yield from _judge_body(job, values["body"])


def _judge_life(case: Case, row: Row, job: Job, query: Query, seconds: int) -> Iterator[str]:
    """The time to live agrees with that of the copy on its arrival, in whole seconds."""
    copy = job.copies.get(row.node)
    if copy is None or not copy.left or copy.left_since >= query.time:
        return
    since = max(copy.since, copy.left_since)
    passed = case.obligations.longest(row.time - since) // MILLI + 1
    if not copy.left - passed <= seconds * 1000 <= copy.left + 999:
        yield f"{seconds} s to live, and it had {copy.left} ms when it came"


def _judge_holders(case: Case, row: Row, job: Job, query: Query, ids: list[str]) -> Iterator[str]:
    """The holders are the node itself, those named to it, and those to which it has sent a copy.
    This is not checked once nodes have new names: messages of a renamed node may be ignored."""
    copy, world = job.copies.get(row.node), case.world
    if not case.has_messages or copy is None or copy.cause == "loaded":
        return
    if world.is_changing or world.renamed:
        return
    are_known = len(case.node_ids) == len(world.nodes)
    names = [case.node_ids.get(id, "") for id in ids]
    known = {row.node, *query.listed, *job.listed.get(row.node, ())}
    known.update(job.perhaps_listed.get(row.node, ()))
    for id, name in zip(ids, names, strict=True):
        if name not in known and (name or are_known) and not _may_send_in_vain(case, copy):
            yield f"the holder {name or id}, of which it was not told"
    for name in query.listed:
        if name not in names and are_known:
            yield f"not the holder {name}, of which it was told"


def _may_send_in_vain(case: Case, copy: Copy) -> bool:
    """May the node have sent copies of which there are no rows? It repairs a job while its disk has
    a fault, and such messages wait for the disk. Or it sent the copies of a new job on links that
    had ended, which a process that was stopped until then has not detected."""
    world, since = case.world, copy.since
    if world.had_disk_fault(copy.node, since):
        return True
    return copy.cause == "add" and world.is_stopped(copy.node, since - GRAIN, since)


def _judge_jscan(case: Case, row: Row, query: Query) -> Iterator[str]:
    if not _is_last_page(case, row, query):
        return
    wish = _wish(query.words)
    states = wish.get("state", ["active", "queued", "acked", "dead"])
    standings = [_SCANNED[state.lower()] for state in states]
    found = _compare(
        _ever(query), _is_in(case, *wish.get("queue", [""]), *standings), query.collected
    )
    # The rows do not distinguish these jobs from others that are neither queued nor ended.
    is_part = "state" in wish and ACTIVE in standings
    yield from (each for each in found if not (is_part and each.startswith("leaves ")))


def _wish(words: list[str]) -> dict[str, list[str]]:
    """Return the options of a scan, in lower case, with their values."""
    wish: dict[str, list[str]] = {}
    rest = iter(words[1:] if words and words[0].isdigit() else words)
    for word in rest:
        name = word.lower()
        wish.setdefault(name, []).append("" if name == "busyloop" else next(rest, ""))
    return wish


def _judge_qscan(case: Case, row: Row, query: Query) -> Iterator[str]:
    """The reply contains all queues with jobs. It may contain empty queues."""
    if not _is_last_page(case, row, query):
        return
    is_part = _wish(query.words).keys() - {"busyloop", "count"}
    for queue, (least, _) in _lengths(case, query).items():
        if not is_part and least and queue not in query.collected:
            yield f"leaves {queue} out, which has {counted(least, 'job')}"
    for queue in query.collected:
        if case.queues and queue not in case.queues:
            yield f"names {queue}, which nobody has asked for"
    if len(dict.fromkeys(query.collected)) < len(query.collected):
        yield f"names a queue twice: {' '.join(query.collected)}"


def _is_last_page(case: Case, row: Row, query: Query) -> bool:
    """Does the reply end the scan? The reply to BUSYLOOP must contain everything."""
    cursor, *page = row.detail.split()
    query.collected += page
    is_last = cursor == "0" or "busyloop" in _wish(query.words)
    if not is_last:
        case.queries.setdefault(row.node, {})[row.client, row.cause, 0] = query
    return is_last


def _judge_info(case: Case, row: Row, query: Query) -> Iterator[str]:
    values = numbers(row.detail)
    stands = {job for job, standing in query.before.items() if standing}
    least = most = len(stands)
    for job, standing in query.changes:
        (stands.add if standing else stands.discard)(job)
        least, most = min(least, len(stands)), max(most, len(stands))
    if not least <= values["registered_jobs"] <= most:
        yield f"registered_jobs:{values['registered_jobs']}, and there are {_between(least, most)}"
    queues = sum(least > 0 for least, _ in _lengths(case, query).values())
    if not queues <= values["registered_queues"] <= (len(case.queues) or FOREVER):
        yield f"registered_queues:{values['registered_queues']}, and {queues} have jobs"


_JUDGE: Final[dict[str, Callable[[Case, Row, Query], Iterator[str]]]] = {
    "qlen": _judge_qlen,
    "qstat": _judge_qstat,
    "qpeek": _judge_qpeek,
    "show": _judge_show,
    "jscan": _judge_jscan,
    "qscan": _judge_qscan,
    "info": _judge_info,
}

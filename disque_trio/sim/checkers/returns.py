"""L10: a returning holder receives at once the acknowledgements and deaths that it missed.

The bound counts from the first PONG that a node receives from the holder after the heal: then the
link is up, and the node has detected that the holder is back. If a rule has dropped the message on
a link that stays up, the sender cannot detect that (TCP loses no single messages), so it is not
judged. Nor is a node that received the message from another one while its own link to the holder
stayed up.
"""

from disque_trio.sim.checkers.case import Case, Missed
from disque_trio.sim.checkers.intervals import meets_any
from disque_trio.sim.checkers.messages import ACK, STATE
from disque_trio.sim.checkers.obligations import MILLI, SECOND
from disque_trio.sim.checkers.records import ALIVE, Copy, Job
from disque_trio.sim.model.network import STALL
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.knobs import DEFAULTS
from disque_trio.statemachine.resend import RUN_EVERY
from disque_trio.tracing.rows import Row


def on_pong(case: Case, row: Row) -> None:
    """A PONG arrives. If it is the first since the heal, record what its sender has missed."""
    _judge(case)
    pair = (row.node, row.peer)
    if pair in case.answered or not case.obligations.is_stream:
        return
    if ("half-open", pair) in case.world.blocked:
        # The PONG answers a PING from before the sender's end of the connection was closed.
        return
    case.answered[pair] = None
    allowed = bound(case) + _time_of_passes(case, row.node)
    for job in case.jobs.values():
        mine, theirs = job.copies.get(row.node), job.copies.get(row.peer)
        if mine is None or theirs is None or theirs.is_acked or not _knows_more(case, mine, theirs):
            continue
        if not _was_there(case, theirs) or _came_too_early(job, mine, theirs):
            continue
        is_listed = mine.is_dummy or row.peer in job.listed.get(row.node, ())
        if not is_listed or _was_swallowed(case, job, *pair):
            continue
        if not _has_another_announced(case, job, mine, row):
            case.missed.append(Missed(job.id, row.node, row.peer, row.time, allowed))


def _time_of_passes(case: Case, node: str) -> Micros:
    """Return how long the node looks through its ended and dead jobs for two nodes, one after the
    other: a pass that has begun does not serve a node that returns meanwhile."""
    listed = [
        copy
        for id, copy in case.table(node).items()
        if copy.is_acked or copy.state[1] or not case.job(id).is_at_least_once
    ]
    looks = dict(case.plan.knobs).get("resend_looks", DEFAULTS.resend_looks)
    return 2 * (len(listed) // looks) * case.obligations.longest(RUN_EVERY * MILLI)


def _has_another_announced(case: Case, job: Job, mine: Copy, row: Row) -> bool:
    """Did the knower learn of it from another node, while its own link to the holder stayed up?"""
    if mine.is_acked:
        known_since, was_announced = mine.acked_at, mine.acked_by == "setack"
    else:
        known_since = mine.left_since
        was_announced = any(
            receiver == mine.node and sort == STATE and announcement.got_at == known_since
            for (_, receiver, sort), announcement in job.announcements.items()
        )
    return was_announced and not _were_apart(case, row.node, row.peer, known_since, row.time)


def _were_apart(case: Case, one: str, other: str, since: Micros, until: Micros) -> bool:
    """Was there a fault that ends a link, or for which one node suspects the other? Slow messages
    do not count: they may be those of another link."""
    world = case.world
    least = min(STALL, case.obligations.node_timeout)
    troubles = [*world.link_troubles.get((min(one, other), max(one, other)), ())]
    for node in (one, other):
        if meets_any(world.outages.get(node, ()), since, until):
            return True
        troubles += [each for each in world.pauses.get(node, ()) if not each.is_slow]
    long = [each for each in troubles if (each.end or until) - each.start >= least]
    return meets_any(long, since, until)


def _knows_more(case: Case, mine: Copy, theirs: Copy) -> bool:
    """Does my node know the end of the job, or a later death, and theirs does not? A node of a
    version without dead jobs learns only that it must not queue the job."""
    if mine.is_acked:
        return True
    is_later = mine.state[1] and mine.state > theirs.state
    return is_later and case.keeps_dead_jobs(theirs.node)


def _was_there(case: Case, copy: Copy) -> bool:
    """Did the holder have its copy before the heal, so that it has missed something?"""
    healed = case.world.healed
    return copy.cause == "loaded" or (healed is not None and copy.since <= healed)


def _came_too_early(job: Job, mine: Copy, theirs: Copy) -> bool:
    """Did the message about the death arrive before the copy, which was slow? Then the holder has
    not missed it, and learns of it at the latest when it would queue the job."""
    if mine.is_acked or theirs.cause == "loaded":
        return False
    return any(
        receiver == theirs.node and sort == STATE and 0 <= announcement.got_at <= theirs.since
        for (_, receiver, sort), announcement in job.announcements.items()
    )


def _was_swallowed(case: Case, job: Job, knower: str, holder: str) -> bool:
    """Was the last announcement lost on a link that neither end has any reason to renew?"""
    is_acked = job.copies[knower].is_acked
    announcement = job.announcement(knower, holder, ACK if is_acked else STATE)
    begin = max(case.world.started_at(knower), case.world.started_at(holder))
    return announcement.swallowed >= announcement.sent > begin


def finish(case: Case) -> None:
    """Judge what is due at the end of the run."""
    _judge(case)


def bound(case: Case) -> Micros:
    """Return how long an announcement may take: a second, and the latency."""
    return case.obligations.longest(SECOND) + 4 * case.obligations.latency


def _judge(case: Case) -> None:
    """Judge the acknowledgements that are due."""
    while case.missed and case.missed[0].since + case.missed[0].allowed < case.now:
        _judge_one(case, case.missed.popleft())


def _judge_one(case: Case, missed: Missed) -> None:
    job = case.jobs.get(missed.job)
    copy = None if job is None else job.copies.get(missed.holder)
    in_time = missed.since + missed.allowed
    has_received = copy is None or (
        (copy.is_acked and copy.acked_at <= in_time)
        or (copy.state != ALIVE and copy.left_since <= in_time)
    )
    if has_received:
        case.check("L10")
    elif copy is not None and copy.since <= missed.since and not _was_hindered(case, missed):
        case.check("L10")
        late = (case.now - missed.since) / SECOND
        detail = (
            f"{missed.knower} has known of its end and had a link for {late:.3f} s, and has not "
            f"told {missed.holder}"
        )
        case.violate("L10", detail, missed.job, missed.holder)


def _was_hindered(case: Case, missed: Missed) -> bool:
    """Was there a fault of one of the two nodes, or of the link between them?"""
    world = case.world
    pair = (missed.knower, missed.holder)
    if world.is_lagging(*pair, missed.since, case.now):
        return True
    for node in pair:
        if not world.in_core(node) or world.started_at(node) > missed.since:
            return True
        if world.is_stopped(node, missed.since, case.now) or world.was_disk_faulty(node, case.now):
            return True
    if world.may_be_unknown(missed.holder, missed.knower, case.now):
        return True
    job = case.jobs.get(missed.job)
    if job is None or missed.knower not in job.copies:
        return True
    knower = job.copies[missed.knower]
    if not knower.is_acked and not knower.state[1]:
        # The job was redriven.
        return True
    return job.announcement(*pair, ACK if knower.is_acked else STATE).lost >= missed.since

"""The keeper of a limited queue, which grants leases and tokens to nodes (decision 136). Each group
of a queue with limits of groups has a keeper, too (decision 161).

Each node that delivers jobs of the queue reports its use and demand. The keeper grants it a maximum
number of simultaneous leases, and tokens of the rate. The keeper polls all nodes while the queue is
in use. By its answer, a node assigns its part of the limits (1/n of n nodes) to this keeper, and to
no other until the assignment expires. So even if a partition causes several keepers, their parts
never exceed the whole. A keeper of loose limits also grants the parts of nodes that it cannot
reach, and ignores their leases.

Owns the fields of `Share`, and those of `Limit` about the keeper.
"""

from typing import Final

from disque_trio.statemachine import counts, lifecycle, limiting, send
from disque_trio.statemachine.base import HANDSHAKE, LEAVING, LIMITS, Millis, NodeId
from disque_trio.statemachine.cluster import UNREACHABLE, Peer
from disque_trio.statemachine.events import Cause
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.lifecycle import mark_ready
from disque_trio.statemachine.limit import Limit, Share
from disque_trio.statemachine.messages import LimitGrant, LimitPoll, LimitReport
from disque_trio.statemachine.queue import Queue
from disque_trio.statemachine.state import NodeState

RENEW: Final[Millis] = 500
"""How often the keeper polls, and nodes report."""
AGAIN: Final[Millis] = 250
"""How often a node repeats a report with unmet demand."""
NEWS: Final[Millis] = 20
"""How often a node reports if its demand grows."""
UNANSWERED: Final[Millis] = 500
"""How long a node waits for the answer to a report before it sends the next one, which voids the
answer."""
FRESH: Final[Millis] = 1000
"""How long a report counts as current, for a keeper that gained parts."""
VOTE: Final[Millis] = 2000
"""How long the keeper counts a node's part as assigned, from the poll; less than
`limiting.PROMISE`."""
HOLD: Final[Millis] = limiting.SLOTS_VALID * 5 // 4
"""How long the keeper counts a grant as used, from the report that it answers; longer than it is
valid, because clocks differ."""
ANSWERS_WITHIN: Final[Millis] = 100
"""How long a new keeper waits for the parts of other nodes before it fills the bucket."""
AT_ONCE: Final[Millis] = 50
"""The tokens of this time may be spent at once in addition to BURST, because timers are not more
precise."""


def admits(node: NodeState, queue: Queue, limit: Limit, count: int) -> int:
    """How many of `count` jobs of the queue may be delivered here now. If fewer, requests more
    leases or tokens from the keeper."""
    if not limit.setting.is_of_queue or not queue.length:
        return count
    able = limiting.allowed(node, limit)
    if able < count:
        limiting.miss(node, limit, min(count, queue.length) - able)
        _ask(node, limit)
        able = limiting.allowed(node, limit)
    return min(able, count)


def opens(node: NodeState, queue: Queue, limit: Limit) -> bool:
    """May a job of the queue be delivered here now? If its groups have limits, the queue's next job
    then has a group that may. Groups that have reached a limit, or that have no place in the table,
    are parked."""
    if not admits(node, queue, limit, 1):
        return False
    if not limit.setting.is_of_groups:
        return True
    while (job := queue.oldest()) is not None:
        group = job.group
        if job.expires <= node.mono:
            lifecycle.unregister(node, job, Cause.EXPIRED)
            continue
        if group is None:
            return True
        of_group = limiting.of_group(node, queue.name, group)
        if of_group is None:
            limiting.await_place(node, queue.name, group)
        elif limiting.allowed(node, of_group):
            return True
        elif not limiting.may_ask(node, queue, limit):
            return False
        elif _is_granted(node, of_group):
            return True
        else:
            limiting.await_answer(node, limit, group)
        queue.park(group)
    return False


def _is_granted(node: NodeState, limit: Limit) -> bool:
    """Request leases or tokens for a group. Returns whether some are granted at once."""
    limiting.want(node, limit)
    _ask(node, limit)
    return limiting.allowed(node, limit) > 0


def spend(node: NodeState, limit: Limit, job: Job) -> None:
    """Spend a lease or token for a delivered job of this queue."""
    limiting.spend(limit, (job,))
    if limit.setting.is_of_groups and (group := job.group) is not None:
        of_group = limiting.of_group(node, limit.name, group)
        if of_group is not None:
            limiting.spend(of_group, (job,))
            _arm(node, of_group)


def settle(node: NodeState) -> None:
    """End of a batch: serve clients that wait for leases, because some may have ended."""
    if node.freed:
        _settle_groups(node)
    for limit in list(node.short.values()):
        queue = node.queues.get(limit.name)
        if queue is None or not queue.waiting or not limiting.has_jobs(node, queue):
            limiting.forget_short(node, limit)
        elif limiting.allowed(node, limit):
            mark_ready(node, queue)
        elif limiting.leased(node, limit) < limit.reported > limit.slots:
            _give_up(node, limit)
        elif limiting.lacks_tokens(node, limit):
            _ask(node, limit)


def _settle_groups(node: NodeState) -> None:
    for limit in counts.take_freed(node):
        if node.group_limits.get((limit.name, limit.group)) is not limit:
            continue
        if limiting.allowed(node, limit):
            limiting.unpark(node, limit)
        elif limit.leases < limit.reported > limit.slots:
            _give_up(node, limit)
        elif limiting.lacks_tokens(node, limit):
            _ask(node, limit)


def parts(node: NodeState, limit: Limit) -> int:
    """How many nodes have assigned their parts to this node; 0 if it is not the keeper."""
    if not limit.gained_at:
        return 0
    return _votes(node, limit)


def _give_up(node: NodeState, limit: Limit) -> None:
    """Return leases that have ended here, because another node waits for them."""
    keeper = limiting.keeper(node, limit)
    if keeper == node.cluster.myself.id:
        _keep(node, limit)
    elif node.mono >= _earliest_report(limit, NEWS):
        _report(node, limit, keeper)


# Reports.


def _ask(node: NodeState, limit: Limit) -> None:
    """Request more leases or tokens: clients could get more jobs than may be delivered."""
    keeper = limiting.keeper(node, limit)
    if keeper == node.cluster.myself.id:
        _keep(node, limit)
    elif (
        not limit.asked
        or node.mono >= _earliest_report(limit, AGAIN)
        or (
            node.mono >= _earliest_report(limit, NEWS)
            and (
                limiting.wanted(node, limit) > limit.asked
                or limiting.lacks_tokens(node, limit)  # a lease may have ended
            )
        )
    ):
        _report(node, limit, keeper)
    _arm(node, limit)


def _earliest_report(limit: Limit, after: Millis) -> Millis:
    """When the next report may be sent, at the earliest: where messages take longer than that, the
    answer to the last one is still on its way."""
    return limit.asked_at + (after if limit.is_answered else max(after, UNANSWERED))


def _report(
    node: NodeState, limit: Limit, keeper: NodeId, poll: int = 0, *, has_moved: bool = False
) -> None:
    used, slots, wanted = limiting.report(node, limit)
    message = LimitReport(
        limit.name, limit.number, poll, used, slots, wanted, _longest(node, limit),
        int(has_moved), limit.group,
    )  # fmt: skip
    # The current keeper, and the one to which this node's part is assigned.
    send.to_ids(node, dict.fromkeys((keeper, limit.promised_to)), message)


def on_limitpoll(node: NodeState, sender: Peer, message: LimitPoll) -> None:
    """Handle LIMITPOLL of a keeper: assign this node's part to it, if that is possible now."""
    limit = limiting.of_group(node, message.queue, message.group)
    if limit is None:
        return
    has_moved = limit.promised_to != sender.id
    if limiting.vote(node, limit, sender.id):
        _step_down(node, limit)
        _report(node, limit, sender.id, message.number, has_moved=has_moved)
        _arm(node, limit)
        return
    limiting.doubt(node, limit)
    used = limiting.used(node, limit)
    slots = max(limit.slots, used)
    rest = 0, _longest(node, limit), 0, limit.group
    send.to_node(node, sender, LimitReport(limit.name, limit.number, 0, used, slots, *rest))
    _arm(node, limit)


def on_limitgrant(node: NodeState, sender: Peer, message: LimitGrant) -> None:
    """Handle LIMITGRANT of the keeper. The leases of an answer to an older report are void, because
    this node has reported other figures since. The tokens are not: no other node gets them."""
    name = message.queue
    limit = node.group_limits.get((name, message.group)) if message.group else node.limits.get(name)
    if limit is None or sender.id != limit.promised_to:
        return
    if message.number == limit.number:
        limiting.granted(node, limit, message.slots, message.tokens)
        limiting.answered(node, limit)
    elif message.number == limit.number - 1:
        limiting.take_tokens(node, limit, message.tokens, limit.asked_before)
    _arm(node, limit)


def on_limitreport(node: NodeState, sender: Peer, message: LimitReport) -> None:
    """Handle LIMITREPORT: the sender considers this node the keeper, or was polled."""
    limit = limiting.of_group(node, message.queue, message.group)
    if limit is None:
        return
    share = limit.shares.get(sender.id)
    if share is None:
        share = limit.shares[sender.id] = Share()
    if message.number > share.number or share.link != sender.link:
        share.number, share.link = message.number, sender.link
        share.used, share.slots, share.wanted = message.used, message.slots, message.wanted
    limiting.learn_retry(node, limit, message.retry)
    share.reported_at = node.mono
    share.until = node.mono + HOLD + message.retry
    if message.poll and message.poll == limit.poll:
        share.voted_until = limit.polled_at + VOTE
        if message.moved:
            _gain(node, limit)
    before = share.slots, share.wanted
    _keep(node, limit)
    if (share.slots, share.wanted) == before and _is_left(node, limit, sender.id):
        _grant(node, limit, sender.id, 0)
    _arm(node, limit)


# Grants.


def _keep(node: NodeState, limit: Limit) -> None:
    """Act as the keeper: poll nodes, and grant what they want within the limits."""
    _begin(node, limit)
    votes = _votes(node, limit)
    if limit.setting.is_loose and votes:
        votes += sum([not _counts(node, limit, each.id) for each in _known(node)])
    _review_own(node, limit)
    _note_complete(node, limit)
    _fill(node, limit, votes)
    _grant_all(node, limit, votes)


def _begin(node: NodeState, limit: Limit) -> None:
    """Become the keeper, and poll the nodes if that is due."""
    if not limit.gained_at:
        limit.part = 0
        limit.level, limit.level_at = 0.0, _filling_since(node, limit)
        _gain(node, limit)
    if node.mono >= limit.polled_at + RENEW or not limit.poll:
        if node.mono >= limit.polled_at + VOTE:
            limit.woken_at = node.mono
        limit.poll = (limit.poll + 1) & 0xFFFF_FFFF or 1
        limit.polled_at = node.mono
        peers = node.cluster.nodes.values()
        links = [each.link for each in peers if each.link and each.capabilities & LIMITS]
        send.broadcast(node, links, LimitPoll(limit.name, limit.poll, limit.group))


def _filling_since(node: NodeState, limit: Limit) -> Millis:
    """The time since when no other node can have granted tokens. For a queue, it is now; a group
    may have been dropped here because its bucket was full. Another node may have been the keeper
    until this one had links to all nodes, and until unreachable ones had failed."""
    of_queue = node.limits.get(limit.name)
    if not limit.group or of_queue is None:
        return node.mono
    since = max(limit.known_at, of_queue.known_at)
    for peer in node.cluster.nodes.values():
        if peer is node.cluster.myself or peer.flags & HANDSHAKE:
            continue
        if peer.is_connected and not peer.flags & UNREACHABLE:
            since = max(since, peer.link_created + limiting.PROMISE)
        else:
            since = max(since, _failed_by(node, peer) + limiting.PROMISE)
    return min(since, node.mono)


def _failed_by(node: NodeState, peer: Peer) -> Millis:
    """By when all nodes on this side of a partition have marked the node as failed."""
    return peer.pong_received + 2 * node.config.cluster_node_timeout


def _gain(node: NodeState, limit: Limit) -> None:
    """This keeper has gained a node's part, which another keeper may have granted before."""
    limit.gained_at = max(node.mono, 1)
    if limit.is_complete or not limit.part:
        limit.ceiling = limit.part
    limit.is_complete = False


def _step_down(node: NodeState, limit: Limit) -> None:
    """This node's part is assigned to another keeper. Other nodes may not reach that one, and still
    assign theirs to this node."""
    myself = node.cluster.myself.id
    if any(id != myself and _is_left(node, limit, id) for id in limit.shares):
        limit.shares.pop(myself, None)
        return
    limit.gained_at = limit.part = 0
    limit.shares.clear()


def _review_own(node: NodeState, limit: Limit) -> None:
    """Update this node's own use and demand."""
    share = limit.shares.get(node.cluster.myself.id)
    if share is None:
        share = limit.shares[node.cluster.myself.id] = Share()
    share.reported_at = node.mono
    share.until = node.mono + HOLD + limit.retry
    if _is_left(node, limit, node.cluster.myself.id):
        share.used, share.slots, share.wanted = limiting.report(node, limit)
        limiting.granted(node, limit, limit.slots, 0)
    else:
        share.used, share.slots, share.wanted = limiting.used(node, limit), limit.slots, 0


def _votes(node: NodeState, limit: Limit) -> int:
    """How many nodes have assigned their part to this keeper."""
    myself = node.cluster.myself.id
    has_moved = limit.promised_to != myself
    if limiting.vote(node, limit, myself) and has_moved:
        _gain(node, limit)
    own = myself not in limit.shares and _is_left(node, limit, myself)
    return own + sum([_is_left(node, limit, id) for id in limit.shares])


def _note_complete(node: NodeState, limit: Limit) -> None:
    """Update whether reports cover everything that other keepers may have granted."""
    if limit.is_complete:
        return
    using = [share.used for id, share in limit.shares.items() if _is_left(node, limit, id)]
    limit.ceiling = max(limit.ceiling, sum(using))
    known = [
        each.id
        for each in _known(node)
        if _counts(node, limit, each.id) and not _is_long_gone(node, limit, each)
    ]
    has_all = all(
        id in limit.shares and node.mono < limit.shares[id].reported_at + FRESH for id in known
    )
    limit.is_complete = has_all or node.mono >= limit.gained_at + HOLD + _longest(node, limit)


def _is_long_gone(node: NodeState, limit: Limit, peer: Peer) -> bool:
    """For a group: has everything expired that the node may have had before it became unreachable?
    Records of groups are often dropped, so there may be no report."""
    if not limit.group or (peer.is_connected and not peer.flags & UNREACHABLE):
        return False
    if peer is node.cluster.myself:
        return False
    return node.mono >= _failed_by(node, peer) + HOLD + _longest(node, limit)


def _is_left(node: NodeState, limit: Limit, id: NodeId) -> bool:
    """Has that node assigned its part to this keeper?"""
    if id == node.cluster.myself.id:
        return limit.promised_to == id and node.mono < limit.promised_until
    return node.mono < limit.shares[id].voted_until


def _known(node: NodeState) -> list[Peer]:
    return [each for each in node.cluster.nodes.values() if not each.flags & HANDSHAKE]


def _counts(node: NodeState, limit: Limit, id: NodeId) -> bool:
    """Do the leases of that node count? With loose limits, only if it can be reached."""
    if not limit.setting.is_loose or id == node.cluster.myself.id:
        return True
    peer = node.cluster.nodes.get(id)
    return peer is not None and peer.is_connected and not peer.flags & UNREACHABLE & ~LEAVING


def _longest(node: NodeState, limit: Limit) -> Millis:
    """The longest known RETRY of jobs that may be leased at other nodes. A node that has delivered
    none uses its next queued job. Without a value for a group, that of the queue applies."""
    queue, of_queue = node.queues.get(limit.name), node.limits.get(limit.name)
    if queue is None:
        oldest = None
    else:
        oldest = queue.oldest_of(limit.group) if limit.group else queue.oldest()
    known = max(limit.retry, 0 if oldest is None else oldest.retry)
    return known or (0 if of_queue is None else of_queue.retry)


def _fill(node: NodeState, limit: Limit, votes: int) -> None:
    """Add the tokens of the time since the last call to the bucket: the parts of the nodes that
    have assigned theirs to this keeper."""
    setting, known = limit.setting, node.cluster.size
    if not setting.rate or (votes < known and node.mono < limit.woken_at + ANSWERS_WITHIN):
        return
    part = min(votes / known, 1.0)
    most = max(setting.burst, 1) + setting.rate * AT_ONCE / setting.period
    come = (node.mono - limit.level_at) * setting.rate * part / setting.period
    limit.level = min(limit.level + come, max(most * part, 1.0))
    limit.level_at = node.mono


def _part(node: NodeState, limit: Limit, votes: int) -> int:
    """How many leases this keeper may grant in total: the parts of `votes` nodes. A keeper with
    more than half of the parts rounds up; there is at most one."""
    most, known = limit.setting.concurrency, node.cluster.size
    part = most * min(votes, known)
    part = -(-part // known) if 2 * votes > known else part // known
    if not limit.is_complete:
        return min(part, limit.ceiling)
    limit.part = part
    return part


def _held(node: NodeState, share: Share) -> int:
    return max(share.slots, share.used) if node.mono < share.until else 0


def _free(node: NodeState, limit: Limit, votes: int) -> int:
    """How many more leases may be granted; negative if there are too many."""
    everywhere = here = 0
    for id, share in limit.shares.items():
        held = _held(node, share)
        everywhere += held if _counts(node, limit, id) else 0
        if _is_left(node, limit, id):
            here += held
    return min(_part(node, limit, votes) - here, limit.setting.concurrency - everywhere)


def _grant_all(node: NodeState, limit: Limit, votes: int) -> None:
    """Grant each node with demand an equal part of the free leases and tokens, in turn."""
    setting = limit.setting
    asking = [
        id for id, share in limit.shares.items() if share.wanted and _is_left(node, limit, id)
    ]
    free = _free(node, limit, votes) if setting.concurrency else 0
    left = len(asking)
    limit.fair = -1
    lacks = any(_lacked(limit, limit.shares[id]) for id in asking)
    if setting.concurrency and (free < 0 or (lacks and not free)):
        using = [
            id
            for id, share in limit.shares.items()
            if (share.wanted or _held(node, share)) and _is_left(node, limit, id)
        ]
        limit.fair = _part(node, limit, votes) // max(len(using), 1)
        _yield(node, limit)
    for id in asking:
        share = limit.shares[id]
        slots = min(_lacked(limit, share), -(-free // left)) if setting.concurrency else 0
        slots = max(slots, 0)
        tokens = min(share.wanted, -(-int(limit.level) // left)) if setting.rate else 0
        share.slots += slots
        if setting.concurrency:
            tokens = max(min(tokens, share.slots - share.used), 0)
        left -= 1
        if slots or tokens:
            free -= slots
            limit.level -= tokens
            if setting.rate and setting.concurrency:
                share.used += tokens  # each becomes a lease
            share.wanted -= tokens if setting.rate else slots
            limit.shares[id] = limit.shares.pop(id)
            _grant(node, limit, id, tokens)


def _lacked(limit: Limit, share: Share) -> int:
    """How many more leases a node needs. If there is also a rate, it may have enough leases, and
    need tokens."""
    if limit.setting.rate:
        return max(share.used + share.wanted - share.slots, 0)
    return share.wanted


def _yield(node: NodeState, limit: Limit) -> None:
    """Reduce this node's own leases to its fair part, because other nodes want some, or there are
    too many."""
    myself = node.cluster.myself.id
    share = limit.shares[myself]
    if share.slots > limit.fair and _is_left(node, limit, myself):
        limiting.granted(node, limit, limit.fair, 0)
        share.slots = limit.fair


def _grant(node: NodeState, limit: Limit, id: NodeId, tokens: int) -> None:
    """Answer the last report of a node. If others want leases, the grant is at most its fair part;
    the reduction counts only after the node has reported it."""
    share = limit.shares[id]
    slots = share.slots if limit.fair < 0 else min(share.slots, limit.fair)
    if id == node.cluster.myself.id:
        limiting.granted(node, limit, slots, tokens)
        limiting.answered(node, limit)
    else:
        grant = LimitGrant(limit.name, share.number, slots, tokens, limit.group)
        send.to_ids(node, (id,), grant)


# Time.


def on_due(node: NodeState, limit: Limit) -> None:
    """The timer: report, poll, and grant new tokens."""
    if not limit.setting.is_of_queue or (limit.group and _is_idle(node, limit)):
        return
    limiting.answered(node, limit)
    keeper = limiting.keeper(node, limit)
    if keeper == node.cluster.myself.id or (limit.gained_at and _is_in_use(node, limit)):
        _keep(node, limit)
    if keeper != node.cluster.myself.id and node.mono >= _next_report(node, limit):
        _report(node, limit, keeper)
    _arm(node, limit)


def _is_idle(node: NodeState, limit: Limit) -> bool:
    """Is the group unused? Its record is dropped when all grants have expired and its bucket is
    full."""
    if _is_used_here(node, limit):
        return False
    limiting.unpark(node, limit)
    if _is_in_use(node, limit):
        return False
    if node.mono >= _idle_at(node, limit):
        limiting.forget_group(node, limit)
    else:
        _arm(node, limit)
    return True


def _next_report(node: NodeState, limit: Limit) -> Millis:
    return _earliest_report(limit, AGAIN if limiting.wanted(node, limit) else RENEW)


def _is_used_here(node: NodeState, limit: Limit) -> bool:
    return bool(
        limit.reported
        or limiting.wanted(node, limit)
        or (limit.setting.concurrency and limiting.leased(node, limit))
    )


def _is_in_use(node: NodeState, limit: Limit) -> bool:
    """Do nodes that still report want leases or tokens, or hold some? Once this node's part is
    assigned to another keeper, that one serves the nodes whose parts are not assigned here."""
    is_keeper = limit.promised_to == node.cluster.myself.id
    return any(
        (
            each.wanted
            and node.mono < each.reported_at + VOTE
            and (is_keeper or _is_left(node, limit, id))
        )
        or _held(node, each)
        for id, each in limit.shares.items()
    )


def _arm(node: NodeState, limit: Limit) -> None:
    """Set the timer, if the queue or group is in use."""
    due: list[Millis] = []
    if _is_used_here(node, limit):
        due.append(_next_report(node, limit))
    if limit.gained_at and _is_in_use(node, limit):
        due.append(limit.polled_at + RENEW)
        if limit.setting.rate and any(
            each.wanted
            and (not limit.setting.concurrency or each.used < each.slots)
            and _is_left(node, limit, id)  # otherwise its report ends the wait
            for id, each in limit.shares.items()
        ):
            due.append(node.mono + _until_token(node, limit))
    if limit.group and not due:
        due.append(_idle_at(node, limit))
    if due:
        node.timers.arm(limit, max(min(due), node.mono + 1))


def _idle_at(node: NodeState, limit: Limit) -> Millis:
    """When the record of an unused group can be dropped: assignments and grants have expired, and
    its bucket is full."""
    setting = limit.setting
    due = max(limit.promised_until, limit.slots_until, limit.tokens_until, limit.wanted_until)
    due = max([due, *(share.until for share in limit.shares.values() if share.slots or share.used)])
    if setting.rate and limit.gained_at:
        most = max(setting.burst, 1) + setting.rate * AT_ONCE / setting.period
        missing = max(most - limit.level, 0.0)
        due = max(due, limit.level_at + int(missing * setting.period / setting.rate) + 1)
    return due


def _until_token(node: NodeState, limit: Limit) -> Millis:
    """The shortest time until there is a whole token, in milliseconds, with the parts of all
    nodes."""
    setting = limit.setting
    missing = max(1.0 - limit.level, 0.0)
    return int(missing * setting.period / setting.rate) + 1

"""Node tables (S18), and the invariants of a node's state (S17).

Rows ``nodes`` (`sim.inspection`) contain the table of a node: ``n1 n2:fail n3~1a2b3c4d:leaving``. A
table has no node that never existed. A forgotten node is removed, and gossip does not add it again
for a minute. At the end of a run the nodes of the core have each other in their tables, with the
correct addresses and no wrong flags.
"""

from typing import Final

from disque_trio.sim.checkers import silence
from disque_trio.sim.checkers.case import Case
from disque_trio.sim.checkers.cluster_liveness import is_whole
from disque_trio.sim.checkers.findings import Findings
from disque_trio.sim.checkers.intervals import meets_any
from disque_trio.sim.checkers.obligations import SECOND
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine.knobs import Knobs
from disque_trio.tracing.rows import Row

FORGETS_WITHIN: Final[Micros] = SECOND // 10
"""A node removes a forgotten node from its table within this time of FORGET."""
GOSSIP: Final[Micros] = 5 * SECOND
"""The time until one node has the suspicions of a majority: each PING reports a few nodes."""
_MAJORITY: Final = 3
"""With fewer nodes there is no majority against one of them."""
BANNED_FOR: Final[Micros] = 60 * SECOND
OPINIONS: Final = ("fail", "pfail", "noaddr")
LEAVING: Final = "leaving"


def on_invariant(case: Case, row: Row) -> None:
    """S17: an invariant that must hold between any two inputs of a node is violated."""
    case.violate("S17", row.detail, node=row.node)


def on_nodes(case: Case, row: Row) -> None:
    """S18: a table has only nodes that exist, at their addresses, and no forgotten ones."""
    case.check("S17")
    case.check("S18")
    table = case.node_tables[row.node] = {
        name: words.split(",") if words else []
        for name, _, words in (entry.partition(":") for entry in row.detail.split())
    }
    for name, words in table.items():
        if name.startswith("?"):
            detail = f"knows {name[1:]}, a node that never was"
            case.violate("S18", detail, node=row.node)
        elif words and words[-1].startswith("at="):
            detail = f"believes {name} to be at {words[-1][3:]}, where it never was"
            case.violate("S18", detail, node=row.node)
    for node, name in list(case.forgotten):
        if node == row.node and name in table:
            _judge_return(case, row, name)


def _judge_return(case: Case, row: Row, name: str) -> None:
    """S18: a node is in the table of one that was ordered to forget it."""
    since = case.forgotten[row.node, name]
    passed = row.time - since
    world = case.world
    if passed >= case.obligations.shortest(BANNED_FOR):
        del case.forgotten[row.node, name]
    elif passed > FORGETS_WITHIN and not world.is_stopped(row.node, since, row.time):
        detail = f"has {name} in its table {passed / SECOND:.3f} s after it was told to forget it"
        case.violate("S18", detail, node=row.node)


def on_forget(case: Case, row: Row) -> None:
    """An operator sends FORGET to a node. A node that is down does not receive it."""
    if case.world.is_up(row.node) and row.node not in case.world.loading:
        name = f"{row.peer}~{row.detail[:8]}" if row.detail else row.peer
        case.forgotten[row.node, name] = row.time


def on_meet(case: Case, row: Row) -> None:
    """An operator makes two nodes meet. They gossip about the nodes in their tables. A node that
    learns of a peer again sends it MEET, which lifts the ban even at a peer that had banned it."""
    _lift_bans(case)
    del row


def on_start(case: Case, row: Row) -> None:
    """A restart drops the node's own bans; a node that starts with a new name sends MEET to all."""
    if row.cause == "fresh":
        _lift_bans(case)
    for key in [key for key in case.forgotten if key[0] == row.node]:
        del case.forgotten[key]


def _lift_bans(case: Case) -> None:
    """Lift bans on current names. Bans on former names stay: no node sends MEET under such a
    name."""
    for key in [key for key in case.forgotten if "~" not in key[1]]:
        del case.forgotten[key]


def on_fail(case: Case, row: Row) -> None:
    """A node informs another one that a third has failed."""
    case.verdicts[row.node, row.detail] = row.time


def judge_outage(case: Case, row: Row) -> None:
    """L14: a node that was down or hung for long, while nothing else was wrong, was marked as
    failed. In a large cluster, where watchers collect votes, half of the time is allowed."""
    world = case.world
    down = world.down.get(row.node) or world.paused.get(row.node)
    if down is None or case.is_live or len(world.nodes) < _MAJORITY or world.is_changing:
        return
    in_all = dict(case.plan.knobs).get("watch_all", Knobs().watch_all)
    halves = 3 if len(world.nodes) > in_all else 6
    allowed = case.obligations.longest(halves * case.obligations.node_timeout // 2 + GOSSIP)
    since = down.start - case.obligations.calm_after
    others = [
        *world.link_troubles.values(),
        *(found for node, found in world.pauses.items() if node != row.node),
        *(found for node, found in world.outages.items() if node != row.node),
        world.planned,
    ]
    if row.time - down.start <= allowed or not case.obligations.is_stream:
        return
    if any(meets_any(found, since, row.time) for found in others) or case.obligations.has_tail:
        return
    case.check("L14")
    verdicts = [at for (_, peer), at in case.verdicts.items() if peer == row.node]
    if not any(at >= down.start for at in verdicts):
        lasted = (row.time - down.start) / SECOND
        detail = f"was down for {lasted:.3f} s, and no node was told that it has failed"
        case.violate("L14", detail, node=row.node)


def finish(case: Case, findings: Findings) -> None:
    """S18: at the end all nodes of the core know each other, without wrong flags."""
    world = case.world
    rejoined = world.rejoined
    if not case.node_tables or world.healed is None:
        return
    settled = 0 if rejoined is None else rejoined + _settling(case)
    if rejoined is None or case.now < settled or not is_whole(case):
        findings.leave_open("S18")
        return
    core = [node for node in world.core if world.in_core(node) and node not in world.paused]
    for node in core:
        table = case.node_tables.get(node)
        if table is None:
            continue
        case.check("S18")
        for peer in core:
            _judge_opinion(case, node, peer, table.get(peer))


def _settling(case: Case) -> Micros:
    """Return how long a node may suspect another one after all links are up again: on a new link it
    sends PING at once, and the PONG clears the flags."""
    return case.obligations.longest(2 * SECOND) + 4 * case.obligations.latency


def _judge_opinion(case: Case, node: str, peer: str, words: list[str] | None) -> None:
    if words is None:
        case.violate("S18", f"does not know {peer} in the end", node=node)
        return
    wrong = [word for word in words if word in OPINIONS]
    if _is_excused(case, node, peer, wrong) and silence.is_waiting(case, node, peer):
        return
    if LEAVING in words and _should_know_that_it_stays(case, peer):
        wrong.append(LEAVING)
    if wrong:
        case.violate("S18", f"believes of {peer} in the end: {', '.join(wrong)}", node=node)


def _is_excused(case: Case, node: str, peer: str, wrong: list[str]) -> bool:
    """Are the wrong flags excused? While a node awaits an answer, it may suspect the other one; it
    may also keep a verdict that it received after the heal, or any verdict if the answer was
    lost."""
    verdict_at = case.verdicts.get((node, peer))
    is_late = verdict_at is not None and verdict_at >= (case.world.healed or 0)
    may_believe = is_late or silence.is_answer_lost(case, node, peer)
    return wrong == ["pfail"] or (wrong == ["fail"] and may_believe)


def _should_know_that_it_stays(case: Case, peer: str) -> bool:
    """Does the peer stay in the cluster, and must the other nodes know that by now? A PONG reports
    whether its sender leaves; the next one is sent within half a node timeout after the links are
    up."""
    since = case.world.rejoined or 0
    latest = since + _settling(case) + case.obligations.longest(case.obligations.node_timeout // 2)
    return not case.may_leave(peer) and case.now >= latest

"""Connections to nodes, and the choice of the node from which jobs are taken.

`State.home`, the node from which jobs are taken, is the first one in the order of preference that
answers. A node that has failed rests, for longer after each failure.
"""

from typing import Final

from disque_trio.statemachine.base import Reply
from disque_trio.worker.engine import words
from disque_trio.worker.engine.records import (
    MILLI,
    NEVER,
    SECOND,
    Job,
    Link,
    Micros,
    Node,
    Phase,
    Request,
    Send,
    State,
    Verb,
)

PATIENCE: Final[Micros] = 5 * SECOND
"""How long a node may take to answer, in addition to the requested waiting time."""
HURRY: Final[Micros] = 500 * MILLI
"""If a node does not answer the greeting for this long, the next node is tried as well."""
REST: Final[Micros] = 250 * MILLI
LONGEST_REST: Final[Micros] = 30 * SECOND
LONGEST_WITHOUT: Final[Micros] = 1 * SECOND
"""The longest rest while all other nodes rest too."""
AGAIN: Final[Micros] = 20 * MILLI
"""The pause before CLIENT UNBLOCK is repeated, if it arrived before the GETJOB that it should
end."""
REFUSAL: Final[Micros] = 5 * SECOND
"""The pause before a node that delivers no jobs is asked again."""


def send(
    state: State,
    now: Micros,
    link: Link,
    command: tuple[bytes, ...],
    request: tuple[Verb, tuple[Job, ...]],
    wait: Micros = 0,
    *,
    is_first: bool = False,
) -> Request:
    """Send a request. It may take `wait` longer than other requests. With `is_first` it must be
    written before handlers start."""
    verb, jobs = request
    patience = wait + PATIENCE
    sent = Request(verb, now, now + patience, patience, jobs)
    link.requests.append(sent)
    state.out.sends.append(Send(link.number, link.node, command, is_first))
    return sent


def control_of(state: State, now: Micros, node: Node) -> Link:
    """The node's connection for everything except GETJOB."""
    if node.control is None:
        node.control = _open(state, now, node, is_fetch=False)
    return node.control


def _open(state: State, now: Micros, node: Node, *, is_fetch: bool) -> Link:
    state.last_link += 1
    link = state.links[state.last_link] = Link(state.last_link, node.name, is_fetch, now)
    if node.features is None or is_fetch:
        send(state, now, link, (b"INFO", b"server"), (Verb.FEATURES, ()))
    if is_fetch and not state.settings.is_plain:
        send(state, now, link, (b"CLIENT", b"ID"), (Verb.NAME, ()))
    return link


def choose_home(state: State, now: Micros) -> None:
    """Take jobs from the first node that answers, and greet the nodes before it that do not
    rest."""
    for name in state.order:
        node = state.nodes[name]
        if max(node.rests_until, node.refuses_until) > now:
            continue
        if node.fetch is None:
            node.fetch = _open(state, now, node, is_fetch=True)
        if _is_greeted(node.fetch):
            state.home = name
            return
        if now - node.fetch.opened < HURRY:
            # Jobs are taken from the last home until then.
            return
    state.home = ""


def _is_greeted(link: Link) -> bool:
    return all(each.verb is not Verb.FEATURES for each in link.requests)


def look_again_at(state: State, now: Micros) -> Micros:
    """When another node may become the home."""
    found = []
    for name in state.order:
        if name == state.home:
            break
        node = state.nodes[name]
        unfit_until = max(node.rests_until, node.refuses_until)
        if unfit_until > now:
            found.append(unfit_until)
        elif node.fetch is not None and not _is_greeted(node.fetch):
            found.append(max(node.fetch.opened + HURRY, now + HURRY // 2))
    return min(found, default=now + LONGEST_REST)


def rest(state: State, now: Micros, node: Node) -> None:
    """The node has not answered: prefer other nodes for some time."""
    if node.rests_until <= now:
        others = any(each.rests_until <= now for each in state.nodes.values() if each is not node)
        most = LONGEST_REST if others else LONGEST_WITHOUT
        node.rests_until = now + min(REST << node.failures, most)
        node.failures = min(node.failures + 1, 10)
    if state.home == node.name:
        state.home = ""


def refuse(state: State, now: Micros, node: Node) -> None:
    """The node delivers no jobs now. Its jobs stay with it."""
    node.refuses_until = now + REFUSAL
    if state.home == node.name:
        state.home = ""


def answered(node: Node) -> None:
    """The node serves requests."""
    node.failures, node.rests_until = 0, 0


def drop(state: State, link: Link) -> None:
    """Forget a connection that has ended or is not needed."""
    node = state.nodes[link.node]
    state.links.pop(link.number, None)
    if node.fetch is link:
        node.fetch = None
    if node.control is link:
        node.control = None
    if node.fetch is node.control:
        # The next process may be of another version.
        node.features = None


def close(state: State, link: Link) -> None:
    """Close a connection."""
    drop(state, link)
    state.out.closes.append(link.number)


def wake(state: State, now: Micros, *, has_to_end: bool) -> None:
    """Interrupt GETJOBs at nodes from which no more jobs are wanted, if that is possible without
    losing a job; otherwise they time out. Then close the connection, unless jobs are tied to it.
    The GETJOB at the home node is interrupted only if it `has_to_end`."""
    for link in list(state.links.values()):
        if link.wake_at <= now:
            link.wake_at = 0
        is_home = state.phase is Phase.RUNNING and link.node == state.home
        if not link.is_fetch or (is_home and not has_to_end) or not _is_greeted(link):
            continue
        if link.taking is not None:
            _wake(state, now, link)
        elif not is_home and not link.requests and _is_useless(state, link):
            close(state, link)


def _is_useless(state: State, link: Link) -> bool:
    """Are no more jobs wanted from this connection, and none tied to it?"""
    if state.phase is Phase.RUNNING:
        names = state.order
        if not state.home or link.node in names[: names.index(state.home)]:
            return False
    return not any(job.link == link.number for job in state.jobs.values())


def on_woken(now: Micros, node: Node, reply: Reply) -> None:
    """The reply to CLIENT UNBLOCK."""
    link = node.fetch
    if link is not None and link.wake_at == NEVER and reply == 0:
        link.wake_at = now + AGAIN


def _wake(state: State, now: Micros, link: Link) -> None:
    node = state.nodes[link.node]
    if link.client is not None and not link.wake_at and words.has(node, words.UNBLOCK):
        link.wake_at = NEVER
        if link.taking is not None:
            link.taking.is_whole = False
        command = (b"CLIENT", b"UNBLOCK", b"%d" % link.client)
        send(state, now, control_of(state, now, node), command, (Verb.WAKE, ()))


def candidates(state: State, job: Job) -> list[str]:
    """The nodes that accept reports on a job, in order: the node that delivered it, the one at
    which it was added, and the others."""
    origin = state.origins.get(job.id[2:10])
    first = [job.node] if origin is None else [job.node, origin]
    return list(dict.fromkeys([*first, *state.order]))


def whom(state: State, now: Micros, job: Job) -> Node:
    """The next candidate; a resting node only if all rest. For a snooze, prefer nodes that support
    or may support it: another node would count a failure, or not wait."""
    first, is_snooze = state.nodes[job.node], words.is_snooze(job.outcome)
    if not job.tries and first.rests_until <= now and not is_snooze:  # the usual case
        return first
    names = candidates(state, job)
    if is_snooze:
        names = [name for name in names if words.may_snooze(state.nodes[name])] or names
    start = job.tries % len(names)
    turns = [state.nodes[name] for name in (*names[start:], *names[:start])]
    awake = [node for node in turns if node.rests_until <= now]
    return awake[0] if awake else min(turns, key=lambda node: node.rests_until)

"""Connections to nodes, and from which node jobs are taken.

The node from which jobs are taken, `State.home`, is the first in the order of preference that
answers. A node that has failed rests, for longer each time.
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
"""How long a node may take to answer, besides the time that it was asked to wait."""
HURRY: Final[Micros] = 500 * MILLI
"""After so long without an answer to the greeting, the next node is tried as well."""
REST: Final[Micros] = 250 * MILLI
LONGEST_REST: Final[Micros] = 30 * SECOND
LONGEST_WITHOUT: Final[Micros] = 1 * SECOND
"""The same while all others rest too: the worker has nothing else to do."""
AGAIN: Final[Micros] = 20 * MILLI
"""After so long CLIENT UNBLOCK is sent again, if it came before the GETJOB that it was to end."""
REFUSAL: Final[Micros] = 5 * SECOND
"""After so long a node that gives no jobs is asked for some again."""


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
    """Send a request, which may take so much longer than others, or is to be written before
    handlers start."""
    verb, jobs = request
    patience = wait + PATIENCE
    sent = Request(verb, now, now + patience, patience, jobs)
    link.requests.append(sent)
    state.out.sends.append(Send(link.number, link.node, command, is_first))
    return sent


def control_of(state: State, now: Micros, node: Node) -> Link:
    """The connection for all but GETJOB."""
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
    """Take jobs from the first node that answers, and greet those before it that do not rest."""
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
            # The last home serves on until then.
            return
    state.home = ""


def _is_greeted(link: Link) -> bool:
    return all(each.verb is not Verb.FEATURES for each in link.requests)


def look_again_at(state: State, now: Micros) -> Micros:
    """When another node may become home."""
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
    """It has not answered: ask others first."""
    if node.rests_until <= now:
        others = any(each.rests_until <= now for each in state.nodes.values() if each is not node)
        most = LONGEST_REST if others else LONGEST_WITHOUT
        node.rests_until = now + min(REST << node.failures, most)
        node.failures = min(node.failures + 1, 10)
    if state.home == node.name:
        state.home = ""


def refuse(state: State, now: Micros, node: Node) -> None:
    """It gives no jobs now. What is in hand stays with it."""
    node.refuses_until = now + REFUSAL
    if state.home == node.name:
        state.home = ""


def answered(node: Node) -> None:
    """It serves."""
    node.failures, node.rests_until = 0, 0


def drop(state: State, link: Link) -> None:
    """The connection has ended, or is of no use."""
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
    """End a connection."""
    drop(state, link)
    state.out.closes.append(link.number)


def wake(state: State, now: Micros, *, has_to_end: bool) -> None:
    """End GETJOBs at nodes from which no more jobs are wanted, where that is possible without the
    loss of a job; elsewhere their time runs out. Then the connection is not needed, unless jobs
    are tied to it. The one that waits at home ends if it `has_to_end`."""
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
    """Are no more jobs wanted from it, and none tied to it?"""
    if state.phase is Phase.RUNNING:
        names = state.order
        if not state.home or link.node in names[: names.index(state.home)]:
            return False
    return not any(job.link == link.number for job in state.jobs.values())


def on_woken(now: Micros, node: Node, reply: Reply) -> None:
    """What CLIENT UNBLOCK has done."""
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
    """Whom to tell about a job: the node that has delivered it, the one at which it was added, and
    the others."""
    origin = state.origins.get(job.id[2:10])
    first = [job.node] if origin is None else [job.node, origin]
    return list(dict.fromkeys([*first, *state.order]))


def whom(state: State, now: Micros, job: Job) -> Node:
    """The next of them; one that rests only if all do. With a snooze only those that know such or
    may know them, if there are any: another node would count a failure, or not wait."""
    first, is_snooze = state.nodes[job.node], words.is_snooze(job.outcome)
    if not job.tries and first.rests_until <= now and not is_snooze:  # as nearly always
        return first
    names = candidates(state, job)
    if is_snooze:
        names = [name for name in names if words.may_snooze(state.nodes[name])] or names
    start = job.tries % len(names)
    turns = [state.nodes[name] for name in (*names[start:], *names[:start])]
    awake = [node for node in turns if node.rests_until <= now]
    return awake[0] if awake else min(turns, key=lambda node: node.rests_until)

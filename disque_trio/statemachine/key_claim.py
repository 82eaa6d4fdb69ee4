"""UNIQUE: an ADDJOB asks all nodes for its key before its job exists (decision 70).

The job is added when every reachable node has answered that it has no other live job with the key.
If several ADDJOBs ask at the same time, the one with the smallest creation stamp and id is first:
its node answers PENDING to the others, which wait for it. An ADDJOB for which all nodes have
answered that the key is free precedes all others. So for two ADDJOBs at two nodes, at least one
node reports its ADDJOB or job to the other.

An answer to a later ADDJOB is not final: if an earlier ADDJOB asks from a node that has answered
already, that node is asked again. Before ADDJOB replies with the id of another job, it asks all
nodes whether that job has ended, because a holder may not have received the acknowledgement.

Owns `Keys.claims`, `asking`, `last_number` and `askers`, and the fields of a `Claim`; drops
`Keys.dirty`.
"""

from disque_trio.statemachine import (
    key_facts,
    key_index,
    key_search,
    lifecycle,
    pending_adds,
    replication,
    send,
)
from disque_trio.statemachine.base import (
    FOREVER,
    PENDING,
    Failure,
    JobId,
    Millis,
    NodeId,
    Reply,
    Status,
)
from disque_trio.statemachine.client import Client
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.job import Job
from disque_trio.statemachine.key_facts import (
    DONE_KEPT,
    ENDED,
    HELD,
    KEPT,
    KEY_STATES,
    MOVED,
    WAITING,
    KeyFact,
    awaits_turn,
    holder_of_key,
    is_undecided,
    join,
    latest_stamp,
    wants_again,
    wants_replaced,
)
from disque_trio.statemachine.key_search import ASK_EVERY, NO_JOB
from disque_trio.statemachine.keys import AGAIN, REJECT, REPLACE, Claim, KeyName, Keys
from disque_trio.statemachine.messages import KeyAnswer, KeyClaim
from disque_trio.statemachine.pausing import PAUSED
from disque_trio.statemachine.state import NodeState


def begin(
    node: NodeState,
    client: Client,
    job: Job,
    deadline: Millis,
    *,
    if_exists: int,
    is_async: bool,
    sync: int = 0,
) -> Reply:
    """Begin an ADDJOB with UNIQUE: block the client until the job, which is not registered yet, has
    its key. Returns an error if a node cannot answer."""
    name = key_index.name_of(job)
    assert name is not None, f"{job.id!r} wants no key"
    if (refusal := key_search.refusal(node)) is not None:
        return refusal
    pending_adds.begin(node, client, job, deadline, sync, FOREVER)
    keys = node.keys
    keys.last_number += 1
    claim = Claim(keys.last_number, name, job, if_exists, is_async, node.mono, node.mono)
    waiting = keys.claims.setdefault(name, [])
    waiting.append(claim)
    if len(waiting) == 1:
        _start(node, claim)
    return PENDING


def _start(node: NodeState, claim: Claim) -> None:
    """Begin to ask for the first claim of a key here, unless an earlier job of this node with the
    key waits for replicas."""
    known = key_index.facts(node, claim.name, claim.job.id, b"")
    if any(fact.word == key_facts.PENDING for fact in known):
        return
    node.keys.asking[claim.number] = claim
    claim.began = node.mono
    _ask_all(node, claim)
    _consider(node, claim)


# The nodes to ask, and missing answers.


def _awaited(node: NodeState, claim: Claim) -> list[Peer]:
    return key_search.quorum(node, claim.began, claim.last_answers, claim.answers)


def _ask_all(node: NodeState, claim: Claim) -> None:
    """Begin a new round: earlier answers do not count."""
    node.keys.last_number += 1
    claim.asked_at = node.keys.last_number
    claim.round += 1
    claim.base = claim.round
    claim.moved = b""
    claim.since.clear()
    claim.last_answers.update(dict.fromkeys(claim.answers, node.mono))
    claim.answers.clear()
    _send(node, claim, _awaited(node, claim))


def _send(node: NodeState, claim: Claim, peers: list[Peer]) -> None:
    job, (queue, key) = claim.job, claim.name
    about = claim.about or NO_JOB
    message = KeyClaim(claim.number, claim.round, job.id, job.ctime, about, queue, key)
    send.broadcast(node, key_search.links(peers), message)
    claim.again_at = node.mono + ASK_EVERY
    timer = node.keys
    if not timer.due or claim.again_at < timer.due:
        node.timers.arm(timer, claim.again_at)


def _ask_again(node: NodeState, claim: Claim) -> None:
    """Ask nodes again that have not answered, or whose answer is undecided. If a job was moving,
    ask all, because it may have arrived at a node that had answered before."""
    answers, awaited = claim.answers, _awaited(node, claim)
    if claim.moved and all(peer.id in answers for peer in awaited):
        claim.about = claim.moved
        _ask_all(node, claim)
        return
    silent = [
        peer for peer in awaited if peer.id not in answers or is_undecided(join([answers[peer.id]]))
    ]
    _send(node, claim, silent)


def on_due(node: NodeState, keys: Keys) -> None:
    """The timer: continue ADDJOBs after changes of jobs with their keys, and repeat questions
    without answers."""
    dirty = list(keys.dirty)
    keys.dirty.clear()
    for name in dirty:
        _continue(node, name)
    refusal = key_search.refusal(node) if keys.asking else None
    for claim in list(keys.asking.values()):
        if refusal is not None:
            _give_up(node, claim.name, refusal)
        elif claim.again_at <= node.mono and keys.asking.get(claim.number) is claim:
            _ask_again(node, claim)
            _consider(node, claim)
    if keys.asking:
        soonest = min(claim.again_at for claim in keys.asking.values())
        node.timers.arm(keys, node.mono if keys.dirty else soonest)


def _give_up(node: NodeState, name: KeyName, refusal: Failure) -> None:
    """Fail the ADDJOBs for a key, because a node cannot be asked."""
    for claim in list(node.keys.claims[name]):
        _remove(node, claim)
        if claim.job.id in node.adding:
            replication.give_up(node, claim.job, refusal)


def _continue(node: NodeState, name: KeyName) -> None:
    """Continue the claims of a key after a change of a job with it, or of an ADDJOB here."""
    keys = node.keys
    for claim in [each for each in keys.claims.get(name, ()) if each.job.id not in node.adding]:
        _remove(node, claim)
    _settle_after_own_jobs(node, name)
    if name in keys.claims:
        first = keys.claims[name][0]
        (_consider if first.number in keys.asking else _start)(node, first)
    _answer_askers(node, name)


def _settle_after_own_jobs(node: NodeState, name: KeyName) -> None:
    """If a job of this node has the key, reply to the ADDJOBs here that asked for it before the job
    was added."""
    mine = node.cluster.myself.id[:8]
    for job in node.keys.index.get(name, ()):
        fact = key_index.fact_of(node, job)
        if fact.word == HELD and job.id[2:10] == mine:
            known = {fact.id: fact}
            for claim in list(node.keys.claims.get(name, ())):
                if claim.age < (job.ctime, job.id) and not _adds_anyway(claim, known):
                    _answer_client(node, claim, known)


# Answers.


def on_keyanswer(node: NodeState, sender: Peer, message: KeyAnswer) -> None:
    """Handle KEYANSWER: a node reports its facts about a key, for a search or an ADDJOB."""
    search = node.keys.searches.get(message.number)
    if search is None:
        _take_answer(node, sender, message)
    else:
        key_search.take_answer(node, search, sender, message)


def _take_answer(node: NodeState, sender: Peer, message: KeyAnswer) -> None:
    claim = node.keys.asking.get(message.number)
    if claim is None:
        return
    claim.last_answers[sender.id] = node.mono
    if message.round < claim.since.get(sender.id, claim.base):
        return
    claim.answers[sender.id] = message.facts
    for fact in message.facts:
        if fact.word == key_facts.PENDING:
            claim.pending.setdefault(fact.id, (sender.id, claim.asked_at))
        elif (
            fact.word == HELD
            and claim.pending.get(fact.id, (b"", 0))[0] == sender.id
            and not _adds_anyway(claim, {fact.id: fact})
        ):
            # The job was added after this node asked.
            _refuse(node, claim.name, {fact.id: fact}, claim.pending[fact.id][1])
            return
    _consider(node, claim)


def _consider(node: NodeState, claim: Claim) -> None:
    """Decide the claim if the answers suffice."""
    awaited = _awaited(node, claim)
    known = _known(node, claim, awaited)
    taken = holder_of_key(known)
    is_answered = all(peer.id in claim.answers for peer in awaited)
    holder = taken.id if taken is not None and taken.word == HELD else claim.about
    if holder != claim.about and (is_answered or not claim.about):
        # If all nodes were asked about another job, wait for those answers first.
        claim.about = holder
        _ask_all(node, claim)
        _consider(node, claim)
        return
    if not is_answered:
        return
    if taken is not None and not _adds_anyway(claim, known):
        _refuse(node, claim.name, known, claim.asked_at)
    elif not claim.moved and not is_undecided(known):
        _pass(node, claim, known)


def _adds_anyway(claim: Claim, known: dict[JobId, KeyFact]) -> bool:
    """Is the job to be added although another job has the key? Then it waits for the end of that
    job."""
    if claim.if_exists == AGAIN:
        return wants_again(known)
    return claim.if_exists == REPLACE and wants_replaced(known)


def _known(node: NodeState, claim: Claim, awaited: list[Peer]) -> dict[JobId, KeyFact]:
    mine = key_index.facts(node, claim.name, claim.job.id, claim.about)
    answers, ended = claim.answers, claim.ended
    reported = [answers[peer.id] for peer in awaited if peer.id in answers]
    known = join([mine, *reported, ended.values()])
    for job_id, fact in known.items():
        if fact.word in (ENDED, KEPT):
            ended[job_id] = fact
        if fact.word == MOVED:
            claim.moved = job_id
        elif job_id == claim.moved:
            claim.moved = b""
    return known


def _refuse(node: NodeState, name: KeyName, known: dict[JobId, KeyFact], asked_at: int) -> None:
    """Another job has the key: reply to all ADDJOBs that existed when the nodes were asked. For
    later ones, the job may have ended before."""
    for claim in list(node.keys.claims[name]):
        if claim.number < asked_at and not _adds_anyway(claim, known):
            _answer_client(node, claim, known)
    _continue(node, name)


def _answer_client(node: NodeState, claim: Claim, known: dict[JobId, KeyFact]) -> None:
    _remove(node, claim)
    if claim.job.id in node.adding:
        pending_adds.settle(node, claim.job, _refusal(claim, known))


def _refusal(claim: Claim, known: dict[JobId, KeyFact]) -> Reply:
    taken = awaits_turn(known) if claim.if_exists == AGAIN else None
    taken = taken or holder_of_key(known)
    assert taken is not None, f"nobody has the key of {claim.job.id!r}"
    if claim.if_exists == REJECT:
        state = taken.state if taken.word == HELD else DONE_KEPT
        return Failure(b"DUPLICATE %b %b" % (taken.id, KEY_STATES[state]))
    return Status(taken.id)


def _pass(node: NodeState, claim: Claim, known: dict[JobId, KeyFact]) -> None:
    """The key is free, or the job waits for the end of the one that has it: add the job, unless its
    queue was paused meanwhile."""
    job = claim.job
    _remove(node, claim)
    if job.id in node.adding and lifecycle.is_paused_in(node, claim.name[0]):
        pending_adds.settle(node, job, Failure(PAUSED))
    elif job.id in node.adding:
        if latest := latest_stamp(known):
            replication.follow(node, job, latest, replaces=claim.if_exists == REPLACE)
        replication.add_claimed(node, job, node.mono - claim.made, is_async=claim.is_async)
    _continue(node, claim.name)


def _remove(node: NodeState, claim: Claim) -> None:
    keys = node.keys
    waiting = keys.claims[claim.name]
    waiting.remove(claim)
    keys.asking.pop(claim.number, None)
    if not waiting:
        del keys.claims[claim.name]


# Questions of other nodes.


def on_keyclaim(node: NodeState, sender: Peer, message: KeyClaim) -> None:
    """Handle KEYCLAIM: answer with this node's facts about a key."""
    name = message.queue, message.key
    first = node.keys.claims.get(name)
    if first and message.stamp and (message.stamp, message.id) < first[0].age:
        _ask_anew(node, first[0], sender, message)
    _answer(node, sender, message)


def _answer(node: NodeState, sender: Peer, message: KeyClaim) -> None:
    name = message.queue, message.key
    about = b"" if message.about == NO_JOB else message.about
    found = key_index.facts(node, name, message.id, about)
    first = node.keys.claims.get(name)
    if first and message.stamp and first[0].age < (message.stamp, message.id):
        job = first[0].job
        found.append(KeyFact(job.id, job.ctime, key_facts.PENDING, WAITING, 0))
    if message.stamp:
        waits = any(fact.word == key_facts.PENDING for fact in found)
    else:
        # A question with an id is about a job that waits until these have ended.
        waits = message.id != NO_JOB and any(map(key_facts.is_live, found))
        own = node.jobs.get(message.id)
        if own is not None and (
            key_index.search_for(node, own) is not None or not key_index.is_held_back(own)
        ):
            # Both nodes ask for this job, or it was let go here, which the asking node may have
            # forgotten.
            found.append(key_index.fact_of(node, own))
    askers = node.keys.askers
    if waits:
        askers.setdefault(name, {})[sender.id] = message
    elif name in askers:
        _forget_asker(node, name, sender.id)
    send.to_node(node, sender, KeyAnswer(message.number, message.round, tuple(found)))


def _ask_anew(node: NodeState, claim: Claim, sender: Peer, message: KeyClaim) -> None:
    """An earlier ADDJOB asks for the key: discard the answer of its node, and ask that node
    again."""
    if claim.number not in node.keys.asking or claim.yielded.get(sender.id) == message.id:
        return
    claim.yielded[sender.id] = message.id
    claim.last_answers[sender.id] = node.mono
    claim.answers.pop(sender.id, None)
    claim.round += 1
    claim.since[sender.id] = claim.round
    _send(node, claim, [sender])


def _answer_askers(node: NodeState, name: KeyName) -> None:
    """Answer the nodes that wait for the outcome of an ADDJOB here."""
    for id, message in list(node.keys.askers.get(name, {}).items()):
        sender = node.cluster.nodes.get(id)
        if sender is None:
            _forget_asker(node, name, id)
        else:
            _answer(node, sender, message)


def _forget_asker(node: NodeState, name: KeyName, id: NodeId) -> None:
    waiting = node.keys.askers[name]
    waiting.pop(id, None)
    if not waiting:
        del node.keys.askers[name]

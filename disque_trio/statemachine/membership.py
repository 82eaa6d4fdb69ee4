"""Membership: the heartbeat, and the handling of PING, PONG, MEET and FAIL (original 5.5 to 5.9).

Handles Ping, Pong, Meet, Fail, Suspect and the cron timer, and implements the CLUSTER commands. It
uses `links`, `nodetable`, `failure`, `handshake` and `gossip`. Owns `Peer.capabilities`, `format`
and `version`, and sets `created`, `ping_sent` and `pong_received` of nodes from nodes.conf.

The bus has no authentication by default, so every field of a frame is checked, counted or bounded
before it is stored.
"""

from collections.abc import Iterable
from typing import Final

from disque_trio.statemachine import (
    federation,
    gossip,
    handshake,
    hostnames,
    identity,
    key_ordering,
    limiting,
    metrics,
    queue_announcements,
    repair,
    resend,
    send,
    versions,
    watchers,
)
from disque_trio.statemachine.address import is_node_id, new_node_id
from disque_trio.statemachine.base import FAIL, HANDSHAKE, LEAVING, NOADDR, ZONES, NodeId
from disque_trio.statemachine.cluster import Link, Peer
from disque_trio.statemachine.failure import mark_failed, report, suspect_if_silent
from disque_trio.statemachine.heartbeat import HEARTBEAT, beat, rest, rouse
from disque_trio.statemachine.links import dial, hang_up
from disque_trio.statemachine.messages import (
    Fail,
    Frame,
    Gossip,
    GossipMessage,
    Meet,
    Ping,
    Pong,
    Suspect,
)
from disque_trio.statemachine.nodetable import (
    add,
    ban,
    learn_address,
    learn_names,
    learn_own_ip,
    lose_address,
    mark_leaving,
    remove,
    rename,
)
from disque_trio.statemachine.state import Cron, NodeState

_BEATS_PER_PING: Final = 10
"""A random node is pinged once per this number of heartbeats, even if no ping is due."""
_DRAWS_PER_PING: Final = 5


def on_gossip(node: NodeState, link: Link, frame: Frame) -> None:
    """Handle PING, PONG or MEET on a link, ours or another node's."""
    message = frame.message
    if not isinstance(message, GossipMessage) or not is_node_id(frame.sender):
        metrics.count_refused(node, "no node ID", 1)
        return
    if frame.sender == node.cluster.myself.id:
        identity.on_own_id(node, link, frame)
    elif identity.is_yielding(node):
        return
    if not isinstance(message, Pong):
        _answer(node, link, frame)
    sender = _recognise(node, link, frame)
    if sender is None:
        return
    if link.peer is not None:
        _receive_on_own_link(node, sender, frame)
    elif isinstance(message, Ping):
        learn_address(node, sender, link, frame)
    mark_leaving(node, sender, leaving=bool(frame.flags & LEAVING))
    gossip.read_section(node, sender, message.gossip)


def _receive_on_own_link(node: NodeState, sender: Peer, frame: Frame) -> None:
    """Apply the fields that are trusted only on a link that this node dialled, because any node may
    send on others."""
    sender.format, sender.version = frame.format, versions.readable(frame.version)
    shared = frame.capabilities & node.facts.capabilities
    if sender.capabilities != shared:
        sender.capabilities = shared
        if sender.is_ours:
            queue_announcements.announce(node, sender)
    if isinstance(frame.message, Pong):
        is_back = resend.is_back(sender)
        learn_names(node, sender, frame.message.zone, frame.message.name)
        if frame.message.limits or node.limits:
            limiting.compare(node, sender, frame.message.limits)
        gossip.on_pong(node, sender)
        if is_back:
            resend.begin(node, sender)
            key_ordering.begin_reconcile(node)


def _answer(node: NodeState, link: Link, frame: Frame) -> None:
    """Answer with PONG, also to unknown nodes. The link has the address at which other nodes reach
    this one."""
    is_meet = isinstance(frame.message, Meet)
    sender = node.cluster.nodes.get(frame.sender)
    myself = node.cluster.myself
    is_member = sender is not None and not node.cluster.is_own_ip_learned
    if ((is_meet or is_member) and sender is not myself) or not myself.ip:
        learn_own_ip(node, link.local_ip)
    if is_meet and sender is None:
        handshake.answer_meet(node, link, frame)
    entries = gossip.section(node)
    if sender is not None and frame.incarnation:
        entries += _other_process(node, link, sender, frame)
    if frame.capabilities & ZONES:
        limits = limiting.digest(node)
        pong = Pong(entries, myself.zone, myself.name, limits)
    else:
        pong = Pong(entries)
    send.on_link(node, link.id, pong)


def _other_process(node: NodeState, link: Link, sender: Peer, frame: Frame) -> tuple[Gossip, ...]:
    """If two processes use the sender's ID, an entry with the address of the other one."""
    if link.peer is not None or sender is node.cluster.myself or sender.flags & HANDSHAKE:
        return ()
    identity.note(node, sender, frame, link.remote_ip)
    other = identity.other_process(node, sender) if len(sender.processes) > 1 else None
    return () if other is None else (gossip.entry_of_process(other, sender.id),)


def _recognise(node: NodeState, link: Link, frame: Frame) -> Peer | None:
    """The member that sent the frame; None if it is unknown or is this node, or if the ID does not
    match the link."""
    peer = link.peer
    if peer is None:
        sender = node.cluster.nodes.get(frame.sender)
        if sender is node.cluster.myself or (sender and sender.flags & HANDSHAKE):
            return None
        return sender
    if peer.flags & HANDSHAKE:
        hostnames.answered(node, peer)
        member = handshake.complete(node, peer, link, frame)
        if member is not None:
            federation.watch_all(node)
        return member
    if peer.id != frame.sender:
        lose_address(node, peer)
        gossip.expect_nothing(peer)
        return None
    return peer


def on_fail(node: NodeState, _sender: Peer, message: Fail) -> None:
    """Handle FAIL: flag the node as failed. The message is not forwarded.

    FAIL may arrive after the node has answered. A ping checks that at once; the original waits for
    the next regular one, up to half of the node timeout.
    """
    peer = node.cluster.nodes.get(message.node)
    if peer is None or peer is node.cluster.myself or peer.flags & FAIL:
        return
    mark_failed(node, peer)
    if peer.link and not peer.ping_sent:
        gossip.ping(node, peer)


def on_suspect(node: NodeState, sender: Peer, message: Suspect) -> None:
    """Handle SUSPECT: another node receives no answer from a node, so ping it. A vote counts as a
    failure report."""
    peer = node.cluster.nodes.get(message.node)
    if peer is None or peer is node.cluster.myself or peer.flags & (FAIL | HANDSHAKE):
        return
    watchers.doubt(node, peer)
    if message.is_vote:
        report(node, peer, sender.id)
    if peer.link and not peer.ping_sent:
        gossip.ping(node, peer)
    rouse(node)


def on_cron(node: NodeState, cron: Cron) -> None:
    """The heartbeat. It stops while the node is alone."""
    beats = beat(cron)
    others = _others(node)
    for peer in tuple(others):
        if peer.flags & HANDSHAKE and handshake.is_overdue(node, peer):
            remove(node, peer)
            others.remove(peer)
        elif not peer.link:
            dial(node, peer)
            # The node may run another version by now: its PONG will announce its capabilities.
            peer.capabilities, peer.format, peer.version = 0, 0, b""
            gossip.ping(node, peer)
    if beats % _BEATS_PER_PING == 0:
        _ping_somebody(node)
    for peer in others:
        if peer.flags & HANDSHAKE:
            handshake.replace_silent_link(node, peer)
        else:
            _watch(node, peer)
    is_alone = len(node.cluster.nodes) == 1 and node.cluster.duplicate is None
    if is_alone or beats % _BEATS_PER_PING == 0:
        repair.watch(node)
        identity.watch(node)
        if not identity.is_yielding(node):
            hostnames.watch(node)
    if not is_alone or node.cluster.hosts:
        rest(node, _idle_beats(node, others, beats))


def _idle_beats(node: NodeState, others: list[Peer], beats: int) -> int:
    """How many heartbeats may be skipped if nothing calls `rouse`."""
    soonest = node.mono + _BEATS_PER_PING * HEARTBEAT
    half_timeout = node.config.cluster_node_timeout // 2
    is_large = bool(node.cluster.ring)
    for peer in others:
        if peer.ping_sent or not peer.link or peer.flags & HANDSHAKE:
            return 0
        allowed = watchers.patience(node, peer) if is_large else half_timeout
        if allowed is not None:
            soonest = min(soonest, peer.pong_received + allowed)
    until_silence = max((soonest - node.mono) // HEARTBEAT, 0)
    until_ping = _BEATS_PER_PING - 1 - beats % _BEATS_PER_PING
    return min(until_silence, until_ping)


def _others(node: NodeState) -> list[Peer]:
    """The nodes to contact. A process that yields its ID contacts only the other process."""
    myself = node.cluster.myself
    if identity.is_yielding(node):
        return [peer for peer in node.cluster.nodes.values() if peer.flags & HANDSHAKE]
    return [
        peer
        for peer in node.cluster.nodes.values()
        if peer is not myself and not peer.flags & NOADDR
    ]


def _ping_somebody(node: NodeState) -> None:
    """Ping the node with the oldest PONG among a few random nodes."""
    nodes = list(node.cluster.nodes.values())
    drawn = [nodes[int(node.rng.random() * len(nodes))] for _ in range(_DRAWS_PER_PING)]
    fit = [
        peer for peer in drawn if peer.link and not peer.ping_sent and not peer.flags & HANDSHAKE
    ]
    if fit:
        gossip.ping(node, min(fit, key=lambda peer: peer.pong_received))


def _watch(node: NodeState, peer: Peer) -> None:
    """Ping a node that was silent for half the node timeout or, in a large cluster, for
    `watchers.patience`. Suspect a node that does not answer.

    A link without an answer for half the node timeout is replaced first, because the node may be
    well and only the connection dead.
    """
    timeout = node.config.cluster_node_timeout
    if peer.ping_sent:
        is_old = node.mono - peer.link_created > timeout
        if is_old and node.mono - peer.ping_sent > timeout // 2:
            hang_up(node, peer)
    elif peer.link:
        allowed = watchers.patience(node, peer) if node.cluster.ring else timeout // 2
        if allowed is not None and node.mono - peer.pong_received > allowed:
            gossip.ping(node, peer)
    suspect_if_silent(node, peer)
    if peer.ping_sent and node.cluster.ring:
        watchers.report_silence(node, peer)


def meet(node: NodeState, ip: str, port: int, bus_port: int = 0) -> bool:
    """Start a handshake with the node at this address; False if the address is not valid."""
    return handshake.meet(node, ip, port, bus_port)


def forget(node: NodeState, node_id: NodeId) -> None:
    """Drop the node from the table, and ignore gossip about it for a minute."""
    hostnames.forget(node, node.cluster.nodes[node_id])
    remove(node, node.cluster.nodes[node_id])
    ban(node, node_id)


def reset(node: NodeState, *, hard: bool) -> None:
    """Drop all other nodes. A hard reset also sets a new node ID. Jobs and queues are not
    affected."""
    myself = node.cluster.myself
    for peer in list(node.cluster.nodes.values()):
        if peer is not myself:
            remove(node, peer)
    hostnames.reset(node)
    if hard:
        rename(node, myself, new_node_id(node.rng))


def set_leaving(node: NodeState, *, leaving: bool) -> None:
    """Set whether this node is leaving, and announce it to all nodes at once, so that clients use
    other nodes."""
    if leaving != node.cluster.is_leaving:
        mark_leaving(node, node.cluster.myself, leaving=leaving)
        send.to_all(node, Pong(gossip.section(node)))


def restore(node: NodeState, peers: Iterable[Peer]) -> None:
    """Add the nodes of nodes.conf, and apply this node's announced address.

    Their times are from another process, so they restart now: a node that had an unanswered ping is
    suspected after the node timeout.
    """
    for peer in peers:
        peer.created = node.mono
        peer.ping_sent = node.mono if peer.ping_sent else 0
        peer.pong_received = node.mono if peer.pong_received else 0
        add(node, peer)
    hostnames.configure(node)

"""Links of a node, and whole nodes that meet in memory."""

from typing import Final

import pytest
import trio
from trio.testing import MockClock

from disque_trio.statemachine.base import CAPABILITIES, MYSELF, NodeId
from disque_trio.statemachine.cluster import Duplicate
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.messages import Batch, Frame, Pong, ReplJob, SetAck
from disque_trio.wire.frames import FrameParser, encode
from tests.node.world import MemoryHub, MemoryLink, World, until

N2: NodeId = b"b" * 40
N3: NodeId = b"c" * 40


def frame(sender: NodeId) -> bytes:
    return encode(sender, 7711, MYSELF, Pong(()))


async def accept(world: World) -> MemoryLink:
    """An unknown node opens a link."""
    link = MemoryLink(world.event_loop)

    def come(_: object) -> None:
        link.session = world.node.accept_link(link, "127.0.0.1", "127.0.0.9")

    world.event_loop.put(come)
    await until(lambda: hasattr(link, "session"))
    return link


async def together(nursery: trio.Nursery, count: int, config: Config | None = None) -> list[World]:
    """Nodes that know each other."""
    network: dict[tuple[str, int], MemoryHub] = {}
    names = (b"a" * 40, N2, N3)[:count]
    worlds = [
        World(config, name=name, ip=f"127.0.0.{number}", network=network)
        for number, name in enumerate(names, 1)
    ]
    for world in worlds:
        await nursery.start(world.node.run)
    for world in worlds[1:]:
        assert (
            await worlds[0].client().ask("CLUSTER", "MEET", world.event_loop.ip, "7711")
            == b"+OK\r\n"
        )
    await until(
        lambda: all(len(world.node.state.cluster.reachable) == count - 1 for world in worlds)
    )
    return worlds


async def test_half_a_frame_waits_for_the_rest(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World()
    await nursery.start(world.node.run)
    link = await accept(world)

    link.arrive(frame(N2)[:100])
    await trio.sleep(1)
    assert world.node.state.cluster.messages_received == 0
    link.arrive(frame(N2)[100:] + frame(N2))

    await until(lambda: world.node.state.cluster.messages_received == 2)


async def test_a_damaged_link_is_closed_and_reported(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World()
    await nursery.start(world.node.run)
    link = await accept(world)

    link.arrive(frame(N2) + b"GET / HTTP/1.1\r\n\r\n")

    await until(lambda: not world.node.state.cluster.links)
    assert world.node.state.cluster.messages_received == 1
    level, event, facts = world.log.lines[-1]
    assert (level, event) == ("warning", "bus link closed: invalid frame")
    assert facts["peer"] == "127.0.0.9"


@pytest.mark.pure  # a method is replaced, which the compiled form does not look up
async def test_a_link_for_whose_frames_there_is_no_memory_ends_and_the_node_goes_on(
    nursery: trio.Nursery, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    await nursery.start(world.node.run)
    link = await accept(world)

    def feed(_: FrameParser, data: bytes) -> list[Frame]:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(FrameParser, "feed", feed)
        link.arrive(frame(N2))
        await until(lambda: not world.node.state.cluster.links)
    assert world.log.lines[-1][2]["error"] == "out of memory for its frames"

    (await accept(world)).arrive(frame(N2))
    await until(lambda: world.node.state.cluster.messages_received == 1)


async def test_refused_links_cannot_flood_the_log(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World()
    await nursery.start(world.node.run)

    for _ in range(50):
        (await accept(world)).arrive(b"garbage!")
    await until(lambda: not world.node.state.cluster.links)

    assert len(world.log.lines) == 1


async def test_a_peer_that_is_not_there_is_dialled_again(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = World()
    await nursery.start(world.node.run)

    assert await world.client().ask("CLUSTER", "MEET", "127.0.0.7", "7711") == b"+OK\r\n"

    await until(lambda: len(world.event_loop.dialled) > 3)


async def test_nodes_meet_and_copy_jobs(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    worlds = await together(nursery, 3)

    answer = await worlds[0].client().ask("ADDJOB", "q", "body", "1000", "REPLICATE", "3")

    assert answer.startswith(b"+D-aaaaaaaa-")
    assert all(answer[1:-2] in world.node.state.jobs for world in worlds)
    assert "node joined" in worlds[0].log.events()


async def test_a_message_to_many_is_sent_once_on_each_link(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 3)
    links = [link for link in worlds[0].event_loop.dialled if link.other is not None]
    before = [len(link.sent) for link in links]
    client = worlds[0].client()

    client.send(b"ADDJOB q body 1000 REPLICATE 3 ASYNC\r\n" * 5)
    await until(lambda: client.read.count(b"\r\n") == 5)

    batches = [link.sent[seen:] for link, seen in zip(links, before, strict=True)]
    assert [len(sent[0]) for sent in batches if sent] == [1, 1]
    assert batches[0][0][0] is batches[1][0][0]
    [frame] = FrameParser().feed(batches[0][0][0])
    assert [type(message) for message in frame.messages] == [ReplJob] * 5


async def test_a_node_that_does_not_announce_it_gets_no_batches(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 3)
    plain = worlds[0].node.state.cluster.reachable[0]
    plain.capabilities = 0
    links = {link.session.link: link for link in worlds[0].event_loop.dialled}
    client = worlds[0].client()

    client.send(b"ADDJOB q body 1000 REPLICATE 3\r\n" * 3 + b"DELJOB nothing\r\n")
    await until(lambda: client.read.count(b"\r\n") == 4)

    sent = b"".join(frame for frames in links[plain.link].sent for frame in frames)
    received = FrameParser().feed(sent)
    assert not any(isinstance(frame.message, Batch) for frame in received)
    assert sum(isinstance(frame.message, ReplJob) for frame in received) == 3
    announced = {type(frame.message): frame.capabilities for frame in received}
    assert announced.pop(ReplJob) == 0
    assert set(announced.values()) == {CAPABILITIES}


async def test_such_a_node_gets_single_messages_about_many_jobs(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 3)
    plain = worlds[0].node.state.cluster.reachable[0]
    plain.capabilities = 0
    link = next(each for each in worlds[0].event_loop.dialled if each.session.link == plain.link)
    client = worlds[0].client()
    client.send(b"ADDJOB q body 1000 REPLICATE 3\r\n" * 3)
    await until(lambda: client.read.count(b"\r\n") == 3)
    ids, client.read = [line[1:] for line in client.read.split()], b""
    link.sent.clear()

    assert await client.ask("ACKJOB", *[id.decode() for id in ids]) == b":3\r\n"

    received = FrameParser().feed(b"".join(link.sent[0]))
    assert [frame.message for frame in received] == [SetAck(id, 3) for id in ids]
    await until(lambda: not any(world.node.state.jobs for world in worlds))


async def test_what_was_announced_counts_for_one_link(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)
    [peer] = worlds[0].node.state.cluster.reachable
    assert peer.capabilities == CAPABILITIES
    network, worlds[0].event_loop.network = worlds[0].event_loop.network, {}

    next(link for link in worlds[0].event_loop.dialled if link.other is not None).break_off()
    await until(lambda: peer.capabilities == 0)
    worlds[0].event_loop.network = network

    await until(lambda: peer.capabilities == CAPABILITIES)


async def test_messages_keep_their_order_where_some_travel_alone(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)
    long = "x" * (1 << 16)
    client = worlds[0].client()
    link = next(link for link in worlds[0].event_loop.dialled if link.other is not None)
    link.sent.clear()

    for body in ("a", long, "b", "c"):
        words = ("ADDJOB", "q", body, "1000", "REPLICATE", "2", "ASYNC")
        client.send(b"*7\r\n" + b"".join(b"$%d\r\n%b\r\n" % (len(w), w.encode()) for w in words))
    await until(lambda: client.read.count(b"\r\n") == 4)

    received = FrameParser(knows=lambda _: True).feed(b"".join(link.sent[0]))
    bodies = [
        bytes(copy.body)[:1]
        for frame in received
        for message in frame.messages
        if isinstance(message, ReplJob)
        for copy in message.copies
    ]
    assert bodies == [b"a", b"x", b"b", b"c"]
    assert [len(frame.messages) for frame in received] == [1, 1, 2]


async def test_frames_that_find_no_room_are_counted(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)
    for link in worlds[0].event_loop.dialled:
        link.room = 0

    assert await worlds[0].client().ask("ADDJOB", "q", "b", "100", "REPLICATE", "2")

    assert worlds[0].node.state.stats.frames_dropped > 0
    assert "frames dropped: a peer reads too slowly" in worlds[0].log.events()


async def test_a_node_that_fails_and_comes_back_is_reported(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    config = Config(cluster_node_timeout=2000)
    worlds = await together(nursery, 3, config)
    lost = worlds[2].event_loop
    for world in worlds[:2]:
        world.event_loop.network = {
            place: event_loop
            for place, event_loop in world.event_loop.network.items()
            if event_loop is not lost
        }
    lost.network = {}
    for link in [link for world in worlds for link in world.event_loop.dialled]:
        if link.other is not None and lost in {link.event_loop, link.other.event_loop}:
            link.break_off()

    await until(lambda: "node failed" in worlds[0].log.events())
    for world in worlds[:2]:
        world.event_loop.network[lost.ip, 17_711] = lost

    await until(lambda: "node recovered" in worlds[0].log.events())
    assert "link lost" in worlds[0].log.events()


async def test_a_node_that_leaves_or_is_forgotten_is_reported(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)

    await worlds[1].client().ask("CLUSTER", "LEAVING", "yes")
    await until(lambda: "node is leaving" in worlds[0].log.events())
    await worlds[0].client().ask("CLUSTER", "FORGET", N2.decode())

    await until(lambda: "node removed" in worlds[0].log.events())
    assert "this node is leaving the cluster" in worlds[1].log.events()


async def test_another_process_with_the_same_node_id_is_reported_once_and_when_it_goes(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)
    cluster = worlds[0].node.state.cluster

    cluster.duplicate = Duplicate("10.0.0.9", 7711, worlds[0].node.state.mono + 60_000)
    await until(lambda: any("another process has the node ID" in e for e in worlds[0].log.events()))
    [(level, event, facts)] = [
        line for line in worlds[0].log.lines if "another process has the node ID" in line[1]
    ]
    assert (level, facts["other"]) == ("warning", "10.0.0.9:7711")
    assert "this one continues" in event
    assert "without nodes.conf" in event

    cluster.duplicate = None
    gone = "the other process with the node ID of this one has stopped"
    await until(lambda: gone in worlds[0].log.events())


ADD: Final = b"ADDJOB q %d 0 REPLICATE 2\r\n"


async def test_addjobs_of_a_pipeline_travel_together(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)
    client = worlds[0].client()
    link = next(link for link in worlds[0].event_loop.dialled if link.other is not None)
    link.sent.clear()

    client.send(b"".join([ADD % number for number in range(16)]))
    await until(lambda: client.read.count(b"\r\n") == 16)

    [batch] = FrameParser(knows=lambda _: True).feed(b"".join(link.sent[0]))
    assert len(batch.messages) == 16
    bodies = [job.body for job in worlds[0].node.state.queues[b"q"].peek(16)]
    assert bodies == [b"%d" % number for number in range(16)]


async def test_a_pipeline_longer_than_may_wait_goes_on_and_ends_with_what_it_asked_last(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)
    client = worlds[0].client()

    client.send(b"".join([ADD % number for number in range(1000)]) + b"QLEN q\r\n")
    await until(lambda: client.read.count(b"\r\n") == 1001)

    assert client.read.endswith(b"\r\n:1000\r\n")
    assert not client.is_held


async def test_a_pipeline_that_came_in_pieces_is_answered_in_its_order(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    worlds = await together(nursery, 2)
    client = worlds[0].client()

    for request in (ADD % 1, ADD % 2, b"PING\r\n", ADD % 3, b"PING\r\n"):
        client.send(request)
    await until(lambda: client.read.count(b"\r\n") == 5)

    kinds = [line[:3] for line in client.read.split(b"\r\n")]
    assert kinds == [b"+D-", b"+D-", b"+PO", b"+D-", b"+PO", b""]

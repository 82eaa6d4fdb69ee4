"""nodes.conf is written beside the loop: a disk that hangs holds up only those who wait for it."""

import errno

import trio
from trio.testing import MockClock

from disque_trio.driver.life import GRACE_S
from disque_trio.driver.nodes_writer import STALL_S
from disque_trio.statemachine.chores import Shutdown
from tests.node.world import World, until


async def started(nursery: trio.Nursery) -> World:
    world = World()
    await nursery.start(world.node.run)
    return world


def hang(world: World) -> trio.Event:
    """The disk of nodes.conf does not answer before the event is set."""
    world.store.answers = answers = trio.Event()
    return answers


async def test_a_node_serves_while_the_disk_of_its_table_hangs(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    operator, client = world.client(), world.client()
    answers = hang(world)

    operator.send(b"CLUSTER LEAVING yes\r\n")
    await trio.sleep(60)
    assert await client.ask("CLUSTER", "LEAVING") == b"+yes\r\n"
    assert await client.ask("PING") == b"+PONG\r\n"
    assert (operator.read, world.store.saved) == (b"", [])

    answers.set()
    await operator.expect(b"+OK\r\n")
    assert b"myself,leaving" in world.store.saved[-1]


async def test_the_operator_is_told_of_a_disk_that_does_not_answer(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    hang(world)

    world.client().send(b"CLUSTER LEAVING yes\r\n")
    await trio.sleep(STALL_S - 0.1)
    assert world.log.events().count(SLOW) == 0
    await trio.sleep(0.2)
    assert world.log.events().count(SLOW) == 1


SLOW = "cannot write the node table: the disk does not answer"


async def test_what_changes_during_a_write_is_in_the_next_one(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    first, second, third = world.client(), world.client(), world.client()
    answers = hang(world)

    first.send(b"CLUSTER LEAVING yes\r\n")
    await trio.sleep(1)
    second.send(b"CLUSTER LEAVING no\r\n")
    third.send(b"CLUSTER SAVECONFIG\r\n")
    await trio.sleep(1)
    answers.set()

    for client in (first, second, third):
        await client.expect(b"+OK\r\n")
    assert [b"leaving" in text for text in world.store.saved] == [True, False]


async def test_who_waits_is_answered_though_the_disk_refuses(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    client = world.client()
    world.store.error = OSError(errno.ENOSPC, "No space left on device")

    assert await client.ask("CLUSTER", "LEAVING", "yes") == b"+OK\r\n"
    assert await client.ask("CLUSTER", "SAVECONFIG") == (
        b"-ERR error saving the cluster node config: No space left on device\r\n"
    )
    world.store.error = None
    await until(lambda: bool(world.store.saved))


async def test_a_new_id_is_written_before_anybody_is_told_of_it(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    operator, client = world.client(), world.client()
    answers = hang(world)
    operator.send(b"CLUSTER LEAVING yes\r\n")
    await trio.sleep(1)

    client.send(b"CLUSTER RESET HARD\r\n")
    await trio.sleep(1)
    told = (await world.client().ask("CLUSTER", "MYID")).splitlines()[1]
    assert [text[:40] for text in world.store.saved] == [told]

    answers.set()
    for each in (operator, client):
        await each.expect(b"+OK\r\n")
    # The table that was to be written before it has not taken its place.
    assert all(text.startswith(told) for text in world.store.saved)


async def test_a_new_id_that_cannot_be_written_ends_no_node(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    world = await started(nursery)
    world.store.error = OSError(errno.EIO, "Input/output error")

    answer = await world.client().ask("CLUSTER", "RESET", "HARD")

    assert answer == b"-ERR error saving the cluster node config: Input/output error\r\n"
    assert await world.client().ask("PING") == b"+PONG\r\n"


async def test_a_node_that_ends_waits_for_its_table_and_not_for_ever(
    autojump_clock: MockClock,
) -> None:
    for is_stuck in (False, True):
        world = World()
        async with trio.open_nursery() as nursery:
            await nursery.start(world.node.run)
            answers = hang(world)
            world.client().send(b"CLUSTER LEAVING yes\r\n")
            await trio.sleep(1)
            began = trio.current_time()
            world.node.stop(Shutdown(), "the test")
            await trio.sleep(GRACE_S / 2)
            if not is_stuck:
                answers.set()

        assert trio.current_time() - began <= GRACE_S + 0.1
        assert bool(world.store.saved) != is_stuck

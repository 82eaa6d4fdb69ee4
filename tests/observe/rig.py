"""A cluster of nodes in this process, and who observes it."""

import contextlib

import attrs
import trio

from disque_trio.client.address import Address, Cluster
from disque_trio.node import Node
from disque_trio.observe.client import DeadlineClient
from disque_trio.observe.observer import Observer
from disque_trio.serving import up
from disque_trio.statemachine.config import Config
from tests.cluster.processes import free_port

MAXMEMORY = 1 << 40
"""In bytes. The node counts the memory of the process, which has run other tests before."""


@attrs.define
class Observed:
    """The nodes, a client of the first one, and an observer."""

    nodes: list[Node]
    observer: Observer

    @property
    def client(self) -> DeadlineClient:
        return self.observer.client

    async def until_known(self) -> None:
        """Until the observer has looked at all nodes."""
        with trio.fail_after(30):
            while len(await self.observer.look()) < len(self.nodes):
                await trio.sleep(0.05)


async def observed(
    nursery: trio.Nursery,
    count: int = 1,
    *more: Address,
    renamed: tuple[tuple[str, str], ...] = (),
) -> Observed:
    """A cluster with its observer, who knows these addresses too. The last node has these commands
    by other names."""
    cleanup = contextlib.ExitStack()
    nodes = []
    for number in range(1, count + 1):
        config = Config(port=free_port(), bind=("127.0.0.1",), maxmemory=MAXMEMORY)
        if number == count:
            config = attrs.evolve(config, renamed_commands=renamed)
        node = up.node(config, None, cleanup)
        nodes.append(node)
        await nursery.start(node.run)
    await joined(nodes)
    first = Address(port=nodes[0].state.config.port)
    client = DeadlineClient(Cluster([first, *more]), patience_s=2)
    await nursery.start(closed_at_the_end, cleanup, client)
    found = Observed(nodes, Observer(client))
    if not more:
        await found.until_known()
    return found


async def joined(nodes: list[Node]) -> None:
    """Until each node knows each other one."""
    found = trio.Event()
    async with trio.open_nursery() as joining:
        await up._join(nodes, found.set, joining.cancel_scope)
    assert found.is_set()


async def closed_at_the_end(
    cleanup: contextlib.ExitStack,
    client: DeadlineClient,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    task_status.started()
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await client.close()
        cleanup.close()

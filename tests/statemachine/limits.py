"""What the tests of limits have in common."""

import attrs

from disque_trio.statemachine.base import ACKED, LEASED
from disque_trio.statemachine.client import Client
from tests.cluster_rig import ClusterRig


@attrs.define(eq=False)
class Workers:
    """Clients that wait for jobs of the queue `q` at nodes, and keep what they get."""

    rig: ClusterRig
    clients: list[tuple[str, Client]] = attrs.Factory(list)
    got: list[tuple[str, Client, bytes]] = attrs.Factory(list)

    def wait(self, name: str, count: int = 1) -> None:
        """So many more wait at a node."""
        for _ in range(count):
            client = self.rig.connect(name)
            self.clients.append((name, client))
            self.rig.request(name, "GETJOB", "FROM", "q", client=client)

    def take(self) -> None:
        """See what they got."""
        for name, client in self.clients:
            for reply in self.rig.replies(name, client) if name in self.rig.names() else []:
                if isinstance(reply, list):
                    [job] = reply
                    assert isinstance(job, list)
                    id = job[1]
                    assert isinstance(id, bytes)
                    self.got.append((name, client, id))

    def acknowledge(self, count: int = 1) -> None:
        """The first jobs are done; their clients wait again."""
        self.take()
        for name, client, id in self.got[:count]:
            self.rig.request(name, "ACKJOB", id, client=client)
            self.rig.replies(name, client)
            self.rig.request(name, "GETJOB", "FROM", "q", client=client)
        del self.got[:count]

    def at(self, name: str) -> int:
        """How many have jobs at that node."""
        self.take()
        return sum(host == name for host, _, _ in self.got)


def cluster(
    *limit: str | int, names: str = "abc", jobs: int = 6, retry: int = 30, latency: int = 1
) -> ClusterRig:
    """Nodes of which each has jobs of `q`, with limits that all of them know."""
    rig = ClusterRig(*names, latency=latency)
    if len(names) > 1:
        rig.form()
    if limit:
        rig.ask(names[0], "QUEUE", "LIMIT", "q", *limit)
        rig.run(50 * latency)
    for name in names:
        for _ in range(jobs):
            rig.ask(name, "ADDJOB", "q", "body", 0, "REPLICATE", 1, "RETRY", retry)
    return rig


def leased(rig: ClusterRig) -> int:
    """How many leases run at all nodes."""
    return sum(rig.node(name).leased.get(b"q", 0) for name in rig.names())


def leased_of(rig: ClusterRig, group: str) -> int:
    """How many leases of the group run at all nodes."""
    return sum(
        bool(each.flags & LEASED) and each.state != ACKED and each.group == group.encode()
        for name in rig.names()
        for each in rig.node(name).jobs.values()
    )


def keeper_of(rig: ClusterRig, name: str = "a") -> str:
    """Which node the other one takes for the keeper of `q`."""
    reply = rig.ask(name, "QUEUE", "INFO", "q")
    assert isinstance(reply, list)
    id = reply[reply.index(b"keeper") + 1]
    return next(each for each in rig.names() if rig.id(each) == id)

"""The effects of faults on the hosts and links of a world.

Each kind of fault (`fault_kinds`) is a generator method of that name, with underscores for hyphens:
it starts the fault, yields, and ends it. A fault without effect does not yield. Each method writes
rows about its changes.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.model.faults import Link, Occurrence
from disque_trio.sim.model.network import Rule
from disque_trio.sim.scenarios.plan import Fault, Micros
from disque_trio.statemachine import pressure, resident_size
from disque_trio.statemachine.base import Failure
from disque_trio.tracing.client_rows import error_code

AMPLE_BYTES: Final = 1 << 30
WIDE: Final = 4


class FaultActions:
    """The faults of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._hosts = world.hosts
        self._network = world.network
        self._removed: dict[int, None] = {}

    def numbers(self) -> list[int]:
        """Return all nodes except removed ones."""
        return [number for number in self._hosts if number not in self._removed]

    def later(self, delay: Micros, act: Callable[[], None]) -> None:
        """Call `act` after a delay."""
        self._world.engine.later(delay, lambda _: act(), None)

    def of(self, fault: Fault, target: int | Link) -> Occurrence:
        """Return an occurrence of a fault of a plan."""
        occurrence: Occurrence = getattr(self, fault.kind.replace("-", "_"))(target, fault)
        return occurrence

    def end(self, occurrences: Iterable[Occurrence]) -> None:
        """End the faults that have begun."""
        for occurrence in occurrences:
            next(occurrence, None)

    # Links.

    def cut(self, link: Link, _fault: Fault) -> Occurrence:
        """Cut the link."""
        if self._network.cut(*link):
            self._note_link("cut", link)
        yield
        if self._network.mend(*link):
            self._note_link("heal", link)
            self._world.links.mended(*link)

    partition = cut

    def clog(self, link: Link, _fault: Fault) -> Occurrence:
        """Delay all packets until the end of the fault."""
        if self._network.clog(*link):
            self._note_link("clog", link)
        yield
        if self._network.release(*link):
            self._note_link("release", link)
            self._world.links.mended(*link)

    def drop(self, link: Link, fault: Fault) -> Occurrence:
        """Lose some messages."""
        share = fault.amount / 1_000_000 if fault.amount else 1.0
        return self.lose(link, Rule(share, fault.mode))

    def lose(self, link: Link, rule: Rule) -> Occurrence:
        """Lose the messages that match the rule."""
        rules = self._network.path(*link).rules
        rules.append(rule)
        self._note_link("rule", link, f"share={rule.share} only={rule.only} count={rule.count}")
        yield
        rules.remove(rule)
        self._note_link("unrule", link)

    def delay(self, link: Link, fault: Fault) -> Occurrence:
        """Add to the latency of the link."""
        self._add_delay(link, fault.amount * 1000)
        yield
        self._add_delay(link, -fault.amount * 1000)

    def _add_delay(self, link: Link, delay: Micros) -> None:
        path = self._network.path(*link)
        path.delay += delay
        self._note_link("delay", link, str(path.delay // 1000))

    def half_open(self, link: Link, _fault: Fault) -> Occurrence:
        """End the connections at the target only. A source that detects this connects again."""
        if self._world.links.half_open(*link, lambda: self._note_link("half-open.end", link)):
            self._note_link("half-open", link)
            yield

    def _note_link(self, kind: str, link: Link, detail: str = "") -> None:
        self._hosts[link[0]].note(kind, peer=self._hosts[link[1]].name, detail=detail)

    # Processes.

    def crash(self, node: int, fault: Fault) -> Occurrence:
        """End the process, and start it again when the fault ends."""
        host = self._hosts[node]
        if host.stop() if fault.mode == "stop" else host.kill(fault.mode or "kill"):
            yield
            self.start(node)

    def restart(self, node: int, fault: Fault) -> Occurrence:
        """End the process, and start it again at once, or as soon as it has stopped."""
        ends = self.crash(node, fault)
        for _ in ends:
            next(ends, None)
            yield

    def start(self, node: int) -> None:
        """Start a process that has ended. Without a journal only its nodes.conf is left."""
        host = self._hosts[node]
        if host.is_stopping:
            host.starts_again = True
        elif not host.is_up and node not in self._removed:
            host.start("empty")

    def remove(self, node: int, _fault: Fault) -> Occurrence:
        """End the process for good; when the fault ends, the other nodes forget it."""
        if node not in self._removed:
            self._hosts[node].kill("kill")
            self._removed[node] = None
            self._hosts[node].note("remove")
            yield
            self._bury(node)

    def wipe(self, node: int, _fault: Fault) -> Occurrence:
        """Kill the process and start it with a new id and no data; when the fault ends, the other
        nodes forget the old id."""
        host = self._hosts[node]
        if node not in self._removed:
            host.kill("kill")
            host.note("wipe")
            host.new_identity()
            host.start("fresh")
            self.meet(node)
            yield
            self._bury(node)

    def pause(self, node: int, _fault: Fault) -> Occurrence:
        """Stop the process, as SIGSTOP does."""
        host = self._hosts[node]
        if host.is_up and not host.is_paused:
            host.note("pause")
            host.pause()
            yield
            if self._hosts[node].is_paused:
                host.note("resume")
                host.resume()

    def slow(self, node: int, fault: Fault) -> Occurrence:
        """Make each batch take this long."""
        host = self._hosts[node]
        for ms in fault.amount, 0:
            host.slowness = ms * 1000
            host.note("slow", detail=str(ms))
            yield

    # Disks.

    def disk_full(self, node: int, _fault: Fault) -> Occurrence:
        """The disk has no space left."""
        return self._disk(node, "is_full", "disk.full")

    def disk_error(self, node: int, _fault: Fault) -> Occurrence:
        """Writes and syncs fail."""
        return self._disk(node, "is_broken", "disk.error")

    def disk_stall(self, node: int, _fault: Fault) -> Occurrence:
        """Writes and syncs hang."""
        return self._disk(node, "is_stalled", "disk.stall")

    def _disk(self, node: int, trouble: str, kind: str) -> Occurrence:
        """Set an attribute of `Disk`, and write the row."""
        host = self._hosts[node]
        for is_so in True, False:
            setattr(host.disk, trouble, is_so)
            host.note(kind, detail="yes" if is_so else "no")
            yield

    def disk_flip(self, node: int, _fault: Fault) -> Occurrence:
        """Change one bit of the journal, if there is one."""
        host = self._hosts[node]
        if host.disk.has_content():
            host.disk.flip()
            host.note("disk.flip")
            yield

    # Clocks.

    def clock_step(self, node: int, fault: Fault) -> Occurrence:
        """Make the wall clock jump."""
        host = self._hosts[node]
        host.clock.step(fault.amount)
        host.note("clock.step", detail=str(fault.amount))
        yield

    def clock_rate(self, node: int, fault: Fault) -> Occurrence:
        """Make the clocks run faster than true time, by this rate."""
        host = self._hosts[node]
        for rate in fault.amount, self._world.clock_plan(node).drift_ppm:
            host.clock.set_rate(self._world.engine.now, rate)
            host.rewind()
            host.note("clock.rate", detail=str(rate))
            yield

    def wall_freeze(self, node: int, _fault: Fault) -> Occurrence:
        """Stop the wall clock."""
        host = self._hosts[node]
        host.clock.freeze(self._world.engine.now)
        host.note("wall.freeze")
        yield
        host.clock.thaw()
        host.note("wall.thaw")

    # Operations of administrators.

    def leave(self, node: int, _fault: Fault) -> Occurrence:
        """Send CLUSTER LEAVING."""
        host = self._hosts[node]
        for word in "yes", "no":
            host.note("leave", detail=word)
            self._world.command(host, "CLUSTER", "LEAVING", word)
            yield

    def join(self, _node: int, _fault: Fault) -> Occurrence:
        """Add a new node; all other nodes meet it."""
        host = self._world.add_host(len(self._hosts) + 1)
        host.start("fresh")
        self.meet(host.number)
        yield

    def meet(self, node: int) -> None:
        """Make all other nodes meet the node, unless they know it."""
        self._world.introduce(self._hosts[node])

    def forget(self, node: int, _fault: Fault) -> Occurrence:
        """Make all other nodes forget the node, and meet it when the fault ends."""
        host = self._hosts[node]
        for other in self._world.others(host):
            other.note("forget", peer=host.name)
            self._world.command(other, "CLUSTER", "FORGET", host.id)
        yield
        self.meet(node)

    def _bury(self, node: int) -> None:
        """Make all other nodes forget the former ids of the node."""
        host = self._hosts[node]
        names = [id for id, name in self._world.names.items() if name == host.name]
        dead = [id for id in names if id != host.id or node in self._removed]
        for other in self._world.others(host):
            for id in dead:
                other.note("forget", peer=host.name, detail=id.decode())
                self._world.command(other, "CLUSTER", "FORGET", id)

    def memory(self, node: int, fault: Fault) -> Occurrence:
        """Reduce the memory: the node uses `amount` parts per million of its limit."""
        if self._squeeze(self._hosts[node], fault.amount, fault.mode):
            yield
            self._squeeze(self._hosts[node], 0, fault.mode)

    def _squeeze(self, host: Host, share: int, mode: str) -> bool:
        """Set maxmemory so that the node uses this share (in parts per million) of it; 0 makes it
        ample. With the mode `resident-size`, set it to `WIDE` times that, and report a process so
        large that the node may use no more than with the lower limit."""
        if host.machine is None:
            return False
        state = host.machine.state
        used = pressure.used(state) - state.endings.weight
        limit = used * 1_000_000 // share if share else AMPLE_BYTES
        host.note("memory", detail=str(limit if share else 0))
        beyond = 0
        if mode == "resident-size" and share:
            lower, limit = limit, limit * WIDE
            beyond = (limit * pressure.HARD_RESIDENT_PERCENT - lower * pressure.HARD_PERCENT) // 100
        self._world.command(host, "CONFIG", "SET", "maxmemory", limit)
        if mode == "resident-size":
            resident_size.measured(state, pressure.weighed(state) + beyond)
        return True

    def pause_queue(self, node: int, fault: Fault) -> Occurrence:
        """Send PAUSE; with the mode `bcast`, pause the queues of this name at all nodes by an order
        to this one."""
        host, queue, mode = self._hosts[node], fault.queue, fault.mode or "all"
        is_broadcast = mode == "bcast"
        others = self._world.others(host) if is_broadcast else []
        for other in others:
            other.note("pause-queue", cause=mode, detail=f"{queue} all")
        words = ("all", mode) if is_broadcast else (mode,)
        self._pause_queue(host, queue, *words, others=others)
        yield
        # At each node, because a broadcast does not reach separated nodes.
        for each in self.numbers() if is_broadcast else (node,):
            self._pause_queue(self._hosts[each], queue, "none")

    def _pause_queue(
        self, host: Host, queue: str, *words: str, others: Sequence[Host] = ()
    ) -> None:
        """Write the row before the reply to the order. If the node refuses it, the queue is paused
        nowhere."""
        host.note("pause-queue", detail=f"{queue} {words[0]}")

        def refused(reply: Failure) -> None:
            for each in (host, *others):
                each.note("pause-queue", cause=error_code(reply), detail=f"{queue} none")

        self._world.command(host, "PAUSE", queue, *words, refused=refused)

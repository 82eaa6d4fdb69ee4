"""What faults do to hosts and links of the heap engine: its implementation of `faults.World`.

Each action writes a row, unless it changes nothing.
"""

from collections.abc import Callable
from typing import Final

from disque_trio.sim.engines.heap.nodes import Host
from disque_trio.sim.engines.heap.world import World
from disque_trio.sim.model.faults import Link
from disque_trio.sim.model.network import Rule
from disque_trio.sim.scenarios.plan import Micros
from disque_trio.statemachine import pressure, resident_size

AMPLE_BYTES: Final = 1 << 30
WIDE: Final = 4


class FaultActions:
    """The fault actions on one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._hosts = world.hosts
        self._network = world.network
        self._removed: dict[int, None] = {}

    def numbers(self) -> list[int]:
        """All nodes but those removed for ever."""
        return [number for number in self._hosts if number not in self._removed]

    def later(self, delay: Micros, act: Callable[[], None]) -> None:
        """Call back after a while."""
        self._world.engine.later(delay, _call, act)

    # Faults of links.

    def cut(self, link: Link) -> bool:
        """Cut the link."""
        if self._network.cut(*link):
            self._note_link("cut", link)
        return True

    def mend(self, link: Link) -> bool:
        """Undo a cut."""
        if not self._network.mend(*link):
            return False
        self._note_link("heal", link)
        self._world.links.mended(*link)
        return True

    def clog(self, link: Link) -> bool:
        """Keep all packets back."""
        if self._network.clog(*link):
            self._note_link("clog", link)
        return True

    def release(self, link: Link) -> bool:
        """Undo a clog."""
        if not self._network.release(*link):
            return False
        self._note_link("release", link)
        self._world.links.mended(*link)
        return True

    def add_rule(self, link: Link, rule: Rule) -> bool:
        """Lose some messages."""
        self._network.path(*link).rules.append(rule)
        self._note_link("rule", link, f"share={rule.share} only={rule.only} count={rule.count}")
        return True

    def remove_rule(self, link: Link, rule: Rule) -> bool:
        """Undo a rule."""
        self._network.path(*link).rules.remove(rule)
        self._note_link("unrule", link)
        return True

    def add_delay(self, link: Link, delay: Micros) -> bool:
        """Add to the latency."""
        path = self._network.path(*link)
        path.delay += delay
        self._note_link("delay", link, str(path.delay // 1000))
        return True

    def half_open(self, link: Link) -> bool:
        """End the connections at the target only, without telling the source."""

        def over() -> None:
            self._note_link("half-open.end", link)

        if not self._world.links.half_open(*link, over):
            return False
        self._note_link("half-open", link)
        return True

    def _note_link(self, kind: str, link: Link, detail: str = "") -> None:
        self._hosts[link[0]].note(kind, peer=self._hosts[link[1]].name, detail=detail)

    # Faults of processes.

    def crash(self, node: int, cause: str) -> bool:
        """End it."""
        host = self._hosts[node]
        if not host.is_up:
            return False
        if cause == "stop":
            return host.stop()
        host.note("crash", cause=cause)
        host.crash(cause)
        return True

    def start(self, node: int) -> bool:
        """Start it again. Without a journal it has only its nodes.conf left."""
        host = self._hosts[node]
        if host.is_stopping:
            host.starts_again = True
            return True
        if host.is_up or node in self._removed:
            return False
        host.start("empty")
        return True

    def remove(self, node: int) -> bool:
        """End it for ever."""
        if node in self._removed:
            return False
        self.crash(node, "kill")
        self._removed[node] = None
        self._hosts[node].note("remove")
        return True

    def wipe(self, node: int) -> bool:
        """Kill it, and start it with a new id and no data."""
        if node in self._removed:
            return False
        host = self._hosts[node]
        self.crash(node, "kill")
        host.note("wipe")
        host.new_identity()
        host.start("fresh")
        self.meet(node)
        return True

    def pause(self, node: int) -> bool:
        """Stop it."""
        host = self._hosts[node]
        if not host.is_up or host.is_paused:
            return False
        host.note("pause")
        host.pause()
        return True

    def resume(self, node: int) -> bool:
        """Let it go on."""
        host = self._hosts[node]
        if not host.is_paused:
            return False
        host.note("resume")
        host.resume()
        return True

    def slow(self, node: int, busy: Micros) -> bool:
        """Make each batch take so long."""
        host = self._hosts[node]
        host.slowness = busy
        host.note("slow", detail=str(busy // 1000))
        return True

    # Faults of disks.

    def fill_disk(self, node: int, *, is_full: bool) -> bool:
        """Make the disk full, or not full again."""
        self._hosts[node].disk.is_full = is_full
        return self._note_disk(node, "disk.full", is_full)

    def break_disk(self, node: int, *, is_broken: bool) -> bool:
        """Make writes and syncs fail, or succeed again."""
        self._hosts[node].disk.is_broken = is_broken
        return self._note_disk(node, "disk.error", is_broken)

    def stall_disk(self, node: int, *, is_stalled: bool) -> bool:
        """Make writes and syncs hang, or go on."""
        self._hosts[node].disk.is_stalled = is_stalled
        return self._note_disk(node, "disk.stall", is_stalled)

    def flip_bit(self, node: int) -> bool:
        """Change one bit of the journal, if there is one."""
        disk = self._hosts[node].disk
        if not disk.has_content():
            return False
        disk.flip()
        self._hosts[node].note("disk.flip")
        return True

    def _note_disk(self, node: int, kind: str, is_so: bool) -> bool:
        self._hosts[node].note(kind, detail="yes" if is_so else "no")
        return True

    # Faults of clocks.

    def step_clock(self, node: int, ms: int) -> bool:
        """Make the wall clock jump."""
        host = self._hosts[node]
        host.clock.step(ms)
        host.note("clock.step", detail=str(ms))
        return True

    def set_rate(self, node: int, ppm: int | None) -> bool:
        """Make the clocks run faster or slower."""
        host = self._hosts[node]
        host.clock.set_rate(
            self._world.engine.now, self._world.clock_plan(node).drift_ppm if ppm is None else ppm
        )
        host.rewind()
        host.note("clock.rate", detail=str(host.clock.ppm))
        return True

    def freeze(self, node: int) -> bool:
        """Stop the wall clock."""
        host = self._hosts[node]
        host.clock.freeze(self._world.engine.now)
        host.note("wall.freeze")
        return True

    def thaw(self, node: int) -> bool:
        """Let it go on."""
        host = self._hosts[node]
        host.clock.thaw()
        host.note("wall.thaw")
        return True

    # What operators do.

    def leave(self, node: int, *, leaving: bool) -> bool:
        """CLUSTER LEAVING."""
        host = self._hosts[node]
        host.note("leave", detail="yes" if leaving else "no")
        self._world.command(host, "CLUSTER", "LEAVING", "yes" if leaving else "no")
        return True

    def join(self, node: int) -> bool:
        """Add a new node."""
        del node
        host = self._world.add_host(len(self._hosts) + 1)
        host.start("fresh")
        return self.meet(host.number)

    def meet(self, node: int) -> bool:
        """All others meet the node, if they do not know it."""
        host = self._hosts[node]
        for other in self._others(host):
            if other.is_up and not other.knows(host.id):
                other.note("meet", peer=host.name)
                self._world.meet(other, host)
        return True

    def _others(self, host: Host) -> list[Host]:
        return [other for other in self._hosts.values() if other is not host]

    def forget(self, node: int) -> bool:
        """All others forget the node."""
        host = self._hosts[node]
        for other in self._others(host):
            other.note("forget", peer=host.name)
            self._world.command(other, "CLUSTER", "FORGET", host.id)
        return True

    def bury(self, node: int) -> bool:
        """All others forget the former ids of the node."""
        host = self._hosts[node]
        names = [id for id, name in self._world.names.items() if name == host.name]
        dead = [id for id in names if id != host.id or node in self._removed]
        for other in self._others(host):
            for id in dead:
                other.note("forget", peer=host.name, detail=id.decode())
                self._world.command(other, "CLUSTER", "FORGET", id)
        return True

    def squeeze(self, node: int, share: int, mode: str) -> bool:
        """Set maxmemory so that the node uses so many parts per million of it now; 0 gives it
        plenty. Or set it to `WIDE` times that, and let the process be so large that the node may
        use no more than with the lower one."""
        host = self._hosts[node]
        if host.machine is None:
            return False
        state = host.machine.state
        limit = pressure.used(state) * 1_000_000 // share if share else AMPLE_BYTES
        host.note("memory", detail=str(limit if share else 0))
        beyond = 0
        if mode == "resident-size" and share:
            lower, limit = limit, limit * WIDE
            beyond = (limit * pressure.HARD_RESIDENT_PERCENT - lower * pressure.HARD_PERCENT) // 100
        self._world.command(host, "CONFIG", "SET", "maxmemory", limit)
        if mode == "resident-size":
            resident_size.measured(state, pressure.weighed(state) + beyond)
        return True

    def pause_queue(self, node: int, queue: str, mode: str) -> bool:
        """PAUSE."""
        host = self._hosts[node]
        words, way = ((mode,), mode) if mode != "bcast" else (("all", mode), "all")
        for other in self._others(host) if mode == "bcast" else ():
            other.note("pause-queue", cause=mode, detail=f"{queue} {way}")
        host.note("pause-queue", detail=f"{queue} {way}")
        self._world.command(host, "PAUSE", queue, *words)
        return True


def _call(act: Callable[[], None]) -> None:
    act()

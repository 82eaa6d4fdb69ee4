"""Nodes on machines of their own: a network namespace, a disk that loses in a power cut what was
not synced, and a wall clock that jumps."""

import random
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import attrs

from tests.cluster.power.disk import Disk
from tests.cluster.power.library import RECORDER, compiled, recording
from tests.cluster.processes import Server

_CLOCK: Final = Path(__file__).parent / "clock.c"
_DIFFERENCE: Final = struct.Struct("q")
_NS: Final = 1_000_000_000


@attrs.frozen
class Shims:
    """The libraries between a node and its system."""

    recorder: Path
    clock: Path

    @classmethod
    def made(cls, folder: Path) -> Self:
        """Compile them."""
        return cls(compiled(RECORDER, folder), compiled(_CLOCK, folder))


@attrs.define(eq=False, kw_only=True)
class Machine(Server):
    """A node in a network namespace."""

    namespace: str
    shims: Shims
    _disk: Disk = attrs.field(init=False)
    _ahead_s: float = attrs.field(init=False, default=0.0)

    def __attrs_post_init__(self) -> None:
        self._disk = Disk(self.directory, self.log_path.name)
        self.move_clock(0)

    @property
    def _clock(self) -> Path:
        return self.directory.with_suffix(".clock")

    @property
    def environment(self) -> Mapping[str, str]:
        """What puts the libraries between its process and its system."""
        libraries = f"{self.shims.recorder}:{self.shims.clock}"
        both = {"LD_PRELOAD": libraries, "CLOCK_FILE": str(self._clock)}
        return {**recording(self.shims.recorder), **both}

    def words(self) -> list[str]:
        """The command line, in the namespace."""
        set_up = [f"{name}={value}" for name, value in self.environment.items()]
        return ["nsenter", f"--net=/run/netns/{self.namespace}", "env", *set_up, *super().words()]

    def kill(self) -> None:
        """kill -9. The disk has all that was written."""
        super().kill()
        self._disk.keep()

    def terminate(self) -> int:
        """SIGTERM. Returns the exit code."""
        code = super().terminate()
        self._disk.keep()
        return code

    def cut_power(self, rng: random.Random) -> None:
        """The process ends, and its disk has what was synced, and a part of the rest."""
        super().kill()
        self._disk.cut_power(rng)

    @property
    def ahead_s(self) -> float:
        """How far its wall clock is ahead."""
        return self._ahead_s

    def move_clock(self, seconds: float) -> None:
        """Let the wall clock jump."""
        self._ahead_s = round(self._ahead_s + seconds, 3)
        data = _DIFFERENCE.pack(round(self._ahead_s * _NS))
        if not self._clock.exists():
            self._clock.parent.mkdir(parents=True, exist_ok=True)
            self._clock.write_bytes(data)
            return
        with open(self._clock, "r+b", buffering=0) as file:  # the node has mapped this very file
            file.write(data)

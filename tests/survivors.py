"""Processes that outlive the tests which started them: named, ended, and a failure of the run.

Whatever the tests start inherits an environment variable that is this run's alone, however deep it
is started and whoever adopts it. The process that set the variable looks for it once the tests and
the processes that shared them (`-n`) have ended. Where there is no /proc, nobody looks.
"""

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path
from typing import Final

import attrs
import pytest

MARK: Final = "DISQUE_TRIO_TEST_RUN"
PATIENCE_S: Final = 10.0
"""What ends by itself by then has not outlived the run."""
_POLL_S: Final = 0.05
_ENDS_WITH_US: Final = ("from multiprocessing.", "org.apache.spark", "pyspark.daemon")
"""Helpers of this very process, which its end is the end of."""


@attrs.frozen
class Survivor:
    """One of them."""

    pid: int
    command: str

    def end(self) -> None:
        """At once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def survivors(mark: str, proc: Path = Path("/proc")) -> list[Survivor]:
    """The processes that have the mark, but for this one."""
    found = []
    for directory in proc.glob("[0-9]*"):
        pid = int(directory.name)
        try:
            environment = (directory / "environ").read_bytes().split(b"\0")
            words = (directory / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        except OSError:
            continue  # it has ended, or is another user's
        command = b" ".join(words).decode(errors="replace")
        if (
            f"{MARK}={mark}".encode() in environment
            and pid != os.getpid()
            and not any(text in command for text in _ENDS_WITH_US)
        ):
            found.append(Survivor(pid, command))
    return found


class Watch:
    """The plugin of the process that leads the run."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        os.environ[MARK] = self._mark

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> object:
        """After all others have finished, those of xdist included."""
        result = yield
        found = survivors(self._mark)
        until = time.monotonic() + PATIENCE_S
        while found and time.monotonic() < until:
            time.sleep(_POLL_S)
            found = survivors(self._mark)
        for survivor in found:
            survivor.end()
        if found:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            self._tell(session, found)
        return result

    def _tell(self, session: pytest.Session, found: list[Survivor]) -> None:
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None:
            return
        reporter.section("processes that outlived the tests, and were ended now", red=True)
        for survivor in found:
            reporter.line(f"{survivor.pid}: {survivor.command}")


def watch(config: pytest.Config) -> None:
    """Look for survivors in the end, if this process leads the run."""
    if MARK not in os.environ:
        config.pluginmanager.register(Watch(), "survivors")

"""Facts of the system about processes and the machine."""

import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from disque_trio import __version__

_KIB = 1024


def family(pid: int) -> list[int]:
    """The process and its descendants."""
    found = [pid]
    for task in _tasks(pid):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += family(int(child))
    return found


def cpu_s(pids: Iterable[int]) -> float:
    """CPU seconds of processes and their descendants, in user and system mode."""
    return sum(time.clock_gettime(_clock(each)) for pid in pids for each in family(pid))


def _clock(pid: int) -> int:
    """The id of a process's CPU clock, as by clock_getcpuclockid(3)."""
    return (~pid << 3) | 2


def _tasks(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def rss_bytes(pids: Iterable[int]) -> int:
    """Resident memory of processes and their descendants."""
    return sum(_rss(each) for pid in pids for each in family(pid))


def _rss(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * _KIB
    return 0


# The machine.


def machine() -> dict[str, str | int]:
    """The facts of the machine that figures depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str:
    """The working copy's commit, with a star if it has changes; empty outside of git."""
    here = Path(__file__).parent
    found = _said(["git", "-C", str(here), "describe", "--always", "--dirty=*", "--exclude=*"])
    return found.strip()


def version(command: Sequence[str]) -> str:
    """A server's version, as it reports it."""
    if "disque_trio" in command:
        return __version__
    path = Path(command[0]).resolve()
    if path.name == "rabbitmq-server":  # which would start a server if it were asked
        words = [each.name.rpartition("-")[2] for each in path.parent.parent.rglob("rabbit-*.*.*")]
    else:
        words = _said([command[0], "-v" if path.name == "beanstalkd" else "--version"]).split()
    marked = [word[2:] for word in words if word.startswith("v=")]
    return (marked or words[-1:] or [""])[0].lstrip("v")


def _said(command: Sequence[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    return done.stdout or done.stderr

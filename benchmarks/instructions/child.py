"""What runs in callgrind: each case in a process of its own, forked when all is imported.

So no case depends on which others ran before it. It runs twice, and only the second time is
counted: the first one lets the interpreter specialize its bytecodes, and fills caches.
"""

import gc
import os
import sys
from collections.abc import Sequence

from benchmarks.instructions.cases import CASES, Case, Meter, mark

AT_ONCE = 2
"""Processes that run side by side, as there are cores."""


def main(names: Sequence[str]) -> int:
    """Run these cases, and print the process of each. The exit status."""
    cases = [case for case in CASES if case.name in names]
    running: set[int] = set()
    failed = 0
    for case in cases:
        if len(running) == AT_ONCE:
            failed |= _wait(running)
        running.add(_start(case))
    while running:
        failed |= _wait(running)
    return int(bool(failed))


def _start(case: Case) -> int:
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        sys.stdout.write(f"{os.getpid()} {case.name}\n")
        sys.stdout.flush()
        case.run(Meter(lambda: None), case.count)
        gc.collect()
        gc.disable()
        case.run(Meter(mark), case.count)
        status = 0
    finally:
        os._exit(status)


def _wait(running: set[int]) -> int:
    pid, status = os.wait()
    running.discard(pid)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

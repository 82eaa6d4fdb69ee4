"""What becomes of a process that a function has forked and not ended.

It has the sockets, the job and the event loop of the worker, and would go on as a second one: its
`sys.exit`, its error or its return ends it here.
"""

import os
import sys
import traceback


def end_fork(process: int, error: BaseException | None = None) -> None:
    """End this process as Python would, unless it is `process`; `error` is how its function has
    ended. What it has registered by `atexit` is of the worker, and is not called."""
    if os.getpid() == process:
        return
    status = 0
    try:
        code = error.code if isinstance(error, SystemExit) else None
        if isinstance(code, int):
            status = code
        elif code is not None:
            status = 1
            sys.stderr.write(f"{code}\n")
        elif error is not None and not isinstance(error, SystemExit):
            status = 1
            traceback.print_exception(error)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status & 0xFF)

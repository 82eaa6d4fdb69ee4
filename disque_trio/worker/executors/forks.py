"""Ends a process that a function has forked and not ended.

Such a process has the sockets, the job and the event loop of the worker, and would continue as a
second worker. When its function returns or raises, or calls `sys.exit`, it ends here.
"""

import os
import sys
import traceback


def end_fork(process: int, error: BaseException | None = None) -> None:
    """End this process as Python would, unless it is `process`; `error` is how its function has
    ended. Functions registered with `atexit` belong to the worker, and are not called."""
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

"""A process of a worker: `python -m disque_trio.worker.executors.child FD` runs the orders that it
receives on that socket, one function at a time, until the worker closes it.

Every exception of a function is sent as an answer, including `SystemExit`; only SIGTERM ends the
process.
"""

import os
import pickle
import signal
import socket
import sys
import threading
import time
from queue import SimpleQueue
from typing import Any, Final

from disque_trio.worker.executors.forks import end_fork
from disque_trio.worker.executors.frames import LENGTH, Order, Result, answer, found

GRACE_S: Final = 2.0
"""How long a function may take to end after the worker has gone."""


def main() -> None:
    """Run orders until the worker closes the socket."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # they are for the worker
    signal.signal(signal.SIGTERM, _leave)
    parent = socket.socket(fileno=int(sys.argv[1]))
    parent.set_inheritable(False)  # processes that functions start must not keep it open
    orders: SimpleQueue[Order | BaseException] = SimpleQueue()
    threading.Thread(target=_read, args=[parent, orders], daemon=True).start()
    process = os.getpid()
    while not _leaving:
        outcome = _outcome(orders.get())
        end_fork(process, outcome if isinstance(outcome, BaseException) else None)
        data = answer(outcome)
        if not _leaving:
            parent.sendall(data)
    sys.exit(_TERMINATED)


_TERMINATED: Final = 128 + signal.SIGTERM
_leaving: Final[list[int]] = []
"""The signal that ends the process, once it was received."""


def _leave(number: int, _: object) -> None:
    # Only once: the worker sends SIGTERM and closes the socket, and a second signal would interrupt
    # the cleanup.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _leaving.append(number)
    sys.exit(_TERMINATED)


def _outcome(order: Order | BaseException) -> Result | BaseException:
    if isinstance(order, BaseException):
        return order
    try:
        return Result(found(order.module, order.name, order.depth)(*order.args, **order.kwargs))
    except BaseException as error:
        return error


def _read(parent: socket.socket, orders: "SimpleQueue[Order | BaseException]") -> None:
    """Read orders while functions run, so that the end of the worker is detected."""
    while (head := _exactly(parent, LENGTH)) and (
        data := _exactly(parent, int.from_bytes(head, "big"))
    ):
        try:
            orders.put(pickle.loads(data))
        except BaseException as error:  # for example, the class of an argument is missing
            orders.put(error)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os._exit(_TERMINATED)


def _exactly(stream: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            more: Any = stream.recv(min(size - len(data), 1 << 20))
        except OSError:
            more = b""
        if not more:
            return b""
        data += more
    return bytes(data)


if __name__ == "__main__":
    main()

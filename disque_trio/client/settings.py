"""Defaults of both clients."""

from typing import Final

DEFAULT_URL: Final = "disque://127.0.0.1:7711"
CONNECT_TIMEOUT_S: Final = 5.0
PATIENCE_S: Final = 10.0
"""How long a reply may take, besides the time that the node was asked to wait."""
LATE_S: Final = 2.0
"""The same of a request that waits in the node: its own timer answers it, so one that is later
hangs, and another node is asked."""
LATE_ALONE_S: Final = 5.0
"""The same of the only node that answers: a slow one is better than none."""
OUTAGE_S: Final = 30.0
"""How long a request is repeated that nodes refuse because one of them does not answer: twice the
default of `cluster-node-timeout`, after which they give that node up."""
OUTAGE_PAUSE_S: Final = 0.2
"""Between two of these requests."""
PART_S: Final = 30.0
"""The longest wait that GETJOB asks for at once; longer ones are asked for in parts. Those of
WAITJOB are not: a job may end between two parts, and be forgotten."""
EARLY_S: Final = 1.0
"""A part that ended sooner than asked for was ended by CLIENT UNBLOCK, and no other follows."""
WINDOW: Final = 128
"""Requests of `run_all` that are under way at the same time: as many ADDJOBs of a client wait."""
KEEPALIVE_S: Final = 15
"""How soon the kernel looks whether a silent node's machine is there. That also keeps its entry in
routers that translate addresses."""
PROBE_S: Final = 5.0
"""A connection that was idle for longer answers PING before a command that must not be sent
twice."""

"""Defaults of both clients."""

from typing import Final

DEFAULT_URL: Final = "disque://127.0.0.1:7711"
CONNECT_TIMEOUT_S: Final = 5.0
PATIENCE_S: Final = 10.0
"""How long a reply may take, in addition to the requested waiting time."""
LATE_S: Final = 2.0
"""The same for a request that waits in the node: the node's timer ends the wait, so a later node is
unresponsive, and another one is tried."""
LATE_ALONE_S: Final = 5.0
"""The same for the only node that answers: a slow node is better than none."""
OUTAGE_S: Final = 30.0
"""How long a request is repeated if nodes reject it because one of them does not answer: twice the
default of `cluster-node-timeout`, after which they consider that node failed."""
OUTAGE_PAUSE_S: Final = 0.2
"""The pause between two of these requests."""
PART_S: Final = 30.0
"""The longest wait of one GETJOB request; longer waits are split. Waits of WAITJOB are not: a job
may end between two requests, and its record may be gone."""
EARLY_S: Final = 1.0
"""A part of a wait that ended earlier than requested was ended by CLIENT UNBLOCK, and no other part
follows."""
WINDOW: Final = 128
"""The number of concurrent requests of `run_all`, which is the number of ADDJOBs of a client that
may wait."""
KEEPALIVE_S: Final = 15
"""After how many idle seconds the kernel checks that the peer is reachable. This also keeps the
connection's entry in NAT routers."""
PROBE_S: Final = 5.0
"""A connection that was idle for longer must answer PING before a command that must not be
repeated."""

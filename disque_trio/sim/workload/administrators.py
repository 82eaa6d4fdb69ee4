"""Administrators: clients that purge and redrive queues, unblock connections, cancel jobs and wait
for their ends.

An administrator sends commands to one node after another, on a new connection for each command, and
learns of jobs by QPEEK.
"""

import random
from typing import Final

from disque_trio.sim.random_streams import stream
from disque_trio.sim.scenarios.plan import Administrator, Micros, Plan
from disque_trio.sim.workload.actions import PATIENCE, Action, Disconnect, SendRequest
from disque_trio.sim.workload.visits import NEVER
from disque_trio.statemachine.base import Reply

LONGEST_WAIT_MS: Final = 4000
"""The longest TIMEOUT of a WAITJOB."""
_LOOKS_MS: Final = 400
"""WAITJOB uses NOHANG in place of a shorter TIMEOUT."""
_CONNECTIONS: Final = 40
"""The connections of a node that it tries to unblock: those with the lowest ids."""


def administrators(plan: Plan) -> list["Commander"]:
    """Return the plan's administrators."""
    return [
        Commander(each, plan.nodes, stream(plan.seed, "administer", each.name))
        for each in plan.administrators
    ]


class Commander:
    """The agent of one administrator."""

    def __init__(self, plan: Administrator, nodes: int, rng: random.Random) -> None:
        self.name = plan.name
        self.actions: list[Action] = []
        self._plan = plan
        self._nodes = nodes
        self._rng = rng
        self._due = self._next(0)
        self._opened = 0
        self._connection = 0
        """The number of the open connection; 0 if there is none."""
        self._node = 0
        self._gives_up: Micros = NEVER
        """When it stops waiting for the reply."""
        self._then = ""
        """The command for one of the jobs in the expected reply of QPEEK."""

    def deadline(self) -> Micros:
        """Return the time of the next command, or of the end of its patience."""
        return min(self._due, self._gives_up)

    def is_idle(self) -> bool:
        """Return True: the run does not wait for it."""
        return True

    def settle(self) -> None:
        """Send no more commands after the chaos."""
        self._due = NEVER

    def wake(self, now: Micros) -> None:
        """Give up on the last command, and send the next one."""
        if self._gives_up <= now:
            self._hang_up()
        if self._due <= now:
            self._due = self._next(now)
            if self._gives_up == NEVER:
                self._order(now)

    def _next(self, now: Micros) -> Micros:
        low, high = self._plan.every
        return now + max(1, self._rng.randint(low, high))

    def _order(self, now: Micros) -> None:
        names = [name for name, _ in self._plan.mix]
        order = self._rng.choices(names, [weight for _, weight in self._plan.mix])[0]
        self._node = self._rng.randint(1, self._nodes)
        queue = self._rng.choice(self._plan.queues).encode()
        if order == "purge":
            self._ask(now, [b"PURGE", queue, *self._everywhere()])
        elif order == "purge-dead":
            self._ask(now, [b"PURGE", queue, b"DEAD", *self._everywhere()])
        elif order == "redrive":
            self._ask(now, [b"REDRIVE", queue, *self._count()])
        elif order == "enqueue":
            self._ask(now, [b"ENQUEUE", b"QUEUE", queue, *self._count()])
        elif order == "unblock":
            self._ask(now, [b"CLIENT", b"UNBLOCK", b"%d" % self._rng.randint(1, _CONNECTIONS)])
        else:
            self._then = order
            self._ask(now, [b"QPEEK", queue, b"-3"])

    def _count(self) -> list[bytes]:
        return [b"COUNT", b"%d" % self._rng.randint(1, 5)] if self._rng.random() < 0.5 else []

    def _everywhere(self) -> list[bytes]:
        return [b"BCAST"] if self._rng.random() < 0.3 else []

    def _ask(self, now: Micros, words: list[bytes], wait: Micros = 0) -> None:
        if not self._connection:
            self._opened += 1
            self._connection = self._opened
        self._gives_up = now + wait + PATIENCE
        self.actions.append(SendRequest(self._connection, self._node, words))

    def _hang_up(self) -> None:
        if self._connection:
            self.actions.append(Disconnect(self._connection))
        self._rest()

    def _rest(self) -> None:
        self._connection = 0
        self._gives_up = NEVER
        self._then = ""

    def answered(self, now: Micros, connection: int, reply: Reply) -> None:
        """The command is carried out, or QPEEK has returned jobs."""
        if connection != self._connection:
            return
        then, self._then = self._then, ""
        if then and isinstance(reply, list) and reply:
            jobs = [job[1] for job in reply if isinstance(job, list)]
            wait = self._rng.randint(1, LONGEST_WAIT_MS) if then == "wait" else 0
            job = self._rng.choice(jobs)
            assert isinstance(job, bytes)
            if then == "cancel":
                self._ask(now, [b"ACKJOB", job])
            else:
                how = [b"TIMEOUT", b"%d" % wait] if wait > _LOOKS_MS else [b"NOHANG"]
                how += [b"WITHRESULT"] if wait % 2 else []
                self._ask(now, [b"WAITJOB", job, *how], wait * 1000)
        else:
            self.actions.append(Disconnect(self._connection, "quit"))
            self._rest()

    def lost(self, now: Micros, connection: int) -> None:  # noqa: ARG002
        """The node has ended the connection."""
        if connection == self._connection:
            self._rest()

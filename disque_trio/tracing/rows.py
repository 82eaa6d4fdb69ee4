"""The trace row: what happens, in a simulation or on a live node (docs/simulation.md, "Traces").

One row is one event. Checkers, pictures, shrinking and the data pipeline all read rows and nothing
else, so a history of a real cluster can be judged like a simulated one. `details` parses `detail`.

Kinds, by writer. Times are microseconds since the run began (true time); the warm-up, in which the
cluster is formed, comes before and has negative times.

Clients (`node` is the node asked, `client` the client's name, `ref` numbers the operation):

- ``add.invoke``: `job` is empty, `queue`, `detail` the options as ``name=value`` (``async`` alone)
  and, last, ``body=`` with the body as `bodies.shown`. ``add.ok``: `job` is known now.
  ``add.refused``: a definite no, `cause` its code. ``add.unknown``: the job may exist or not,
  `cause` is disconnect, timeout, or the code of an error that leaves it open.
- ``get.deliver``: one per job that the consumer has in hand; `detail` is
  ``nacks=N additional=N body=…``, before the body ``snoozes=N`` if there are any, and ``token=…``
  if the consumer asked WITHMETA, ``tied`` and ``held`` if it
  asked TIED and HELD.
- ``VERB.invoke`` and then ``VERB.ok`` (`detail` is the reply), ``VERB.refused`` (`cause` is the
  code) or ``VERB.unknown`` (`cause` disconnect or timeout), one for each job named; the verbs are
  ``ack``, ``fastack``, ``nack``, ``working``, ``deljob``, ``enqueue``, ``dequeue``, ``release`` and
  ``wait`` (WAITJOB). The `detail` of an invocation is the token, if there is one.
- ``hangup``: a consumer that asks TIED ends a connection. ``jobs=`` in `detail` lists the jobs that
  were delivered with TIED there, whatever has become of them.
- ``worker.start``, ``worker.stop`` (the order), ``worker.stopped``, ``worker.kill``,
  ``worker.stall`` and ``worker.resume``: the process of a consumer that runs the worker library's
  engine. `node` is empty here and in the next.
- ``run.begin``, ``run.cancel``, ``run.end`` of a handler, and ``run.drop`` of a delivery that ends
  without a run, or whose outcome no node learns: `cause` of an end is the outcome (done, retry,
  dead, release, cancelled), of the others the reason (`worker.engine.records.Why`). `detail` of
  retry is ``delay=`` in milliseconds, if there is one.
- ``purge.invoke``, then ``purge.ok`` or ``purge.unknown``, of a queue.
- ``query.invoke``, then ``query.ok``, ``query.refused`` or ``query.unknown``, of simulated clients
  only: `cause` is the command (qlen, show …), `detail` its other words, then the reply in short
  (`query_rows`).

Nodes (from `statemachine.trace`): ``hold``, ``drop``, ``queue``, ``unqueue``, ``serve``, ``give``,
``acked``, ``dead``, ``redrive``, ``postpone``, ``untie``, each with the `cause` that
`statemachine.events` lists; the `detail` of ``hold`` is what the record says of the job
(`statemachine.trace.hold`). ``error``: the machine raised, which ends the run. ``invariant``: the
node's state is inconsistent, `detail` says why. ``nodes``: its node table (`inspection`).
``unmet``: the node has a job queued while a client waits for it at `peer`, `detail` is ``since=`` a
time; ``pairs``: `detail` is the number of such pairs, however short; ``demand``: a client that
waits at the node, or at any if none is named, could receive a job of the queue, which has limits in
the plan, ``since=`` a time, without interruption (`meetings`).

Messages: ``send``, ``recv``, ``lost``: `peer` is the other node, `ref` numbers the message, `cause`
is its type's name in lower case, `detail` its content (`wording`). A message about several jobs has
an empty `job`; ``jobs=`` in `detail` lists them. ``lost`` is a row of the sender, at the time of
the loss; `detail` is the reason: dropped (by a rule or a hostile link), cut, broken (with its
connection), crash, closed (the receiver has ended the connection), never linked. A message in
transit at the end of the run has neither ``recv`` nor ``lost``.

Faults: the rows in `sim.scenarios.fault_kinds`, for links from `node` to `peer`. The `detail` of a
level (milliseconds, bytes, yes, a queue and its mode) ends it if its last word is 0, no or none.
``crash`` (`cause` kill, power, shutdown or stop, `detail` queues if its journal has the mark of a
stop), ``start`` (`cause` fresh, empty, loaded; fresh, under another id, also after ``wipe``),
``forget`` (`node` forgets `peer`), ``meet`` (it meets it again), ``chaos.end``, ``heal.end`` (at
once; `detail` lists the healed nodes, the core), ``rejoin`` (all of these have links to each other
again), ``end``.

Apps (`client` is the process, w1, p1 …; `ref` the number of the job in the plan, `job` its id):
``app.start``, ``app.kill``, ``app.stop`` (the order), ``app.ended`` (by itself; `cause` is how),
``app.pause`` and ``app.resume``, ``app.cut`` and ``app.mend``, ``app.reset`` of processes;
``app.call`` (`cause` its kind), then ``app.added`` or ``app.refused``, ``app.batch`` and
``app.then``, of a flow ``app.flow`` and ``app.cancel``; ``app.wait`` and ``app.told`` (`cause`
value or the error) of results; ``app.begin`` of a handler (`cause` its action), ``app.ends`` (the
outcomes of its batch that it got), ``app.action`` when it acts (``app.deed`` in traces of 0.1.0),
``app.end`` (`cause` its outcome); ``app.tick`` of a task of cron; ``app.log``; ``app.heal``,
``app.left`` (a job that has not ended) and ``app.over``.

The operator: ``limit`` (QUEUE LIMIT at `node`, `detail` its words from the queue on).

The first row of a file alone: ``plan`` of a simulated run, ``sample`` of a live node that writes of
some jobs only (`sampling`).
"""

import attrs


@attrs.define
class Row:
    """One event. Fields without a meaning for it are empty or 0."""

    time: int
    """True time, microseconds since the run began; negative in the warm-up."""
    kind: str
    node: str = ""
    """The node's name in the run: n1, n2 …"""
    job: str = ""
    queue: str = ""
    client: str = ""
    peer: str = ""
    cause: str = ""
    detail: str = ""
    ref: int = 0
    """A number that connects an operation's invocation and outcome, or a send and its recv."""
    mono: int = 0
    """The node's monotonic clock, milliseconds."""
    wall: int = 0
    """The node's wall clock, Unix milliseconds."""
    clock: tuple[int, ...] = ()
    """Vector clock: the nodes by number, the operator, the clients by appearance, nodes that join
    later. Rows from before such a node have a shorter one; missing components are 0. Empty if
    clocks are not kept."""

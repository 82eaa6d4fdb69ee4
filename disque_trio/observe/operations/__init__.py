"""All operations on a cluster in one table: the buttons of the console, the subcommands of the
command line and the methods of `App.admin` follow from it.

An operation is planned first, which changes nothing, so that a person can read its effects. Running
the plan is a separate step, which reports the result of each node.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import attrs

from disque_trio.client import commands
from disque_trio.observe.operations import (
    adding,
    flows,
    jobs,
    limits,
    nodes,
    queues,
    schedules,
    workers,
)
from disque_trio.observe.operations.operation import Argument, Operation
from disque_trio.observe.values import Json, name_fields
from disque_trio.statemachine.joboptions import OPTIONS
from disque_trio.worker.operating.plans import MistakeError
from disque_trio.worker.timetable.records import Timetable

_QUEUE: Final = Argument(name="queue", about="name of the queue", is_required=True)
_REASON: Final = Argument(name="reason", about="with these words in their reason")
_LIMIT: Final = Argument(name="limit", about="at most so many", kind="number", is_asked=True)
_RATE: Final = Argument(
    name="rate", about="jobs a second", kind="number", default=queues.RATE, is_asked=True
)
_ANY_QUEUE: Final = attrs.evolve(_QUEUE, is_required=False, is_placed=True)
_ID: Final = Argument(name="id", about="id of the job", is_required=True)
_WORKER: Final = Argument(
    name="worker", about="a worker's name, or a pattern: 'shop-*'", is_required=True
)
_TIMEOUT: Final = Argument(
    name="timeout", about="seconds to wait for answers", kind="seconds", default=10
)
_NODE: Final = Argument(
    name="node", about="name or address of the node, or the start of its id", is_required=True
)
_queues: Final = partial(Operation, family="queues")
_jobs: Final = partial(Operation, family="jobs", arguments=(_ID,))
_workers: Final = partial(Operation, family="workers", arguments=(_WORKER, _TIMEOUT))
_nodes_: Final = partial(Operation, family="nodes", arguments=(_NODE,))
_flows: Final = partial(
    Operation, family="flows", arguments=(attrs.evolve(_ID, about="id of the flow"),)
)
_schedules: Final = partial(Operation, family="schedules", arguments=(schedules.NAME,))
_ALIVE: Final = ("queued", "active")
_BODY: Final = Argument(
    name="body", about="body of the job", kind="body", is_required=True, is_asked=True
)
_ADD: Final = (
    attrs.evolve(_QUEUE, is_asked=True),
    _BODY,
    *map(adding.argument_of, OPTIONS),
)


_SIDE: Final = Argument(
    name="side", about="input, output or both", choices=("all", "out", "in"), default="all",
    is_placed=True, is_asked=True,
)  # fmt: skip
_COUNT: Final = Argument(name="count", about="at most so many at each node", kind="number")
_KEY: Final = Argument(name="key", about="its UNIQUE key", is_required=True, is_asked=True)
_CLIENT: Final = Argument(name="client", about="number of its connection", is_required=True)
_ADDRESS: Final = Argument(
    name="address", about="address and port: 10.0.0.7:7711", is_required=True, is_asked=True
)
_TABLE: Final = (
    _queues(
        name="add", letter="A", label="Add a job", plan=adding.add, arguments=_ADD,
        about="Add a job to a queue.",
    ),
    _queues(
        name="pause", letter="P", label="Pause", plan=queues.pause, arguments=(_QUEUE, _SIDE),
        about="Stop a queue's input and output, or one of them, at all nodes.",
    ),
    _queues(
        name="resume", letter="S", label="Resume", plan=queues.resume, arguments=(_QUEUE,),
        about="End a pause.", when=("paused",),
    ),
    _queues(
        name="limit", letter="L", label="Limit", plan=limits.limit,
        arguments=(_QUEUE, *limits.ARGUMENTS),
        about="Limit the leases of a queue, or its deliveries per time, in the whole cluster.",
    ),
    _queues(
        name="unlimit", letter="U", label="Remove limits", plan=limits.unlimit,
        arguments=(_QUEUE,), when=("limited",), about="Remove the limits of a queue.",
    ),
    _queues(
        name="requeue", letter="Q", label="Requeue", plan=queues.requeue,
        arguments=(_QUEUE, _COUNT), about="Queue now what waits for its RETRY after a restart.",
    ),
    _queues(
        name="redrive", letter="R", label="Redrive dead jobs", plan=queues.redrive,
        arguments=(_ANY_QUEUE, _REASON, _LIMIT, _RATE), when=("dead",),
        about="Queue dead jobs of a queue, or with a reason, again as if they were new.",
    ),
    _queues(
        name="drop", letter="X", label="Drop dead jobs", plan=queues.drop,
        arguments=(_ANY_QUEUE, _REASON, _LIMIT), when=("dead",), is_grave=True,
        about="End dead jobs of a queue, or with a reason, for good.",
    ),
    _queues(
        name="purge", letter="D", label="Purge", plan=queues.purge,
        arguments=(_QUEUE,), is_grave=True,
        about="End all jobs that are queued in a queue.",
    ),
    _queues(
        name="cancel", letter="K", label="Cancel by key", plan=queues.cancel,
        arguments=(_QUEUE, _KEY),
        about="End the job that has a UNIQUE key, wherever it is.",
    ),
    _jobs(
        name="requeue", letter="Q", label="Requeue", plan=jobs.requeue, when=("active",),
        about="Queue a job now that waits after a failure or for its delay.",
    ),
    _jobs(
        name="nack", letter="N", label="Give back", plan=jobs.nack, when=("running",),
        about="Queue a job again as if its worker had given it back.",
    ),
    _jobs(
        name="acknowledge", letter="A", label="Cancel", plan=jobs.acknowledge, when=_ALIVE,
        about="End a job, also while it runs.",
    ),
    _jobs(
        name="redrive", letter="R", label="Redrive", when=("dead",),
        plan=jobs.of_dead(
            commands.redrive, "the job is queued again as if it were new", "queued again",
            ends=False,
        ),
        about="Queue a dead job again as if it were new.",
    ),
    _jobs(
        name="edit", letter="E", label="Edit and retry", plan=adding.edit, arguments=(_ID, _BODY),
        when=("dead", "backing-off", "delayed", "queued", "waiting"),
        about="Replace a job by a new one with another body and the same options.",
    ),
    _jobs(
        name="drop", letter="X", label="Drop", when=("dead",), is_grave=True,
        plan=jobs.of_dead(commands.ackjob, "the job ends for good", "ended", ends=True),
        about="End a dead job for good.",
    ),
    _jobs(
        name="delete", letter="D", label="Delete copies", plan=jobs.delete, is_grave=True,
        about="Drop the copies of a job at the nodes that answer.",
    ),
    _jobs(
        name="trace", letter="T", label="Trace on", plan=jobs.trace,
        about="Let all nodes write down what happens to a job, for an hour.",
    ),
    _flows(
        name="retry", letter="R", label="Redrive dead members", plan=flows.retry, when=("dead",),
        about="Queue the dead members of a flow again as if they were new.",
    ),
    _flows(
        name="cancel", letter="X", label="Cancel the flow", plan=flows.cancel, is_grave=True,
        when=("running", "failed"),
        about="End a flow: no further member is added, and those that run or wait end.",
    ),
    _workers(
        name="quiet", letter="Q", label="Take no more jobs", when=("running",),
        plan=workers.ordered("quiet", "takes no more jobs; those that it has go on"),
        about="Let workers take no more jobs, until resume.",
    ),
    _workers(
        name="resume", letter="S", label="Take jobs again", when=("quiet",),
        plan=workers.ordered("resume", "takes jobs again"),
        about="Let workers take jobs again, after quiet.",
    ),
    _workers(
        name="stop", letter="E", label="Stop", is_grave=True,
        plan=workers.ordered("stop", "ends when the jobs that run have ended"),
        about="End workers when the jobs that run have ended.",
    ),
    _workers(
        name="dump", letter="T", label="Dump stacks",
        plan=workers.ordered("dump", "tells where all its tasks and threads are"),
        about="Show where all tasks and threads of workers are.",
    ),
    _schedules(
        name="add", letter="A", label="Add a schedule", plan=schedules.add,
        arguments=schedules.ARGUMENTS,
        about="Add a schedule, or replace the one of this name.",
    ),
    _schedules(
        name="pause", letter="P", label="Pause", when=("running",),
        plan=schedules.changing(
            Timetable.pause, "no tick adds a job, until resume", "paused", "it was paused"
        ),
        about="Let a schedule add no jobs, until resume.",
    ),
    _schedules(
        name="resume", letter="S", label="Resume", when=("paused",),
        plan=schedules.changing(
            Timetable.resume, "ticks add jobs from now on", "resumed", "it was not paused"
        ),
        about="Let a schedule add jobs again; the ticks of the pause are not added.",
    ),
    _schedules(
        name="run", letter="R", label="Run now", plan=schedules.run_now,
        about="Add a job of a schedule now, beside its ticks.",
    ),
    _schedules(
        name="remove", letter="X", label="Remove", is_grave=True,
        plan=schedules.changing(
            Timetable.remove, "it is forgotten; the jobs it has added stay", "removed",
            "it was removed meanwhile",
        ),
        about="Forget a schedule; the jobs that it has added stay.",
    ),
    _nodes_(
        name="leave", letter="L", label="Let it leave", plan=nodes.leave,
        when=("up",), is_grave=True,
        about="Let a node give its jobs to the others, so that it can be stopped.",
    ),
    _nodes_(
        name="stay", letter="S", label="Stay", plan=nodes.stay, when=("leaving",),
        about="Let a node that leaves stay.",
    ),
    _nodes_(
        name="forget", letter="F", label="Forget", plan=nodes.forget, when=("silent",),
        is_grave=True,
        about="Let the others forget a node that is gone for good.",
    ),
    _nodes_(
        name="kick", letter="K", label="Kick", plan=nodes.kick, arguments=(_NODE, _CLIENT),
        about="End a client's connection to a node.",
    ),
    _nodes_(
        name="meet", letter="M", label="Meet a node", plan=nodes.meet, arguments=(_ADDRESS,),
        is_grave=True, about="Join another node, and its cluster.",
    ),
)  # fmt: skip
OPERATIONS: Final[Mapping[str, Operation]] = {each.key: each for each in _TABLE}
"""By key."""


def found(key: object) -> Operation:
    """Return the operation with this key. Raise `MistakeError`."""
    if not isinstance(key, str) or key not in OPERATIONS:
        raise MistakeError(f"there is no operation '{key}': {', '.join(OPERATIONS)}")
    return OPERATIONS[key]


def fields_of(args: Mapping[str, object]) -> Json:
    """Return arguments of a program or of a command line in the form that a browser sends."""
    fields: Json = {}
    for name, value in args.items():
        text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
        fields |= name_fields(text, name) if isinstance(text, str) else {name: text}
    return fields

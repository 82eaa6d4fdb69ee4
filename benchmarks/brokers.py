"""NATS with JetStream, and RabbitMQ: as `programs`, with clusters of their own."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Final, Self

import attrs
from hiredis import ReplyError

from benchmarks.load.amqp import Amqp, declare, delete
from benchmarks.load.dialects import QUEUE
from benchmarks.load.jetstream import CONSUMER, STREAM, JetStream
from benchmarks.programs import Place, Program
from tests.cluster.processes import BUS_OFFSET, SOON_S, eventually, free_port
from tests.cluster.talk import LOOPBACK

_STREAM: Final = STREAM.decode()
_CONSUMER: Final = CONSUMER.decode()
_ACK_WAIT_NS: Final = 300_000_000_000
"""As long as RETRY is by default."""


class NatsServer(Program):
    """nats-server; its stream is kept in files, which JetStream flushes to the disk once a minute
    or two."""

    dialect = JetStream()
    storage: ClassVar[str] = "file"

    def settings(self, _place: Place, nodes: Sequence[Self]) -> Sequence[str]:
        """Routes to all nodes."""
        routes = [f"nats://{LOOPBACK}:{node.port + BUS_OFFSET}" for node in nodes]
        own = routes[nodes.index(self)]
        cluster = ("--cluster_name", "bench", "--cluster", own, "--routes", ",".join(routes))
        return cluster if len(nodes) > 1 else ()

    def words(self) -> list[str]:
        """The command line."""
        where = ("-a", LOOPBACK, "-p", str(self.port), "-n", self.directory.name)
        return [*self.command, *where, "-js", "-sd", str(self.directory / "store"), *self.options]

    def answers(self) -> bool:
        """Has JetStream a leader?"""
        return bool(self._ask("INFO", {}))

    @classmethod
    def flush(cls, nodes: Sequence[Self]) -> None:
        """Purge the stream. The first node leads it and its consumer: clients talk to that, and
        other nodes would forward."""
        first = nodes[0]
        kept = {"retention": "workqueue", "storage": cls.storage, "num_replicas": len(nodes)}
        stream = {"name": _STREAM, "subjects": [f"{_STREAM}.>"], **kept}
        how = {"durable_name": _CONSUMER, "ack_policy": "explicit", "ack_wait": _ACK_WAIT_NS}
        consumer = {"stream_name": _STREAM, "config": how}
        for what, create, facts in (
            (f"STREAM.%s.{_STREAM}", "CREATE", stream),
            (f"CONSUMER.%s.{_STREAM}.{_CONSUMER}", "DURABLE.CREATE", consumer),
        ):
            eventually(partial(first._leads, what, create, facts), SOON_S, f"{what} is led by it")
        first._ask(f"STREAM.PURGE.{_STREAM}", {})

    def _leads(self, what: str, create: str, facts: dict[str, Any]) -> bool:
        """Does this node lead the stream or consumer? If not, it is deleted, to be made again."""
        try:
            found = self._ask(what % "INFO", {})
        except ReplyError:
            found = self._ask(what % create, facts)
        name = self.directory.name
        leads = found.get("cluster", {"leader": name}).get("leader") == name
        if not leads:
            self._ask(what % "DELETE", {})
        return bool(leads)

    def length(self, _queue: str) -> int:
        """Of the stream."""
        found = self._ask(f"STREAM.INFO.{_STREAM}", {})["state"]["messages"]
        assert isinstance(found, int)
        return found

    def _ask(self, action: str, facts: dict[str, Any]) -> dict[str, Any]:
        with self.connected() as client:
            assert isinstance(client.dialect, JetStream)
            (said,) = client.call(client.dialect.control(action, facts))
        return dict(json.loads(said))


class MemoryNatsServer(NatsServer):
    """And with its stream in memory."""

    storage = "memory"


_BOOT: Final = """
if [ "$1" = first ]; then setpriv --pdeathsig KILL epmd -port $ERL_EPMD_PORT & fi
until epmd -names > /dev/null; do sleep 0.05; done
exec "$0" -noinput"""
"""The shell becomes the server, and epmd, with which nodes find each other, ends with the first."""


@attrs.define(eq=False)
class RabbitServer(Program):
    """A node of RabbitMQ. Its quorum queue is on disk, and flushed before jobs are confirmed."""

    dialect = Amqp()
    port: int = attrs.Factory(partial(free_port, 1))
    """The next one is epmd's, of the first node."""

    def settings(self, _place: Place, nodes: Sequence[Self]) -> Sequence[str]:
        """Write the files that it reads. Returns the environment."""
        at = self.directory
        at.mkdir(parents=True)
        (at / ".erlang.cookie").write_text("bench")
        (at / ".erlang.cookie").chmod(0o400)
        discovery = "cluster_formation.peer_discovery_backend = classic_config\n"
        for number, node in enumerate(nodes, 1):
            name = f"{node.directory.name}@localhost"
            discovery += f"cluster_formation.classic_config.nodes.{number} = {name}\n"
        listeners = f"listeners.tcp.default = {LOOPBACK}:{self.port}\n"
        (at / "rabbitmq.conf").write_text(listeners + (discovery if len(nodes) > 1 else ""))
        found = {
            "HOME": at,
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": nodes[0].port + 1,
            "RABBITMQ_ALLOW_INPUT": 1,  # else a shell stays as its parent
            "RABBITMQ_NODENAME": f"{at.name}@localhost",
            "RABBITMQ_DIST_PORT": self.port + BUS_OFFSET,
            "RABBITMQ_CONFIG_FILE": at / "rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": at / "plugins",
            "RABBITMQ_MNESIA_BASE": at / "data",
            "RABBITMQ_LOG_BASE": at,
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",  # three nodes share the cores
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        return [f"{name}={value}" for name, value in found.items()]

    def words(self) -> list[str]:
        """The command line."""
        boot = ["sh", "-c", _BOOT, *self.command]
        return ["env", *self.options, *boot, "first" if self.directory.name.endswith("-0") else ""]

    def answers(self) -> bool:
        """Login."""
        with self.connected():
            return True

    @classmethod
    def flush(cls, nodes: Sequence[Self]) -> None:
        """Make the queue anew, led by the first node, with all nodes as members."""
        nodes[0].call(delete(QUEUE))
        nodes[0].call(declare(QUEUE, len(nodes)))
        for node in nodes:
            node.length("")

    def length(self, _queue: str) -> int:
        """Jobs that wait."""
        (said,) = self.call(declare(QUEUE))
        return int.from_bytes(said[-8:-4], "big")

"""redis-py, unmodified: sync and asyncio, both versions of the protocol, both of its parsers.

Its round with Disque's commands is in `test_clients`; the settings are those of docs/clients.md.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import redis
import redis.asyncio
from redis._parsers import _AsyncHiredisParser, _AsyncRESP2Parser, _HiredisParser, _RESP2Parser
from redis.backoff import NoBackoff
from redis.retry import Retry

from disque_trio.statemachine.commands.table import ROWS
from tests.cluster.lossy import lossy
from tests.cluster.processes import Server
from tests.cluster.talk import LOOPBACK

Untyped = Any
"""The client's methods carry no types."""
NO_MULTI: Final = (
    r"^unknown command 'MULTI': there are no transactions here, and nothing up to EXEC"
)
COMMANDS: Final = len(ROWS)
HOME: Final = Path(__file__).parents[2]
ONCE: Final = Retry(NoBackoff(), 0)
"""No request is sent again."""

each_way: Final = pytest.mark.parametrize("protocol", [2, 3])
each_parser: Final = pytest.mark.parametrize("is_fast", [False, True], ids=["python", "hiredis"])


@pytest.fixture(params=[False, True], ids=["python", "hiredis"])
def parser(request: pytest.FixtureRequest) -> Untyped:
    # The one for version 2 makes way for the one for version 3 when the node has said HELLO.
    return _HiredisParser if request.param else _RESP2Parser


@pytest.fixture(params=[2, 3])
def protocol(request: pytest.FixtureRequest) -> int:
    found: int = request.param
    return found


@pytest.fixture
def client(server: Server, parser: Untyped, protocol: int) -> Iterator[Untyped]:
    pool = redis.ConnectionPool(
        host=LOOPBACK,
        port=server.port,
        db=0,
        client_name="tests",
        socket_timeout=60,
        decode_responses=True,
        protocol=protocol,
        parser_class=parser,
    )
    with redis.Redis(connection_pool=pool) as found:
        yield found
    pool.disconnect()


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    return f"redis-py:{request.node.name}"


def test_it_connects_and_says_what_it_is(client: Untyped, protocol: int) -> None:
    info = client.client_info()

    assert (info["name"], info["lib-name"], info["resp"]) == ("tests", "redis-py", str(protocol))
    assert client.client_id() == int(info["id"])
    assert len(client.client_list(client_id=[info["id"]])) == 1
    assert client.echo("grüße") == "grüße"
    assert client.client_no_evict("ON") == client.client_no_touch("OFF") == "OK"


def test_it_reads_the_table_of_commands(client: Untyped) -> None:
    commands = client.command()

    assert len(commands) == client.command_count() == len(client.command_list()) == COMMANDS
    assert commands["addjob"]["arity"] == -4
    assert set(commands["addjob"]["flags"]) == {"write", "denyoom", "fast"}
    with pytest.raises(redis.ResponseError, match="no key arguments"):
        client.command_getkeys("QLEN", "q")


def test_it_reads_text_as_text(client: Untyped, queue: str) -> None:
    job = client.execute_command("ADDJOB", queue, "größe", 0)

    assert client.execute_command("GETJOB", "FROM", queue) == [[queue, job, "größe"]]
    assert client.execute_command("GETJOB", "NOHANG", "FROM", queue) is None
    assert client.config_get("port*") == {
        "port": str(client.connection_pool.connection_kwargs["port"])
    }
    assert client.info("jobs")["registered_jobs"] >= 1


def test_nothing_of_a_transaction_is_executed(client: Untyped, queue: str) -> None:
    transaction = client.pipeline()  # sends MULTI and EXEC unless it is told otherwise
    transaction.execute_command("ADDJOB", queue, "body", 0)
    transaction.execute_command("ADDJOB", queue, "body", 0)

    with pytest.raises(redis.ResponseError, match=NO_MULTI):
        transaction.execute()

    assert client.execute_command("QLEN", queue) == 0
    assert client.ping()


def test_a_pipeline_without_a_transaction_is_executed(client: Untyped, queue: str) -> None:
    pipeline = client.pipeline(transaction=False)
    for n in range(100):
        pipeline.execute_command("ADDJOB", queue, n, 0)

    assert len(set(pipeline.execute())) == 100
    assert client.execute_command("QLEN", queue) == 100


def test_there_is_nothing_to_watch(client: Untyped) -> None:
    with pytest.raises(redis.ResponseError, match=r"^unknown command 'WATCH'"):
        client.transaction(lambda _: None, "key")

    assert client.ping()


def test_there_are_no_channels(client: Untyped) -> None:
    with client.pubsub() as channels:
        channels.connection_pool = client.connection_pool
        channels.execute_command("SUBSCRIBE", "news")
        with pytest.raises(redis.ResponseError, match=r"^unknown command 'SUBSCRIBE': there are"):
            channels.parse_response()

    with pytest.raises(redis.ResponseError, match=r"^unknown command 'PUBLISH': there are no"):
        client.publish("news", "x")


def test_a_connection_may_be_reset(client: Untyped, protocol: int) -> None:
    if protocol == 3:
        pytest.skip("the client goes on in version 3 of the protocol, which RESET has ended")
    with client.client() as single:
        assert single.client_getname() == "tests"
        single.execute_command("RESET")
        assert single.client_getname() is None


def test_another_database_is_refused_when_it_connects(server: Server) -> None:
    with (
        redis.Redis(LOOPBACK, server.port, db=5, retry=ONCE) as client,
        pytest.raises(redis.ResponseError, match="there is database 0 alone, not '5'"),
    ):
        client.ping()


# Passwords.


@pytest.fixture(scope="module")
def guarded(shared_fleet: Any) -> Server:
    """A node with a password."""
    found: Server = shared_fleet.server()
    found.client.text("CONFIG", "SET", "requirepass", "secret")
    found.hang_up()
    return found


@pytest.mark.parametrize("user", [None, "default"])
def test_it_authenticates_with_or_without_the_user(
    guarded: Server, protocol: int, user: str | None
) -> None:
    with redis.Redis(
        LOOPBACK, guarded.port, username=user, password="secret", protocol=protocol
    ) as client:
        assert client.ping()


@pytest.mark.sample(4)
@pytest.mark.parametrize(("user", "password"), [("bob", "secret"), (None, "wrong")])
def test_others_are_told_so(
    guarded: Server, protocol: int, user: str | None, password: str
) -> None:
    with (
        redis.Redis(
            LOOPBACK, guarded.port, username=user, password=password, protocol=protocol
        ) as client,
        pytest.raises(redis.AuthenticationError),
    ):
        client.ping()


# One ADDJOB, one job.


def test_a_producer_whose_answer_is_lost_adds_one_job_and_is_told(
    server: Server, queue: str
) -> None:
    with lossy(server.port) as port, redis.Redis(LOOPBACK, port, retry=ONCE) as producer:
        with pytest.raises(redis.ConnectionError):
            producer.execute_command("ADDJOB", queue, "body", 0)
        assert producer.execute_command("QLEN", queue) == 1


def test_as_it_comes_it_adds_another(server: Server, queue: str) -> None:
    """Should this fail one day, docs/clients.md asks for more than is needed."""
    with lossy(server.port) as port, redis.Redis(LOOPBACK, port) as producer:
        producer.execute_command("ADDJOB", queue, "body", 0)
        assert producer.execute_command("QLEN", queue) == 2


def test_a_worker_waits_longer_than_the_timeout_of_its_socket_unless_there_is_none(
    server: Server, queue: str
) -> None:
    words = ("GETJOB", "TIMEOUT", 500, "FROM", queue)
    with redis.Redis(LOOPBACK, server.port, socket_timeout=None) as worker:
        assert worker.execute_command(*words) is None
    hasty: Untyped = redis.Redis(LOOPBACK, server.port, socket_timeout=0.05, retry=ONCE)
    with hasty, pytest.raises(redis.TimeoutError):
        hasty.execute_command(*words)


# asyncio.


@asynccontextmanager
async def connected(server: Server, protocol: int, parser: Untyped) -> AsyncIterator[Untyped]:
    pool = redis.asyncio.ConnectionPool(
        host=LOOPBACK,
        port=server.port,
        protocol=protocol,
        parser_class=parser,
        socket_timeout=None,
    )
    async with redis.asyncio.Redis(connection_pool=pool) as found:
        yield found
    await pool.aclose()


@pytest.mark.parametrize(
    "parser", [_AsyncRESP2Parser, _AsyncHiredisParser], ids=["python", "hiredis"]
)
def test_asyncio_does_the_same(server: Server, protocol: int, parser: Untyped, queue: str) -> None:
    async def talk() -> None:
        async with connected(server, protocol, parser) as client:
            do = client.execute_command
            assert len(await client.command()) == COMMANDS
            transaction = client.pipeline()
            transaction.execute_command("ADDJOB", queue, "body", 0)
            with pytest.raises(redis.ResponseError, match=NO_MULTI):
                await transaction.execute()
            assert await do("QLEN", queue) == 0

            waiting = asyncio.create_task(do("GETJOB", "FROM", queue))
            job = await do("ADDJOB", queue, b"\x00\xff", 0)
            assert await waiting == [[queue.encode(), job, b"\x00\xff"]]
            assert await do("ACKJOB", job) == 1

    asyncio.run(talk())


# What the pages show.


@pytest.mark.parametrize("page", ["README.md", "docs/clients.md"])
def test_what_the_pages_show_works(server: Server, page: str) -> None:
    [code] = re.findall(r"```python\n(.*?)```", (HOME / page).read_text(), re.DOTALL)
    names: dict[str, Any] = {}

    exec(code.replace("7711", str(server.port)), names)

    assert names["body"] == b"hello"
    for name in ("disque", "producer", "worker"):
        if name in names:
            names[name].close()

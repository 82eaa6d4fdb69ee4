"""Clients that exist already, unmodified: redis-py, and pydisque on top of it."""

from collections.abc import Iterator
from typing import Any

import pydisque.client
import pytest
import redis

from tests.cluster.processes import Server
from tests.cluster.talk import LOOPBACK

pytestmark = pytest.mark.parametrize("multiplexing", ["epoll", "tasks"], scope="module")

Untyped = Any
"""Both clients' methods carry no types."""


@pytest.fixture
def redis_client(server: Server) -> Iterator[Untyped]:
    client = redis.Redis(LOOPBACK, server.port, socket_timeout=10)
    yield client
    client.close()


@pytest.fixture
def disque_client(server: Server) -> Untyped:
    client = pydisque.client.Client([f"{LOOPBACK}:{server.port}"])
    client.connect()
    return client


def test_redis_py_does_a_full_round(redis_client: Untyped, server: Server) -> None:
    do = redis_client.execute_command
    assert redis_client.ping() is True
    myself = do("CLUSTER", "MYID")
    assert do("HELLO") == [1, myself, [myself, b"", b"%d" % server.port, b"1"]]

    job = do("ADDJOB", "r:q", b"\x00body\r\n", 0, "RETRY", 60, "TTL", 600)
    assert do("QLEN", "r:q") == 1
    assert do("QPEEK", "r:q", 1) == [[b"r:q", job, b"\x00body\r\n"]]
    assert do("QSTAT", "r:q")[:4] == [b"name", b"r:q", b"len", 1]
    assert do("GETJOB", "NOHANG", "FROM", "r:q") == [[b"r:q", job, b"\x00body\r\n"]]
    assert do("WORKING", job) == 60
    assert do("NACK", job) == 1
    assert do("GETJOB", "WITHCOUNTERS", "FROM", "r:q") == [
        [b"r:q", job, b"\x00body\r\n", b"nacks", 1, b"additional-deliveries", 0]
    ]
    shown = do("SHOW", job)
    assert dict(zip(shown[::2], shown[1::2], strict=True))[b"state"] == b"active"
    assert do("JSCAN", 0, "QUEUE", "r:q") == [b"0", [job]]
    assert do("QSCAN", 0, "COUNT", 1000)[0] == b"0"
    assert do("ACKJOB", job) == 1
    assert do("SHOW", job) is None


def test_redis_py_sees_nothing_where_there_is_nothing(redis_client: Untyped) -> None:
    do = redis_client.execute_command
    assert do("SHOW", "D-aaaaaaaa-AAAAAAAAAAAAAAAAAAAAAAAA-05a1") is None
    assert do("GETJOB", "NOHANG", "FROM", "no:such") is None
    assert do("QSTAT", "no:queue") is None
    assert redis_client.client_getname() is None
    assert redis_client.config_get("por*") == {
        "port": str(redis_client.connection_pool.connection_kwargs["port"])
    }


def test_redis_py_is_told_what_is_wrong(redis_client: Untyped) -> None:
    do = redis_client.execute_command
    do("PAUSE", "r:paused", "in")

    with pytest.raises(redis.ResponseError, match=r"^PAUSED Queue paused in input, try later$"):
        do("ADDJOB", "r:paused", "b", 0)
    with pytest.raises(
        redis.ResponseError, match=r"^BADID Invalid Job ID format\. 'not-an-id' is not the id"
    ):
        do("ACKJOB", "not-an-id")
    with pytest.raises(redis.ResponseError, match=r"^NOREPL Not enough reachable nodes"):
        do("ADDJOB", "r:q", "b", 0, "REPLICATE", 2)


def test_redis_py_pipelines(redis_client: Untyped) -> None:
    pipeline = redis_client.pipeline(transaction=False)
    for n in range(500):
        pipeline.execute_command("ADDJOB", "r:pipe", n, 0)
    jobs = pipeline.execute()

    taken = redis_client.execute_command("GETJOB", "COUNT", 500, "FROM", "r:pipe")

    assert [job for _queue, job, _body in taken] == jobs
    assert [body for _queue, _job, body in taken] == [b"%d" % n for n in range(500)]
    assert redis_client.execute_command("ACKJOB", *jobs) == 500


def test_redis_py_waits_for_a_job_of_another_client(redis_client: Untyped) -> None:
    with redis_client.client() as waiting:
        connection = waiting.connection
        assert connection is not None
        connection.send_command("GETJOB", "TIMEOUT", 5000, "FROM", "r:wait")
        job = redis_client.execute_command("ADDJOB", "r:wait", "b", 0)

        assert connection.read_response() == [[b"r:wait", job, b"b"]]


def test_pydisque_does_a_full_round(disque_client: Untyped) -> None:
    client = disque_client
    assert client.hello()[0] == 1
    assert client.info()["registered_jobs"] >= 0

    job = client.add_job("p:q", "body", timeout=100, retry=60, ttl=600, maxlen=10)
    assert client.qlen("p:q") == 1
    assert client.qpeek("p:q", 1) == [[b"p:q", job, b"body"]]
    assert client.qstat("p:q", return_dict=True)[b"jobs-in"] == 1
    # It names the three parts of a job (id, queue, body), but leaves them in the server's order.
    assert client.get_job(["p:q"], timeout=1000) == [(b"p:q", job, b"body")]
    assert client.working(job) == 60
    client.nack_job(job)
    assert client.get_job(["p:q"], nohang=True, withcounters=True) == [(b"p:q", job, b"body", 1, 0)]
    assert client.get_job(["p:q"], nohang=True) == []
    assert client.show(job, return_dict=True)[b"nacks"] == 1
    assert client.jscan(queue="p:q", state=["active"]) == [b"0", [job]]
    assert b"p:q" in client.qscan(count=1000)[1]
    assert client.enqueue(job) == 1
    assert client.dequeue(job) == 1
    client.ack_job(job)
    assert client.show(job) is None


def test_pydisque_pauses_delays_and_removes(disque_client: Untyped) -> None:
    client = disque_client

    assert client.pause("p:pause", kw_all=True) == b"all"
    assert client.pause("p:pause", kw_state=True) == b"all"
    assert client.pause("p:pause", kw_none=True, kw_bcast=True) == b"none"
    delayed = client.add_job("p:pause", "b", delay=5, asynchronous=True)
    assert client.show(delayed, return_dict=True)[b"state"] == b"active"
    assert client.del_job(delayed) == 1
    queued = client.add_job("p:pause", "b", retry=0, replicate=1)
    client.fast_ack(queued)
    assert client.qlen("p:pause") == 0

"""Queues that people would use instead: how they are spoken to, and measured in small."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import contenders
from benchmarks.__main__ import main
from benchmarks.cases import CASES
from benchmarks.load.amqp import Amqp, AmqpReader, method
from benchmarks.load.dialects import BeanstalkReader, Reader, RedisStreams
from benchmarks.load.jetstream import JetStream, NatsReader


def read(reader: Reader, data: bytes, *, at_once: int) -> Iterator[object]:
    """The replies, when so many bytes come at once."""
    for begin in range(0, len(data), at_once):
        reader.feed(data[begin : begin + at_once])
        while (answer := reader.gets()) is not False:
            yield answer


# Dialects.


@pytest.mark.parametrize("at_once", [1, 1000])
def test_messages_of_nats_are_replies_or_jobs_however_they_are_cut(at_once: int) -> None:
    data = (
        b'INFO {"server_id":"x"}\r\nPING\r\n'
        b'MSG _INBOX.a 1 8\r\n{"s":"\r}\r\n'
        b"MSG bench.q 1 $JS.ACK.1 4\r\na\r\nb\r\n"
        b"MSG bench.q 1 $JS.ACK.2 0\r\n\r\n"
        b'MSG _INBOX.a 1 13\r\n{"error":{} }\r\n'
        b"HMSG _INBOX.a 1 16 16\r\nNATS/1.0 408 \r\n\r\r\n"
        b"-ERR 'no'\r\n"
    )

    answers = list(read(NatsReader(), data, at_once=at_once))

    jobs = [answer for answer in answers if isinstance(answer, list)]
    assert JetStream().jobs(jobs) == [(b"$JS.ACK.1", b"a\r\nb"), (b"$JS.ACK.2", b"")]
    assert [str(answer) for answer in answers if answer not in jobs] == [
        str(b'{"s":"\r}'),
        '{"error":{} }',
        "NATS/1.0 408 \r\n\r",
        "-ERR 'no'",
    ]


def test_nats_is_asked_for_as_many_jobs_as_were_taken() -> None:
    stream = JetStream(b"_INBOX.a")

    assert b'{"batch":16,' in stream.block(b"q", 16, None)
    assert b'{"batch":3,' in stream.block(b"q", 16, 3)


def confirm(tag: int, *, multiple: bool = False) -> bytes:
    return method(60, 80, tag.to_bytes(8, "big"), b"\1" if multiple else b"\0")


def delivery(tag: int, body: bytes) -> bytes:
    """As a consumer gets it."""
    tagged = b"\3me!" + tag.to_bytes(8, "big") + b"\0\0\5queue"
    # A publication has the same header and body.
    _, content = Amqp().add(b"q", body).split(b"\xce", 1)
    return method(60, 60, tagged) + content


@pytest.mark.parametrize("at_once", [1, 1000])
def test_each_publication_is_confirmed_once_in_whatever_order(at_once: int) -> None:
    data = confirm(2) + confirm(1) + confirm(5) + confirm(6, multiple=True) + confirm(7)

    assert list(read(AmqpReader(), data, at_once=at_once)) == [b""] * 7


@pytest.mark.parametrize("at_once", [1, 1000])
def test_jobs_of_rabbitmq_are_acknowledged_with_the_last(at_once: int) -> None:
    data = delivery(1, b"one \xce") + delivery(2, b"two")

    jobs = Amqp().jobs(list(read(AmqpReader(), data, at_once=at_once)))

    assert [body for _, body in jobs] == [b"one \xce", b"two"]
    assert Amqp().ack([tag for tag, _ in jobs]) == (confirm(2, multiple=True), 0)


def test_a_consumer_of_rabbitmq_is_made_once() -> None:
    assert Amqp().block(b"q", 16, None)
    assert Amqp().block(b"q", 16, 3) == b""


def test_what_rabbitmq_refuses_is_an_error() -> None:
    (answer,) = read(AmqpReader(), method(20, 40, b"\1\x94\4GONE"), at_once=1000)

    assert "GONE" in str(answer)
    assert isinstance(answer, Exception)


def test_entries_of_a_stream_are_jobs() -> None:
    answers = [[[b"q", [[b"1-0", [b"body", b"a"]], [b"2-0", [b"body", b"b"]]]]], None]

    assert RedisStreams().jobs(answers) == [(b"1-0", b"a"), (b"2-0", b"b")]


def test_statistics_of_beanstalkd_have_a_body() -> None:
    (answer,) = read(BeanstalkReader(), b"OK 10\r\n---\npid: 1\r\n", at_once=1)

    assert answer == (b"OK", b"---\npid: 1")


# In small.


def test_programs_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, **_: name == "redis-server" or None)

    assert contenders.missing().endswith("apt install beanstalkd nats-server rabbitmq-server")


@pytest.mark.slow
def test_each_server_that_is_installed_keeps_jobs_until_they_are_acknowledged(
    tmp_path: Path,
) -> None:
    target = tmp_path / "bench.json"

    assert main(["--quick", "--only", "peers-three,peers-turn", "--json", str(target)]) == 0

    medians = json.loads(target.read_text("utf-8"))["medians"]
    kinds = {case.name: case.kinds for case in CASES}
    for name, servers in medians.items():
        others = {each.name for each in contenders.others("") if each.kind in kinds[name]}
        assert set(servers) == {"disque_trio", *others}
        assert all(value > 0 for figures in servers.values() for value in figures.values())

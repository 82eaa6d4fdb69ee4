from pathlib import Path

import pytest

from disque_trio.pipeline.connector import options
from disque_trio.pipeline.connector.options import OptionError
from tests.certificates import Authority

DOCUMENT = Path("docs/pipeline-connector.md")


def test_what_is_not_said_has_its_documented_default() -> None:
    link, stream, sink = options.link({}), options.stream({"queue": "q"}), options.sink({})

    assert link.seeds == (("127.0.0.1", 7711),)
    assert link.discovers
    assert link.secret() is None
    assert (stream.max_jobs, stream.lease_s, stream.fails_on_loss) == (20_000, 1.0, True)
    assert (sink.hold_s, sink.added["delay"], sink.added["retry"], sink.added["ttl"]) == (
        300,
        0,
        None,
        86_400,
    )


def test_names_come_in_any_case_as_spark_makes_them_lower() -> None:
    stream = options.stream({"queue": "q", "maxjobspertrigger": "7"})

    assert stream.max_jobs == 7


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nodes": "localhost"}, "'localhost' is not host:port"),
        ({"nodes": "a:0"}, "from 1 to 65535"),
        ({"nodes": " , "}, "has no node"),
        ({"timeout": "soon"}, "option timeout: 'soon'"),
        ({"timeout": "nan"}, "option timeout: 'nan'"),
        ({"discover": "maybe"}, "option discover: 'maybe': must be true or false"),
        ({"password": "a", "passwordFile": "b"}, "set only one of them"),
        ({"tlsCaFile": "ca.pem"}, 'tlsCaFile needs option("tls", "true")'),
        ({"tls": "true", "tlsKeyFile": "key.pem"}, "set tlsCertFile as well"),
        ({"tls": "true", "tlsCaFile": "/nowhere/ca.pem"}, "cannot use '/nowhere/ca.pem'"),
    ],
)
def test_a_wrong_way_to_the_cluster_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as error:
        options.link(given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option queue is missing"),
        ({"queue": "q", "maxJobsPerTrigger": "0"}, "'0': must be a whole number from 1 to 1000000"),
        ({"queue": "q", "maxJobsPerTrigger": "many"}, "option maxJobsPerTrigger: 'many'"),
        ({"queue": "q", "maxJobsPerTrigger": "9" * 5000}, "option maxJobsPerTrigger: '999"),
        ({"queue": "q", "lease": "-1"}, "option lease: '-1'"),
        ({"queue": "q", "wait": "3000"}, "option wait: '3000': must be a whole number from 0 to"),
    ],
)
def test_a_wrong_option_of_a_stream_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as error:
        options.stream(given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"retry": "½"}, "option retry: '½'"),
        ({"ttl": "60", "hold": "60"}, "option hold: '60': must be less than ttl, which is 60"),
        ({"ttl": "60", "delay": "60"}, "option delay: '60'"),
        ({"replicate": "0"}, "option replicate: '0'"),
        ({"recognize": "true"}, "'true': must be one of keys, content, notes, none"),
        ({"writeId": "ä" * 51}, "must have at most 100 bytes"),
        ({"backoff": "0"}, "option backoff: '0'"),
        ({"maxbackoff": "316224001"}, "option maxbackoff: '316224001'"),
        ({"backoff": "9", "maxbackoff": "8"}, "option maxbackoff: '8': must be a whole number"),
    ],
)
def test_a_wrong_option_of_the_sink_is_named(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError) as error:
        options.sink(given)
    assert said in str(error.value)


def test_a_short_life_has_a_short_hold_unless_one_is_asked_for() -> None:
    assert options.sink({"ttl": "60"}).hold_s == 30
    assert options.sink({"ttl": "60", "hold": "50"}).hold_s == 50


def test_states_are_checked() -> None:
    assert options.scan({"state": "dead,backing-off"}).states == ("dead", "backing-off")
    assert options.scan({"state": "Queued, active"}).states == ("queued", "active")
    with pytest.raises(OptionError, match="'waiting' is not one of wait-repl, active"):
        options.scan({"state": "waiting"})


def test_an_option_that_there_is_not_is_refused_with_the_nearest_there_is() -> None:
    options.check_names({"queue": "q", "checkpointLocation": "/tmp/c"}, "stream")

    with pytest.raises(OptionError, match="did you mean maxJobsPerTrigger"):
        options.check_names({"maxJobPerTrigger": "5"}, "stream")
    with pytest.raises(OptionError, match="there are nodes, discover"):
        options.check_names({"zzz": "5"}, "scan")
    with pytest.raises(OptionError, match="no path"):
        options.check_names({"path": "queue"}, "sink")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "startingOffsets",
            "startingOffsets': a stream begins with the enqueued jobs; acknowledged",
        ),
        (
            "endingOffsets",
            "endingOffsets': a stream does not end; trigger(availableNow=True) reads",
        ),
        ("kafka.group.id", "kafka.group.id': all readers of a queue share its jobs; each job"),
        ("subscribePattern", "subscribePattern': a stream reads one queue, that of option queue"),
        ("minPartitions", "minPartitions': jobsPerPartition says how many jobs a task has at most"),
        ("maxOffsetsPerTrigger", "maxOffsetsPerTrigger'; did you mean maxJobsPerTrigger?"),
    ],
)
def test_an_option_of_kafka_is_answered_with_what_is_so_here(name: str, said: str) -> None:
    with pytest.raises(OptionError) as error:
        options.check_names({name: "earliest"}, "stream")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "use", "said"),
    [
        ("state", "stream", "option state is only for a table that is read, not a stream that is"),
        ("maxjobspertrigger", "scan", "option maxJobsPerTrigger is only for a stream that is"),
        ("retry", "scan", "option retry is only for what writes jobs, not a table that is read"),
        ("lease", "sink", "option lease is only for a stream that is read, not what writes jobs"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(name: str, use: str, said: str) -> None:
    with pytest.raises(OptionError) as error:
        options.check_names({name: "1"}, use)
    assert said in str(error.value)


def test_a_password_file_is_read_each_time_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "password"
    link = options.link({"passwordFile": str(file)})

    with pytest.raises(OptionError, match="passwordFile: cannot read"):
        link.secret()
    file.write_text("one\n")
    assert link.secret() == b"one"
    file.write_text("two\n")
    assert link.secret() == b"two"


def test_a_password_is_not_shown() -> None:
    assert "sesame" not in repr(options.link({"password": "sesame"}))


def test_certificates_are_tried_before_anybody_connects(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    signed = authority.sign()
    given = {"tls": "true", "tlsCaFile": authority.file, "tlsCertFile": signed.cert}

    assert options.link(given | {"tlsKeyFile": signed.key}).discovers is False
    with pytest.raises(OptionError, match="options tlsCertFile, tlsKeyFile: cannot use"):
        options.link(given | {"tlsKeyFile": authority.file})


@pytest.mark.parametrize("option", options.OPTIONS, ids=lambda option: str(option.name))
def test_each_option_is_documented_with_its_default(option: options.Option) -> None:
    rows = [line for line in DOCUMENT.read_text().splitlines() if f"| `{option.name}` |" in line]

    assert len(rows) == 1
    assert f"| {option.default or '–'} |" in rows[0]


def test_a_table_of_the_catalog_is_refused_with_what_works_instead() -> None:
    properties = {"owner": "me", "option.nodes": "a:1", "nodes": "a:1", "provider": "disque"}

    with pytest.raises(OptionError, match=r"use CREATE TEMPORARY VIEW, or .* by WITH"):
        options.check_read(properties)

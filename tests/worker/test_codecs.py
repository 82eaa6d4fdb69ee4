"""Codecs: what they change is read by every worker that has them, and waits for one elsewhere."""

import json
import zlib
from pathlib import Path
from typing import Any, Final, cast

import pytest

from disque_trio.testing.inline.kit import Inline
from disque_trio.worker import (
    App,
    BadBodyError,
    Cancel,
    ClaimCheck,
    Codec,
    NewerBodyError,
    NotEnqueuedError,
    Snooze,
    TooLargeError,
    Zlib,
    codec,
)
from disque_trio.worker.codecs import Codecs, encoded
from disque_trio.worker.engine import records
from disque_trio.worker.envelope import as_coded, read, task_of
from tests.client.running import url
from tests.worker.runs import body, outcome
from tests.worker.test_enqueue import Adder, app_with, node_that_adds, talk

SAMPLES: Final = Path(__file__).with_name("coded.jsonl")
LONG: Final = "".join(map(str, range(1200)))


class Mark(Codec):
    """Writes a mark before each body."""

    name = "mark"

    def encode(self, body: bytes) -> bytes:
        return b"mark" + body[::-1]

    def decode(self, body: bytes, most: int) -> bytes:  # noqa: ARG002
        if body == b"markbroken":
            raise OSError("no answer")
        if not body.startswith(b"mark"):
            raise ValueError("it has no mark")
        return body[:3:-1]


class Shelf:
    """A store."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def put(self, key: str, body: bytes) -> None:
        self.bodies[key] = body

    def get(self, key: str) -> bytes:
        return self.bodies[key]

    def delete(self, key: str) -> None:
        self.bodies.pop(key, None)


def app_of(*codecs: Codec, **options: Any) -> App[None]:
    app = App(codec=codecs, **options)

    @app.task(name="t", queue="q")
    async def t(text: str) -> str:
        return text

    @app.task(name="raises", queue="q")
    async def raises(text: str, how: str) -> None:
        raise {"cancel": Cancel("no"), "snooze": Snooze(5), "fail": ValueError("no")}[how]

    return app


def coded(names: list[str], body: bytes, **more: Any) -> bytes:
    known = {"task": "t", "key": None, "codecs": names, "body": body, "v": 2}
    return codec.write(codec.Coded(**{**known, **more}), "msgpack")


@pytest.mark.parametrize(
    "codecs",
    [[Zlib()], [Mark()], [Zlib(), Mark()], [Mark(), Zlib(above=0)], [ClaimCheck(Shelf(), 100)]],
    ids=lambda codecs: "-".join(each.name for each in codecs),
)
def test_a_job_runs_with_what_its_producer_gave(disque_inline: Inline, codecs: Any) -> None:
    app = app_of(*codecs)

    job = app.tasks["t"].blocking.enqueue(LONG)

    [waiting] = disque_inline.jobs()
    assert (waiting.task, waiting.key) == ("t", job.key), "tools see whose job it is"
    assert LONG.encode() not in waiting.body
    [ran] = disque_inline.blocking.run_all(app)
    assert (ran.end, ran.result, ran.key) == ("done", LONG, job.key)


def test_a_body_that_no_codec_changes_is_the_same_as_without(disque_inline: Inline) -> None:
    for app in (app_of(), app_of(Zlib(), ClaimCheck(Shelf()))):
        app.tasks["t"].using(key="k").blocking.enqueue("short")

    one, two = disque_inline.jobs()
    assert one.body == two.body


def test_a_checkpoint_leaves_nothing_in_a_store() -> None:
    shelf = Shelf()
    codecs = Codecs.of([Mark(), ClaimCheck(shelf, 0)], (), 1 << 20, 1 << 20)

    kept = codecs.encode_checkpoint("t", "k", b"{}")

    assert (codecs.decoded(kept), shelf.bodies) == (b"{}", {})
    assert kept == coded(["mark"], b"mark}{", key="k")


@pytest.mark.parametrize("kind", ["trio", "asyncio", "blocking"])
@pytest.mark.parametrize("check", [Mark(), ClaimCheck(Shelf(), 0)])
def test_all_ways_of_adding_encode(kind: str, check: Codec) -> None:
    async def conversation(adder: Adder) -> None:
        await adder.add(task, "ada")
        await adder.add_many([task.call("bob")])

    with node_that_adds() as node:
        app, task = app_with(node)
        app._enqueuer.codecs = Codecs.of(check, (), 1 << 20, 1 << 20)
        talk(kind, app, conversation)
        found = [as_coded(words[2]) for words in node.requests if words[0] == b"ADDJOB"]

    assert [each and each.codecs for each in found] == [[check.name]] * 2


async def test_chains_batches_and_results_are_encoded(disque_inline: Inline) -> None:
    app = app_of(Mark())
    t = app.tasks["t"]
    async with app:
        chain = await (
            t.using(result_ttl=60).call("a") | t.using(result_ttl=60).partial()
        ).enqueue()
        await app.batch([t.call("b")], then=t.call("c"))
        assert {as_coded(job.body) is None for job in disque_inline.jobs()} == {False}
        ran = await disque_inline.run_all(app)
        assert [each.result for each in ran if each.task == "t"] == ["a", "b", "a", "c"]
        assert await chain.result(10) == "a"


async def test_results_are_encoded_for_who_can_read_them(disque_inline: Inline) -> None:
    """A client without the codec gets them as before."""
    with_mark, without = app_of(Mark()), app_of(decodes=[Mark()])
    for app in (with_mark, without):
        async with app:
            job = await app.tasks["t"].using(result_ttl=60).enqueue("a")
            await disque_inline.run_all(with_mark)
            [reply] = [
                each.body
                for each in disque_inline.node.waiting()
                if each.queue is not None and each.queue.startswith(b"disque-trio.reply.")
            ]
            assert isinstance(reply, bytes)
            assert as_coded(reply) is not None
            assert await job.result(10) == "a"
    plain = Codecs().encode_result(["mark"], "k", b"{}")
    assert plain == b"{}"


@pytest.mark.parametrize("kind", ["producer", "another process", "blocking"])
async def test_a_large_result_is_in_the_store_and_only_its_key_at_nodes(
    disque_inline: Inline, kind: str
) -> None:
    shelf = Shelf()
    app = app_of(ClaimCheck(shelf, 100, results=True), max_body=3000)
    text = LONG * 3
    async with app:
        job = await app.tasks["t"].using(result_ttl=60).enqueue(text)
        [key] = shelf.bodies
        await disque_inline.run_all(app)

        details = await app.client.show(job.id)
        assert details is not None
        assert len(cast("bytes", details.more["result"])) < 200
        [kept] = shelf.bodies.keys() - {key}
        assert text.encode() in shelf.bodies[kept]
        if kind == "producer":
            assert await job.result(10) == text
        elif kind == "blocking":
            assert app.blocking.result(job.id, 10) == text
        else:
            async with app_of(decodes=[ClaimCheck(shelf)]) as other:
                assert await other.result(job.id, 10) == text


def test_a_store_that_fails_fails_the_attempt() -> None:
    class Broken(Shelf):
        def put(self, key: str, body: bytes) -> None:
            raise OSError(f"the store has no room for {key}, {len(body)} bytes")

    with node_that_adds() as node:
        app = app_of(ClaimCheck(Broken(), 100, results=True))
        app.use(url(node))
        headers = {"result_ttl": 60, "reply_codecs": ["claim"]}
        found = outcome(app, body("t", LONG, key="k", headers=headers))

    assert isinstance(found, records.Retry)
    assert b"the store has no room" in found.error


def test_without_results_a_store_has_none_of_them() -> None:
    shelf = Shelf()
    with node_that_adds() as node:
        app = app_of(ClaimCheck(shelf, 100))
        app.use(url(node))
        headers = {"result_ttl": 60, "reply_codecs": ["claim"]}
        found = outcome(app, body("t", LONG, key="k", headers=headers))

    assert isinstance(found, records.Done)
    assert LONG.encode() in (found.result or b"")
    assert shelf.bodies == {}


@pytest.mark.parametrize(
    ("what", "end", "why"),
    [
        (coded(["other"], b"x"), records.Retry, "codec other is unknown"),
        (coded(["zlib"], b"x"), records.Dead, "unreadable: codec zlib: it is damaged"),
        (coded(["zlib"], zlib.compress(LONG.encode())[:-3]), records.Dead, "truncated"),
        (
            coded(["zlib"], zlib.compress(LONG.encode()) + b"x"),
            records.Dead,
            "followed by other data",
        ),
        (coded(["zlib"], zlib.compress(b"a" * 200_000)), records.Dead, "more than 100000 bytes"),
        (coded(["mark"], b"xmark"), records.Dead, "it has no mark"),
        (coded(["mark"], b"markbroken"), records.Retry, "OSError: no answer"),
        (coded(["mark"], b"mark{"), records.Dead, "unreadable"),
        (coded([], b"{}"), records.Dead, "names 0 codecs"),
        (coded(["mark"] * 9, b"{}"), records.Dead, "names 9 codecs"),
        (coded(["mark"], b"mark}{", v=3), records.Retry, "version 3"),
        (coded(["mark"], Mark().encode(coded(["mark"], b"mark{}"))), records.Retry, "version 2"),
        (b"\x81", records.Dead, "unreadable"),
    ],
)
def test_a_body_that_cannot_be_decoded_has_a_reason(
    what: bytes, end: type[records.Outcome], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = app_of(Zlib(), Mark(), max_body=50_000, max_decoded=100_000)

    found = outcome(app, what)

    assert isinstance(found, end), found
    assert why in caplog.text


def test_a_body_of_another_codec_is_dead_after_a_day() -> None:
    app = app_of(Mark())

    assert isinstance(outcome(app, coded(["other"], b"x"), nacks=40), records.Dead)


def test_a_release_without_codecs_lets_the_job_wait() -> None:
    """0.1.0 reads bodies in this way."""
    with pytest.raises(NewerBodyError, match="version 2"):
        read(coded(["zlib"], b"x"))


def test_names_of_tasks_are_read_from_every_body() -> None:
    assert task_of(coded(["other"], b"x")) == "t"
    assert task_of(body("t")) == "t"
    assert task_of(b"\x81") == task_of(b"raw") == task_of(b"") == ""


@pytest.mark.parametrize("how", ["done", "cancel", "snooze", "fail"])
def test_a_body_in_a_store_is_deleted_when_its_job_has_ended(
    disque_inline: Inline, how: str
) -> None:
    shelf = Shelf()
    app = app_of(ClaimCheck(shelf, 100))
    if how == "done":
        app.tasks["t"].blocking.enqueue(LONG)
    else:
        app.tasks["raises"].blocking.enqueue(LONG, how)
    assert len(shelf.bodies) == 1

    disque_inline.blocking.run_for(app, 0)

    assert len(shelf.bodies) == (0 if how in ("done", "cancel") else 1)


def test_a_body_that_is_gone_makes_its_job_dead() -> None:
    app = app_of(ClaimCheck(Shelf()))

    found = outcome(app, coded(["claim"], b"key"))

    assert isinstance(found, records.Dead)
    assert b"the store does not have body key" in found.reason


def test_limits_hold_before_and_behind_codecs(disque_inline: Inline) -> None:
    app = app_of(Zlib(), max_body=2000, max_decoded=10_000)
    t = app.tasks["t"].blocking
    t.enqueue("a" * 5000)
    with pytest.raises(TooLargeError, match="the limit is 10,000"):
        t.enqueue("a" * 10_000)
    with pytest.raises(TooLargeError, match=r"the encoded body has .* the limit is 2,000"):
        t.enqueue("".join(map(str, range(2000))))


def test_what_a_codec_raises_is_the_cause(disque_inline: Inline) -> None:
    class Broken(Mark):
        def encode(self, body: bytes) -> bytes:  # noqa: ARG002
            raise OSError("no answer")

    app = app_of(Broken())
    with pytest.raises(NotEnqueuedError, match="t was not added: OSError: no answer") as refused:
        app.tasks["t"].blocking.enqueue("a")
    assert isinstance(refused.value.__cause__, OSError)
    [found] = app.blocking.enqueue_many([app.tasks["t"].call("a")])
    assert isinstance(found, NotEnqueuedError)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"codec": [Zlib(), Zlib()]}, "two codecs have the name zlib"),
        ({"codec": 5}, "a list of codecs"),
        ({"codec": ["zlib"]}, "a subclass of Codec"),
        ({"codec": [Mark()] * 9}, "at most 8"),
        ({"codec": [ClaimCheck(Shelf()), Mark()]}, "name claim last"),
        ({"max_decoded": 0}, "max_decoded=0"),
    ],
)
def test_what_is_no_codec_is_refused(given: Any, why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        App(**given)


@pytest.mark.parametrize("row", SAMPLES.read_text("utf-8").splitlines())
def test_recorded_bodies_are_read(row: str) -> None:
    sample = json.loads(row)
    keys = {"a": bytes(32)}
    known: list[Codec] = [Zlib(), Mark()]
    if "aes-gcm" in sample["codecs"]:
        encryption = pytest.importorskip("disque_trio.contrib.encryption")
        known.append(encryption.Encryption(keys))
    recorded = bytes.fromhex(sample["hex"])
    found = as_coded(recorded)
    assert found is not None
    assert (found.task, found.key, found.codecs) == (
        sample["task"],
        sample["key"],
        sample["codecs"],
    )
    assert Codecs.of(known, (), 1 << 20, 1 << 20).decode(found) == sample["body"].encode()
    if "aes-gcm" not in found.codecs:
        written = [each for each in known if each.name in found.codecs]
        again = encoded(written, found.task, found.key, sample["body"].encode())
        assert (
            codec.read_plain(again, "msgpack").keys()
            == codec.read_plain(recorded, "msgpack").keys()
        )
    with pytest.raises(NewerBodyError):
        Codecs().decode(found)


def test_a_damaged_claim_is_no_key() -> None:
    with pytest.raises(BadBodyError, match="its key is damaged"):
        Codecs.of(ClaimCheck(Shelf()), (), 1000, 1000).decode(
            codec.read_coded(coded(["claim"], b"\xff"))
        )

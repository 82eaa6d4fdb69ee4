"""Bodies: what is written is what is read, and every other body has a reason."""

import contextlib
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from disque_trio.worker import codec
from disque_trio.worker.codec import Form
from disque_trio.worker.envelope import (
    BadBodyError,
    NewerBodyError,
    NotEncodableError,
    TooLargeError,
    created_at,
    form_of,
    new_key,
    read,
    task_at_start,
    write,
)

FORMS: tuple[Form, ...] = ("json", "msgpack")
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def envelope(form: Form, args: list[Any], kwargs: dict[str, Any], **more: Any) -> codec.Envelope:
    return codec.envelope(
        form,
        task="mail.send",
        args=[codec.part(each, form) for each in args],
        kwargs={name: codec.part(each, form) for name, each in kwargs.items()},
        **more,
    )


def values(found: codec.Envelope) -> tuple[list[Any], dict[str, Any]]:
    value = codec.reader(Any, found.form)
    return list(map(value, found.args)), {k: value(part) for k, part in found.kwargs.items()}


@pytest.mark.parametrize("form", FORMS)
@given(args=st.lists(plain, max_size=4), kwargs=st.dictionaries(st.text(), plain, max_size=4))
def test_what_is_written_is_read(form: Form, args: list[Any], kwargs: dict[str, Any]) -> None:
    headers = {"traceparent": "00-1-2-01", "tries": 3}

    found = read(write(envelope(form, args, kwargs, key="k", headers=headers)))

    assert (found.task, found.key, found.headers, found.form) == ("mail.send", "k", headers, form)
    assert values(found) == (args, kwargs)


def test_a_body_says_no_more_than_it_must() -> None:
    assert write(envelope("json", ["ada"], {}, key="k")) == (
        b'{"task":"mail.send","args":["ada"],"key":"k"}'
    )


def test_a_body_of_redis_cli_needs_a_task_only() -> None:
    assert values(read(b'  {"task": "mail.send", "later": 1}')) == ([], {})


@pytest.mark.parametrize(
    ("body", "form"),
    [(b"{", "json"), (b" \n{", "json"), (b"\x81", "msgpack"), (b"\xde\x00", "msgpack")]
    + [(b, None) for b in (b"", b"ada", b"[1]", b"\x00\x01zip", b"\xff", b" \x81")],
)
def test_the_first_byte_says_how_a_body_is_encoded(body: bytes, form: Form | None) -> None:
    assert form_of(body) == form


def deep(depth: int) -> bytes:
    return b'{"task":"a","args":' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"hello", "neither a JSON object nor a msgpack map"),
        (b'{"task":', "truncated"),
        (b"{}", "missing required field `task`"),
        (b'{"task":7}', "Expected `str`"),
        (b'{"task":"a","args":{}}', "Expected `array`"),
        (b'{"task":"\xff"}', "utf-8"),
        (b'{"task":"a","args":[' + b"1," * 1000 + b"1]}", "more than 1000 arguments"),
        (b'{"task":"a","headers":{"h":"' + b"x" * 9000 + b'"}}', "the headers have 9,008 bytes"),
        (
            msgspec.msgpack.encode(
                {"task": "a", "headers": {"x": msgspec.msgpack.Ext(5, b"x" * 9000)}}
            ),
            "the headers have 9,007 bytes",
        ),
        (deep(64), "more than 64 nested lists and maps"),
        (deep(100_000), "recursion|Stack overflow"),  # msgspec; Python 3.14
        (b"{" + b" " * (1 << 20) + b"}", "1,048,578 bytes, and the limit is 1,048,576"),
        (b"\xdf\xff\xff\xff\xff", "truncated"),
        (
            msgspec.msgpack.encode({"task": "a", "args": [[[]] * 9, eval("[" * 70 + "]" * 70)]}),
            "64",
        ),
    ],
)
def test_a_body_that_cannot_be_read_has_a_reason(body: bytes, reason: str) -> None:
    with pytest.raises(BadBodyError, match=reason):
        read(body)


def test_brackets_in_text_are_not_depth() -> None:
    assert values(read(b'{"task":"a","args":["' + b"[{" * 500 + b'"]}')) == (["[{" * 500], {})


def test_sixty_four_lists_inside_of_each_other_are_read() -> None:
    assert read(deep(63)).task == "a"


def test_a_body_of_a_later_version_is_not_unreadable() -> None:
    with pytest.raises(NewerBodyError, match="version 2"):
        read(b'{"task":"a","v":2}')


@given(st.binary(max_size=200) | st.binary(max_size=80).map(lambda rest: b'{"task":"a",' + rest))
@example(b"\x81\xa4task\xc1")
@example(b'{"task":"a","args":[1e999]}')
def test_hostile_bytes_are_read_or_refused(body: bytes) -> None:
    with contextlib.suppress(BadBodyError, NewerBodyError):
        assert isinstance(read(body).task, str)


@given(st.data())
def test_a_damaged_body_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(write(envelope(data.draw(st.sampled_from(FORMS)), ["ada", [1]], {"n": 2.5})))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(BadBodyError, NewerBodyError):
        assert isinstance(read(bytes(body)).task, str)


# What cannot be written.


def test_what_is_too_large_is_not_written() -> None:
    with pytest.raises(
        TooLargeError, match="1,048,632 bytes, and the limit is 1,048,576; store large"
    ):
        write(envelope("json", ["x" * (1 << 20)], {}, key="k" * 15))
    with pytest.raises(TooLargeError, match="headers"):
        write(envelope("json", [], {}, headers={"h": "x" * 8192}))


def test_what_is_too_deep_or_too_many_is_not_written() -> None:
    with pytest.raises(NotEncodableError, match="64 nested lists"):
        write(envelope("json", [json.loads("[" * 64 + "]" * 64)], {}))
    with pytest.raises(NotEncodableError, match="1000 arguments"):
        write(envelope("json", [1] * 1001, {}))


# Keys.


def test_a_key_says_when_it_was_made() -> None:
    key = new_key()

    assert key[14] == "7"
    made = created_at(key)
    assert made is not None
    assert abs(made - time.time()) < 60
    assert new_key() != key


@pytest.mark.parametrize("key", [None, "", "jid", "0189b1c2-0000-4000-8000-000000000000"])
def test_the_key_of_another_system_says_nothing(key: str | None) -> None:
    assert created_at(key) is None


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b'{"task":"shop.send","args":[1, 2', "shop.send"),
        (b' { "task" : "sh\\"op" , ', 'sh"op'),
        (b'{"args":[1],"task":"later"', ""),
        (b'{"task":"cut off', ""),
        (b'{"task":"\xff"', ""),
        (b"\x82\xa4task\xa9shop.send\xa4args", "shop.send"),
        (b"\x82\xa4task\xd9\x21" + b"n" * 33 + b"\xa4", "n" * 33),
        (b"\x82\xa4task\xa9shop", ""),
        (b"plain", ""),
    ],
)
def test_the_task_is_read_from_the_beginning_of_a_body(start: bytes, name: str) -> None:
    assert task_at_start(start) == name

"""Encryption: keys rotate, and what was changed is found."""

import pytest

pytest.importorskip("cryptography")

from hypothesis import given
from hypothesis import strategies as st

from disque_trio.contrib.encryption import Encryption, new_key
from disque_trio.worker import NewerBodyError

OLD, NEW = new_key(), new_key()
BODY = b'{"task": "pay"}'


@given(st.binary(max_size=200))
def test_what_is_encrypted_is_decrypted_and_never_the_same(body: bytes) -> None:
    codec = Encryption({"a": OLD})
    one, two = codec.encode(body), codec.encode(body)

    assert one != two
    assert codec.decode(one, 1000) == codec.decode(two, 1000) == body


def test_keys_rotate() -> None:
    only_old, both, turned = (
        Encryption(keys) for keys in ({"a": OLD}, {"a": OLD, "b": NEW}, {"b": NEW, "a": OLD})
    )

    assert both.decode(only_old.encode(BODY), 1000) == BODY
    assert only_old.decode(both.encode(BODY), 1000) == BODY, "the first one encrypts"
    assert both.decode(turned.encode(BODY), 1000) == BODY
    with pytest.raises(NewerBodyError, match="key 'b' is unknown"):
        only_old.decode(turned.encode(BODY), 1000)


def test_every_flipped_bit_is_found() -> None:
    codec = Encryption({"a": OLD})
    sealed = codec.encode(BODY)

    for place in range(len(sealed)):
        for bit in range(8):
            changed = bytearray(sealed)
            changed[place] ^= 1 << bit
            with pytest.raises((ValueError, NewerBodyError)):
                codec.decode(bytes(changed), 1000)


def test_every_cut_is_found() -> None:
    codec = Encryption({"a": OLD})
    sealed = codec.encode(BODY)

    for length in range(len(sealed)):
        with pytest.raises((ValueError, NewerBodyError)):
            codec.decode(sealed[:length], 1000)


def test_another_key_of_the_same_id_is_found() -> None:
    sealed = Encryption({"a": OLD}).encode(BODY)

    with pytest.raises(ValueError, match="another key of this id"):
        Encryption({"a": NEW}).decode(sealed, 1000)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({}, "at least one key"),
        ({"": OLD}, "1 to 100 bytes"),
        ({5: OLD}, "1 to 100 bytes"),
        ({"a": "short"}, "key 'a'"),
        ({"a": b"15 bytes, so no"}, "key 'a'"),
        ({"a": 5}, "key 'a'"),
    ],
)
def test_what_is_no_key_is_refused_and_not_shown(keys: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        Encryption(keys)
    assert "short" not in str(refused.value)

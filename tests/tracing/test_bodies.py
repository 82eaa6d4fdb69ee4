"""What rows say of bodies."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disque_trio.tracing import bodies


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"to: ann", "to: ann"),
        ("été body=".encode(), "été body="),
        (b"", ""),
        (b"\xff", "crc32=4278190080"),
        (b"crc32=7", "crc32=2825823057"),
    ],
)
def test_text_is_shown_and_of_other_bytes_the_checksum(body: bytes, shown: str) -> None:
    assert bodies.shown(body) == shown


@given(st.binary() | st.text().map(lambda text: f"crc32={text}".encode()))
def test_the_checksum_is_that_of_the_body(body: bytes) -> None:
    assert bodies.checksum(bodies.shown(body)) == crc32(body)

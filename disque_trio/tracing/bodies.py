"""Bodies in rows: their text, or of one that is not text the CRC-32, as in the rows of nodes.

A row is text, and so are the files that it goes to. A codec makes bodies of any bytes.
"""

from typing import Final
from zlib import crc32

_CHECKSUM: Final = "crc32="


def shown(body: bytes) -> str:
    """What a row says of it. Different bodies are shown differently."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return f"{_CHECKSUM}{crc32(body)}"
    return f"{_CHECKSUM}{crc32(body)}" if text.startswith(_CHECKSUM) else text


def checksum(shown: str) -> int:
    """The CRC-32 of the body that a row shows so."""
    if shown.startswith(_CHECKSUM):
        return int(shown.removeprefix(_CHECKSUM))
    return crc32(shown.encode())

"""Bodies in rows: their text, or, if they are no text, the CRC-32, as in the rows of nodes.

A row is text, and so are the files that contain it. A codec may produce bodies of any bytes.
"""

from typing import Final
from zlib import crc32

_CHECKSUM: Final = "crc32="


def shown(body: bytes) -> str:
    """Return the form of a body in a row. Different bodies have different forms."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return f"{_CHECKSUM}{crc32(body)}"
    return f"{_CHECKSUM}{crc32(body)}" if text.startswith(_CHECKSUM) else text


def checksum(shown: str) -> int:
    """Return the CRC-32 of the body with this form in a row."""
    if shown.startswith(_CHECKSUM):
        return int(shown.removeprefix(_CHECKSUM))
    return crc32(shown.encode())

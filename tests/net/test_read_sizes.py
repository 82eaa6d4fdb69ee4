"""How much is read at once from sockets."""

import sys
from typing import Final

import pytest

from disque_trio.net import bus_links, clients
from disque_trio.worker import links

MAPPED: Final = 128 << 10
"""From here on the GNU C library maps pages for each piece of memory (`M_MMAP_THRESHOLD`)."""


@pytest.mark.parametrize("size", [bus_links.READ_SIZE, clients.READ_SIZE, links.READ_SIZE])
def test_a_read_needs_no_pages_of_its_own(size: int) -> None:
    """Python reserves all before it reads, and gives back what was not needed."""
    assert size + sys.getsizeof(b"") < MAPPED

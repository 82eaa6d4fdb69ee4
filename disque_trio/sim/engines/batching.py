"""Messages that arrive together, as their node writes them: what `links` splits, joined."""

from collections.abc import Sequence
from itertools import groupby

import attrs

from disque_trio.statemachine.messages import Frame
from disque_trio.wire.batches import part_of
from disque_trio.wire.frames import encode, encode_parts


def joined(frames: Sequence[Frame]) -> bytes:
    """Frames of one sender, with batches where messages may travel in one."""
    written: list[bytes] = []
    for is_batch, run in groupby(frames, _may_join):
        some = list(run)
        if is_batch and len(some) > 1:
            parts = [part for frame in some if (part := part_of(frame.message)) is not None]
            written += encode_parts(some[0].sender, some[0].port, some[0].flags, parts)
        else:
            written += [encode(*attrs.astuple(frame, recurse=False)) for frame in some]
    return b"".join(written)


def _may_join(frame: Frame) -> bool:
    return part_of(frame.message) is not None

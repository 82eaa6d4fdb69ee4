"""`python -m tests.conformance.versions`: records samples of today's formats.

A recorded format stays as it is: raise `FORMAT` in `disque_trio/statemachine/base.py` first.
`--again` records anew a format that no released version has.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any

import attrs

from disque_trio.statemachine.base import FORMAT, LEAVING, MYSELF, NOADDR, PFAIL, Now
from disque_trio.statemachine.cluster import Peer
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.machine import Machine
from disque_trio.statemachine.messages import Frame
from disque_trio.statemachine.nodesfile import nodes_text
from disque_trio.statemachine.stats import Facts
from disque_trio.tracing.jsonlines import line_of
from disque_trio.wire.frames import encode
from disque_trio.wire.journal import Format, Writer
from tests.conformance.versions import (
    BODIES,
    FRAMES,
    JOURNALS,
    MEANING,
    NODES,
    NUMBERS,
    TRACE,
    place,
    told,
)
from tests.conformance.versions.bodies import READERS, bodies
from tests.conformance.versions.examples import ME, OTHER, frames, journal, rows
from tests.conformance.versions.numbers import numbers


def main() -> int:
    """Record them."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.versions")
    parser.add_argument("--again", action="store_true", help="a format that was not released yet")
    folder = place(FORMAT)
    if folder.exists() and not parser.parse_args().again:
        parser.error(
            f"{folder} is there: raise FORMAT in disque_trio/statemachine/base.py, or --again if "
            "no released version has it"
        )
    folder.mkdir(exist_ok=True)
    for name in JOURNALS:
        _journal(folder / name, Format(name.partition(".")[0]))
    (folder / NODES).write_bytes(_nodes())
    lines = [{"hex": encode(*attributes(frame)).hex(), "reads": told(frame)} for frame in frames()]
    (folder / FRAMES).write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / TRACE).write_bytes(b"".join(map(line_of, rows())))
    read = [
        {"kind": kind, "hex": body.hex(), "reads": told(READERS[kind](body))}
        for kind, body in bodies()
    ]
    (folder / BODIES).write_text("".join(json.dumps(line) + "\n" for line in read))
    _say(folder / NUMBERS, numbers())
    print(f"recorded in {folder}")
    return 0


def attributes(frame: Frame) -> tuple[Any, ...]:
    """For `encode`: what the frame has, in its order."""
    return tuple(getattr(frame, field.name) for field in attrs.fields(Frame))


def _journal(path: Path, format_: Format) -> None:
    writer = Writer(format_, 0x5EA50D1E)
    records = journal(is_ours=format_ is Format.FRAMED)
    path.write_bytes(writer.beginning("0.1.0") + b"".join(map(writer.encode, records)))
    _say(path.with_name(path.name + MEANING), told(records))


def _nodes() -> bytes:
    me = Peer(ME, "10.0.0.1", 7711, MYSELF | LEAVING)
    others = [
        Peer(OTHER, "10.0.0.2", 7712, PFAIL, ping_sent=1, pong_received=1),
        Peer(b"c" * 40, "", 7713, NOADDR),
    ]
    machine = Machine(Config(), me, random.Random(0), Now(5, 1_800_000_000_000), Facts(), others)
    return nodes_text(machine.state, handshakes=False)


def _say(path: Path, facts: object) -> None:
    path.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())

"""The options of `disque-trio aof`."""

from typing import Final

import attrs

from disque_trio.cli.frame import json_switch
from disque_trio.terminal.options import FILE, Kind, argument, option, switch, text
from disque_trio.wire.journal import Format

_FORMAT: Final = Kind(
    "a format: framed or disque", Format, "FORMAT", tuple(each.value for each in Format)
)


@attrs.frozen(kw_only=True)
class Check:
    """`aof check`."""

    file: str = argument(FILE, "an append-only file")
    is_json: bool = json_switch()

    @property
    def subject(self) -> str:
        """The file."""
        return self.file


@attrs.frozen(kw_only=True)
class Repair(Check):
    """`aof repair`."""

    is_agreed: bool = switch("-y --yes", "do it without asking")
    is_skipping: bool = switch(
        "--skip-damaged", "leave out damaged records and keep all others (our format only)",
        excludes="way",
    )  # fmt: skip
    is_cutting: bool = switch(
        "--cut-damaged",
        "keep what stands before the first damage and drop the rest (either format)",
        excludes="way",
    )  # fmt: skip


@attrs.frozen(kw_only=True)
class Convert(Check):
    """`aof convert`."""

    out: str = argument(text("OUT"), "the new file; it must not be there yet")
    to: Format = option(
        "--to", _FORMAT, "framed: ours; disque: the original's", Format.FRAMED, shown="framed"
    )
    is_compact: bool = switch(
        "--compact", "only the last record of each job that is neither deleted nor expired"
    )


@attrs.frozen(kw_only=True)
class Dump(Check):
    """`aof dump`."""

    has_bodies: bool = switch("--bodies", "show the jobs' bodies as well")

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

    is_agreed: bool = switch("-y --yes", "repair without a prompt")
    is_skipping: bool = switch(
        "--skip-damaged", "omit damaged records and keep all others (format framed only)",
        excludes="way",
    )  # fmt: skip
    is_cutting: bool = switch(
        "--cut-damaged",
        "keep the records before the first damage and drop the rest (either format)",
        excludes="way",
    )  # fmt: skip


@attrs.frozen(kw_only=True)
class Convert(Check):
    """`aof convert`."""

    out: str = argument(text("OUT"), "the new file, which must not exist")
    to: Format = option(
        "--to",
        _FORMAT,
        "framed: of disque_trio; disque: of the original server",
        Format.FRAMED,
        shown="framed",
    )
    is_compact: bool = switch(
        "--compact", "write only the last record of each job, without deleted and expired jobs"
    )


@attrs.frozen(kw_only=True)
class Dump(Check):
    """`aof dump`."""

    has_bodies: bool = switch("--bodies", "print the bodies of jobs, too")

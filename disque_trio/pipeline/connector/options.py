"""The options of `format("disque")`: names, meanings and allowed values.

Spark passes options as strings with lower-case names. Errors name the option as it is documented,
its value, and what is allowed.
"""

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import attrs

from disque_trio.client.address import Address, Tls
from disque_trio.client.errors import URL_TERMS
from disque_trio.pipeline.connector import unknown
from disque_trio.pipeline.errors import PipelineError
from disque_trio.statemachine import joboptions
from disque_trio.statemachine.base import LAST_PORT, ORIGINAL_PERIOD_S

_MOST_JOBS: Final = 1_000_000
"""Of a batch: the driver has all of their bodies in memory."""
LONGEST_S: Final = ORIGINAL_PERIOD_S
"""The most seconds that fit into 32 bits as milliseconds, as every node can count them."""


class OptionError(PipelineError):
    """An option that is unknown, missing or wrong."""


@attrs.frozen
class Option:
    """One option, as docs/pipeline-connector.md lists it."""

    name: str
    uses: str
    """Where it applies: `all`, `stream`, `scan` (both read) or `sink`."""
    default: str
    meaning: str


ADDED: Final = [each for each in joboptions.OPTIONS if each.is_number and each.needs != b"UNIQUE"]
"""The options of ADDJOB that the sink and its rows may have."""
_DEFAULTS: Final = {"delay": "0", "ttl": str(joboptions.DEFAULT_TTL_S)}


def column(option: joboptions.Option) -> str:
    """The name of the sink's option, and of the column."""
    return option.text.lower()


def _meaning(option: joboptions.Option) -> str:
    return f"ADDJOB's {option.text}{' in seconds' if option.is_time else ''}"


OPTIONS: Final = (
    Option("nodes", "all", "127.0.0.1:7711", "the first nodes to contact, `host:port,host:port`"),
    Option(
        "discover",
        "all",
        "true",
        "also use the other nodes of the cluster; with TLS the default is false",
    ),
    Option("password", "all", "", "the cluster's password"),
    Option("passwordFile", "all", "", "a file with the password, on every machine that connects"),
    Option("tls", "all", "false", "use TLS; the ports in `nodes` must be the nodes' `tls-port`"),
    Option(
        "tlsCaFile", "all", "", "file of CA certificates to trust instead of the system's, in PEM"
    ),
    Option("tlsCertFile", "all", "", "file of the client certificate, in PEM"),
    Option(
        "tlsKeyFile", "all", "", "file of the client certificate's key, unless `tlsCertFile` has it"
    ),
    Option(
        "tlsServerName",
        "all",
        "",
        "the name that certificates must have, instead of the node's host",
    ),
    Option("timeout", "all", "5", "seconds after which a node that does not answer is down"),
    Option(
        "queue",
        "all",
        "",
        "the queue; required for a stream, and for the sink unless rows have a column `queue`",
    ),
    Option(
        "state",
        "scan",
        "",
        "list only jobs in these states, separated by commas: `queued`, `active`, `acked`, "
        "`wait-repl`, `dead`, `backing-off`",
    ),
    Option("maxJobsPerTrigger", "stream", "20000", "maximum number of jobs in a batch"),
    Option(
        "maxBytesPerTrigger",
        "stream",
        "67108864",
        "a batch takes no more jobs once their bodies have this many bytes",
    ),
    Option("jobsPerPartition", "stream", "5000", "maximum number of jobs in a task"),
    Option(
        "lease", "stream", "1", "the minimum of RETRY in seconds, for nodes that do not report it"
    ),
    Option(
        "wait", "stream", "100", "milliseconds that a node waits for a job when the queue is empty"
    ),
    Option(
        "failOnDataLoss",
        "stream",
        "true",
        "fail instead of repeating a batch without its missing jobs",
    ),
    Option(
        "hold",
        "sink",
        "300",
        "seconds for which uncommitted jobs stay invisible; 0 makes them visible at once",
    ),
    *[Option(column(each), "sink", _DEFAULTS.get(each.name, ""), _meaning(each)) for each in ADDED],
    Option(
        "recognize",
        "sink",
        "",
        "how the sink recognizes rows that it writes again: `keys`, `content`, `notes` or `none`. "
        "The default is `keys` in a stream and with `writeId`, otherwise `none`",
    ),
    Option("keep", "sink", "300", "seconds for which a key stays taken after its job has ended"),
    Option(
        "writeId",
        "sink",
        "",
        "name of a table's write; a repeated write of this name adds nothing twice",
    ),
    Option("connections", "sink", "4", "connections from a task to its node"),
)
"""All options, in the order of the documentation."""

_USES: Final = {
    "stream": "a stream that is read",
    "scan": "a table that is read",
    "sink": "what writes jobs",
}
RECOGNIZING: Final = ("keys", "content", "notes", "none")
"""How the sink recognizes a row that it has written."""
_LONGEST_ID: Final = 100
"""Bytes of `writeId`, which is a part of keys."""
_CATALOG: Final = (
    "Spark passes the options of tables in its catalog to no source in Python: use CREATE "
    "TEMPORARY VIEW, or give the table columns, and its options in each statement by WITH (...)"
)
_KNOWN: Final = {option.name.lower(): option for option in OPTIONS}
_NAMES: Final = [option.name for option in OPTIONS]
_ANY: Final = "any"
"""A table may be read without a queue, a stream may not."""
_SPARKS: Final = frozenset({"checkpointlocation", "queryname", "outputmode", "mergeschema"})
"""Options of Spark itself, which it passes on."""
STATES: Final = ("wait-repl", "active", "queued", "acked", "dead")
"""What the column `state` may have."""
BACKING_OFF: Final = "backing-off"
"""Jobs that wait after a NACK can be listed, too; their column has `active`."""


@attrs.frozen(kw_only=True)
class Link:
    """How to reach the cluster."""

    seeds: tuple[tuple[str, int], ...]
    discovers: bool
    password: str | None = attrs.field(repr=False)
    password_file: str | None
    tls: Tls | None
    timeout_s: float

    def address(self, host: str, port: int) -> Address:
        """A node's address, with TLS if that is on."""
        return Address(host=host, port=port, tls=self.tls)

    def secret(self) -> bytes | None:
        """The password. A file is read each time, so that it may be replaced."""
        if self.password_file is None:
            return self.password.encode() if self.password else None
        try:
            text = Path(self.password_file).read_bytes()
        except OSError as error:
            raise OptionError(
                f"option passwordFile: cannot read {self.password_file!r}: {error.strerror}"
            ) from error
        return text.removesuffix(b"\n").removesuffix(b"\r") or None


@attrs.frozen(kw_only=True)
class Stream:
    """How a stream takes jobs."""

    queue: str
    max_jobs: int
    max_bytes: int
    jobs_per_partition: int
    lease_s: float
    wait_ms: int
    fails_on_loss: bool


@attrs.frozen(kw_only=True)
class Scan:
    """Which jobs are listed; empty is all."""

    queue: str
    states: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Sink:
    """How rows become jobs; a row's own columns take precedence. None is the node's default."""

    queue: str
    hold_s: int
    added: Mapping[str, int | None]
    """The options of ADDJOB, by their names in `joboptions`."""
    recognize: str
    """One of `RECOGNIZING`; empty if it is not given."""
    keep_s: int
    write_id: str
    connections: int
    timeout_ms: int


def check_names(raw: Mapping[str, str], use: str) -> None:
    """Raises `OptionError` for an unknown option, or one that does not apply to this use."""
    if "provider" in raw:  # among the properties of a table in Spark's catalog
        raise OptionError(_CATALOG)
    for name in raw:
        if name.lower() in _SPARKS:
            continue
        if option := _KNOWN.get(name.lower()):
            if option.uses not in ("all", use):
                uses = f"{_USES[option.uses]}, not {_USES[use]}"
                raise OptionError(f"option {option.name} is only for {uses}")
            continue
        if name.lower() == "path":
            raise OptionError(
                'load() and save() have no path here: set the queue with option("queue")'
            )
        raise OptionError(f"there is no option {name!r}{unknown.hint(name, _NAMES)}")


def check_read(raw: Mapping[str, str]) -> None:
    """Raises `OptionError` for what is wrong however it is read, as a stream or as a table: Spark
    does not say which when it asks for the schema.
    """
    link(raw)
    options = (_KNOWN.get(name.lower()) for name in raw)
    if any(option is not None and option.uses == "scan" for option in options):
        check_names(raw, "scan")
        scan(raw)
    else:
        check_names(raw, "stream")
        stream({"queue": _ANY, **raw})


def link(raw: Mapping[str, str]) -> Link:
    """The options that all uses share."""
    values = _Values(raw)
    tls = _tls(values)
    password, password_file = values.text("password"), values.text("passwordFile")
    if password and password_file:
        raise OptionError("options password and passwordFile: set only one of them")
    return Link(
        seeds=_seeds(values.text("nodes")),
        discovers=values.flag("discover") if values.has("discover") else tls is None,
        password=password or None,
        password_file=password_file or None,
        tls=tls,
        timeout_s=values.number("timeout", 0.1, 3600),
    )


def stream(raw: Mapping[str, str]) -> Stream:
    """The options of a streaming read."""
    values = _Values(raw)
    return Stream(
        queue=values.needed("queue", "it names the queue to read"),
        max_jobs=values.count("maxJobsPerTrigger", 1, _MOST_JOBS),
        max_bytes=values.count("maxBytesPerTrigger", 1, 1 << 31),
        jobs_per_partition=values.count("jobsPerPartition", 1, _MOST_JOBS),
        lease_s=values.number("lease", 0, LONGEST_S),
        # Longer than `timeout` would look like a node that is down.
        wait_ms=values.count("wait", 0, int(values.number("timeout", 0.1, 3600) * 500)),
        fails_on_loss=values.flag("failOnDataLoss"),
    )


def scan(raw: Mapping[str, str]) -> Scan:
    """The options of a batch read."""
    values = _Values(raw)
    states = tuple(word.strip().lower() for word in values.text("state").split(",") if word.strip())
    for state in states:
        if state not in (*STATES, BACKING_OFF):
            known = ", ".join((*STATES, BACKING_OFF))
            raise values.wrong("state", f"{state!r} is not one of {known}")
    return Scan(queue=values.text("queue"), states=states)


def sink(raw: Mapping[str, str]) -> Sink:
    """The options of a write, batch or stream."""
    values = _Values(raw)
    ttl = joboptions.BY_WORD[b"TTL"]
    ttl_s = values.count("ttl", ttl.least, ttl.most)
    hold_s = values.count("hold", 0, LONGEST_S)
    if values.has("hold") and hold_s >= ttl_s:
        raise values.wrong("hold", f"must be less than ttl, which is {ttl_s}")
    return Sink(
        queue=values.text("queue"),
        # Leave half of a short TTL for the consumers.
        hold_s=min(hold_s, ttl_s // 2) if not values.has("hold") else hold_s,
        added=_added(values, ttl_s),
        recognize=_recognize(values),
        keep_s=values.count("keep", 0, LONGEST_S),
        write_id=_write_id(values),
        connections=values.count("connections", 1, 64),
        timeout_ms=int(values.number("timeout", 0.1, 3600) * 1000),
    )


def _added(values: "_Values", ttl_s: int) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for option in ADDED:
        least, most = option.least, option.most
        if option.needs:
            least = found[joboptions.BY_WORD[option.needs].name] or least
        if option.name == "delay":
            most = min(most, ttl_s - 1)
        is_there = values.has(column(option)) or option.name in _DEFAULTS
        found[option.name] = values.count(column(option), least, most) if is_there else None
    return found


def _recognize(values: "_Values") -> str:
    word = values.text("recognize").strip().lower()
    if word and word not in RECOGNIZING:
        raise values.wrong("recognize", f"must be one of {', '.join(RECOGNIZING)}")
    return word


def _write_id(values: "_Values") -> str:
    name = values.text("writeId")
    if len(name.encode()) > _LONGEST_ID:
        raise values.wrong("writeId", f"must have at most {_LONGEST_ID} bytes")
    return name


class _Values:
    """Options by their documented names, with defaults."""

    def __init__(self, raw: Mapping[str, str]) -> None:
        self._raw = {name.lower(): value for name, value in raw.items()}

    def has(self, name: str) -> bool:
        return bool(self._raw.get(name.lower()))

    def text(self, name: str) -> str:
        return self._raw.get(name.lower()) or _KNOWN[name.lower()].default

    def needed(self, name: str, question: str) -> str:
        if not self.has(name):
            raise OptionError(f"option {name} is missing: {question}")
        return self.text(name)

    def count(self, name: str, least: int, most: int) -> int:
        text = self.text(name).strip()
        digits = text.removeprefix("-")
        is_number = digits.isascii() and digits.isdigit() and len(digits) < 20
        if not is_number or not least <= int(text) <= most:
            raise self.wrong(name, f"must be a whole number from {least} to {most}")
        return int(text)

    def number(self, name: str, least: float, most: float) -> float:
        try:
            value = float(self.text(name))
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise self.wrong(name, f"must be a number from {least:g} to {most:g}")
        return value

    def flag(self, name: str) -> bool:
        word = self.text(name).strip().lower()
        if word not in ("true", "false"):
            raise self.wrong(name, "must be true or false")
        return word == "true"

    def wrong(self, name: str, reason: str) -> OptionError:
        return OptionError(f"option {name}: {self.text(name)!r}: {reason}")


def _seeds(text: str) -> tuple[tuple[str, int], ...]:
    seeds = []
    for part in filter(None, (word.strip() for word in text.split(","))):
        host, colon, port = part.rpartition(":")
        if not colon or not host or not port.isascii() or not port.isdigit():
            raise OptionError(f"option nodes: {part!r} is not host:port, such as 127.0.0.1:7711")
        if not 0 < int(port) <= LAST_PORT:
            raise OptionError(f"option nodes: {part!r}: ports are from 1 to {LAST_PORT}")
        seeds.append((host.removeprefix("[").removesuffix("]"), int(port)))
    if not seeds:
        raise OptionError(f"option nodes: {text!r} has no node: write host:port,host:port")
    return tuple(seeds)


def _tls(values: _Values) -> Tls | None:
    files = ("tlsCaFile", "tlsCertFile", "tlsKeyFile", "tlsServerName")
    if not values.flag("tls"):
        for name in files:
            if values.has(name):
                raise OptionError(f'option {name} needs option("tls", "true")')
        return None
    if values.has("tlsKeyFile") and not values.has("tlsCertFile"):
        raise OptionError("option tlsKeyFile is the key of a certificate: set tlsCertFile as well")
    cacert, cert, key, server_name = (values.text(option) or None for option in files)
    terms = {**URL_TERMS, **dict(zip(("cacert", "cert", "key"), files, strict=False))}
    tls = Tls(cacert=cacert, cert=cert, key=key, server_name=server_name, terms=terms)
    _check_files(tls)
    return tls


def _check_files(tls: Tls) -> None:
    try:
        context = ssl.create_default_context(cafile=tls.cacert)
    except OSError as error:  # SSLError is one
        raise OptionError(f"option tlsCaFile: cannot use {tls.cacert!r}: {error}") from error
    if tls.cert is None:
        return
    try:
        context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:
        raise OptionError(
            f"options tlsCertFile, tlsKeyFile: cannot use {tls.cert!r} with {tls.key!r}: {error}"
        ) from error

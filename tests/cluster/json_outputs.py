"""The keys that commands print with `--json` about jobs in several states and a worker.

`python -m tests.cluster.json_outputs` records those of this version; what a released version has
recorded is never edited (docs/compatibility.md).
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from disque_trio import __version__
from tests.cli.aof.files import framed
from tests.cluster.commands import ran
from tests.cluster.processes import CALM, SOON_S, Cluster, Fleet, eventually
from tests.cluster.test_operating_jobs import add, bury, call
from tests.cluster.test_python_clients import url
from tests.cluster.workers.shop import opened

FOLDER: Final = Path(__file__).parent.parent / "conformance" / "outputs"
SCENARIO: Final = "scenarios/backoff.toml"
Outputs = Mapping[str, list[str]]
_FINDINGS: Final = (("sim", "sweep"), ("doctor", "-p"))
"""Commands whose exit status depends on what they have found."""
_NAMED_BY_DATA: Final = (".marks", ".duplicates")
"""Objects whose keys depend on what a run has met."""


def printed(pair: Cluster, directory: Path) -> Outputs:
    """The keys that each command prints, by its name."""
    with opened(pair[0], directory) as shop:
        shop.start("shop", "--name", "ada", "-c", "1")
        shop.add("letter", 600)
        shop.says("begin letter")
        queue = f"{shop.queue}-idle"
        job = add(pair, queue, "RETRY", "60", "UNIQUE", "k", "LIMIT", "5")
        assert call(pair, "GETJOB", "FROM", queue)
        assert call(pair, "NACK", job, "ERROR", "ValueError: no", "DELAY", "600") == 1
        bury(pair, queue, "card stolen")
        running = "[].jobs[].id"
        eventually(
            lambda: running in _asked(pair, "workers", "list"), SOON_S, "a worker reports its job"
        )
        return {
            **{" ".join(_named(words)): _keys(*words) for words in _alone(directory)},
            **{" ".join(_named(words)): _asked(pair, *words) for words in _about(queue, job)},
            "doctor": _keys("doctor", "-p", str(pair[0].port)),
        }


def _alone(directory: Path) -> Iterator[tuple[str, ...]]:
    journal = directory / "journal.aof"
    journal.write_bytes(framed())
    copy, trace = str(directory / "copy.aof"), str(directory / "trace.jsonl")
    yield "aof", "check", str(journal)
    yield "aof", "dump", str(journal)
    yield "aof", "convert", str(journal), copy, "--to", "disque"
    yield "aof", "repair", str(journal)
    yield "explain", "--json", "ADDJOB", "q", "b", "0", "REPLICATE", "2", "RETRY", "5"
    yield "sim", "run", SCENARIO, "--trace", trace
    yield "sim", "replay", trace
    yield "sim", "sweep", SCENARIO, "--seeds", "0:1", "--jobs", "1"


def _named(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[:1] if words[0] in ("explain", "top") else words[:2]


def _about(queue: str, job: str) -> Iterator[tuple[str, ...]]:
    """What reads comes first; then what changes something, once for each command."""
    yield "jobs", "show", job
    yield "jobs", "dead", "--queue", queue
    yield "queues", "list"
    yield "workers", "list"
    yield "workers", "show", "ada"
    yield "nodes", "list"
    yield "top", "--json", "--once", "--interval", "1"
    yield "jobs", "trace", job
    yield "queues", "pause", queue
    yield "queues", "resume", queue
    yield "jobs", "requeue", job
    yield "queues", "redrive", queue
    yield "queues", "purge", queue, "--yes"
    yield "jobs", "ended", "--queue", queue
    yield "workers", "quiet", "ada"


def _asked(pair: Cluster, *words: str) -> list[str]:
    return _keys(*words, "--url", url(pair[1]))


def _keys(*words: str) -> list[str]:
    asked = words if "--json" in words else (*words, "--json")
    ended = ran(*asked)
    assert ended.status == 0 or words[:2] in _FINDINGS, (words, ended.errors)
    return sorted({key for value in _values(ended.output) for key in _paths(value)})


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """The paths to all keys; elements of lists share theirs. Keys that are data are `*`."""
    if isinstance(value, list):
        for each in value:
            yield from _paths(each, f"{path}[]")
    elif isinstance(value, dict):
        for key, each in value.items():
            here = f"{path}.{'*' if path.endswith(_NAMED_BY_DATA) else key}"
            yield here
            yield from _paths(each, here)


def _values(text: str) -> list[Any]:
    """The values of an output: one, or one a line."""
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="q-") as made:
        fleet = Fleet(Path(made))
        try:
            found = printed(fleet.cluster(2, *CALM), Path(made))
        finally:
            fleet.close()
    FOLDER.mkdir(exist_ok=True)
    rows = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items()]
    (FOLDER / f"{__version__}.json").write_text("{" + ",\n".join(rows) + "}\n")

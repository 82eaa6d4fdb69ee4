"""The packages of tests/cluster/javascript, installed once beside this environment.

`python -m tests.cluster.nodejs` does that for `make test`, so that no test needs the network. The
versions are those of package-lock.json; another lock makes another folder.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

SCRIPTS: Final = Path(__file__).parent / "javascript"
_MINUTES: Final = 5
IS_THERE: Final = bool(shutil.which("node") and shutil.which("npm"))


def modules() -> Path:
    """The folder of the modules, installed if they are not there yet.

    Raises CalledProcessError if npm cannot.
    """
    lock = (SCRIPTS / "package-lock.json").read_bytes()
    home = Path(sys.prefix) / f".npm-{hashlib.sha256(lock).hexdigest()[:12]}"
    with open(f"{home}.lock", "w", encoding="utf-8") as mine:
        fcntl.flock(mine, fcntl.LOCK_EX)  # several processes run the tests
        if not (home / "done").exists():
            home.mkdir(exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(SCRIPTS / name, home)
            subprocess.run(
                ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
                cwd=home,
                check=True,
                timeout=_MINUTES * 60,
                stdin=subprocess.DEVNULL,
            )
            (home / "done").touch()
    return home / "node_modules"


def run(script: str, *words: object) -> str:
    """What the script writes. Its errors come to standard error; raises CalledProcessError."""
    return subprocess.run(
        ["node", str(SCRIPTS / script), *map(str, words)],
        env=os.environ | {"NODE_PATH": str(modules())},
        check=True,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=240,
        text=True,
    ).stdout


if __name__ == "__main__":
    if IS_THERE:
        modules()
    else:
        sys.stderr.write(
            "ioredis, node-redis and accessibility are not tested: there is no node, or no npm\n"
        )

"""`python -m tests.sim.promises [name …]`: ignores each option, directive and setting, or these.

What was noticed is kept in a file until all are, so that it goes on where it was ended.
"""

import sys
from pathlib import Path
from typing import Final

from tests.sim.promises.elsewhere import TESTS, is_noticed
from tests.sim.promises.proofs import PROOFS, failed

FILE: Final = Path("build/promises.txt")


def main() -> int:
    """1 if one may be ignored."""
    names = sys.argv[1:] or [*PROOFS, *TESTS]
    known = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    noticed = dict.fromkeys(() if sys.argv[1:] else known)
    FILE.parent.mkdir(exist_ok=True)
    for number, name in enumerate(names, 1):
        if name in noticed:
            continue
        found = _noticing(name)
        sys.stdout.write(f"{number}/{len(names)} {name}: {found or 'NOT NOTICED'}\n")
        sys.stdout.flush()
        if found:
            noticed[name] = None
            with FILE.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")
    if all(name in noticed for name in names):
        FILE.unlink(missing_ok=True)
        return 0
    return 1


def _noticing(name: str) -> str:
    """The properties, or the test, that fail if it is ignored."""
    if name in PROOFS:
        return " ".join(failed(name))
    return TESTS[name] if is_noticed(name) else ""


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.sim.promises`: ignores each option, directive and setting that has a plan."""

import sys

from tests.sim.promises.proofs import PROOFS, failed


def main() -> int:
    """1 if one may be ignored."""
    ignored = 0
    for name in PROOFS:
        found = failed(name)
        ignored += not found
        sys.stdout.write(f"{name}: {' '.join(found) or 'NOT NOTICED'}\n")
        sys.stdout.flush()
    return bool(ignored)


if __name__ == "__main__":
    sys.exit(main())

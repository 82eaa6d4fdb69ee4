"""`python -m tests.conformance PORT [NAME ...]`: replays transcripts against a server."""

import argparse

from tests.conformance import TRANSCRIPTS
from tests.conformance.replay import replay


def main() -> int:
    """Replay them; 1 if any reply differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance")
    parser.add_argument("port", type=int, help="the server's, on this machine; its jobs go")
    parser.add_argument("names", nargs="*", metavar="NAME", help="transcripts (all)")
    options = parser.parse_args()
    replies = differences = 0
    for path in TRANSCRIPTS:
        if options.names and path.stem not in options.names:
            continue
        outcome = replay(options.port, path)
        for difference in outcome.differences:
            print(difference)
        print(f"{path.stem}: {outcome.replies} replies, {outcome.seconds:.2f} s")
        replies += outcome.replies
        differences += len(outcome.differences)
    print(f"{replies - differences} passed, {differences} failed")
    return bool(differences)


if __name__ == "__main__":
    raise SystemExit(main())

"""`python -m tests.fuzz`: some minutes of hostile bytes (`make fuzz MINUTES=10`).

Half of the time goes to the parsers, each with inputs of its own. Then hostile clients attack a
real cluster for the whole time again.
"""

import argparse
import importlib.util
import random
import subprocess
import sys
import time

from tests.fuzz import tlssiege, websiege
from tests.fuzz.mutation import mutated
from tests.fuzz.siege import besiege, told
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Run it; 1 if anything was found."""
    options = _options()
    failed = []
    if options.what in ("all", "readers"):
        each_s = max(60 * options.minutes / 2 / len(TARGETS), 1)
        is_guided = importlib.util.find_spec("atheris") is not None
        failed = [name for name in TARGETS if not _fuzz(name, each_s, options.seed, is_guided)]
    if failed:
        print(f"failed: {', '.join(failed)}")
    if options.what in ("all", "tls"):
        minutes = options.minutes if options.what == "tls" else options.minutes / 4
        print(tlssiege.told(tlssiege.besiege_tls(60 * minutes, options.seed)))
    if options.what in ("all", "web"):
        minutes = options.minutes if options.what == "web" else options.minutes / 4
        print(websiege.told(websiege.besiege_web(60 * minutes, options.seed)))
    if options.what in ("all", "siege"):
        print(told(*besiege(60 * options.minutes, options.seed, is_open=options.open)))
    return bool(failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument(
        "what", nargs="?", default="all", choices=("all", "readers", "siege", "tls", "web")
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of siege (10)")
    parser.add_argument("--open", action="store_true", help="without password and secret")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of what is random")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    return options


def _fuzz(name: str, seconds: float, seed: int, is_guided: bool) -> bool:
    """Did the target survive every input?"""
    if is_guided:
        return _guided(name, seconds, seed)
    target, rng = TARGETS[name], random.Random(f"{seed}/{name}")
    examples = target.seeds()
    until = time.monotonic() + seconds
    count = 0
    while time.monotonic() < until:
        data = mutated(rng, rng.choice(examples), examples)
        try:
            target.run(data)
        except Exception as error:
            print(f"{name}: {error!r} from {data!r}")
            return False
        count += 1
    print(f"{name}: {count:,} inputs")
    return True


def _guided(name: str, seconds: float, seed: int) -> bool:
    """Atheris takes 0 for "choose a seed"."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz.guided", name),
            *(f"-max_total_time={max(int(seconds), 1)}", f"-seed={seed % (1 << 31) or 1}"),
            *("-print_final_stats=1", "-artifact_prefix=fuzz-"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    if done.returncode:
        print(f"{name}: {done.stdout[-4000:]}")
        return False
    facts = dict(
        line.removeprefix("stat::").split(":", 1)
        for line in done.stdout.splitlines()
        if line.startswith("stat::")
    )
    print(
        f"{name}: {int(facts['number_of_executed_units']):,} inputs, guided by coverage; "
        f"{int(facts['new_units_added']):,} reached new code"
    )
    return True


if __name__ == "__main__":
    sys.exit(main())

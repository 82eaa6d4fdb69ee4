"""What is known already: a run of `make mutants` that was ended goes on where it was.

The outcome of a mutant is valid for its text, its module, and what plays and judges it. A change of
another module of the package does not run it again: few change the outcome, and each commit would
run them all. The row of a seed of the intact node is valid for this version of the whole package.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import attrs

from tests.sim.mutants import plans
from tests.sim.mutants.hunt import Catch, Hunt, Swarm
from tests.sim.mutants.mutant import HERE, PACKAGE, Mutant
from tests.sim.mutants.operators import Drawn
from tests.sim.mutants.reach import places

FILE: Final = HERE.parents[2] / "build" / "mutants.jsonl"
_TRYING: Final = ("hunt", "operators", "seeds", "swapping", "trial")
"""Modules that decide which mutants are tried, how, and with what outcome."""


def digest_of_seeds() -> str:
    """Of all that the intact node's seeds depend on."""
    return _digest(PACKAGE.rglob("*.py"), _plans(), (HERE / "operators.py", HERE / "reach.py"))


def digest_of_trials() -> str:
    """Of what plays and judges all mutants."""
    judge = [*(PACKAGE / "sim").rglob("*.py"), *(PACKAGE / "cli" / "sim").rglob("*.py")]
    return _digest(judge, _plans(), [HERE / f"{name}.py" for name in _TRYING])


def key(mutant: Mutant | Drawn, where: object) -> str:
    """Of a mutant's outcome in these seeds: with the mutant's text, its module and its pins."""
    text = sha256(f"{mutant!r}\n{mutant.source()}".encode())
    for name in mutant.plans if isinstance(mutant, Mutant) else ():
        if (pin := plans.pin(name)).exists():
            text.update(pin.read_bytes())
    return f"{mutant.name} {where} {text.hexdigest()[:16]}"


def _plans() -> list[Path]:
    """Of scenarios and functions. A pin is part of the keys of the mutants that name it."""
    scenarios = HERE.parents[2] / "scenarios"
    return [*scenarios.glob("*.toml"), *HERE.glob("plans/*.py")]


def _digest(*groups: Iterable[Path]) -> str:
    found = sha256()
    for path in sorted(itertools.chain(*groups)):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@attrs.define
class Kept:
    """Rows of a file, each for one mutant or one seed of the intact node."""

    path: Path
    _seeds: str = attrs.field(factory=digest_of_seeds)
    _trials: str = attrs.field(factory=digest_of_trials)
    _rows: dict[tuple[str, str], Any] = attrs.field(factory=dict, init=False)
    """By digest and key."""

    def __attrs_post_init__(self) -> None:
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        for line in lines:
            row = _row(line)
            if (digest := row.get("digest")) in (self._seeds, self._trials):
                self._rows[digest, row["key"]] = row["value"]

    def catch(self, key: str) -> Catch | None:
        """What became of a mutant."""
        row = self._rows.get((self._trials, key))
        if row is None:
            return None
        return Catch(**row | {"expected": tuple(row["expected"])})

    def keep(self, key: str, catch: Catch) -> None:
        """For the next time, if it ran to an end. Which seeds come to its place depends on all
        modules, so the next version may have one."""
        if catch.outcome not in ("not finished", "not reached"):
            self._add(self._trials, key, attrs.asdict(catch))

    def swarm(self, hunt: Hunt, scenario: str, engine: str) -> Iterator[Swarm]:
        """What the intact node does: after each seed with those until then."""
        reached: dict[tuple[str, int], tuple[int, ...]] = {}
        failing: list[int] = []
        cpu: list[float] = []
        names = places()
        rows = [(self._seeds, f"{scenario} {engine} {seed}") for seed in range(hunt.seeds)]
        missing = tuple(seed for seed, at in enumerate(rows) if at not in self._rows)
        looks = hunt.look(scenario, engine, missing) if missing else iter(())
        for seed, at in enumerate(rows):
            if at not in self._rows:
                self._add(*at, next(looks))
            ran = self._rows[at]
            failing += [seed] if ran["found"] else []
            cpu.append(ran["cpu"])
            bits = bin(int(ran["reach"], 16))[3:]
            for place, bit in zip(names, bits, strict=True):
                if bit == "1":
                    reached[place] = (*reached.get(place, ()), seed)
            yield Swarm(
                scenario=scenario,
                engine=engine,
                failing=tuple(failing),
                cpu=tuple(cpu),
                reached=reached,
            )

    def _add(self, digest: str, key: str, value: Any) -> None:
        self._rows[digest, key] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        row = {"digest": digest, "key": key, "value": value}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _row(line: str) -> dict[str, Any]:
    """Nothing, if a kill has cut it short."""
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return row

"""What is known already: a run of `make mutants` that was ended goes on where it was."""

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import attrs

from tests.sim.mutants.hunt import Catch, Hunt, Swarm
from tests.sim.mutants.mutant import HERE, PACKAGE
from tests.sim.mutants.reach import places

FILE: Final = HERE.parents[2] / "build" / "mutants.jsonl"


def digest() -> str:
    """Of the package and the plans: what was found in another version is not valid in this one."""
    found = sha256()
    scenarios = HERE.parents[2] / "scenarios"
    for path in sorted(
        [*PACKAGE.rglob("*.py"), *scenarios.glob("*.toml"), *HERE.glob("plans/*.py")]
    ):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


@attrs.define
class Kept:
    """Rows of a file, each for one mutant or one seed of the intact node."""

    path: Path
    _digest: str = attrs.field(factory=digest)
    _rows: dict[str, Any] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        lines = self.path.read_text("utf-8").splitlines() if self.path.exists() else []
        for line in lines:
            row = _row(line)
            if row.get("digest") == self._digest:
                self._rows[row["key"]] = row["value"]

    def catch(self, key: str) -> Catch | None:
        """What became of a mutant."""
        row = self._rows.get(key)
        if row is None:
            return None
        return Catch(**row | {"expected": tuple(row["expected"])})

    def keep(self, key: str, catch: Catch) -> None:
        """For the next time, unless it is not finished."""
        if catch.outcome != "not finished":
            self._add(key, attrs.asdict(catch))

    def swarm(self, hunt: Hunt, scenario: str, engine: str) -> Iterator[Swarm]:
        """What the intact node does: after each seed with those until then."""
        reached: dict[tuple[str, int], tuple[int, ...]] = {}
        failing: list[int] = []
        cpu: list[float] = []
        names = places()
        keys = [f"{scenario} {engine} {seed}" for seed in range(hunt.seeds)]
        missing = tuple(seed for seed, key in enumerate(keys) if key not in self._rows)
        looks = hunt.look(scenario, engine, missing) if missing else iter(())
        for seed, key in enumerate(keys):
            if key not in self._rows:
                self._add(key, next(looks))
            ran = self._rows[key]
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

    def _add(self, key: str, value: Any) -> None:
        self._rows[key] = value
        self.path.parent.mkdir(parents=True, exist_ok=True)
        row = {"digest": self._digest, "key": key, "value": value}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _row(line: str) -> dict[str, Any]:
    """Nothing, if a kill has cut it short."""
    try:
        row: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return row

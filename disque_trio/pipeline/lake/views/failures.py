"""The findings of sweeps: each violated property by scenario, with the smallest failing seed."""

from typing import Final

COLUMNS: Final = {
    "scenario": "the scenario's name",
    "property": "S1 to S22, L1 to L10, a cause that was not expected, forming, hang, determinism",
    "commit": "the commit of the code that ran",
    "seeds": "how many seeds have violated it",
    "times": "how many violations in all",
    "seed": "the smallest of these seeds",
    "text": "the checker's text for that seed",
    "version": "the release, engine, and digests of code and scenario with which it was run",
}

SQL: Final = """
WITH found AS (
  SELECT scenario, seed, commit, version, explode(findings) AS finding FROM results WHERE NOT ok
)
SELECT scenario, finding.property AS property, commit, count(DISTINCT seed) AS seeds,
  count(*) AS times, min(seed) AS seed, min_by(finding.text, struct(seed, finding.time)) AS text,
  min_by(version, struct(seed, finding.time)) AS version
FROM found GROUP BY scenario, finding.property, commit
"""

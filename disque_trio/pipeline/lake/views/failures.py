"""What sweeps have found: each property that a scenario has violated, and the first seed to run."""

from typing import Final

COLUMNS: Final = {
    "scenario": "the scenario's name",
    "property": "S1 to S22, L1 to L10, a cause that was not expected, forming, hang, determinism",
    "commit": "of which code",
    "seeds": "how many seeds have violated it",
    "times": "how often in all",
    "seed": "the smallest of them",
    "text": "what the judge says of it",
}

SQL: Final = """
WITH found AS (
  SELECT scenario, seed, commit, explode(findings) AS finding FROM results WHERE NOT ok
)
SELECT scenario, finding.property AS property, commit, count(DISTINCT seed) AS seeds,
  count(*) AS times, min(seed) AS seed, min_by(finding.text, struct(seed, finding.time)) AS text
FROM found GROUP BY scenario, finding.property, commit
"""

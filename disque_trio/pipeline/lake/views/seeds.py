"""One row for each scenario of each sweep: seeds, failures, and the cost of a seed."""

from typing import Final

COLUMNS: Final = {
    "scenario": "the scenario's name",
    "sweep": "the sweep's id",
    "commit": "the commit of the code that ran",
    "since": "when its first result was made, microseconds since 1970",
    "until": "when its last result was made",
    "seeds": "how many were run",
    "first": "the smallest seed",
    "last": "the largest seed",
    "failed": "how many of them violated a property",
    "jobs": "jobs that were confirmed",
    "deliveries": "deliveries, repeated ones included",
    "lost": "jobs lost",
    "duplicates": "repeated deliveries, of all causes",
    "per_million": "duplicates per million jobs",
    "simulated": "simulated seconds",
    "seconds": "processor time, seconds",
    "cost": "mean processor time of a seed, milliseconds",
    "dearest": "the processor time of the most expensive seed, milliseconds",
    "dearest_seed": "that seed",
    "version": "its release, engine, and digests of code and scenario",
}

SQL: Final = """
SELECT scenario, sweep, commit, min(at) AS since, max(at) AS until, count(*) AS seeds,
  min(seed) AS first, max(seed) AS last, count_if(NOT ok) AS failed,
  sum(added) AS jobs, sum(delivered) AS deliveries, sum(lost) AS lost,
  sum(aggregate(map_values(duplicates), 0L, (all, one) -> all + one)) AS duplicates,
  try_divide(1e6 * sum(aggregate(map_values(duplicates), 0L, (all, one) -> all + one)),
    sum(added)) AS per_million,
  sum(`end`) / 1e6 AS simulated, sum(seconds) AS seconds, 1e3 * avg(seconds) AS cost,
  1e3 * max(seconds) AS dearest, max_by(seed, struct(seconds, seed)) AS dearest_seed,
  max_by(version, struct(seconds, seed)) AS version
FROM results GROUP BY scenario, sweep, commit
"""

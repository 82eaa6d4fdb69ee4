"""S4: ids are given out once, and tell the delivery semantics.

No id is used for two new jobs (two records that one node makes at the same time count as one); no
id answers two requests; and its last digit is odd if and only if RETRY is not 0.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import AT_LEAST_ONCE, KEYS, RETRY_S, TTL_S

WEAKER: Final = ""

SQL: Final = f"""
WITH births AS (
  SELECT {KEYS}, job, min(struct(time, seq, node)) AS first,
    collect_set(struct(time, node)) AS all
  FROM rows WHERE kind = 'hold' AND cause = 'add' GROUP BY {KEYS}, job
), given AS (
  SELECT {KEYS}, job, sum(answers) AS answers, max(answered) AS time,
    max_by(node, answered) AS node, max(words) AS words
  FROM adds WHERE job <> '' AND asked IS NOT NULL GROUP BY {KEYS}, job
), read AS (
  SELECT *, {RETRY_S} AS retry_s FROM (SELECT *, {TTL_S} AS ttl_s FROM given)
), wrong AS (
  SELECT {KEYS}, job, node, time, explode(array(
    if(answers > 1, 'the id is given out a second time', NULL),
    if((retry_s > 0) <> {AT_LEAST_ONCE},
      concat('the id''s parity does not fit RETRY ', retry_s), NULL))) AS detail
  FROM read
)
SELECT 'S4' AS property, {KEYS}, job, again.node AS node, again.time AS time,
  concat(again.node, ' makes a job under the id of one that ', first.node, ' has made') AS detail
FROM (
  SELECT {KEYS}, job, first, explode(all) AS again FROM births WHERE size(all) > 1
) WHERE again.node <> first.node OR again.time <> first.time
UNION ALL
SELECT 'S4', {KEYS}, job, node, time, detail FROM wrong WHERE detail IS NOT NULL
"""

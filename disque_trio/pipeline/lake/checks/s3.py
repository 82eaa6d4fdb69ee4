"""S3: what is delivered was added, to the same queue, with the same bytes.

A job whose producer received the id is compared with its ADDJOB. For any other job there must be an
ADDJOB with the same queue and body that was not refused. A consumer receives a job from a node at
most as often as the node has served it to that consumer.
"""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS

WEAKER: Final = (
    "An ADDJOB whose producer does not know the job's id answers for any number of jobs with its "
    "queue and body; for the judge it answers for one."
)

SQL: Final = f"""
WITH got AS (
  SELECT {KEYS}, job, node, time, queue, substring(detail, instr(detail, 'body=') + 5) AS body
  FROM rows WHERE kind = 'get.deliver' AND instr(detail, 'body=') > 0
), named AS (
  SELECT {KEYS}, job, min_by(struct(queue, body), asked) AS put FROM adds
  WHERE job <> '' AND asked IS NOT NULL GROUP BY {KEYS}, job
), nameless AS (
  SELECT DISTINCT {KEYS}, queue, body, true AS is_added FROM adds
  WHERE job = '' AND NOT (outcome <=> 'refused' AND cause <> 'NOREPL')
), compared AS (
  SELECT {KEYS}, job, node, time,
    CASE WHEN put IS NULL THEN if(is_added, NULL, concat('nobody has added ', body, ' to ', queue))
      WHEN put.queue <> queue
        THEN concat('it was added to ', put.queue, ' and comes out of ', queue)
      WHEN put.body <> body
        THEN concat('it was added as ', put.body, ' and comes out as ', body) END AS detail
  FROM got LEFT JOIN named USING ({KEYS}, job) LEFT JOIN nameless USING ({KEYS}, queue, body)
), handed AS (
  SELECT {KEYS}, job, node, client, max(CASE WHEN kind = 'get.deliver' THEN time END) AS time,
    count_if(kind = 'get.deliver') AS gets, count_if(kind = 'serve') AS serves
  FROM rows WHERE kind IN ('serve', 'get.deliver') GROUP BY {KEYS}, job, node, client
)
SELECT 'S3' AS property, {KEYS}, job, node, time, detail
FROM compared WHERE detail IS NOT NULL
UNION ALL
SELECT 'S3', {KEYS}, job, node, time,
  concat(client, ' has it ', gets, ' times from ', node, ', which has served it ', serves, ' times')
FROM handed JOIN runs r USING ({KEYS})
WHERE r.has_node_rows AND NOT r.is_live AND gets > serves
"""

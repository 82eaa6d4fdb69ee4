"""One row for each ADDJOB: what was asked, and what its producer learned."""

from typing import Final

from disque_trio.pipeline.lake.views.words import KEYS, OF_KEYS

COLUMNS: Final = {
    **OF_KEYS,
    "node": "the node that was asked",
    "client": "the producer; of a live node, its address",
    "ref": "the number of the operation",
    "asked": "when it was asked, microseconds; null if the trace begins later",
    "queue": "the queue",
    "words": "the options, in lower case",
    "body": "the body, or its digest if it is long; null if the trace has none",
    "outcome": "`ok`, `refused`, `unknown`; null if there was none yet",
    "cause": "why it was not `ok`: the error's code, disconnect, or timeout",
    "answered": "when the answer came",
    "job": "the id, if it was answered with one; else empty",
    "answers": "how often this request was answered with an id; more than 1 violates S4",
}

SQL: Final = f"""
WITH told AS (
  SELECT {KEYS}, node, client, ref,
    min(CASE WHEN kind = 'add.invoke' THEN time END) AS asked,
    max(queue) AS queue,
    max(CASE WHEN kind = 'add.invoke' THEN detail END) AS detail,
    max(CASE WHEN kind <> 'add.invoke' THEN substring(kind, 5) END) AS outcome,
    max(CASE WHEN kind <> 'add.invoke' THEN cause END) AS cause,
    min(CASE WHEN kind <> 'add.invoke' THEN time END) AS answered,
    max(job) AS job, count_if(kind = 'add.ok') AS answers
  FROM rows WHERE kind IN ('add.invoke', 'add.ok', 'add.refused', 'add.unknown')
  GROUP BY {KEYS}, node, client, ref
)
SELECT {KEYS}, node, client, ref, asked, queue,
  lower(split_part(detail, 'body=', 1)) AS words,
  if(instr(detail, 'body=') > 0, substring(detail, instr(detail, 'body=') + 5), NULL) AS body,
  outcome, nullif(cause, '') AS cause, answered, job, answers
FROM told
"""

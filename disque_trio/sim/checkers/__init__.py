"""The judge: rows in, violations out, and a cause for every duplicate (docs/guarantees.md).

`verdict.judge(plan)` gives a judge that `see`s every row in order and `finish`es with a verdict. It
reads rows and nothing else, so the history of a live cluster is judged like a simulated one; what
a trace has no rows for is reported as not judged.

`terms` is what the plan entitles to, `history` what became of each job, `world` what went wrong and
when; `safety`, `custody`, `liveness`, `company` and `duplicates` judge, and `metrics` counts.
"""

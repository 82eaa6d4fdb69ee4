"""The checker of runs, called the judge: it reads rows, and finds violations of properties and a
cause for every duplicate (docs/guarantees.md).

`verdict.judge(plan)` gives a `Judge`, which `see`s each row in order and `finish`es with a verdict.
It reads nothing but rows, so that traces of live clusters are judged like simulated ones. What a
trace has no rows for is reported as not judged.

`obligations` derives periods and bounds from the plan; `history`, `messages` and `client_events`
record what is known of each job, and `world` the faults. The other modules check properties;
`metrics` computes figures. Import `verdict`.
"""

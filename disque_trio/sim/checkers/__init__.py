"""The checker of runs, called the judge. It reads the rows of a trace, finds violations of
properties, and assigns a cause to every duplicate (docs/guarantees.md).

`verdict.judge(plan)` returns a `Judge`: `see` takes each row in order, and `finish` returns the
verdict. The judge reads only rows, so it treats traces of live clusters like simulated ones. It
reports a property as not judged if the trace lacks the rows for it.

`obligations` derives periods and bounds from the plan. `history`, `messages` and `client_events`
record the history of each job, and `world` the faults. The other modules check properties;
`metrics` computes figures. Import `verdict`.
"""

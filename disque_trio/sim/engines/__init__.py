"""Run plans: `heap` (whole nodes), `trio` (each a task in virtual time), `tcp` (processes).

What they share is here. The command line imports the `run` of each.
"""

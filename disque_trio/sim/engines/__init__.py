"""Run plans: `heap` (machines), `trio` (whole nodes in virtual time), `tcp` (processes).

What they share is here. The command line imports the `run` of each.
"""

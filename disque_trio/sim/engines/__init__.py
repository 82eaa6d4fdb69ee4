"""What runs a plan: `heap` (machines), `trio` (whole nodes, virtual time), `tcp` (processes).

What all three share is here. The command line imports the `run` of each.
"""

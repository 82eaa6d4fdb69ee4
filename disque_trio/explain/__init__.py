"""What a job survives, by two layers that are kept apart: rules, and trials in the simulator.

Pure: of options and facts. `disque-trio explain` reads the facts and runs the trials.
"""

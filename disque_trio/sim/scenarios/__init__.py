"""Scenarios, as people write them, and plans, which are made of a scenario and a seed.

It imports values of the machine only. Everything else in the simulator may import it.
"""

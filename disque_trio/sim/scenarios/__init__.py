"""What a person writes and what a seed makes of it: scenarios, their files, and plans.

It imports values of the machine only. Everything else in the simulator may import it.
"""

"""Jobs by the clock: when they are due, and the loop that adds them.

Every worker runs the loop. The key of a tick keeps its job single (decision 79;
docs/worker-cron.md).
"""

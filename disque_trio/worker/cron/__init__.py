"""Scheduled jobs: when they are due, and the loop that adds them.

Every worker runs the loop. The unique key of a tick ensures that its job is added once (decision
79; docs/worker-cron.md).
"""

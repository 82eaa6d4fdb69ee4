"""Schedules that are added, paused and removed while workers run (`App.schedules`).

Each is a record in the body of one job, with a key; `records` reads and writes them, `keeping` adds
their ticks in workers, `schedules` is what apps call (decision 138; docs/worker-cron.md).
"""

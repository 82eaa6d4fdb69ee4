"""Schedules that are added, paused and removed while workers run (`App.schedules`).

Each schedule is a record in the body of one job with a key. `records` reads and writes records,
`keeping` adds ticks in workers, and `schedules` is the API for apps (decision 138;
docs/worker-cron.md).
"""

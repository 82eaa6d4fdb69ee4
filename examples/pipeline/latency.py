# %% [markdown]
# # Where do the jobs of a cluster wait?
#
# Reads the tables that `disque-trio pipeline export lake lake.duckdb` has written.

# %%
import os

import duckdb

lake = duckdb.connect(os.environ.get("DISQUE_LAKE", "lake.duckdb"), read_only=True)

# %% [markdown]
# The longest stage of each queue, by its 99th percentile in milliseconds.

# %%
slowest = lake.sql("""
    SELECT queue, stage, jobs, round(p50, 1) AS p50, round(p99, 1) AS p99, longest
    FROM latency WHERE stage <> 'whole'
    QUALIFY row_number() OVER (PARTITION BY scenario, queue ORDER BY p99 DESC) = 1
    ORDER BY p99 DESC
""").df()
slowest

# %% [markdown]
# Why jobs were delivered again. The causes are those of docs/guarantees.md.

# %%
causes = lake.sql("SELECT cause, sum(duplicates)::BIGINT AS duplicates FROM causes GROUP BY 1").df()
causes

# %% [markdown]
# The jobs that waited longest.

# %%
longest = lake.sql("""
    SELECT job, queue, make_timestamp(queued) AS queued, (delivered - queued) / 1e6 AS waited_s,
        deliveries, retries, nacks
    FROM jobs WHERE delivered IS NOT NULL ORDER BY waited_s DESC LIMIT 10
""").df()
longest

WITH late AS (
  SELECT run, job, count(*) AS duplicates
  FROM {{ source('lake', 'deliveries') }}
  WHERE number > 1
  GROUP BY run, job
)
SELECT
  j.run AS cluster,
  j.queue,
  CAST(make_timestamp(j.born) AS DATE) AS day,
  count(*) AS jobs,
  quantile_disc((j.delivered - j.queued) / 1000, 0.99) AS waited_p99,
  CAST(sum(coalesce(late.duplicates, 0)) AS BIGINT) AS duplicates
FROM {{ source('lake', 'jobs') }} AS j
LEFT JOIN late USING (run, job)
WHERE j.seed = 0 AND j.scenario = 'live'
GROUP BY ALL

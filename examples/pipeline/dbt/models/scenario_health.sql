WITH latest AS (
  SELECT *
  FROM {{ source('lake', 'seeds') }}
  QUALIFY row_number() OVER (PARTITION BY scenario ORDER BY until DESC) = 1
)
SELECT
  latest.scenario,
  latest.commit,
  make_timestamp(latest.until) AS run_at,
  latest.seeds,
  latest.failed,
  latest.per_million AS duplicates_per_million,
  string_agg(DISTINCT f.property, ', ' ORDER BY f.property) AS violated
FROM latest
LEFT JOIN {{ source('lake', 'failures') }} AS f
  ON f.scenario = latest.scenario AND f.version = latest.version
GROUP BY ALL

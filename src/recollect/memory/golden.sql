-- put
-- A golden query; one that is there already expects from now on what is given here.
insert into golden_queries (namespace, query, digest, expected_ids)
values ($1, $2, $3, $4::bigint[])
on conflict (namespace, digest) do update set expected_ids = excluded.expected_ids
returning id, created_at;

-- queries
-- The golden set.
select id, query, expected_ids, created_at from golden_queries where namespace = $1 order by id;

-- find
-- One golden query.
select id, query, expected_ids, created_at from golden_queries where namespace = $1 and id = $2;

-- count
-- How many golden queries there are.
select count(*) from golden_queries where namespace = $1;

-- remove
-- One golden query, with what judges said of it.
delete from golden_queries where namespace = $1 and id = $2 returning id;

-- first_baseline
-- The first run sets the baseline; later ones find it set.
insert into golden_baselines (namespace, precision_at_5, fingerprint, set_on)
values ($1, $2, $3, $4)
on conflict (namespace) do nothing;

-- new_baseline
-- A baseline in place of the one before.
insert into golden_baselines (namespace, precision_at_5, fingerprint, set_on)
values ($1, $2, $3, $4)
on conflict (namespace) do update
set precision_at_5 = excluded.precision_at_5, fingerprint = excluded.fingerprint, set_on = excluded.set_on;

-- baseline
-- What runs are compared with.
select precision_at_5, fingerprint, set_on from golden_baselines where namespace = $1;

-- record
-- The run of a day. A second run of that day waits here until the first has written its results.
insert into golden_runs (
    namespace, day, precision_at_5, baseline_precision, drift_detected, queries_tested, fingerprint
)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (namespace, day) do update
set precision_at_5 = excluded.precision_at_5, baseline_precision = excluded.baseline_precision,
    drift_detected = excluded.drift_detected, queries_tested = excluded.queries_tested,
    fingerprint = excluded.fingerprint, ran_at = excluded.ran_at;

-- forget_results
-- The results of the run that another of the same day replaces.
delete from golden_results where namespace = $1 and day = $2;

-- add_results
-- What a run found; arrays of different lengths travel as texts.
insert into golden_results (namespace, day, query_id, query_type, hits, found_ids)
select $1, $2, query_id, query_type, hits, found::bigint[]
from unnest($3::bigint[], $4::text[], $5::int[], $6::text[]) as result (query_id, query_type, hits, found);

-- history
-- The last runs, newest first.
select day, precision_at_5, baseline_precision, drift_detected, queries_tested, fingerprint
from golden_runs
where namespace = $1
order by day desc
limit $2;

-- results
-- What the run of a day found, query by query.
select query_id, query_type, hits, found_ids from golden_results where namespace = $1 and day = $2 order by query_id;

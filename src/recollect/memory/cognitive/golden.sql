-- known
-- What a golden query expects, if it is there; nobody else changes that until the transaction ends.
select expected_ids from golden_queries where namespace = $1 and digest = $2 for update;

-- put
-- A golden query; one that is there already expects from now on what is given here.
insert into golden_queries (namespace, query, digest, expected_ids)
values ($1, $2, $3, $4::bigint[])
on conflict (namespace, digest) do update set expected_ids = excluded.expected_ids
returning id, expected_ids, created_at;

-- keep
-- A golden query that expects nothing yet; one that is there already stays as it is.
insert into golden_queries (namespace, query, digest, expected_ids)
values ($1, $2, $3, '{}')
on conflict (namespace, digest) do update set query = excluded.query
returning id, expected_ids, created_at;

-- queries
-- The golden set.
select id, query, expected_ids, created_at from golden_queries where namespace = $1 order by id;

-- find
-- One golden query.
select id, query, expected_ids, created_at from golden_queries where namespace = $1 and id = $2;

-- hold
-- One golden query, locked.
select id, query, expected_ids, created_at from golden_queries where namespace = $1 and id = $2 for update;

-- expect
-- What a golden query should find.
update golden_queries set expected_ids = $3::bigint[] where namespace = $1 and id = $2;

-- count
-- How many golden queries there are.
select count(*) from golden_queries where namespace = $1;

-- remove
-- One golden query, with what judges said of it.
delete from golden_queries where namespace = $1 and id = $2 returning id;

-- baselines
-- What runs are held to.
select query_id, expected_ids, hits, set_on from golden_query_baselines where namespace = $1;

-- begin
-- Hold queries to what they found in this run; in the order of their ids, so that two runs at once do not lock each other.
insert into golden_query_baselines (namespace, query_id, expected_ids, hits, set_on)
select $1, query_id, expected::bigint[], hits, set_on
from unnest($2::bigint[], $3::text[], $4::int[], $5::date[]) as measured (query_id, expected, hits, set_on)
order by query_id
on conflict (namespace, query_id) do update
set expected_ids = excluded.expected_ids, hits = excluded.hits, set_on = excluded.set_on;

-- end
-- Forget the baselines of queries that are gone.
delete from golden_query_baselines where namespace = $1 and query_id = any($2::bigint[]);

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

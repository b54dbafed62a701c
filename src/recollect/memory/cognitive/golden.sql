-- known
-- What a golden query expects, if it is there, locked until the transaction ends.
select expected_ids from golden_queries where namespace = :namespace and digest = :digest for update;

-- put
-- A golden query; one that is there already expects from now on what is given here.
insert into golden_queries (namespace, query, digest, expected_ids)
values (:namespace, :query, :digest, :expected_ids::bigint[])
on conflict (namespace, digest) do update set expected_ids = excluded.expected_ids
returning id, expected_ids, created_at;

-- keep
-- A golden query that expects nothing yet; one that is there already stays as it is.
insert into golden_queries (namespace, query, digest, expected_ids)
values (:namespace, :query, :digest, '{}')
on conflict (namespace, digest) do update set query = excluded.query
returning id, expected_ids, created_at;

-- queries
-- The golden set.
-- Audit golden id
select id, query, expected_ids, created_at from golden_queries where namespace = :namespace order by id;

-- find
-- One golden query.
-- Audit golden id
select id, query, expected_ids, created_at from golden_queries where namespace = :namespace and id = :query_id;

-- lock
-- One golden query, locked.
select id, query, expected_ids, created_at from golden_queries
where namespace = :namespace and id = :query_id for update;

-- expect
-- What a golden query should find.
update golden_queries set expected_ids = :expected_ids::bigint[] where namespace = :namespace and id = :query_id;

-- count
-- How many golden queries there are.
select count(*) from golden_queries where namespace = :namespace;

-- remove
-- One golden query, with what judges said of it.
delete from golden_queries where namespace = :namespace and id = :query_id returning id;

-- baselines
-- What runs are held to.
select query_id, expected_ids, hits, set_on from golden_query_baselines where namespace = :namespace;

-- begin
-- Hold queries to what they found in this run; in the order of their ids, so that two runs at once do not lock each other.
insert into golden_query_baselines (namespace, query_id, expected_ids, hits, set_on)
select :namespace, query_id, expected::bigint[], hits, set_on
from unnest(:query_ids::bigint[], :expected_ids::text[], :hits::int[], :set_ons::date[]) as measured (query_id,
    expected, hits, set_on)
order by query_id
on conflict (namespace, query_id) do update
set expected_ids = excluded.expected_ids, hits = excluded.hits, set_on = excluded.set_on;

-- end
-- Forget the baselines of queries that are gone.
-- Role write: a run does this.
delete from golden_query_baselines where namespace = :namespace and query_id = any(:query_ids::bigint[]);

-- record
-- The run of a day. A second run of that day waits here until the first has written its results.
insert into golden_runs (
    namespace, day, precision_at_5, baseline_precision, drift_detected, queries_tested, fingerprint
)
values (:namespace, :day, :precision_at_5, :baseline_precision, :drift_detected, :queries_tested, :fingerprint)
on conflict (namespace, day) do update
set precision_at_5 = excluded.precision_at_5, baseline_precision = excluded.baseline_precision,
    drift_detected = excluded.drift_detected, queries_tested = excluded.queries_tested,
    fingerprint = excluded.fingerprint, ran_at = excluded.ran_at;

-- forget_results
-- The results of the run that another of the same day replaces.
-- Role write: the run brings others.
delete from golden_results where namespace = :namespace and day = :day;

-- add_results
-- What a run found; arrays of different lengths travel as texts.
insert into golden_results (namespace, day, query_id, query_type, hits, found_ids)
select :namespace, :day, query_id, query_type, hits, found::bigint[]
from unnest(:query_ids::bigint[], :query_types::text[], :hits::int[], :found_ids::text[]) as result (query_id,
    query_type, hits, found)
returning query_id;

-- history
-- The last runs, newest first.
select day, precision_at_5, baseline_precision, drift_detected, queries_tested, fingerprint
from golden_runs
where namespace = :namespace
order by day desc
limit :limit;

-- results
-- What the run of a day found, query by query.
select query_id, query_type, hits, found_ids from golden_results
where namespace = :namespace and day = :day order by query_id;

-- page_golden_queries
-- The golden set.
-- Audit golden id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from golden_queries r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_golden_queries
-- Adds golden queries that are not there.
insert into golden_queries overriding system value
select * from jsonb_populate_recordset(null::golden_queries, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_golden_queries
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::golden_queries, :records::text::jsonb) as given
left join golden_queries stored on stored.namespace = :namespace and stored.id = given.id;

-- page_golden_runs
-- Runs of the golden set.
-- Audit golden_run day
select (to_jsonb(r) - 'namespace')::text as record, r.day
from golden_runs r
where r.namespace = :namespace and :user_id::text is null and (:after_day::date is null or r.day > :after_day)
order by r.day
limit :limit;

-- restore_golden_runs
-- Adds golden runs that are not there.
insert into golden_runs overriding system value
select * from jsonb_populate_recordset(null::golden_runs, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning day;

-- compare_golden_runs
-- Compares given records with the stored ones.
select given.day, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::golden_runs, :records::text::jsonb) as given
left join golden_runs stored on stored.namespace = :namespace and stored.day = given.day;

-- page_golden_results
-- What runs of the golden set found.
-- Audit golden query_id
select (to_jsonb(r) - 'namespace')::text as record, r.day, r.query_id
from golden_results r
where r.namespace = :namespace and :user_id::text is null
  and (:after_day::date is null or (r.day, r.query_id) > (:after_day, :after_query_id::bigint))
order by r.day, r.query_id
limit :limit;

-- restore_golden_results
-- Adds results of golden runs that are not there.
insert into golden_results overriding system value
select * from jsonb_populate_recordset(null::golden_results, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning day, query_id;

-- compare_golden_results
-- Compares given records with the stored ones.
select given.day, given.query_id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::golden_results, :records::text::jsonb) as given
left join golden_results stored
    on stored.namespace = :namespace and stored.day = given.day and stored.query_id = given.query_id;

-- page_golden_query_baselines
-- What golden queries are held to.
-- Audit golden query_id
select (to_jsonb(r) - 'namespace')::text as record, r.query_id
from golden_query_baselines r
where r.namespace = :namespace and :user_id::text is null
  and (:after_query_id::bigint is null or r.query_id > :after_query_id)
order by r.query_id
limit :limit;

-- restore_golden_query_baselines
-- Adds baselines of golden queries that are not there.
insert into golden_query_baselines overriding system value
select * from jsonb_populate_recordset(null::golden_query_baselines, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning query_id;

-- compare_golden_query_baselines
-- Compares given records with the stored ones.
select given.query_id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::golden_query_baselines, :records::text::jsonb) as given
left join golden_query_baselines stored on stored.namespace = :namespace and stored.query_id = given.query_id;

-- shown_golden_queries
-- Some golden queries as the feed shows them.
-- Audit golden item_id
select id::text as item_id,
       jsonb_build_object('text', left(query, :most::integer), 'expected_ids', expected_ids) as content, created_at as at
from golden_queries
where namespace = :namespace and id = any(:ids::text[]::bigint[]);

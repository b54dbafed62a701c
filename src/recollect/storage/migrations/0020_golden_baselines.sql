-- What each golden query found when it was first measured with these expectations. Later runs hold it to that, so that
-- a change to the golden set is not taken for drift.
create table golden_query_baselines (
    namespace text not null,
    query_id bigint not null,
    expected_ids bigint[] not null,
    hits integer not null,
    set_on date not null,
    primary key (namespace, query_id)
);

-- A baseline is carried over where it is certain what it was measured with: the run that set it is still there, and the
-- golden set is the one of that run. Elsewhere the next run sets one.
alter table golden_baselines no force row level security;
alter table golden_queries no force row level security;
alter table golden_runs no force row level security;
alter table golden_results no force row level security;
with lines as (
    select q.namespace,
        q.query || E'\n[' || (
            select string_agg(expected::text, ', ' order by expected) from unnest(q.expected_ids) expected
        ) || ']' as line
    from golden_queries q
    where cardinality(q.expected_ids) > 0
),
sets as (
    select lines.namespace,
        encode(sha256(convert_to(string_agg(line, E'\n' order by line collate "C"), 'UTF8')), 'hex') as fingerprint
    from lines
    group by lines.namespace
)
insert into golden_query_baselines (namespace, query_id, expected_ids, hits, set_on)
select b.namespace, q.id, q.expected_ids, result.hits, b.set_on
from golden_baselines b
join sets on sets.namespace = b.namespace and sets.fingerprint = b.fingerprint
join golden_runs run
    on run.namespace = b.namespace and run.day = b.set_on and run.fingerprint = b.fingerprint
    and run.precision_at_5 = b.precision_at_5
join golden_results result on result.namespace = b.namespace and result.day = run.day
join golden_queries q on q.namespace = b.namespace and q.id = result.query_id;
alter table golden_queries force row level security;
alter table golden_runs force row level security;
alter table golden_results force row level security;
drop table golden_baselines;

alter table golden_query_baselines enable row level security;
alter table golden_query_baselines force row level security;
create policy own_namespace on golden_query_baselines using (namespace = current_setting('recollect.namespace', true));

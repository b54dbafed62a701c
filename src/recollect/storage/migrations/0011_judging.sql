-- Golden queries: questions with the insights that a good search finds for them. `digest` is the SHA-256 of the query,
-- because a query may be too long for an index.
create table golden_queries (
    namespace text not null,
    id bigint generated always as identity,
    query text not null,
    digest bytea not null,
    expected_ids bigint[] not null,
    created_at timestamptz not null default now(),
    primary key (namespace, id),
    unique (namespace, digest)
);

-- One run a day: a later one of the same day takes its place. `fingerprint` tells one golden set from another.
create table golden_runs (
    namespace text not null,
    day date not null,
    precision_at_5 double precision not null,
    baseline_precision double precision not null,
    drift_detected boolean not null,
    queries_tested integer not null,
    fingerprint text not null,
    ran_at timestamptz not null default now(),
    primary key (namespace, day)
);

-- What a run found for each of its queries. The queries may be gone since, so they are only named.
create table golden_results (
    namespace text not null,
    day date not null,
    query_id bigint not null,
    query_type text not null,
    hits integer not null,
    found_ids bigint[] not null,
    primary key (namespace, day, query_id),
    foreign key (namespace, day) references golden_runs (namespace, day) on delete cascade
);

-- What every later run is compared with: it outlives the run that set it.
create table golden_baselines (
    namespace text not null primary key,
    precision_at_5 double precision not null,
    fingerprint text not null,
    set_on date not null
);

-- One hearing of both judges, and how far they agreed.
create table judgements (
    namespace text not null,
    id bigint generated always as identity,
    query_id bigint not null,
    query text not null,
    judge1_model text not null,
    judge2_model text not null,
    judge1_score double precision not null,
    judge2_score double precision not null,
    kappa double precision not null,
    agreement text not null,
    judged_at timestamptz not null default now(),
    primary key (namespace, id),
    foreign key (namespace, query_id) references golden_queries (namespace, id) on delete cascade
);
create index judgements_by_query on judgements (namespace, query_id, id);

-- Every raw score. Both judges' stand in one row, so that one without the other cannot be stored.
create table judge_scores (
    namespace text not null,
    judgement_id bigint not null,
    document_id bigint not null,
    judge1_score double precision not null,
    judge1_reason text not null,
    judge2_score double precision not null,
    judge2_reason text not null,
    primary key (namespace, judgement_id, document_id),
    foreign key (namespace, judgement_id) references judgements (namespace, id) on delete cascade
);

alter table golden_queries enable row level security;
alter table golden_queries force row level security;
create policy own_namespace on golden_queries using (namespace = current_setting('recollect.namespace', true));

alter table golden_runs enable row level security;
alter table golden_runs force row level security;
create policy own_namespace on golden_runs using (namespace = current_setting('recollect.namespace', true));

alter table golden_results enable row level security;
alter table golden_results force row level security;
create policy own_namespace on golden_results using (namespace = current_setting('recollect.namespace', true));

alter table golden_baselines enable row level security;
alter table golden_baselines force row level security;
create policy own_namespace on golden_baselines using (namespace = current_setting('recollect.namespace', true));

alter table judgements enable row level security;
alter table judgements force row level security;
create policy own_namespace on judgements using (namespace = current_setting('recollect.namespace', true));

alter table judge_scores enable row level security;
alter table judge_scores force row level security;
create policy own_namespace on judge_scores using (namespace = current_setting('recollect.namespace', true));

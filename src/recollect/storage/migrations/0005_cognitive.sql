-- Insights (L2): what was condensed from messages of the log, named by their `seq`.
create table insights (
    namespace text not null,
    id bigint generated always as identity,
    content text not null,
    source_ids bigint[] not null,
    fidelity double precision not null,
    metadata jsonb not null,
    created_at timestamptz not null default now(),
    primary key (namespace, id)
);
create index insights_by_time on insights (namespace, created_at desc, id desc);

-- Working memory: a handful of items a namespace. Whoever changes them holds the namespace's row of working_state, so
-- that two writers never see the same free place.
create table working_state (
    namespace text not null primary key
);
create table working_items (
    namespace text not null,
    id bigint generated always as identity,
    content text not null,
    importance double precision not null,
    last_accessed timestamptz not null,
    created_at timestamptz not null,
    primary key (namespace, id)
);

-- What left working memory, kept for audit.
create table stale_items (
    namespace text not null,
    id bigint generated always as identity,
    original_content text not null,
    importance double precision not null,
    reason text not null,
    archived_at timestamptz not null default clock_timestamp(),
    primary key (namespace, id)
);
create index stale_items_by_time on stale_items (namespace, archived_at desc, id desc);

-- Episodes: what was tried, how well it went, and the lesson.
create table episodes (
    namespace text not null,
    id bigint generated always as identity,
    query text not null,
    reward double precision not null,
    reflection text not null,
    created_at timestamptz not null default now(),
    primary key (namespace, id)
);
create index episodes_by_time on episodes (namespace, created_at desc, id desc);

-- Insights and episodes are searched alone and are few beside messages: this finds their vectors without reading the
-- others, and messages, which make up nearly all writes, are not in it.
create index passage_vectors_by_kind on passage_vectors (namespace, kind) where kind <> 'message';

alter table insights enable row level security;
alter table insights force row level security;
create policy own_namespace on insights using (namespace = current_setting('recollect.namespace', true));

alter table working_state enable row level security;
alter table working_state force row level security;
create policy own_namespace on working_state using (namespace = current_setting('recollect.namespace', true));

alter table working_items enable row level security;
alter table working_items force row level security;
create policy own_namespace on working_items using (namespace = current_setting('recollect.namespace', true));

alter table stale_items enable row level security;
alter table stale_items force row level security;
create policy own_namespace on stale_items using (namespace = current_setting('recollect.namespace', true));

alter table episodes enable row level security;
alter table episodes force row level security;
create policy own_namespace on episodes using (namespace = current_setting('recollect.namespace', true));

-- Owners (or whole namespaces) with so many passages that an exact scan is slow: each has a partial HNSW index over
-- the passages up to its watermark; those above are scanned.
create table giants (
    namespace text not null,
    owner text not null,
    whole boolean not null,
    model text not null,
    watermark bigint not null,
    index_name text not null,
    built_at timestamptz not null default now(),
    primary key (namespace, owner, whole)
);
alter table giants enable row level security;
alter table giants force row level security;
create policy own_namespace on giants using (namespace = current_setting('recollect.namespace', true));

-- Work that takes longer than a request: what it is, how far it is, and what came of it. Any process can tell of it; the
-- one that does it says every few seconds that it still does.
create table jobs (
    namespace text not null,
    id uuid not null,
    kind text not null,
    about jsonb not null,
    author text,
    state text not null default 'running',
    done bigint not null default 0,
    total bigint not null default 0,
    started_at timestamptz not null default now(),
    told_at timestamptz not null default now(),
    ended_at timestamptz,
    report jsonb not null default '{}',
    primary key (namespace, id)
);

-- One of a kind at a time.
create unique index jobs_running on jobs (namespace, kind) where ended_at is null;

alter table jobs enable row level security;
alter table jobs force row level security;
create policy own_namespace on jobs using (namespace = current_setting('recollect.namespace', true));

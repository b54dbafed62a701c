-- How often a namespace was searched, by the hour: each process adds what it has counted. Writes need no count: the
-- numbers of changes tell how many there were.
create table activity (
    namespace text not null,
    hour timestamptz not null,
    -- By keyword and by meaning; by keyword alone; and those that failed.
    recalls bigint not null,
    degraded bigint not null,
    failed bigint not null,
    primary key (namespace, hour)
);

alter table activity enable row level security;
alter table activity force row level security;
create policy own_namespace on activity using (namespace = current_setting('recollect.namespace', true));

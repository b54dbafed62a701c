create table bookmarks (
    namespace text not null,
    id bigint generated always as identity,
    user_id text not null,
    address text not null,
    reason text not null,
    created_at timestamptz not null default now(),
    primary key (namespace, id)
);

alter table bookmarks enable row level security;
alter table bookmarks force row level security;
create policy own_namespace on bookmarks using (namespace = current_setting('recollect.namespace', true));

-- A realm is an app and a project of the gateway, in which a user's memories are kept apart; empty is the default of
-- both, to which whatever comes by another door belongs.
alter table sessions add column realm text not null default '';
alter table passages add column realm text not null default '';

-- Texts that a user of the gateway gave a URI. The id is a hash of user, realm and URI, which together may be too long
-- for a key.
create table resources (
    namespace text not null,
    id uuid not null,
    user_id text not null,
    realm text not null,
    uri text not null,
    title text,
    content text not null,
    metadata jsonb,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (namespace, id)
);

alter table resources enable row level security;
alter table resources force row level security;
create policy own_namespace on resources using (namespace = current_setting('recollect.namespace', true));

-- Programs that registered to be connected (OAuth clients). They are nobody's: the namespace is '*'.
create table oauth_clients (
    namespace text not null,
    id text not null,
    name text,
    redirect_uris text[] not null,
    secret_digest bytea,
    created_at timestamptz not null default now(),
    last_used_at timestamptz,
    primary key (namespace, id)
);
create index oauth_clients_unused on oauth_clients (namespace, created_at) where last_used_at is null;

alter table oauth_clients enable row level security;
alter table oauth_clients force row level security;
create policy own_namespace on oauth_clients using (namespace = current_setting('recollect.namespace', true));

-- Clients that somebody connected with a key, and what they were given: codes and tokens, of which only hashes are
-- stored. A token is looked up by its hash before any namespace is known, as keys are, so these have no policy either.
create table connections (
    namespace text not null,
    id text not null,
    key_id text not null,
    client_id text not null,
    client_name text,
    redirect_uri text not null,
    resource text not null,
    code_challenge text not null,
    role text not null,
    created_at timestamptz not null default now(),
    last_used_at timestamptz,
    primary key (namespace, id)
);

create table connection_tokens (
    namespace text not null,
    digest bytea not null,
    connection_id text not null,
    kind text not null,
    role text not null,
    expires_at timestamptz not null,
    used_at timestamptz,
    primary key (namespace, digest)
);
create index connection_tokens_by_digest on connection_tokens (digest);
create index connection_tokens_of on connection_tokens (namespace, connection_id);

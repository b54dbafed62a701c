-- Who may come in: keys of a namespace, and keys of users of the gateway, who have a user_id. Only a hash of a key is
-- stored. A key is looked up by its hash before any namespace is known, so this table, which holds no content, has no
-- policy.
create table api_keys (
    namespace text not null,
    id text not null,
    digest bytea not null,
    label text,
    user_id text,
    created_at timestamptz not null default now(),
    revoked_at timestamptz,
    primary key (namespace, id)
);
create index api_keys_by_digest on api_keys (digest);
create unique index api_keys_of_users on api_keys (namespace, user_id) where user_id is not null and revoked_at is null;

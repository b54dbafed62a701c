-- Which keys of other namespaces may read this one. It is looked up with the key, before any namespace is known, and
-- holds no content: like the keys, it has no policy.
create table key_grants (
    namespace text not null,
    key_namespace text not null,
    key_id text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    primary key (namespace, key_namespace, key_id)
);
create index key_grants_of_keys on key_grants (key_namespace, key_id);

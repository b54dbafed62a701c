-- add
-- Lets a key of another namespace read this one; granting it again replaces the expiry.
-- Role admin: only those who may do everything manage keys.
-- Audit grant key_id
insert into key_grants (namespace, key_namespace, key_id, expires_at)
values (:namespace, :key_namespace, :key_id, :expires_at)
on conflict (namespace, key_namespace, key_id) do update set expires_at = excluded.expires_at
returning namespace, key_namespace, key_id, created_at, expires_at;

-- remove
-- Takes back a grant.
-- Audit grant key_id
delete from key_grants
where namespace = :namespace and key_namespace = :key_namespace and key_id = :key_id
returning key_id;

-- readers
-- Keys of other namespaces that may read this one and still work.
-- Role admin: only those who manage keys see whose there are.
-- Audit grant key_id
select g.namespace, g.key_namespace, g.key_id, g.created_at, g.expires_at, k.label, k.last_used_at
from key_grants g
join api_keys k on k.namespace = g.key_namespace and k.id = g.key_id
where g.namespace = :namespace and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  and (g.expires_at is null or g.expires_at > now())
order by g.key_namespace, g.created_at, g.key_id
limit :limit;

-- held
-- The grants that keys of the namespace hold.
select namespace, key_namespace, key_id, created_at, expires_at
from key_grants
where key_namespace = :namespace and key_id = any(:key_ids::text[]) and (expires_at is null or expires_at > now())
order by key_id, namespace;

-- copy
-- Gives a key the grants of another key of the namespace.
-- Role admin: only those who may do everything manage keys.
insert into key_grants (namespace, key_namespace, key_id, expires_at)
select namespace, key_namespace, :copy_id, expires_at
from key_grants
where key_namespace = :namespace and key_id = :key_id
returning namespace;

-- remove_held
-- The grants that keys of the namespace hold, when the namespace is erased.
delete from key_grants where key_namespace = :namespace;

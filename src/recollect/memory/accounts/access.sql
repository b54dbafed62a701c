-- add
-- A key, by the hash of its secret; a user who has one keeps it.
insert into api_keys (namespace, id, digest, label, user_id)
values (:namespace, :key_id, :digest, :label, :user_id)
on conflict (namespace, user_id) where user_id is not null and revoked_at is null do nothing
returning id, label, user_id, created_at, revoked_at;

-- of_namespace
-- The keys of a namespace, revoked ones too, oldest first.
select id, label, user_id, created_at, revoked_at
from api_keys
where namespace = :namespace
order by created_at, id;

-- revoke
-- Makes a key useless from now on.
update api_keys set revoked_at = now()
where namespace = :namespace and id = :key_id and revoked_at is null returning id;

-- guards
-- Whether a namespace has a key that opens it.
select exists (
    select from api_keys where namespace = :namespace and user_id is null and revoked_at is null
) as guarded;

-- find
-- The key that hashes to this, in whatever namespace.
select namespace, id, user_id, label from api_keys where digest = :digest and revoked_at is null;

-- any_guards
-- Whether any namespace has a key.
select exists (select from api_keys where user_id is null and revoked_at is null) as guarded;

-- elsewhere
-- Other namespaces that have keys in use, and how many; for operators.
select namespace, count(*) as keys
from api_keys
where namespace <> :namespace and revoked_at is null
group by namespace
order by namespace
limit :limit;

-- count_of_user
-- How many keys a user has, revoked ones too.
select count(*) as keys from api_keys where namespace = :namespace and user_id = :user_id;

-- remove_of_user
-- A user's keys, revoked ones too.
delete from api_keys where namespace = :namespace and user_id = :user_id returning id;

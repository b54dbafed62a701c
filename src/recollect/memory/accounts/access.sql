-- add
-- A key, by the hash of its secret; no row if its id is taken, or if a user has one already.
-- Role admin: only those who may do everything manage keys.
-- Audit key id
insert into api_keys (
    namespace, id, digest, label, user_id, role, expires_at, lifetime, only_user, only_agent, requests_per_minute,
    rows_per_day, bytes_per_day
)
values (
    :namespace, :key_id, :digest, :label, :user_id, :role, :expires_at, :expires_at - now(), :only_user, :only_agent,
    :requests_per_minute, :rows_per_day, :bytes_per_day
)
on conflict do nothing
returning id, label, user_id, created_at, revoked_at, role, expires_at, last_used_at, only_user, only_agent,
          requests_per_minute, rows_per_day, bytes_per_day;

-- of_namespace
-- The keys of a namespace, revoked ones too, oldest first.
-- Role admin: only those who manage keys see whose there are.
-- Audit key id
select id, label, user_id, created_at, revoked_at, role, expires_at, last_used_at, only_user, only_agent,
       requests_per_minute, rows_per_day, bytes_per_day
from api_keys
where namespace = :namespace and browser_of is null
order by created_at, id;

-- applications
-- Keys of applications, those that are not revoked first, then the newest.
-- Role admin: only those who manage keys see whose there are.
-- Audit key id
select id, label, user_id, created_at, revoked_at, role, expires_at, last_used_at, only_user, only_agent,
       requests_per_minute, rows_per_day, bytes_per_day
from api_keys
where namespace = :namespace and user_id is null and browser_of is null
order by revoked_at is null desc, created_at desc, id
limit :limit offset :skip;

-- users
-- The last key of each user of the gateway whose id begins with a text, behind one of them.
-- Role admin: only those who manage keys see whose there are.
-- Audit key id
select distinct on (user_id) id, label, user_id, created_at, revoked_at, role, expires_at, last_used_at, only_user, only_agent,
       requests_per_minute, rows_per_day, bytes_per_day
from api_keys
where namespace = :namespace and user_id > :after::text and starts_with(user_id, :prefix::text)
order by user_id, revoked_at is null desc, created_at desc
limit :limit;

-- exists
-- Whether a key ever had this id.
select exists (select from api_keys where namespace = :namespace and id = :key_id) as found;

-- lock
-- A key that works and is no user's; nobody else changes it until the transaction ends. It expires when it was made to,
-- although rotation may have ended it sooner.
select id, label, user_id, created_at, revoked_at, role, created_at + lifetime as expires_at, last_used_at, only_user,
       only_agent, requests_per_minute, rows_per_day, bytes_per_day
from api_keys
where namespace = :namespace and id = :key_id and user_id is null and browser_of is null and revoked_at is null
  and (expires_at is null or expires_at > now())
for update;

-- working
-- A key that works, also a user's.
select id, label, user_id, created_at, revoked_at, role, expires_at, last_used_at, only_user, only_agent,
       requests_per_minute, rows_per_day, bytes_per_day
from api_keys
where namespace = :namespace and id = :key_id and browser_of is null and revoked_at is null
  and (expires_at is null or expires_at > now());

-- end_in
-- Lets a key work for so many seconds more, and not longer than it would have.
-- Role admin: only those who may do everything manage keys.
-- Audit key key_id
update api_keys set expires_at = least(expires_at, now() + make_interval(secs => :seconds))
where namespace = :namespace and id = :key_id;

-- note_use
-- That a key has just been used, about once a minute.
update api_keys set last_used_at = now()
where namespace = :namespace and id = :key_id
  and (last_used_at is null or last_used_at < now() - make_interval(secs => :seconds));

-- set_quota
-- Another quota of its own for a key.
-- Audit key id
-- Role admin: as above.
update api_keys
set requests_per_minute = :requests_per_minute, rows_per_day = :rows_per_day, bytes_per_day = :bytes_per_day
where namespace = :namespace and id = :key_id
returning id, label, user_id, created_at, revoked_at, role, expires_at, last_used_at, only_user, only_agent,
          requests_per_minute, rows_per_day, bytes_per_day;

-- revoke
-- Makes a key useless from now on, and signs out whoever signed in with it.
-- Role admin: as above.
-- Audit key id
update api_keys set revoked_at = now()
where namespace = :namespace and (id = :key_id or browser_of = :key_id) and revoked_at is null
returning :key_id::text as id;

-- add_browser
-- Somebody who signed in with a key, by the hash of what the cookie holds.
insert into api_keys (namespace, id, digest, label, browser_of, browser_until)
values (:namespace, :browser_id, :digest, :label, :key_id, now() + make_interval(secs => :seconds));

-- remove_browsers
-- One browser that signs out, if one is named, and those whose time is over.
delete from api_keys
where namespace = :namespace and browser_of is not null and (digest = :digest::bytea or browser_until < now());

-- find_browser
-- Whom a browser's cookie stands for, in whatever namespace.
select k.namespace, k.id as key_id, k.user_id, k.label, k.role, k.last_used_at, k.only_user, k.only_agent,
       k.requests_per_minute, k.rows_per_day, k.bytes_per_day,
       array(
           select g.namespace from key_grants g
           where g.key_namespace = k.namespace and g.key_id = k.id and (g.expires_at is null or g.expires_at > now())
       ) as granted
from api_keys b
join api_keys k on k.namespace = b.namespace and k.id = b.browser_of
where b.digest = :digest and b.browser_until > now() and b.revoked_at is null
  and k.revoked_at is null and (k.expires_at is null or k.expires_at > now());

-- guards
-- Whether a namespace has a key that opens it, or did until it expired: only revoking the last one opens a namespace.
select exists (
    select from api_keys
    where namespace = :namespace and user_id is null and browser_of is null and revoked_at is null
) as guarded;

-- find
-- The key that hashes to this, in whatever namespace.
select k.namespace, k.id as key_id, k.user_id, k.label, k.role, k.last_used_at, k.only_user, k.only_agent,
       k.requests_per_minute, k.rows_per_day, k.bytes_per_day,
       array(
           select g.namespace from key_grants g
           where g.key_namespace = k.namespace and g.key_id = k.id and (g.expires_at is null or g.expires_at > now())
       ) as granted
from api_keys k
where digest = :digest and browser_of is null and revoked_at is null and (expires_at is null or expires_at > now());

-- any_guards
-- Whether any namespace has a key.
select exists (select from api_keys where user_id is null and browser_of is null and revoked_at is null) as guarded;

-- elsewhere
-- Other namespaces that have keys in use, and how many; for operators.
select namespace, count(*) as keys
from api_keys
where namespace <> :namespace and browser_of is null and revoked_at is null
  and (expires_at is null or expires_at > now())
group by namespace
order by namespace
limit :limit;

-- count_of_user
-- How many keys a user has, revoked ones too, and those made when a proxy had signed the user in.
select count(*) as keys from api_keys
where namespace = :namespace
  and (user_id = :user_id or (only_user = :user_id and label = 'signed in: ' || :user_id::text));

-- remove_of_user
-- The same keys.
-- Audit key id
delete from api_keys
where namespace = :namespace
  and (user_id = :user_id or (only_user = :user_id and label = 'signed in: ' || :user_id::text))
returning id;

-- of_person
-- The key that was made for somebody whom a proxy signed in, if it works.
select digest from api_keys
where namespace = :namespace and only_user = :person and label = 'signed in: ' || :person::text
  and role = 'write' and only_agent is null
  and user_id is null and browser_of is null and revoked_at is null and (expires_at is null or expires_at > now())
order by created_at
limit 1;

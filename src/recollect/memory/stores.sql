-- add
-- One store, unless one that is not archived has its slot.
insert into memory_stores (namespace, id, name, description, metadata, user_id, slot)
values (:namespace, :id, :name, :description, :metadata::text::jsonb, :user_id, :slot)
on conflict do nothing
returning id, name, description, metadata, user_id, created_at, updated_at, archived_at;

-- find
-- One store.
-- Audit store id
select id, name, description, metadata, user_id, created_at, updated_at, archived_at
from memory_stores
where namespace = :namespace and id = :id;

-- lock
-- The same, locked until the transaction ends: whoever changes anything in a store waits here.
select id, name, description, metadata, user_id, created_at, updated_at, archived_at
from memory_stores
where namespace = :namespace and id = :id
for update;

-- hold
-- Some stores, locked in id order.
select id from memory_stores where namespace = :namespace and id = any(:ids::uuid[]) order by id for update;

-- first_of_name
-- The oldest store of a name and a user, or of nobody, that is not archived.
-- Audit store id
select id, name, description, metadata, user_id, created_at, updated_at, archived_at
from memory_stores
where namespace = :namespace and name = :name and user_id is not distinct from :user_id::text and archived_at is null
order by created_at, id
limit 1;

-- change
-- What a store is called and said to hold; under another name it has no slot.
update memory_stores
set slot = case when name = :name then slot end, name = :name, description = :description,
    metadata = :metadata::text::jsonb, updated_at = now()
where namespace = :namespace and id = :id
returning id, name, description, metadata, user_id, created_at, updated_at, archived_at;

-- archive
-- A store that takes no more writes.
update memory_stores
set archived_at = now(), updated_at = now()
where namespace = :namespace and id = :id and archived_at is null
returning id, name, description, metadata, user_id, created_at, updated_at, archived_at;

-- newest
-- Stores from behind a place in the list, newest first.
-- Audit store id
select id, name, description, metadata, user_id, created_at, updated_at, archived_at
from memory_stores
where namespace = :namespace
  and (:with_archived::boolean or archived_at is null)
  and (:name::text is null or name = :name)
  and (:user_id::text is null or user_id = :user_id)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and (:behind_time::timestamptz is null or (created_at, id) < (:behind_time, :behind_id::uuid))
order by created_at desc, id desc
limit :limit;

-- of_user
-- The stores of a user behind an id, in id order.
select id from memory_stores
where namespace = :namespace and user_id = :user_id and id > :behind
order by id
limit :limit;

-- remove
-- Some stores.
delete from memory_stores where namespace = :namespace and id = any(:ids::uuid[]) returning id;

-- page_memory_stores
-- Stores.
-- Audit store id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from memory_stores r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_memory_stores
-- Adds stores that are not there.
insert into memory_stores overriding system value
select * from jsonb_populate_recordset(null::memory_stores, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_memory_stores
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::memory_stores, :records::text::jsonb) as given
left join memory_stores stored on stored.namespace = :namespace and stored.id = given.id;

-- size_memory_stores
-- Rows up to a bound, along an index, to be counted.
select 1 as row from memory_stores where namespace = :namespace order by id limit :limit;

-- shown_memory_stores
-- Some stores as the feed shows them.
-- Audit store item_id
select id::text as item_id,
       jsonb_build_object('text', left(name, :most::integer), 'user_id', user_id, 'archived', archived_at is not null)
           as content, created_at as at
from memory_stores
where namespace = :namespace and id = any(:ids::text[]::uuid[]);

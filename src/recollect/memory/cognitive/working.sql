-- open
-- The row that writers of a namespace hold.
insert into working_state (namespace) values (:namespace) on conflict (namespace) do nothing;

-- lock
-- One writer at a time: the next one waits here until this transaction ends.
select namespace from working_state where namespace = :namespace for update;

-- places
-- What is in working memory, which of it says the same, and what time it is now that this writer has its turn.
select id, importance, last_accessed, content = :content as same, clock_timestamp() as now
from working_items
where namespace = :namespace;

-- add
-- One item, accessed just now. The clock of the statement, not of the transaction: that one may have begun long before
-- its turn came.
insert into working_items (namespace, content, importance, last_accessed, created_at)
select :namespace, :content, :importance::float8, moment, moment from clock_timestamp() as moment
returning id;

-- refresh
-- An item that was stored again.
update working_items set importance = :importance, last_accessed = :at
where namespace = :namespace and id = :id;

-- take
-- An item out of working memory.
-- Role write: it goes to the archive.
delete from working_items where namespace = :namespace and id = :item_id returning id, content, importance, last_accessed, created_at;

-- archive
-- What was taken out, and why.
insert into stale_items (namespace, original_content, importance, reason, item_id, created_at, last_accessed)
values (:namespace, :content, :importance, :reason, :item_id, :created_at, :last_accessed)
returning id;

-- items
-- What is in working memory, the last accessed first.
-- Audit working id
select id, content, importance, last_accessed, created_at
from working_items
where namespace = :namespace
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'working' and held.item_id = working_items.id::text
        and held.state = 'held'
  )
order by last_accessed desc, id desc;

-- items_then
-- What was in working memory at a moment: what still is, and what left it later. Of what was accessed again since, only
-- the first access is known.
-- Audit working id
select items.id, items.content, items.importance,
       case when items.last_accessed <= :as_of::timestamptz then items.last_accessed else items.created_at end
           as last_accessed,
       items.created_at
from (
    select present.id, present.content, present.importance, present.last_accessed, present.created_at
    from working_items present
    where present.namespace = :namespace
    union all
    select left_since.item_id, left_since.original_content, left_since.importance, left_since.last_accessed,
           left_since.created_at
    from stale_items left_since
    where left_since.namespace = :namespace and left_since.archived_at > :as_of
) as items
where items.created_at <= :as_of
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'working' and held.item_id = items.id::text
        and held.state = 'held'
  )
order by last_accessed desc, items.id desc;

-- stale
-- What left working memory in some time, the last archived first.
-- Audit stale id
select id, original_content, importance, reason, archived_at
from stale_items
where namespace = :namespace
  and archived_at >= :since
  and (:until::timestamptz is null or archived_at <= :until)
  and (:reason::text is null or reason = :reason)
  and (:importance_min::float8 is null or importance >= :importance_min)
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'working' and held.item_id = stale_items.item_id::text
        and held.state = 'held'
  )
order by archived_at desc, id desc
limit :limit;

-- remove_stale
-- An item of the archive.
delete from stale_items where namespace = :namespace and id = :item_id returning id;

-- page_working_items
-- What is in working memory, which has no owner, as all that follows but resources.
-- Audit working id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from working_items r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_working_items
-- Adds items of working memory that are not there.
insert into working_items overriding system value
select * from jsonb_populate_recordset(null::working_items, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_working_items
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::working_items, :records::text::jsonb) as given
left join working_items stored on stored.namespace = :namespace and stored.id = given.id;

-- size_working_items
-- Rows up to a bound, along an index, to be counted.
select 1 as row from working_items where namespace = :namespace order by id limit :limit;

-- page_stale_items
-- What left working memory.
-- Audit stale id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from stale_items r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_stale_items
-- Adds items that left working memory that are not there.
insert into stale_items overriding system value
select * from jsonb_populate_recordset(null::stale_items, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_stale_items
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::stale_items, :records::text::jsonb) as given
left join stale_items stored on stored.namespace = :namespace and stored.id = given.id;

-- shown_working_items
-- Some items of working memory as the feed shows them.
-- Audit working item_id
select id::text as item_id,
       jsonb_build_object('text', left(content, :most::integer), 'importance', importance) as content, created_at as at
from working_items
where namespace = :namespace and id = any(:ids::text[]::bigint[]);

-- shown_stale_items
-- Some items that left working memory.
-- Audit stale item_id
select id::text as item_id,
       jsonb_build_object('text', left(original_content, :most::integer), 'importance', importance) as content,
       archived_at as at
from stale_items
where namespace = :namespace and id = any(:ids::text[]::bigint[]);

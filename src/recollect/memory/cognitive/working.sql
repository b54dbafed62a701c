-- open
-- The row that writers of a namespace hold.
insert into working_state (namespace) values (:namespace) on conflict (namespace) do nothing;

-- lock
-- One writer at a time: whoever comes next waits here until this transaction ends.
select namespace from working_state where namespace = :namespace for update;

-- places
-- What is in working memory now, and which of it says the same.
select id, importance, last_accessed, content = :content as same from working_items where namespace = :namespace;

-- add
-- One item, accessed just now. The clock of the statement, not of the transaction: that one may have begun long before
-- its turn came.
insert into working_items (namespace, content, importance, last_accessed, created_at)
select :namespace, :content, :importance::float8, moment, moment from clock_timestamp() as moment
returning id;

-- refresh
-- An item that was stored again.
update working_items set importance = :importance, last_accessed = clock_timestamp()
where namespace = :namespace and id = :id;

-- take
-- An item out of working memory.
delete from working_items where namespace = :namespace and id = :item_id returning content, importance;

-- archive
-- What was taken out, and why.
insert into stale_items (namespace, original_content, importance, reason)
values (:namespace, :content, :importance, :reason)
returning id;

-- items
-- What is in working memory, the last accessed first.
select id, content, importance, last_accessed, created_at
from working_items
where namespace = :namespace
order by last_accessed desc, id desc;

-- stale
-- What left working memory since some time, the last archived first.
select id, original_content, importance, reason, archived_at
from stale_items
where namespace = :namespace
  and archived_at >= :since
  and (:reason::text is null or reason = :reason)
  and (:importance_min::float8 is null or importance >= :importance_min)
order by archived_at desc, id desc
limit :limit;

-- remove_stale
-- An item of the archive.
delete from stale_items where namespace = :namespace and id = :item_id returning id;

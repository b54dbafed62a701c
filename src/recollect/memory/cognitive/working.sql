-- open
-- The row that writers of a namespace hold.
insert into working_state (namespace) values ($1) on conflict (namespace) do nothing;

-- hold
-- One writer at a time: whoever comes next waits here until this transaction ends.
select namespace from working_state where namespace = $1 for update;

-- places
-- What is in working memory now, and which of it says the same.
select id, importance, last_accessed, content = $2 as same from working_items where namespace = $1;

-- add
-- One item, accessed just now. The clock of the statement, not of the transaction: that one may have begun long before
-- its turn came.
insert into working_items (namespace, content, importance, last_accessed, created_at)
select $1, $2, $3::float8, moment, moment from clock_timestamp() as moment
returning id;

-- refresh
-- An item that was stored again.
update working_items set importance = $3, last_accessed = clock_timestamp() where namespace = $1 and id = $2;

-- take
-- An item out of working memory.
delete from working_items where namespace = $1 and id = $2 returning content, importance;

-- archive
-- What was taken out, and why.
insert into stale_items (namespace, original_content, importance, reason)
values ($1, $2, $3, $4)
returning id;

-- items
-- What is in working memory, the last accessed first.
select id, content, importance, last_accessed, created_at
from working_items
where namespace = $1
order by last_accessed desc, id desc;

-- stale
-- What left working memory since some time, the last archived first.
select id, original_content, importance, reason, archived_at
from stale_items
where namespace = $1
  and archived_at >= $2
  and ($3::text is null or reason = $3)
  and ($4::float8 is null or importance >= $4)
order by archived_at desc, id desc
limit $5;

-- remove_stale
-- An item of the archive.
delete from stale_items where namespace = $1 and id = $2 returning id;

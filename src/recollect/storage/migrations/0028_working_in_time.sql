-- What an item of the archive was in working memory. Of what left it before this, that is not known.
alter table stale_items add column item_id bigint;
alter table stale_items add column created_at timestamptz;
alter table stale_items add column last_accessed timestamptz;

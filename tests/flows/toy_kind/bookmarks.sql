-- add
-- One bookmark.
insert into bookmarks (namespace, user_id, address, reason)
values (:namespace, :user_id, :address, :reason)
returning id, created_at;

-- of_user
-- The bookmarks of a user behind an id, in id order.
select id from bookmarks where namespace = :namespace and user_id = :user_id and id > :behind order by id limit :limit;

-- remove
-- Some bookmarks.
delete from bookmarks where namespace = :namespace and id = any(:ids::bigint[]) returning id;

-- page_bookmarks
-- Bookmarks.
select (to_jsonb(r) - 'namespace')::text as record, r.id
from bookmarks r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_bookmarks
-- Adds bookmarks that are not there; says of the others whether they are the same.
with given as (select * from jsonb_populate_recordset(null::bookmarks, :records::text::jsonb)),
added as (insert into bookmarks overriding system value select * from given on conflict do nothing returning id)
select given.id, added.id is not null as added, to_jsonb(stored) = to_jsonb(given) as same
from given
left join added on added.id = given.id
left join bookmarks stored on stored.namespace = :namespace and stored.id = given.id;

-- size_bookmarks
-- Rows up to a bound, along an index, to be counted.
select from bookmarks where namespace = :namespace order by id limit :limit;

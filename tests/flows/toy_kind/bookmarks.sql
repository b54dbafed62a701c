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
-- Adds bookmarks that are not there.
insert into bookmarks overriding system value
select * from jsonb_populate_recordset(null::bookmarks, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_bookmarks
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::bookmarks, :records::text::jsonb) as given
left join bookmarks stored on stored.namespace = :namespace and stored.id = given.id;

-- size_bookmarks
-- Rows up to a bound, along an index, to be counted.
select 1 as row from bookmarks where namespace = :namespace order by id limit :limit;

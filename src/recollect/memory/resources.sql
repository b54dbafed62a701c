-- put
-- A resource; one of the same id gets the new text. Its row stays locked, so that two writers take turns.
insert into resources (namespace, id, user_id, realm, uri, title, content, metadata)
values (:namespace, :resource_id, :user_id, :realm, :uri, :title, :content, :metadata::text::jsonb)
on conflict (namespace, id) do update
set title = excluded.title, content = excluded.content, metadata = excluded.metadata, updated_at = excluded.updated_at
returning id, uri, title, metadata, created_at, updated_at;

-- find
-- Some resources without their texts.
-- Audit resource id
select id, uri, title, metadata, created_at, updated_at
from resources
where namespace = :namespace and id = any(:ids::uuid[]);

-- of_user
-- The resources of a user behind an id, in id order.
select id from resources where namespace = :namespace and user_id = :user_id and id > :behind order by id limit :limit;

-- remove
-- Some resources.
delete from resources where namespace = :namespace and id = any(:ids::uuid[]) returning id;

-- page_resources
-- Resources.
-- Audit resource id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from resources r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_resources
-- Adds resources that are not there.
insert into resources overriding system value
select * from jsonb_populate_recordset(null::resources, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- replace_resources
-- Gives resources another text.
-- Audit resource id
insert into resources overriding system value
select * from jsonb_populate_recordset(null::resources, :records::text::jsonb) as given
where given.namespace = :namespace
order by given.id
on conflict (namespace, id) do update
set title = excluded.title, content = excluded.content, metadata = excluded.metadata,
    created_at = excluded.created_at, updated_at = excluded.updated_at
returning id;

-- compare_resources
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::resources, :records::text::jsonb) as given
left join resources stored on stored.namespace = :namespace and stored.id = given.id;

-- size_resources
-- Rows up to a bound, along an index, to be counted.
select 1 as row from resources where namespace = :namespace order by id limit :limit;

-- shown_resources
-- Some resources as the feed shows them.
-- Audit resource item_id
select id::text as item_id,
       jsonb_build_object(
           'text', left(content, :most::integer), 'user_id', user_id, 'uri', uri, 'title', left(title, :most)
       ) as content, created_at as at
from resources
where namespace = :namespace and id = any(:ids::text[]::uuid[]);

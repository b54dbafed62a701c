-- put
-- A resource; one of the same id gets the new text. Its row stays locked, so that two writers take turns.
insert into resources (namespace, id, user_id, realm, uri, title, content, metadata)
values (:namespace, :resource_id, :user_id, :realm, :uri, :title, :content, :metadata::text::jsonb)
on conflict (namespace, id) do update
set title = excluded.title, content = excluded.content, metadata = excluded.metadata, updated_at = excluded.updated_at
returning id, uri, title, metadata, created_at, updated_at;

-- find
-- Some resources without their texts.
select id, uri, title, metadata, created_at, updated_at
from resources
where namespace = :namespace and id = any(:ids::uuid[]);

-- of_user
-- The resources of a user behind an id, in id order.
select id from resources where namespace = :namespace and user_id = :user_id and id > :behind order by id limit :limit;

-- remove
-- Some resources.
delete from resources where namespace = :namespace and id = any(:ids::uuid[]) returning id;

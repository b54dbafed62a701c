-- put
-- A resource; one of the same id gets the new text. Its row stays locked, so that two writers take turns.
insert into resources (namespace, id, user_id, realm, uri, title, content, metadata)
values ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb)
on conflict (namespace, id) do update
set title = excluded.title, content = excluded.content, metadata = excluded.metadata, updated_at = excluded.updated_at
returning id, uri, title, metadata, created_at, updated_at;

-- find
-- Some resources without their texts.
select id, uri, title, metadata, created_at, updated_at
from resources
where namespace = $1 and id = any($2::uuid[]);

-- of_user
-- The resources of a user behind an id, in id order.
select id from resources where namespace = $1 and user_id = $2 and id > $3 order by id limit $4;

-- remove
-- Some resources.
delete from resources where namespace = $1 and id = any($2::uuid[]) returning id;

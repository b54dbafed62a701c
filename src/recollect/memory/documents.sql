-- add
-- A document, with the caller's embedding if there is one.
insert into documents (namespace, id, content, embedding, metadata)
values ($1, $2, $3, $4::text::vector, $5::text::jsonb)
returning id, created_at;

-- add_once
-- A document under an id that follows from its text; none if it is there.
insert into documents (namespace, id, content, metadata)
values ($1, $2, $3, $4::text::jsonb)
on conflict (namespace, id) do nothing
returning id, created_at;

-- same
-- The oldest document with this very text; the index is on the hash.
select id, metadata
from documents
where namespace = $1 and hashtextextended(content, 0) = hashtextextended($2, 0) and content = $2
order by created_at, id
limit 1
for update;

-- set_metadata
-- Other metadata for one document.
update documents set metadata = $3::text::jsonb, updated_at = now() where namespace = $1 and id = $2;

-- nearest
-- Documents by cosine distance in the caller's space; a zero vector has no direction and comes last.
select documents.id, content, embedding::text, metadata, created_at, updated_at
from (
    -- Chosen first, so that only the vectors that are returned are written out as text.
    select id, embedding <=> $2::text::vector as distance
    from documents
    where namespace = $1 and embedding is not null and ($4::text is null or metadata @> $4::text::jsonb)
    order by distance, id
    limit $3
) as nearest
join documents on documents.namespace = $1 and documents.id = nearest.id
order by nearest.distance, nearest.id;

-- between
-- Documents of a range of time, newest first.
select id, content, embedding::text, metadata, created_at, updated_at
from documents
where namespace = $1 and created_at between $2 and $3 and ($4::text is null or metadata @> $4::text::jsonb)
order by created_at desc, id desc;

-- remove
-- One document.
delete from documents where namespace = $1 and id = $2 returning id;

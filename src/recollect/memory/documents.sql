-- add
-- Documents whose ids are not taken, with their callers' embeddings if there are any. In id order, so that two writers
-- never deadlock.
insert into documents (namespace, id, content, embedding, metadata, created_at, updated_at)
select :namespace, d.id, d.content, d.embedding::vector, d.metadata::jsonb, coalesce(d.at, now()), coalesce(d.at, now())
from unnest(
    :ids::uuid[], :contents::text[], :embeddings::text[], :metadatas::text[], :times::timestamptz[]
) as d (id, content, embedding, metadata, at)
order by d.id
on conflict (namespace, id) do nothing
returning id, created_at;

-- contents
-- The texts of some documents.
select id, content from documents where namespace = :namespace and id = any(:ids::uuid[]);

-- add_once
-- A document under an id that follows from its text; none if it is there.
insert into documents (namespace, id, content, metadata, created_at, updated_at)
values (
    :namespace, :id, :content, :metadata::text::jsonb, coalesce(:at::timestamptz, now()),
    coalesce(:at::timestamptz, now())
)
on conflict (namespace, id) do nothing
returning id, created_at;

-- same
-- The oldest document with this very text; the index is on the hash.
select id, metadata, created_at
from documents
where namespace = :namespace and hashtextextended(content, 0) = hashtextextended(:content, 0) and content = :content
order by created_at, id
limit 1
for update;

-- set_metadata
-- Other metadata for one document.
update documents set metadata = :metadata::text::jsonb, updated_at = now()
where namespace = :namespace and id = :document_id;

-- nearest
-- Documents by cosine distance in the caller's space; a zero vector has no direction and comes last.
-- Audit document id
select documents.id, content, embedding::text, metadata, created_at, updated_at
from (
    -- Chosen first, so that only the vectors that are returned are written out as text.
    select id, embedding <=> :query_embedding::text::vector as distance
    from documents
    where namespace = :namespace and embedding is not null
      and (:metadata_filter::text is null or metadata @> :metadata_filter::text::jsonb)
      and not exists (
          select from held
          where held.namespace = :namespace and held.kind = 'document' and held.item_id = documents.id::text
            and held.state = 'held'
      )
    order by distance, id
    limit :limit
) as nearest
join documents on documents.namespace = :namespace and documents.id = nearest.id
order by nearest.distance, nearest.id;

-- between
-- Documents of a range of time, newest first.
-- Audit document id
select id, content, embedding::text, metadata, created_at, updated_at
from documents
where namespace = :namespace and created_at between :start and :end
  and (:metadata_filter::text is null or metadata @> :metadata_filter::text::jsonb)
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'document' and held.item_id = documents.id::text
        and held.state = 'held'
  )
order by created_at desc, id desc;

-- remove
-- One document.
delete from documents where namespace = :namespace and id = :document_id returning id;

-- page_documents
-- Documents, which have no owner. A vector is shown as a list of numbers.
-- Audit document id
select (to_jsonb(r) - 'namespace' || jsonb_build_object('embedding', r.embedding::text::jsonb))::text as record, r.id
from documents r
where r.namespace = :namespace and :user_id::text is null and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_documents
-- Adds documents that are not there.
insert into documents overriding system value
select * from jsonb_populate_recordset(null::documents, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- replace_documents
-- Gives documents another text; a vector of the old one goes.
-- Audit document id
insert into documents overriding system value
select * from jsonb_populate_recordset(null::documents, :records::text::jsonb) as given
where given.namespace = :namespace
order by given.id
on conflict (namespace, id) do update
set content = excluded.content, embedding = excluded.embedding, metadata = excluded.metadata,
    created_at = excluded.created_at, updated_at = excluded.updated_at
returning id;

-- compare_documents
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::documents, :records::text::jsonb) as given
left join documents stored on stored.namespace = :namespace and stored.id = given.id;

-- size_documents
-- Rows up to a bound, along an index, to be counted.
select 1 as row from documents where namespace = :namespace order by created_at desc limit :limit;

-- shown_documents
-- Some documents as the feed shows them.
-- Audit document item_id
select id::text as item_id, jsonb_build_object('text', left(content, :most::integer)) as content, created_at as at
from documents
where namespace = :namespace and id = any(:ids::text[]::uuid[]);

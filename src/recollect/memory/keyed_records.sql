-- hold
-- Locks records that are to live on, in the order in which writers lock them.
select id from records where namespace = :namespace and id = any(:ids::uuid[]) order by id for update;

-- put
-- Records, each in place of an earlier one of its id; one whose time was over is new. They are locked in one order, so
-- that two writers never wait for each other. Read as JSON and not as JSONB, which would change the values.
insert into records (
    namespace, id, user_id, path, key, value, texts, vectors, ttl_minutes, expires_at, created_at, updated_at
)
select :namespace, given.id, given.user_id, given.path, given.key, given.value, given.texts, given.vectors,
       given.ttl_minutes, now() + given.ttl_minutes * interval '1 minute', now(), now()
from json_populate_recordset(null::records, :records::text::json) as given
where given.namespace = :namespace
order by given.id
on conflict (namespace, id) do update
set value = excluded.value, texts = excluded.texts, vectors = excluded.vectors, ttl_minutes = excluded.ttl_minutes,
    expires_at = excluded.expires_at, updated_at = excluded.updated_at,
    created_at = case when records.expires_at <= excluded.updated_at then excluded.created_at else records.created_at end
returning id, user_id, path, key, value, created_at, updated_at, expires_at, ttl_minutes;

-- shortened
-- Those of some records that would be over sooner with another time to live, locked in the order in which writers lock.
select records.id
from records
join unnest(:ids::uuid[], :minutes::float8[]) as given (id, minutes) on given.id = records.id
where records.namespace = :namespace and records.id = any(:ids) and coalesce(records.expires_at > now(), true)
  and coalesce(records.expires_at > now() + given.minutes * interval '1 minute', true)
order by records.id
for update of records;

-- remove
-- Some records.
delete from records where namespace = :namespace and id = any(:ids::uuid[]) returning id;

-- find
-- Those of some records that are there.
-- Audit record id
select id, user_id, path, key, value, created_at, updated_at, expires_at, ttl_minutes
from records
where namespace = :namespace and id = any(:ids::uuid[]) and coalesce(expires_at > now(), true);

-- search
-- Records of one owner under a path that pass some filters. With a question, by how well the best of their passages
-- answers it: the cosine counts, and the share of the question's words takes away half of what is missing to 1. With a
-- vector of the caller's, by the nearest of their own vectors of the same size. What cannot be compared comes last and
-- has no score; among equals the last changed comes first.
-- Audit record id
with matching as materialized (
    select records.id, records.updated_at, records.vectors
    from records
    where records.namespace = :namespace and records.user_id = :user_id and coalesce(records.expires_at > now(), true)
      and not exists (
          select from held
          where held.namespace = :namespace and held.kind = 'record' and held.item_id = records.id::text
            and held.state = 'held'
      )
      and (:first::text[] is null or (records.path >= :first and records.path < :behind::text[]))
      and (:filters::text = '[]' or not exists (
          select 1
          from jsonb_array_elements(:filters::text::jsonb) as asked
          cross join lateral (select records.value::jsonb -> (asked ->> 0) as stored, asked -> 2 as wanted) as each
          where not coalesce(
              case asked ->> 1
                  when '$eq' then each.stored = each.wanted
                  when '$ne' then coalesce(each.stored <> each.wanted, true)
                  when '$gt' then jsonb_typeof(each.stored) = jsonb_typeof(each.wanted) and each.stored > each.wanted
                  when '$gte' then jsonb_typeof(each.stored) = jsonb_typeof(each.wanted) and each.stored >= each.wanted
                  when '$lt' then jsonb_typeof(each.stored) = jsonb_typeof(each.wanted) and each.stored < each.wanted
                  when '$lte' then jsonb_typeof(each.stored) = jsonb_typeof(each.wanted) and each.stored <= each.wanted
              end,
              false
          )
      ))
)
select records.id, records.user_id, records.path, records.key, records.value, records.created_at, records.updated_at,
       records.expires_at, records.ttl_minutes, best.score
from (
    select matching.id, matching.updated_at, coalesce(answering.score, near.score) as score
    from matching
    -- One by one, along indexes: the planner knows too little of how many there are to join them well.
    cross join lateral (
        select max(
            1 - (1 - least(greatest(coalesce(1 - (vectors.embedding <=> :meaning::text::halfvec), 0), 0), 1))
                * (1 - 0.5 * least(- (words.weights <#> :words::text::sparsevec) / :bound::float8, 1))
        ) as score
        from passages
        join passage_words words on words.namespace = :namespace and words.id = passages.id
        left join passage_vectors vectors
            on vectors.namespace = :namespace and vectors.id = passages.id and vectors.model = :model
        where passages.namespace = :namespace and passages.kind = 'record' and passages.item_id = matching.id::text
          and :words::text is not null
    ) as answering
    cross join lateral (
        select max(case :distance::text
            when 'l2' then - (own.vector <-> :vector::text::vector)
            when 'inner_product' then - (own.vector <#> :vector::text::vector)
            else coalesce(nullif(1 - (own.vector <=> :vector::text::vector), 'NaN'), 0)
        end) as score
        from (
            select each as vector from unnest(matching.vectors) as each
            where vector_dims(each) = vector_dims(:vector::text::vector)
        ) as own
        where :vector::text is not null
    ) as near
    order by score desc nulls last, matching.updated_at desc, matching.id
    limit :limit offset :offset
) as best
join records on records.namespace = :namespace and records.id = best.id
order by best.score desc nulls last, best.updated_at desc, best.id;

-- paths
-- The paths that records of one owner have, cut to a depth, that match all of some patterns.
select distinct records.path[1 : coalesce(:max_depth::integer, cardinality(records.path))] as path
from records
where records.namespace = :namespace and records.user_id = :user_id and coalesce(records.expires_at > now(), true)
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'record' and held.item_id = records.id::text
        and held.state = 'held'
  )
  and not exists (
      select 1
      from jsonb_array_elements(:patterns::text::jsonb) as pattern
      where jsonb_array_length(pattern -> 'path') > cardinality(records.path)
         or exists (
             select 1
             from jsonb_array_elements_text(pattern -> 'path') with ordinality as asked (label, place)
             where asked.label <> '*'
               and asked.label <> records.path[
                   asked.place + case pattern ->> 'match'
                       when 'suffix' then cardinality(records.path) - jsonb_array_length(pattern -> 'path')
                       else 0
                   end
               ]
         )
  )
order by path
limit :limit offset :offset;

-- refresh
-- Records that live on because they were read.
update records set expires_at = now() + ttl_minutes * interval '1 minute'
where namespace = :namespace and id = any(:ids::uuid[]) and ttl_minutes is not null and expires_at > now()
returning id, expires_at;

-- drop_expiries
-- What is known of when some records are over.
-- Role write: a record may get another time, or none.
delete from record_expiries where namespace = :namespace and id = any(:ids::uuid[]);

-- note_expiries
-- When some records are over, for those who look for it in all namespaces.
insert into record_expiries (namespace, id, expires_at)
select :namespace, records.id, records.expires_at
from records
where records.namespace = :namespace and records.id = any(:ids::uuid[]) and records.expires_at is not null;

-- expired
-- Records whose time is over, locked. One that somebody changes is left for the next time: it may live longer now.
select id from records
where namespace = :namespace and expires_at <= now()
order by id
limit :limit
for update skip locked;

-- namespaces_with_expired
-- Namespaces, besides some, of records that have been over for longest.
select distinct namespace from (
    select namespace from record_expiries
    where expires_at <= now() and namespace <> all(:besides::text[])
    order by expires_at
    limit :limit
) as oldest
order by namespace;

-- of_user
-- The records of a user behind an id, in id order.
select id from records where namespace = :namespace and user_id = :user_id and id > :behind order by id limit :limit;

-- page_records
-- Records, with their values as they were sent.
-- Audit record id
select row_to_json(r)::text as record, r.id
from (
    select id, user_id, path, key, value, texts, vectors::text[] as vectors, ttl_minutes, expires_at, created_at,
           updated_at
    from records
    where namespace = :namespace and (:user_id::text is null or user_id = :user_id)
      and (:after_id::uuid is null or id > :after_id)
    order by id
    limit :limit
) as r
order by r.id;

-- restore_records
-- Adds records that are not there, and notes when they are over.
with added as (
    insert into records
    select * from json_populate_recordset(null::records, :records::text::json) as given
    where given.namespace = :namespace
    on conflict do nothing
    returning id, expires_at
),
noted as (
    insert into record_expiries (namespace, id, expires_at)
    select :namespace, added.id, added.expires_at from added where added.expires_at is not null
    on conflict do nothing
)
select id from added;

-- compare_records
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from json_populate_recordset(null::records, :records::text::json) as given
left join records stored on stored.namespace = :namespace and stored.id = given.id;

-- size_records
-- Rows up to a bound, along an index, to be counted.
select 1 as row from records where namespace = :namespace order by id limit :limit;

-- shown_records
-- Some records as the feed shows them.
-- Audit record item_id
select id::text as item_id,
       jsonb_build_object(
           'text', left(coalesce(nullif(array_to_string(texts, E'\n'), ''), value::text, 'null'), :most::integer),
           'user_id', user_id, 'path', to_jsonb(path), 'key', key
       ) as content, created_at as at
from records
where namespace = :namespace and id = any(:ids::text[]::uuid[]) and coalesce(expires_at > now(), true);

-- frequencies
-- In how many passages of the namespace some terms stand; term 0 is the number of passages.
select term, df from term_stats where namespace = :namespace and term = any(:dimensions::int[]);

-- by_words
-- The best items by BM25 of a whole owner or namespace, each by its best passage.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (coalesce(words.head, words.id))
               words.id, words.weights <#> :vector::text::sparsevec as distance
        from passage_words words
        where words.namespace = :namespace and words.keys && :keys::bigint[]
          and (:kinds::text[] is null or words.kind = any(:kinds))
        order by coalesce(words.head, words.id), distance, words.id
    ) as items
    order by items.distance, items.id
    limit :limit
) as best
-- Keys are hashes: two owners may share one, if hardly ever.
join passages
    on passages.namespace = :namespace and passages.id = best.id and (:owner::text is null or passages.owner = :owner)
order by best.distance, best.id;

-- by_words_in_scope
-- The same of a narrower scope.
select items.id
from (
    select distinct on (coalesce(words.head, words.id))
           words.id, words.weights <#> :vector::text::sparsevec as distance
    from passage_words words
    join passages on passages.namespace = :namespace and passages.id = words.id
    where words.namespace = :namespace
      and (:keys::bigint[] is null or words.keys && :keys)
      and (:kinds::text[] is null or passages.kind = any(:kinds))
      and (:owner::text is null or passages.owner = :owner)
      and (:agent_id::text is null or passages.agent_id = :agent_id)
      and (:session_id::text is null or passages.session_id = :session_id)
      and (:categories::text[] is null or passages.category = any(:categories))
      and (:since::timestamptz is null or passages.at >= :since)
      and (:until::timestamptz is null or passages.at <= :until)
      and (:metadata::text is null or passages.metadata @> :metadata::text::jsonb)
      and (:realm::text is null or passages.realm = :realm)
      and words.weights <#> :vector::text::sparsevec < 0
    order by coalesce(words.head, words.id), distance, words.id
) as items
order by items.distance, items.id
limit :limit;

-- by_meaning
-- The nearest items of a whole owner or namespace, each by its nearest passage: an exact scan.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (coalesce(vectors.head, vectors.id))
               vectors.id, vectors.embedding <=> :vector::text::halfvec as distance
        from passage_vectors vectors
        where vectors.namespace = :namespace
          and vectors.model = :model
          and (:kinds::text[] is null or vectors.kind = any(:kinds))
          and (:owner::text is null or vectors.owner = :owner)
        order by coalesce(vectors.head, vectors.id), distance, vectors.id
    ) as items
    order by items.distance, items.id
    limit :limit
) as best
join passages on passages.namespace = :namespace and passages.id = best.id
order by best.distance, best.id;

-- by_meaning_among
-- The same among the nearest passages only, which spares sorting a large owner's passages by item; and how many there
-- were of them.
select passages.id, best.passages
from (
    select items.id, items.distance, items.passages
    from (
        select distinct on (near.item) near.id, near.distance, count(*) over () as passages
        from (
            select vectors.id, coalesce(vectors.head, vectors.id) as item,
                   vectors.embedding <=> :vector::text::halfvec as distance
            from passage_vectors vectors
            where vectors.namespace = :namespace
              and vectors.model = :model
              and (:kinds::text[] is null or vectors.kind = any(:kinds))
              and (:owner::text is null or vectors.owner = :owner)
            order by distance, vectors.id
            limit :passages
        ) as near
        order by near.item, near.distance, near.id
    ) as items
    order by items.distance, items.id
    limit :limit
) as best
join passages on passages.namespace = :namespace and passages.id = best.id
order by best.distance, best.id;

-- by_meaning_in_scope
-- The nearest items of a narrower scope, by an exact scan of it.
select items.id
from (
    select distinct on (coalesce(vectors.head, vectors.id))
           passages.id, vectors.embedding <=> :vector::text::halfvec as distance
    from passages
    join passage_vectors vectors
        on vectors.namespace = :namespace and vectors.id = passages.id and vectors.model = :model
    where passages.namespace = :namespace
      and (:kinds::text[] is null or passages.kind = any(:kinds))
      and (:owner::text is null or passages.owner = :owner)
      and (:owner::text is null or vectors.owner = :owner)
      and (:agent_id::text is null or passages.agent_id = :agent_id)
      and (:session_id::text is null or passages.session_id = :session_id)
      and (:categories::text[] is null or passages.category = any(:categories))
      and (:since::timestamptz is null or passages.at >= :since)
      and (:until::timestamptz is null or passages.at <= :until)
      and (:metadata::text is null or passages.metadata @> :metadata::text::jsonb)
      and (:realm::text is null or passages.realm = :realm)
    order by coalesce(vectors.head, vectors.id), distance, passages.id
) as items
order by items.distance, items.id
limit :limit;

-- score
-- Nominees of either leg with both scores.
select passages.id, passages.kind, passages.item_id, passages.part, passages.owner, passages.agent_id,
       passages.session_id, passages.position, passages.role, passages.speaker, passages.category, passages.metadata,
       passages.at, passages.text,
       - (words.weights <#> :words::text::sparsevec) as lexical,
       1 - (vectors.embedding <=> :vector::text::halfvec) as cosine
from passages
join passage_words words on words.namespace = :namespace and words.id = passages.id
left join passage_vectors vectors
    on vectors.namespace = :namespace and vectors.id = passages.id and vectors.model = :model
where passages.namespace = :namespace and passages.id = any(:ids::bigint[]);

-- around
-- The messages next to nominees: their best match, and how they end.
select passages.session_id, passages.position,
       max(coalesce(1 - (vectors.embedding <=> :vector::text::halfvec), :cosine_if_unknown::float8)
           - :lexical_weight::float8 * (words.weights <#> :words::text::sparsevec)) as match,
       (array_agg(right(passages.text, 200) order by passages.part desc))[1] as ending
from unnest(:sessions::text[], :positions::bigint[]) as wanted (session_id, position)
join passages on passages.namespace = :namespace
    and passages.session_id = wanted.session_id and passages.position = wanted.position
join passage_words words on words.namespace = :namespace and words.id = passages.id
left join passage_vectors vectors
    on vectors.namespace = :namespace and vectors.id = passages.id and vectors.model = :model
group by passages.session_id, passages.position;

-- speakers
-- Who spoke in an owner's passages, one index probe each.
with recursive found (speaker) as (
    (
        select passages.speaker from passages
        where passages.namespace = :namespace and passages.owner = :owner and passages.speaker is not null
        order by passages.speaker
        limit 1
    )
    union all
    select later.speaker
    from found
    cross join lateral (
        select passages.speaker from passages
        where passages.namespace = :namespace and passages.owner = :owner and passages.speaker > found.speaker
        order by passages.speaker
        limit 1
    ) as later
)
select speaker from found limit :max_speakers;

-- speakers_of_all
-- Who spoke in a namespace, owner by owner.
with recursive found (owner, speaker) as (
    (
        select passages.owner, passages.speaker from passages
        where passages.namespace = :namespace and passages.speaker is not null
        order by passages.owner, passages.speaker
        limit 1
    )
    union all
    select later.owner, later.speaker
    from found
    cross join lateral (
        select passages.owner, passages.speaker from passages
        where passages.namespace = :namespace and passages.speaker is not null
          and (passages.owner, passages.speaker) > (found.owner, found.speaker)
        order by passages.owner, passages.speaker
        limit 1
    ) as later
)
select speaker from found limit :max_speakers;

-- waiting_items
-- How many items of one kind without an owner are waiting to be embedded, up to a bound.
select count(*) as waiting
from (
    select distinct passages.item_id
    from passage_queue queue
    join passages on passages.namespace = :namespace and passages.id = queue.id
    where queue.namespace = :namespace and queue.owner = '' and passages.kind = :kind
    limit :max_pending
) as some_of_them;

-- pending
-- How many passages of an owner, or of the namespace, are not embedded yet, up to a bound.
select count(*) as pending
from (
    select id from passage_queue
    where namespace = :namespace and (:owner::text is null or owner = :owner) limit :max_pending
) as some_of_them;

-- frequencies
-- In how many passages of the namespace some terms stand; term 0 is the number of passages.
select term, df from term_stats where namespace = $1 and term = any($2::int[]);

-- by_words
-- The best items by BM25 of a whole owner or namespace, each by its best passage.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (coalesce(words.head, words.id))
               words.id, words.weights <#> $3::text::sparsevec as distance
        from passage_words words
        where words.namespace = $1 and words.keys && $2::bigint[] and ($4::text[] is null or words.kind = any($4))
        order by coalesce(words.head, words.id), distance, words.id
    ) as items
    order by items.distance, items.id
    limit $5
) as best
-- Keys are hashes: two owners may share one, if hardly ever.
join passages on passages.namespace = $1 and passages.id = best.id and ($6::text is null or passages.owner = $6)
order by best.distance, best.id;

-- by_words_in_scope
-- The same of a narrower scope.
select items.id
from (
    select distinct on (coalesce(words.head, words.id))
           words.id, words.weights <#> $3::text::sparsevec as distance
    from passage_words words
    join passages on passages.namespace = $1 and passages.id = words.id
    where words.namespace = $1
      and ($2::bigint[] is null or words.keys && $2)
      and ($4::text[] is null or passages.kind = any($4))
      and ($6::text is null or passages.owner = $6)
      and ($7::text is null or passages.agent_id = $7)
      and ($8::text is null or passages.session_id = $8)
      and ($9::text[] is null or passages.category = any($9))
      and ($10::timestamptz is null or passages.at >= $10)
      and ($11::timestamptz is null or passages.at <= $11)
      and ($12::text is null or passages.metadata @> $12::text::jsonb)
      and ($13::text is null or passages.realm = $13)
      and words.weights <#> $3::text::sparsevec < 0
    order by coalesce(words.head, words.id), distance, words.id
) as items
order by items.distance, items.id
limit $5;

-- by_meaning
-- The nearest items of a whole owner or namespace, each by its nearest passage: an exact scan.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (coalesce(vectors.head, vectors.id))
               vectors.id, vectors.embedding <=> $2::text::halfvec as distance
        from passage_vectors vectors
        where vectors.namespace = $1
          and vectors.model = $3
          and ($4::text[] is null or vectors.kind = any($4))
          and ($6::text is null or vectors.owner = $6)
        order by coalesce(vectors.head, vectors.id), distance, vectors.id
    ) as items
    order by items.distance, items.id
    limit $5
) as best
join passages on passages.namespace = $1 and passages.id = best.id
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
                   vectors.embedding <=> $2::text::halfvec as distance
            from passage_vectors vectors
            where vectors.namespace = $1
              and vectors.model = $3
              and ($4::text[] is null or vectors.kind = any($4))
              and ($6::text is null or vectors.owner = $6)
            order by distance, vectors.id
            limit $7
        ) as near
        order by near.item, near.distance, near.id
    ) as items
    order by items.distance, items.id
    limit $5
) as best
join passages on passages.namespace = $1 and passages.id = best.id
order by best.distance, best.id;

-- by_meaning_in_scope
-- The nearest items of a narrower scope, by an exact scan of it.
select items.id
from (
    select distinct on (coalesce(vectors.head, vectors.id))
           passages.id, vectors.embedding <=> $2::text::halfvec as distance
    from passages
    join passage_vectors vectors on vectors.namespace = $1 and vectors.id = passages.id and vectors.model = $3
    where passages.namespace = $1
      and ($4::text[] is null or passages.kind = any($4))
      and ($6::text is null or passages.owner = $6)
      and ($6::text is null or vectors.owner = $6)
      and ($7::text is null or passages.agent_id = $7)
      and ($8::text is null or passages.session_id = $8)
      and ($9::text[] is null or passages.category = any($9))
      and ($10::timestamptz is null or passages.at >= $10)
      and ($11::timestamptz is null or passages.at <= $11)
      and ($12::text is null or passages.metadata @> $12::text::jsonb)
      and ($13::text is null or passages.realm = $13)
    order by coalesce(vectors.head, vectors.id), distance, passages.id
) as items
order by items.distance, items.id
limit $5;

-- score
-- Nominees of either leg with both scores.
select passages.id, passages.kind, passages.item_id, passages.part, passages.owner, passages.agent_id,
       passages.session_id, passages.position, passages.role, passages.speaker, passages.category, passages.metadata,
       passages.at, passages.text,
       - (words.weights <#> $3::text::sparsevec) as lexical,
       1 - (vectors.embedding <=> $4::text::halfvec) as cosine
from passages
join passage_words words on words.namespace = $1 and words.id = passages.id
left join passage_vectors vectors on vectors.namespace = $1 and vectors.id = passages.id and vectors.model = $5
where passages.namespace = $1 and passages.id = any($2::bigint[]);

-- around
-- The messages next to nominees: their best match, and how they end.
select passages.session_id, passages.position,
       max(coalesce(1 - (vectors.embedding <=> $5::text::halfvec), $7::float8)
           - $8::float8 * (words.weights <#> $4::text::sparsevec)) as match,
       (array_agg(right(passages.text, 200) order by passages.part desc))[1] as ending
from unnest($2::text[], $3::bigint[]) as wanted (session_id, position)
join passages on passages.namespace = $1
    and passages.session_id = wanted.session_id and passages.position = wanted.position
join passage_words words on words.namespace = $1 and words.id = passages.id
left join passage_vectors vectors on vectors.namespace = $1 and vectors.id = passages.id and vectors.model = $6
group by passages.session_id, passages.position;

-- speakers
-- Who spoke in an owner's passages, one index probe each.
with recursive found (speaker) as (
    (
        select passages.speaker from passages
        where passages.namespace = $1 and passages.owner = $2 and passages.speaker is not null
        order by passages.speaker
        limit 1
    )
    union all
    select later.speaker
    from found
    cross join lateral (
        select passages.speaker from passages
        where passages.namespace = $1 and passages.owner = $2 and passages.speaker > found.speaker
        order by passages.speaker
        limit 1
    ) as later
)
select speaker from found limit $3;

-- speakers_of_all
-- Who spoke in a namespace, owner by owner.
with recursive found (owner, speaker) as (
    (
        select passages.owner, passages.speaker from passages
        where passages.namespace = $1 and passages.speaker is not null
        order by passages.owner, passages.speaker
        limit 1
    )
    union all
    select later.owner, later.speaker
    from found
    cross join lateral (
        select passages.owner, passages.speaker from passages
        where passages.namespace = $1 and passages.speaker is not null
          and (passages.owner, passages.speaker) > (found.owner, found.speaker)
        order by passages.owner, passages.speaker
        limit 1
    ) as later
)
select speaker from found limit $2;

-- waiting_items
-- How many items of one kind that belong to nobody in particular wait to be embedded, up to a bound.
select count(*) as waiting
from (
    select distinct passages.item_id
    from passage_queue queue
    join passages on passages.namespace = $1 and passages.id = queue.id
    where queue.namespace = $1 and queue.owner = '' and passages.kind = $2
    limit $3
) as some_of_them;

-- pending
-- How many passages of an owner, or of the namespace, still wait for their meaning, up to a bound.
select count(*) as pending
from (
    select id from passage_queue where namespace = $1 and ($2::text is null or owner = $2) limit $3
) as some_of_them;

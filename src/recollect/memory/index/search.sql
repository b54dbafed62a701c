-- frequencies
-- In how many passages of the namespace some terms stand; term 0 is the number of passages.
-- Limit none: how many passages have a word is not told.
select term, df from term_stats where namespace = :namespace and term = any(:dimensions::int[]);

-- by_words
-- The best items by BM25 of a whole owner or namespace, each by its best passage.
-- Limit given owner.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (coalesce(words.head, words.id))
               words.id, words.weights <#> :vector::text::sparsevec as distance
        from passage_words words
        where words.namespace = :namespace and words.keys && :keys::bigint[] and words.kind <> 'past_memory'
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

-- by_words_among
-- The same among the best passages only, which spares sorting all of them by item; and how many there were of them.
-- Limit given owner.
select passages.id, best.passages
from (
    select items.id, items.distance, items.passages
    from (
        select distinct on (near.item) near.id, near.distance, count(*) over () as passages
        from (
            select words.id, coalesce(words.head, words.id) as item,
                   words.weights <#> :vector::text::sparsevec as distance
            from passage_words words
            where words.namespace = :namespace and words.keys && :keys::bigint[] and words.kind <> 'past_memory'
              and (:kinds::text[] is null or words.kind = any(:kinds))
            order by distance, words.id
            limit :passages
        ) as near
        order by near.item, near.distance, near.id
    ) as items
    order by items.distance, items.id
    limit :limit
) as best
join passages
    on passages.namespace = :namespace and passages.id = best.id and (:owner::text is null or passages.owner = :owner)
order by best.distance, best.id;

-- by_words_filtered
-- The best items of an owner or namespace that pass some filters. They are looked at from the best down, until there
-- are enough: what a filter asks of an item holds for all its passages.
-- Limit given owner.
select passes.id
from (
    select best.id, best.distance
    from (
        select distinct on (coalesce(words.head, words.id))
               words.id, words.weights <#> :vector::text::sparsevec as distance
        from passage_words words
        where words.namespace = :namespace and words.keys && :keys::bigint[]
          and (:kinds::text[] is null or words.kind = any(:kinds))
          and (:as_of::timestamptz is not null or words.kind <> 'past_memory')
        order by coalesce(words.head, words.id), distance, words.id
    ) as best
    order by best.distance, best.id
) as items
cross join lateral (
        select passages.id
        from passages
        where passages.namespace = :namespace and passages.id = items.id
          and (:owner::text is null or passages.owner = :owner)
          and (:exclude_session::text is null or passages.session_id is distinct from :exclude_session)
          and (:roles::text[] is null or passages.role = any(:roles))
          and (:categories::text[] is null or passages.category = any(:categories))
          and (:since::timestamptz is null or passages.at >= :since)
          and (:until::timestamptz is null or passages.at <= :until)
          and (:metadata::text is null or passages.metadata @> :metadata::text::jsonb)
          and (:where::text is null or passages.metadata @@ :where::text::jsonpath)
          and (:realm::text is null or passages.realm = :realm)
          and (:trusts::text[] is null or coalesce(passages.trust,
              :trust_of::text::jsonb ->> (passages.kind || ':' || lower(passages.role)),
              :trust_of::text::jsonb ->> passages.kind, 'assistant') = any(:trusts))
          and (:as_of::timestamptz is null or coalesce(passages.since, passages.at) <= :as_of)
          and (:as_of::timestamptz is null or coalesce(passages.ended_at > :as_of, true))
          and (:valid_at::timestamptz is null or coalesce(passages.valid_from <= :valid_at, true))
          and (:valid_at::timestamptz is null or coalesce(passages.valid_until > :valid_at, true))
        offset 0
) as passes
order by items.distance, items.id
limit :limit;

-- by_words_in_scope
-- The best items of one session or agent, all of which are scored.
-- Limit given owner, agent_id.
select items.id
from (
    select distinct on (coalesce(words.head, words.id))
           words.id, words.weights <#> :vector::text::sparsevec as distance
    from passage_words words
    join passages on passages.namespace = :namespace and passages.id = words.id
    where words.namespace = :namespace
      and (:kinds::text[] is null or passages.kind = any(:kinds))
      and (:as_of::timestamptz is not null or passages.kind <> 'past_memory')
      and (:owner::text is null or passages.owner = :owner)
      and (:agent_id::text is null or passages.agent_id = :agent_id)
      and (:session_id::text is null or passages.session_id = :session_id)
      and (:exclude_session::text is null or passages.session_id is distinct from :exclude_session)
      and (:roles::text[] is null or passages.role = any(:roles))
      and (:categories::text[] is null or passages.category = any(:categories))
      and (:since::timestamptz is null or passages.at >= :since)
      and (:until::timestamptz is null or passages.at <= :until)
      and (:metadata::text is null or passages.metadata @> :metadata::text::jsonb)
      and (:where::text is null or passages.metadata @@ :where::text::jsonpath)
      and (:realm::text is null or passages.realm = :realm)
      and (:trusts::text[] is null or coalesce(passages.trust,
          :trust_of::text::jsonb ->> (passages.kind || ':' || lower(passages.role)),
          :trust_of::text::jsonb ->> passages.kind, 'assistant') = any(:trusts))
      and (:as_of::timestamptz is null or coalesce(passages.since, passages.at) <= :as_of)
      and (:as_of::timestamptz is null or coalesce(passages.ended_at > :as_of, true))
      and (:valid_at::timestamptz is null or coalesce(passages.valid_from <= :valid_at, true))
      and (:valid_at::timestamptz is null or coalesce(passages.valid_until > :valid_at, true))
      and words.weights <#> :vector::text::sparsevec < 0
    order by coalesce(words.head, words.id), distance, words.id
) as items
order by items.distance, items.id
limit :limit;

-- by_meaning
-- The nearest items of a whole owner or namespace, each by its nearest passage: an exact scan.
-- Limit given owner.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (coalesce(vectors.head, vectors.id))
               vectors.id, vectors.embedding <=> :vector::text::halfvec as distance
        from passage_vectors vectors
        where vectors.namespace = :namespace
          and vectors.model = :model and vectors.kind <> 'past_memory'
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
-- Limit given owner.
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
              and vectors.model = :model and vectors.kind <> 'past_memory'
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

-- by_meaning_filtered
-- The nearest items of an owner or namespace that pass some filters, looked at from the nearest on.
-- Limit given owner.
select passes.id
from (
    select nearest.id, nearest.distance
    from (
        select distinct on (coalesce(vectors.head, vectors.id))
               vectors.id, vectors.embedding <=> :vector::text::halfvec as distance
        from passage_vectors vectors
        where vectors.namespace = :namespace
          and vectors.model = :model
          and (:kinds::text[] is null or vectors.kind = any(:kinds))
          and (:as_of::timestamptz is not null or vectors.kind <> 'past_memory')
          and (:owner::text is null or vectors.owner = :owner)
        order by coalesce(vectors.head, vectors.id), distance, vectors.id
    ) as nearest
    order by nearest.distance, nearest.id
) as items
cross join lateral (
        select passages.id
        from passages
        where passages.namespace = :namespace and passages.id = items.id
          and (:owner::text is null or passages.owner = :owner)
          and (:exclude_session::text is null or passages.session_id is distinct from :exclude_session)
          and (:roles::text[] is null or passages.role = any(:roles))
          and (:categories::text[] is null or passages.category = any(:categories))
          and (:since::timestamptz is null or passages.at >= :since)
          and (:until::timestamptz is null or passages.at <= :until)
          and (:metadata::text is null or passages.metadata @> :metadata::text::jsonb)
          and (:where::text is null or passages.metadata @@ :where::text::jsonpath)
          and (:realm::text is null or passages.realm = :realm)
          and (:trusts::text[] is null or coalesce(passages.trust,
              :trust_of::text::jsonb ->> (passages.kind || ':' || lower(passages.role)),
              :trust_of::text::jsonb ->> passages.kind, 'assistant') = any(:trusts))
          and (:as_of::timestamptz is null or coalesce(passages.since, passages.at) <= :as_of)
          and (:as_of::timestamptz is null or coalesce(passages.ended_at > :as_of, true))
          and (:valid_at::timestamptz is null or coalesce(passages.valid_from <= :valid_at, true))
          and (:valid_at::timestamptz is null or coalesce(passages.valid_until > :valid_at, true))
        offset 0
) as passes
order by items.distance, items.id
limit :limit;

-- by_meaning_in_scope
-- The nearest items of one session or agent, by an exact scan of it.
-- Limit given owner, agent_id.
select items.id
from (
    select distinct on (coalesce(vectors.head, vectors.id))
           passages.id, vectors.embedding <=> :vector::text::halfvec as distance
    from passages
    join passage_vectors vectors
        on vectors.namespace = :namespace and vectors.id = passages.id and vectors.model = :model
    where passages.namespace = :namespace
      and (:kinds::text[] is null or passages.kind = any(:kinds))
      and (:as_of::timestamptz is not null or passages.kind <> 'past_memory')
      and (:owner::text is null or passages.owner = :owner)
      and (:owner::text is null or vectors.owner = :owner)
      and (:agent_id::text is null or passages.agent_id = :agent_id)
      and (:session_id::text is null or passages.session_id = :session_id)
      and (:exclude_session::text is null or passages.session_id is distinct from :exclude_session)
      and (:roles::text[] is null or passages.role = any(:roles))
      and (:categories::text[] is null or passages.category = any(:categories))
      and (:since::timestamptz is null or passages.at >= :since)
      and (:until::timestamptz is null or passages.at <= :until)
      and (:metadata::text is null or passages.metadata @> :metadata::text::jsonb)
      and (:where::text is null or passages.metadata @@ :where::text::jsonpath)
      and (:realm::text is null or passages.realm = :realm)
      and (:trusts::text[] is null or coalesce(passages.trust,
          :trust_of::text::jsonb ->> (passages.kind || ':' || lower(passages.role)),
          :trust_of::text::jsonb ->> passages.kind, 'assistant') = any(:trusts))
      and (:as_of::timestamptz is null or coalesce(passages.since, passages.at) <= :as_of)
      and (:as_of::timestamptz is null or coalesce(passages.ended_at > :as_of, true))
      and (:valid_at::timestamptz is null or coalesce(passages.valid_from <= :valid_at, true))
      and (:valid_at::timestamptz is null or coalesce(passages.valid_until > :valid_at, true))
    order by coalesce(vectors.head, vectors.id), distance, passages.id
) as items
order by items.distance, items.id
limit :limit;

-- score
-- Nominees of either leg; without an item id, the messages before and after each; and, in a row without an id, the
-- scores of them all. They are put together by the caller: the planner knows too little of how many there are, and
-- without fresh statistics its joins of them take ten times as long as everything else.
-- Limit seen ids.
with nominees as materialized (
    select passages.id, passages.kind, passages.item_id, passages.part, passages.owner, passages.agent_id,
           passages.session_id, passages.position, passages.role, passages.speaker, passages.category,
           passages.metadata::text as metadata, passages.at, passages.text, passages.trust
    from passages
    where passages.namespace = :namespace and passages.id = any(:ids::bigint[])
      and coalesce(passages.expires_at > now(), true)
),
near as materialized (
    select beside.id, beside.kind, beside.part, beside.owner, beside.session_id, beside.position, beside.role,
           beside.ending
    from (
        select distinct nominees.kind, nominees.owner, nominees.session_id,
               nominees.position + step.length as position
        from nominees
        cross join unnest(array[-1, 1]) as step (length)
        where nominees.session_id is not null and nominees.position is not null
    ) as place
    cross join lateral (
        select passages.id, passages.kind, passages.part, passages.owner, passages.session_id, passages.position,
               passages.role, right(passages.text, 200) as ending
        from passages
        where passages.namespace = :namespace and passages.session_id = place.session_id
          and passages.position = place.position and passages.kind = place.kind and passages.owner = place.owner
          -- What was said later is no part of an answer about the past.
          and (:until::timestamptz is null or passages.at <= :until)
          and (:as_of::timestamptz is null or coalesce(passages.since, passages.at) <= :as_of)
          and coalesce(passages.expires_at > now(), true)
        offset 0
    ) as beside
),
scored as materialized (
    select array(select nominees.id from nominees union select near.id from near) as ids
)
select nominees.id, nominees.kind, nominees.item_id, nominees.part, nominees.owner, nominees.agent_id,
       nominees.session_id, nominees.position, nominees.role, nominees.speaker, nominees.category, nominees.metadata,
       nominees.at, nominees.text, nominees.trust, null::bigint[] as with_words, null::float8[] as lexical,
       null::bigint[] as with_vector, null::float8[] as cosine
from nominees
union all
select near.id, near.kind, null, near.part, near.owner, null, near.session_id, near.position, near.role, null, null,
       null, null, near.ending, null, null, null, null, null
from near
union all
select null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
       lexical.ids, lexical.scores, cosine.ids, cosine.scores
from (
    select array_agg(words.id) as ids, array_agg(- (words.weights <#> :words::text::sparsevec)) as scores
    from passage_words words
    where words.namespace = :namespace and words.id = any((select scored.ids from scored)::bigint[])
) as lexical
cross join (
    -- Vectors of another model, in the middle of a switch, are of another size.
    select array_agg(vectors.id) as ids,
           array_agg(case when vectors.model = :model then 1 - (vectors.embedding <=> :vector::text::halfvec) end)
               as scores
    from passage_vectors vectors
    where vectors.namespace = :namespace and vectors.id = any((select scored.ids from scored)::bigint[])
) as cosine;

-- opening
-- All that a recall reads before it looks for anything: the namespace's model and the index of its vectors, in how many
-- passages some terms stand (term 0 is the number of passages), who spoke, one index probe each, and what waits.
-- Limit none: of others it tells how many passages wait, and names that are taken out of the question.
select model.active, giants.watermark, giants.index_name, giants.dimensions, rarity.terms, rarity.counts, spoke.speakers,
       waiting.pending
from (
    select max(embedding_models.active) as active from embedding_models where embedding_models.namespace = :namespace
) as model
cross join (
    select array_agg(term_stats.term) as terms, array_agg(term_stats.df) as counts
    from term_stats
    where term_stats.namespace = :namespace and term_stats.term = any(:dimensions::int[])
) as rarity
cross join (
    select count(*) as pending
    from (
        select queue.id from passage_queue queue
        where queue.namespace = :namespace and (:owner::text is null or queue.owner = :owner)
        limit :max_pending
    ) as some_of_them
) as waiting
cross join (
    with recursive found (owner, speaker) as (
        (
            select passages.owner, passages.speaker from passages
            where :with_speakers::boolean and passages.namespace = :namespace and passages.speaker is not null
              and (:owner::text is null or passages.owner = :owner)
            order by passages.owner, passages.speaker
            limit 1
        )
        union all
        select later.owner, later.speaker
        from found
        cross join lateral (
            select passages.owner, passages.speaker from passages
            where passages.namespace = :namespace and passages.speaker is not null
              and (:owner::text is null or passages.owner = :owner)
              and (passages.owner, passages.speaker) > (found.owner, found.speaker)
            order by passages.owner, passages.speaker
            limit 1
        ) as later
    )
    select array_agg(some_of_them.speaker) as speakers
    from (select found.speaker from found limit :max_speakers) as some_of_them
) as spoke
left join giants
    on giants.namespace = :namespace and giants.owner = coalesce(:owner, '') and giants.whole = (:owner is null)
    and giants.model = model.active;

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

-- is_filled
-- Whether anything is stored in the namespace.
select exists (select from passages where namespace = :namespace) as is_filled;

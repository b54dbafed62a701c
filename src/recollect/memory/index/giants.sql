-- sizes
-- The owners with more vectors of a model than an exact scan should read.
select owner, count(*) as size
from passage_vectors
where namespace = :namespace and model = :model
group by owner
having count(*) > :threshold;

-- size
-- How many vectors of a model the namespace has.
select count(*) as size from passage_vectors where namespace = :namespace and model = :model;

-- is_larger
-- Whether an owner has more vectors of a model than so many; reads no more than that.
select count(*) > :threshold as larger
from (select 1 as row from passage_vectors where namespace = :namespace and model = :model and owner = :owner limit
    :threshold + 1) as some_of_them;

-- extent
-- How many vectors of an owner, or of the whole namespace, stand above a watermark, and the highest of all.
select count(*) filter (where id > :watermark) as above, max(id) as highest
from passage_vectors
where namespace = :namespace and model = :model and (owner = :owner or :whole);

-- known
-- The indexes of a namespace.
select owner, whole, model, watermark, index_name, dimensions from giants where namespace = :namespace;

-- find
-- The index of one owner, or of the whole namespace.
-- Limit given owner.
select owner, whole, model, watermark, index_name, dimensions
from giants
where namespace = :namespace and owner = :owner and whole = :whole and model = :model;

-- remember
-- From now on searches use this index.
insert into giants (namespace, owner, whole, model, watermark, index_name, dimensions)
values (:namespace, :owner, :whole, :model, :watermark, :index_name, :dimensions)
on conflict (namespace, owner, whole, model)
do update set watermark = excluded.watermark, index_name = excluded.index_name, dimensions = excluded.dimensions,
              built_at = excluded.built_at;

-- forget
-- From now on searches scan.
delete from giants where namespace = :namespace and owner = :owner and whole = :whole and model = :model;

-- nearest
-- The nearest items of a giant owner, each by its nearest passage, among so many passages: by its index up to the
-- watermark, by a scan above it.
-- Limit given owner.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (near.item) near.id, near.distance
        from (
            (
                select vectors.id, coalesce(vectors.head, vectors.id) as item,
                       vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = :namespace and vectors.model = :model and vectors.owner = :owner
                  and vectors.id <= :watermark
                order by vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384)
                limit :passages
            )
            union all
            (
                select vectors.id, coalesce(vectors.head, vectors.id) as item,
                       vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = :namespace and vectors.model = :model and vectors.owner = :owner
                  and vectors.id > :watermark
                order by vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384)
                limit :passages
            )
        ) as near
        order by near.item, near.distance, near.id
    ) as items
    order by items.distance, items.id
    limit :limit
) as best
join passages on passages.namespace = :namespace and passages.id = best.id and passages.kind <> 'past_memory'
order by best.distance, best.id;

-- nearest_of_all
-- The same for a whole namespace.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (near.item) near.id, near.distance
        from (
            (
                select vectors.id, coalesce(vectors.head, vectors.id) as item,
                       vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = :namespace and vectors.model = :model and vectors.id <= :watermark
                order by vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384)
                limit :passages
            )
            union all
            (
                select vectors.id, coalesce(vectors.head, vectors.id) as item,
                       vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = :namespace and vectors.model = :model and vectors.id > :watermark
                order by vectors.embedding::halfvec(384) <=> :vector::text::halfvec(384)
                limit :passages
            )
        ) as near
        order by near.item, near.distance, near.id
    ) as items
    order by items.distance, items.id
    limit :limit
) as best
join passages on passages.namespace = :namespace and passages.id = best.id and passages.kind <> 'past_memory'
order by best.distance, best.id;

-- sizes
-- The owners with more vectors of a model than an exact scan should read.
select owner, count(*) as size
from passage_vectors
where namespace = $1 and model = $2
group by owner
having count(*) > $3;

-- size
-- How many vectors of a model the namespace has.
select count(*) as size from passage_vectors where namespace = $1 and model = $2;

-- is_larger
-- Whether an owner has more vectors of a model than so many; reads no more than that.
select count(*) > $4 as larger
from (select from passage_vectors where namespace = $1 and model = $2 and owner = $3 limit $4 + 1) as some_of_them;

-- extent
-- How many vectors of an owner, or of the whole namespace, stand above a watermark, and the highest of all.
select count(*) filter (where id > $5) as above, max(id) as highest
from passage_vectors
where namespace = $1 and model = $2 and (owner = $3 or $4);

-- known
-- The indexes of a namespace.
select owner, whole, model, watermark, index_name, dimensions from giants where namespace = $1;

-- find
-- The index of one owner, or of the whole namespace.
select owner, whole, model, watermark, index_name, dimensions
from giants
where namespace = $1 and owner = $2 and whole = $3 and model = $4;

-- remember
-- From now on searches use this index.
insert into giants (namespace, owner, whole, model, watermark, index_name, dimensions)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (namespace, owner, whole, model)
do update set watermark = excluded.watermark, index_name = excluded.index_name, dimensions = excluded.dimensions,
              built_at = excluded.built_at;

-- forget
-- From now on searches scan.
delete from giants where namespace = $1 and owner = $2 and whole = $3 and model = $4;

-- nearest
-- The nearest items of a giant owner, each by its nearest passage, among so many passages: by its index up to the
-- watermark, by a scan above it.
select passages.id
from (
    select items.id, items.distance
    from (
        select distinct on (near.item) near.id, near.distance
        from (
            (
                select vectors.id, coalesce(vectors.head, vectors.id) as item,
                       vectors.embedding::halfvec(384) <=> $2::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = $1 and vectors.model = $3 and vectors.owner = $6 and vectors.id <= $7
                order by vectors.embedding::halfvec(384) <=> $2::text::halfvec(384)
                limit $5
            )
            union all
            (
                select vectors.id, coalesce(vectors.head, vectors.id) as item,
                       vectors.embedding::halfvec(384) <=> $2::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = $1 and vectors.model = $3 and vectors.owner = $6 and vectors.id > $7
                order by vectors.embedding::halfvec(384) <=> $2::text::halfvec(384)
                limit $5
            )
        ) as near
        order by near.item, near.distance, near.id
    ) as items
    order by items.distance, items.id
    limit $4
) as best
join passages on passages.namespace = $1 and passages.id = best.id
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
                       vectors.embedding::halfvec(384) <=> $2::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = $1 and vectors.model = $3 and vectors.id <= $6
                order by vectors.embedding::halfvec(384) <=> $2::text::halfvec(384)
                limit $5
            )
            union all
            (
                select vectors.id, coalesce(vectors.head, vectors.id) as item,
                       vectors.embedding::halfvec(384) <=> $2::text::halfvec(384) as distance
                from passage_vectors vectors
                where vectors.namespace = $1 and vectors.model = $3 and vectors.id > $6
                order by vectors.embedding::halfvec(384) <=> $2::text::halfvec(384)
                limit $5
            )
        ) as near
        order by near.item, near.distance, near.id
    ) as items
    order by items.distance, items.id
    limit $4
) as best
join passages on passages.namespace = $1 and passages.id = best.id
order by best.distance, best.id;

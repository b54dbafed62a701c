-- state
-- The model of a namespace and where it is on its way to another.
select active, next, switched_at, leftovers from embedding_models where namespace = $1;

-- hold
-- The same, and it stays so until the transaction ends.
select active, next, switched_at, leftovers from embedding_models where namespace = $1 for share;

-- take
-- The same, for whoever is going to change it: waits for those who hold it.
select active, next, switched_at, leftovers from embedding_models where namespace = $1 for update;

-- settle_on
-- The first vectors of a namespace decide its model.
insert into embedding_models (namespace, active) values ($1, $2) on conflict (namespace) do nothing;

-- aim
-- From now on the namespace moves to a model, or to none.
update embedding_models set next = $2, leftovers = leftovers or $3 where namespace = $1;

-- flip
-- From now on searches ask the other model.
update embedding_models set active = $2, next = null, switched_at = clock_timestamp(), leftovers = true
where namespace = $1;

-- swept
-- Nothing is left of other models.
update embedding_models set leftovers = false where namespace = $1;

-- claim
-- Passages with a vector of one model and none of another; others who do the same pass these over, and whoever deletes
-- one waits.
select passages.id, passages.kind, passages.owner, old.head, passages.text
from passages
join passage_vectors old on old.namespace = $1 and old.id = passages.id and old.model = $2
where passages.namespace = $1
  and passages.id > $4
  and not exists (
      select from passage_vectors fresh where fresh.namespace = $1 and fresh.id = passages.id and fresh.model = $3
  )
order by passages.id
limit $5
for update of passages skip locked;

-- add
-- Their vectors of the other model.
insert into passage_vectors (namespace, id, kind, owner, head, model, embedding)
select $1, v.id, v.kind, v.owner, v.head, $7, v.embedding::halfvec
from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[]) as v (id, kind, owner, head, embedding)
on conflict (namespace, id, model) do nothing;

-- missing
-- How many passages have a vector of one model and none of another, up to a bound.
select count(*) as missing
from (
    select old.id
    from passage_vectors old
    where old.namespace = $1
      and old.model = $2
      and not exists (
          select from passage_vectors fresh where fresh.namespace = $1 and fresh.id = old.id and fresh.model = $3
      )
    limit $4
) as some_of_them;

-- requeue
-- Gives the last of them to the indexer; their words are counted.
insert into passage_queue (namespace, id, owner, counted)
select $1, old.id, old.owner, true
from passage_vectors old
where old.namespace = $1
  and old.model = $2
  and not exists (
      select from passage_vectors fresh where fresh.namespace = $1 and fresh.id = old.id and fresh.model = $3
  );

-- others
-- Passages that have vectors of other models than some, from an id on.
select distinct id from passage_vectors
where namespace = $1 and id > $2 and model <> all($3::text[])
order by id
limit $4;

-- remove_others
-- Those vectors.
delete from passage_vectors where namespace = $1 and id = any($2::bigint[]) and model <> all($3::text[]);

-- sizes
-- How many vectors there are of each model.
select model, count(*) as size from passage_vectors where namespace = $1 group by model order by model;

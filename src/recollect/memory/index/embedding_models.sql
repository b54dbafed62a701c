-- state
-- The model of a namespace and where it is on its way to another.
-- Limit none: the model is the namespace's.
select active, next, switched_at, leftovers from embedding_models where namespace = :namespace;

-- lock
-- The same, and it stays so until the transaction ends.
-- Limit none: the model is the namespace's.
select active, next, switched_at, leftovers from embedding_models where namespace = :namespace for share;

-- lock_for_change
-- The same, for changing it: waits for those who hold it.
select active, next, switched_at, leftovers from embedding_models where namespace = :namespace for update;

-- settle_on
-- The first vectors of a namespace decide its model.
-- Limit none: the model is the namespace's.
insert into embedding_models (namespace, active) values (:namespace, :first) on conflict (namespace) do nothing;

-- aim
-- From now on the namespace moves to a model, or to none.
-- Role admin: all of the namespace is embedded anew.
update embedding_models set next = :model, leftovers = leftovers or :leaves where namespace = :namespace;

-- time
-- The database's clock, read in a statement of its own: an update may not ask for it where tables are distributed.
select clock_timestamp() as now from embedding_models where namespace = :namespace;

-- flip
-- From now on searches ask the other model.
-- Role admin: as above.
update embedding_models set active = :model, next = null, switched_at = :at, leftovers = true
where namespace = :namespace;

-- swept
-- Nothing is left of other models.
update embedding_models set leftovers = false where namespace = :namespace;

-- claim
-- Passages with a vector of one model and none of another; others who do the same skip these, and a deletion of one
-- waits.
select passages.id, passages.kind, passages.owner, old.head, passages.text
from passages
join passage_vectors old on old.namespace = :namespace and old.id = passages.id and old.model = :old
where passages.namespace = :namespace
  and passages.id > :after
  and not exists (
      select from passage_vectors fresh
      where fresh.namespace = :namespace and fresh.id = passages.id and fresh.model = :new
  )
order by passages.id
limit :limit
for update of passages skip locked;

-- add
-- Their vectors of the other model.
insert into passage_vectors (namespace, id, kind, owner, head, model, embedding)
select :namespace, v.id, v.kind, v.owner, v.head, :model, v.embedding::halfvec
from unnest(:ids::bigint[], :kinds::text[], :owners::text[], :heads::bigint[], :vectors::text[]) as v (id, kind,
    owner, head, embedding)
on conflict (namespace, id, model) do nothing;

-- missing
-- How many passages have a vector of one model and none of another, up to a bound.
select count(*) as missing
from (
    select old.id
    from passage_vectors old
    where old.namespace = :namespace
      and old.model = :old
      and not exists (
          select from passage_vectors fresh
          where fresh.namespace = :namespace and fresh.id = old.id and fresh.model = :new
      )
    limit :at_most
) as some_of_them;

-- requeue
-- Gives the last of them to the indexer; their words are counted.
insert into passage_queue (namespace, id, owner, counted)
select :namespace, old.id, old.owner, true
from passage_vectors old
where old.namespace = :namespace
  and old.model = :old
  and not exists (
      select from passage_vectors fresh where fresh.namespace = :namespace and fresh.id = old.id and fresh.model = :new
  );

-- others
-- Passages that have vectors of other models than some, from an id on.
select distinct id from passage_vectors
where namespace = :namespace and id > :after and model <> all(:keep::text[])
order by id
limit :limit;

-- remove_others
-- Those vectors.
delete from passage_vectors where namespace = :namespace and id = any(:ids::bigint[]) and model <> all(:keep::text[]);

-- dimensions
-- The size of a model's vectors here: all have the same.
-- Limit none: the model is the namespace's.
select vector_dims(embedding) as dimensions from passage_vectors
where namespace = :namespace and model = :model
limit 1;

-- sizes
-- How many vectors there are of each model.
select model, count(*) as size from passage_vectors where namespace = :namespace group by model order by model;

-- Which model gives a namespace its meaning, and the one that it is being moved to. `leftovers` are vectors of a model
-- that is neither: they go once no search that began before the switch can still be reading them.
create table embedding_models (
    namespace text not null primary key,
    active text not null,
    next text,
    switched_at timestamptz,
    leftovers boolean not null default false
);

-- A namespace stays with the model that most of its vectors are of.
insert into embedding_models (namespace, active)
select distinct on (namespace) namespace, model
from (select namespace, model, count(*) as size from passage_vectors group by namespace, model) as sizes
order by namespace, size desc;

alter table embedding_models enable row level security;
alter table embedding_models force row level security;
create policy own_namespace on embedding_models using (namespace = current_setting('recollect.namespace', true));

-- A passage has a vector of each model while its namespace moves from one to another.
alter table passage_vectors drop constraint passage_vectors_pkey;
alter table passage_vectors add primary key (namespace, id, model);
drop index passage_vectors_by_owner;
create index passage_vectors_by_owner on passage_vectors (namespace, owner, model);
drop index passage_vectors_by_kind;
create index passage_vectors_by_kind on passage_vectors (namespace, kind, model) where kind <> 'message';

-- So has a giant its indexes. The size of a vector stands in the expression that an index is on.
alter table giants add column dimensions integer not null default 384;
alter table giants alter column dimensions drop default;
alter table giants drop constraint giants_pkey;
alter table giants add primary key (namespace, owner, whole, model);

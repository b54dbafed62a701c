-- all
-- Entities, as many as asked for; a node that only an edge names is none, and what is held back is left out.
-- Audit node id
select id, name, label, properties -> 'observations' as observations, created_at
from graph_nodes
where namespace = :namespace and labelled
  and id not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
order by id
limit :limit;

-- named
-- Entities by their names, but for those that are held back.
-- Audit node id
select id, name, label, properties -> 'observations' as observations, created_at
from graph_nodes
where namespace = :namespace and labelled and name = any(:names::text[])
  and id not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
order by id;

-- known
-- All that is known of some nodes.
select id, name, label, properties, created_at
from graph_nodes
where namespace = :namespace and id = any(:ids::bigint[])
order by id;

-- matching
-- Entities that have a text in their name, in their type or in an observation, in letters of any case.
-- Audit node id
select id, name, label, properties -> 'observations' as observations, created_at
from graph_nodes
where namespace = :namespace
  and labelled
  and (
      strpos(lower(name), lower(:text::text)) > 0
      or strpos(lower(label), lower(:text)) > 0
      or exists (
          select 1
          from jsonb_array_elements_text(
              case when jsonb_typeof(properties -> 'observations') = 'array' then properties -> 'observations'
                   else '[]'::jsonb end
          ) as told (observation)
          where strpos(lower(told.observation), lower(:text)) > 0
      )
  )
  and id not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
order by id
limit :limit;

-- lock
-- Entities by their names, which nobody else changes until the transaction ends; in name order, so that two writers
-- never wait for each other.
select id, name, label, properties -> 'observations' as observations, created_at
from graph_nodes
where namespace = :namespace and labelled and name = any(:names::text[])
order by name
for no key update;

-- create
-- Entities that are not there yet, in name order; a node of that name stays as it is.
insert into graph_nodes (namespace, name, label, labelled, properties)
select :namespace, given.name, given.label, true, jsonb_build_object('observations', given.observations::jsonb)
from unnest(:names::text[], :labels::text[], :observations::text[]) as given (name, label, observations)
order by given.name
on conflict (namespace, name) do nothing
returning id, name;

-- observe
-- Gives entities that are locked other observations.
update graph_nodes
set properties = jsonb_set(properties, '{observations}', given.observations::jsonb)
from unnest(:ids::bigint[], :observations::text[]) as given (id, observations)
where graph_nodes.namespace = :namespace and graph_nodes.id = given.id;

-- unobserve_versions
-- Takes observations out of what an entity was before, too.
-- Role admin: they are gone for good.
update graph_node_versions versions
set properties = jsonb_set(versions.properties, '{observations}', (
    select coalesce(jsonb_agg(told.observation order by told.place), '[]'::jsonb)
    from jsonb_array_elements_text(versions.properties -> 'observations') with ordinality as told (observation, place)
    where told.observation <> all(:observations::text[])
))
where versions.namespace = :namespace
  and versions.node_id = :id
  and jsonb_typeof(versions.properties -> 'observations') = 'array';

-- relations
-- Edges at some nodes, or all of them, by the names of their ends; none of which is held back.
select sources.name as source, edges.relation, targets.name as target
from graph_edges edges
join graph_nodes sources on sources.namespace = :namespace and sources.id = edges.source
join graph_nodes targets on targets.namespace = :namespace and targets.id = edges.target
where edges.namespace = :namespace
  and (:ids::bigint[] is null or edges.source = any(:ids) or edges.target = any(:ids))
  and edges.source not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
  and edges.target not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
order by edges.id
limit :limit;

-- edges_named
-- The ids of edges by the names of their ends.
select edges.id
from unnest(:sources::text[], :relations::text[], :targets::text[]) as given (source, relation, target)
join graph_nodes sources on sources.namespace = :namespace and sources.name = given.source
join graph_nodes targets on targets.namespace = :namespace and targets.name = given.target
join graph_edges edges
    on edges.namespace = :namespace and edges.source = sources.id and edges.target = targets.id
    and edges.relation = given.relation;

-- remove_edge_versions
-- What some edges were before.
delete from graph_edge_versions where namespace = :namespace and edge_id = any(:ids::bigint[]);

-- remove_edges
-- Some edges.
delete from graph_edges where namespace = :namespace and id = any(:ids::bigint[]) returning id;

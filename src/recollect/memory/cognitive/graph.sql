-- insight
-- The insight that a node is to point to, if it exists.
select id from insights where namespace = :namespace and id = :insight_id;

-- lock_node
-- A node, which nobody else changes until the transaction ends, and whether what is new would change it.
select id, label, name, properties, vector_id, false as created,
       not labelled
       or properties || :properties::text::jsonb <> properties
       or coalesce(:vector_id::bigint <> vector_id, :vector_id is not null) as changes
from graph_nodes
where namespace = :namespace and name = :name
for no key update;

-- keep_nodes
-- Nodes that are locked and about to change, as they were until now. What lasted no time is not kept: this transaction,
-- or one that began later and was quicker, has changed the node already. Nor is what was held back.
insert into graph_node_versions (namespace, node_id, number, label, properties, vector_id, until_at)
select :namespace, nodes.id, coalesce(past.number, 0) + 1, nodes.label, nodes.properties, nodes.vector_id, now()
from graph_nodes nodes
left join lateral (
    select max(versions.number) as number, max(versions.until_at) as until_at
    from graph_node_versions versions
    where versions.namespace = :namespace and versions.node_id = nodes.id
) as past on true
where nodes.namespace = :namespace
  and nodes.id = any(:ids::bigint[])
  and now() > coalesce(past.until_at, nodes.created_at)
  and nodes.id not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
returning node_id;

-- amend_node
-- Merges what is new into a node; the first label that a caller chose stays.
update graph_nodes
set label = case when labelled then label else :label::text end,
    labelled = true,
    properties = properties || :properties::text::jsonb,
    vector_id = coalesce(:vector_id::bigint, vector_id)
where namespace = :namespace and name = :name
returning id, label, name, properties, vector_id, false as created;

-- create_node
-- A node that is not there yet; one that exists is left as it is.
insert into graph_nodes (namespace, name, label, labelled, properties, vector_id)
values (:namespace, :name, :label, true, :properties::text::jsonb, :vector_id)
on conflict (namespace, name) do nothing
returning id, label, name, properties, vector_id, true as created;

-- create_nodes
-- Nodes of one label that do not exist yet, in name order so that two writers never wait for each other.
insert into graph_nodes (namespace, name, label, labelled, properties)
select :namespace, nodes.name, :label::text, true, nodes.properties::jsonb
from unnest(:names::text[], :properties::text[]) as nodes (name, properties)
order by nodes.name
on conflict (namespace, name) do nothing
returning id;

-- named
-- Nodes by their names.
select id, name, labelled from graph_nodes where namespace = :namespace and name = any(:names::text[]);

-- create_ends
-- The ends of an edge that do not exist yet, in name order so that two writers never wait for each other.
insert into graph_nodes (namespace, name, label, labelled)
select :namespace, ends.name, ends.label, ends.labelled
from unnest(:names::text[], :labels::text[], :labelled::boolean[]) as ends (name, label, labelled)
order by ends.name
on conflict (namespace, name) do nothing
returning name;

-- lock_ends
-- Nodes that have no label of their own, in name order. No key is changed, and to lock them as if one were would make a
-- writer that adds an edge to them wait.
select id from graph_nodes where namespace = :namespace and name = any(:names::text[]) and not labelled
order by name
for no key update;

-- label_ends
-- Says what nodes are that are locked.
update graph_nodes
set label = ends.label, labelled = true
from unnest(:names::text[], :labels::text[]) as ends (name, label)
where graph_nodes.namespace = :namespace and graph_nodes.id = any(:ids::bigint[]) and graph_nodes.name = ends.name;

-- create_edge
-- A new edge; one that is there stays as it is.
insert into graph_edges (namespace, source, target, relation, weight, properties)
values (:namespace, :source, :target, :relation, :weight, :properties::text::jsonb)
on conflict (namespace, source, target, relation) do nothing
returning id, weight;

-- create_edges
-- New edges; those that are there stay as they are. In one order, so that two writers cannot deadlock.
insert into graph_edges (namespace, source, target, relation, weight)
select :namespace, edges.source, edges.target, edges.relation, :weight::double precision
from unnest(:sources::bigint[], :targets::bigint[], :relations::text[]) as edges (source, target, relation)
order by edges.source, edges.target, edges.relation
on conflict (namespace, source, target, relation) do nothing
returning id, source, target, relation;

-- lock_edge
-- An edge, which nobody else changes until the transaction ends, and whether what is new would change it.
select id, weight,
       coalesce(:weight::float8 <> weight, false) or properties || :properties::text::jsonb <> properties as changes
from graph_edges
where namespace = :namespace and source = :source and target = :target and relation = :relation
for no key update;

-- keep_edge
-- An edge that is locked and about to change, as it was until now; as for nodes.
insert into graph_edge_versions (namespace, edge_id, number, weight, properties, until_at)
select :namespace, edges.id, coalesce(past.number, 0) + 1, edges.weight, edges.properties, now()
from graph_edges edges
left join lateral (
    select max(versions.number) as number, max(versions.until_at) as until_at
    from graph_edge_versions versions
    where versions.namespace = :namespace and versions.edge_id = edges.id
) as past on true
where edges.namespace = :namespace
  and edges.id = :edge_id
  and now() > coalesce(past.until_at, edges.created_at)
returning edge_id;

-- amend_edge
-- More properties for an edge, and a new weight if one is given.
update graph_edges
set weight = coalesce(:weight::float8, weight), properties = properties || :properties::text::jsonb
where namespace = :namespace and id = :edge_id
returning id, weight;

-- around
-- The nodes one step further that were not seen before, but for those that are held back, each by its strongest edge,
-- and how many there are. Where there are too many of the same weight the oldest stay: to look up every name of a hub
-- takes longer than all the rest.
-- Audit node id
with edges as (
    select target as id, relation, weight, properties, true as outward
    from graph_edges
    where namespace = :namespace and source = any(:frontier::bigint[])
      and (:relation::text is null or relation = :relation)
    union all
    select source, relation, weight, properties, false
    from graph_edges
    where namespace = :namespace and target = any(:frontier::bigint[])
      and (:relation::text is null or relation = :relation)
),
strongest as (
    select distinct on (edges.id) edges.id, edges.relation, edges.weight, edges.properties, edges.outward,
           count(*) over (partition by edges.id) as parallel
    from edges
    left join unnest(:seen::bigint[]) as seen (id) on seen.id = edges.id
    where seen.id is null
      and edges.id not in (
          select held.item_id::bigint from held
          where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
      )
    order by edges.id, edges.weight desc, edges.outward desc, edges.relation
),
foremost as (
    select id, relation, weight, properties, outward, parallel, count(*) over () as total
    from strongest
    order by weight desc, id
    limit :limit
)
select nodes.id, nodes.label, nodes.name, nodes.properties, nodes.vector_id, foremost.relation, foremost.weight,
       foremost.properties as edge_properties, foremost.outward, foremost.parallel, foremost.total
from foremost
join graph_nodes nodes on nodes.namespace = :namespace and nodes.id = foremost.id
order by foremost.weight desc, nodes.name collate "C";

-- parallel
-- The edges between some nodes and others, so many of each of the others, the strongest first.
with edges as (
    select id as edge, target as id, relation, weight, true as outward
    from graph_edges
    where namespace = :namespace
      and source = any(:frontier::bigint[])
      and target = any(:several::bigint[])
      and (:relation::text is null or relation = :relation)
    union all
    select id, source, relation, weight, false
    from graph_edges
    where namespace = :namespace
      and target = any(:frontier::bigint[])
      and source = any(:several::bigint[])
      and (:relation::text is null or relation = :relation)
),
ranked as (
    select edge, id, outward, row_number() over (partition by id order by weight desc, outward desc, relation) as place
    from edges
)
select ranked.id, chosen.relation, chosen.weight, chosen.properties, ranked.outward
from ranked
join graph_edges chosen on chosen.namespace = :namespace and chosen.id = ranked.edge
where ranked.place <= :max_relations
order by ranked.id, ranked.place;

-- adjacent
-- The ids one step away from some nodes, in either direction, without those that are held back: a single array, because
-- there may be very many.
select array_agg(reached.id) as ids
from (
    select target as id from graph_edges where namespace = :namespace and source = any(:ids::bigint[])
    union
    select source from graph_edges where namespace = :namespace and target = any(:ids::bigint[])
) as reached
where reached.id not in (
    select held.item_id::bigint from held
    where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
);

-- links
-- Some nodes, each with those one step away from it.
select reached.id, array_agg(reached.other) as others
from (
    select source as id, target as other from graph_edges where namespace = :namespace and source = any(:ids::bigint[])
    union
    select target, source from graph_edges where namespace = :namespace and target = any(:ids::bigint[])
) as reached
group by reached.id;

-- hops
-- The strongest edge between nodes that stand next to each other on a path.
with edges as (
    select hop.here, hop.there, outgoing.relation, outgoing.weight, true as outward
    from unnest(:heres::bigint[], :theres::bigint[]) as hop (here, there)
    join graph_edges outgoing
        on outgoing.namespace = :namespace and outgoing.source = hop.here and outgoing.target = hop.there
    union all
    select hop.here, hop.there, incoming.relation, incoming.weight, false
    from unnest(:heres::bigint[], :theres::bigint[]) as hop (here, there)
    join graph_edges incoming
        on incoming.namespace = :namespace and incoming.source = hop.there and incoming.target = hop.here
)
select distinct on (here, there) here, there, relation, weight, outward
from edges
order by here, there, weight desc, outward desc, relation;

-- described
-- Nodes by their ids.
-- Audit node id
select id, label, name from graph_nodes where namespace = :namespace and id = any(:ids::bigint[]);

-- remove_versions
-- What a node was before.
delete from graph_node_versions where namespace = :namespace and node_id = :node_id returning number;

-- remove_edge_versions
-- What the edges of a node were before.
delete from graph_edge_versions versions
using graph_edges edges
where versions.namespace = :namespace
  and edges.namespace = :namespace
  and edges.id = versions.edge_id
  and (edges.source = :node_id or edges.target = :node_id)
returning versions.number;

-- remove_edges
-- What a node is related by.
delete from graph_edges where namespace = :namespace and (source = :node_id or target = :node_id) returning id;

-- remove
-- A node, which has no edges any more.
delete from graph_nodes where namespace = :namespace and id = :node_id returning id;

-- unlink
-- Nodes that point to insights which are going point nowhere, in id order so that two writers never wait for each other.
with pointing as (
    select id from graph_nodes
    where namespace = :namespace and vector_id = any(:insight_ids::bigint[]) order by id for no key update
)
update graph_nodes set vector_id = null
from pointing
where graph_nodes.namespace = :namespace and graph_nodes.id = pointing.id
returning graph_nodes.id;

-- unlink_versions
-- Neither did they ever.
update graph_node_versions set vector_id = null
where namespace = :namespace and vector_id = any(:insight_ids::bigint[])
returning node_id;

-- drop_repeats
-- Versions of nodes that say the same as what came after them.
with states as (
    select versions.node_id, versions.number, versions.label, versions.properties, versions.vector_id,
           versions.until_at
    from graph_node_versions versions
    where versions.namespace = :namespace and versions.node_id = any(:ids::bigint[])
    union all
    select nodes.id, null, nodes.label, nodes.properties, nodes.vector_id, 'infinity'
    from graph_nodes nodes
    where nodes.namespace = :namespace and nodes.id = any(:ids)
),
followed as (
    select node_id, number,
           label = lead(label) over later
           and properties = lead(properties) over later
           and vector_id is not distinct from lead(vector_id) over later as repeats
    from states
    window later as (partition by node_id order by until_at)
)
delete from graph_node_versions versions
using followed
where versions.namespace = :namespace
  and versions.node_id = followed.node_id
  and versions.number = followed.number
  and followed.repeats;

-- page_graph_nodes
-- Nodes of the graph.
-- Audit node id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from graph_nodes r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_graph_nodes
-- Adds nodes that are not there.
insert into graph_nodes overriding system value
select * from jsonb_populate_recordset(null::graph_nodes, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_graph_nodes
-- Compares given records with the stored ones, which may be the same, or akin: the same thing, of which more is
-- known since.
select given.id, to_jsonb(stored) = to_jsonb(given) as same,
       (stored.name, stored.created_at) = (given.name, given.created_at) as akin
from jsonb_populate_recordset(null::graph_nodes, :records::text::jsonb) as given
left join graph_nodes stored on stored.namespace = :namespace and stored.id = given.id;

-- size_graph_nodes
-- Rows up to a bound, along an index, to be counted.
select 1 as row from graph_nodes where namespace = :namespace order by id limit :limit;

-- page_graph_edges
-- Edges of the graph.
-- Audit edge id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from graph_edges r
where r.namespace = :namespace and :user_id::text is null and (:after_id::bigint is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_graph_edges
-- Adds edges that are not there.
insert into graph_edges overriding system value
select * from jsonb_populate_recordset(null::graph_edges, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_graph_edges
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::graph_edges, :records::text::jsonb) as given
left join graph_edges stored on stored.namespace = :namespace and stored.id = given.id;

-- size_graph_edges
-- Rows up to a bound, along an index, to be counted.
select 1 as row from graph_edges where namespace = :namespace order by id limit :limit;

-- page_graph_node_versions
-- What nodes were before they changed.
-- Audit node node_id
select (to_jsonb(r) - 'namespace')::text as record, r.node_id, r.number
from graph_node_versions r
where r.namespace = :namespace
  and :user_id::text is null
  and (:after_node_id::bigint is null or (r.node_id, r.number) > (:after_node_id, :after_number::bigint))
order by r.node_id, r.number
limit :limit;

-- restore_graph_node_versions
-- Adds versions that are not there.
insert into graph_node_versions overriding system value
select * from jsonb_populate_recordset(null::graph_node_versions, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning node_id, number;

-- compare_graph_node_versions
-- Compares given records with the stored ones.
select given.node_id, given.number, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::graph_node_versions, :records::text::jsonb) as given
left join graph_node_versions stored
    on stored.namespace = :namespace and stored.node_id = given.node_id and stored.number = given.number;

-- page_graph_edge_versions
-- What edges were before they changed.
-- Audit edge edge_id
select (to_jsonb(r) - 'namespace')::text as record, r.edge_id, r.number
from graph_edge_versions r
where r.namespace = :namespace
  and :user_id::text is null
  and (:after_edge_id::bigint is null or (r.edge_id, r.number) > (:after_edge_id, :after_number::bigint))
order by r.edge_id, r.number
limit :limit;

-- restore_graph_edge_versions
-- Adds versions that are not there.
insert into graph_edge_versions overriding system value
select * from jsonb_populate_recordset(null::graph_edge_versions, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning edge_id, number;

-- compare_graph_edge_versions
-- Compares given records with the stored ones.
select given.edge_id, given.number, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::graph_edge_versions, :records::text::jsonb) as given
left join graph_edge_versions stored
    on stored.namespace = :namespace and stored.edge_id = given.edge_id and stored.number = given.number;

-- shown_graph_nodes
-- Some nodes as the feed shows them.
-- Audit node item_id
select n.id::text as item_id,
       jsonb_build_object(
           'text', left(coalesce((
               select string_agg(n.name || ': ' || told.observation, E'\n' order by told.place)
               from jsonb_array_elements_text(
                   case when jsonb_typeof(n.properties -> 'observations') = 'array' then n.properties -> 'observations'
                        else '[]'::jsonb end
               ) with ordinality as told (observation, place)
           ), n.name), :most::integer),
           'label', n.label
       ) as content, n.created_at as at
from graph_nodes n
where n.namespace = :namespace and n.id = any(:ids::text[]::bigint[]);

-- shown_graph_edges
-- Some edges as the feed shows them.
-- Audit edge item_id
select e.id::text as item_id,
       jsonb_build_object(
           'text', left(concat_ws(' ', s.name, e.relation, t.name), :most::integer),
           'source', s.name, 'relation', e.relation, 'target', t.name, 'weight', e.weight
       ) as content, e.created_at as at
from graph_edges e
join graph_nodes s on s.namespace = :namespace and s.id = e.source
join graph_nodes t on t.namespace = :namespace and t.id = e.target
where e.namespace = :namespace and e.id = any(:ids::text[]::bigint[]);

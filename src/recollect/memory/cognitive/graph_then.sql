-- named
-- Nodes by their names, those that existed.
select id, name, labelled from graph_nodes
where namespace = :namespace and name = any(:names::text[]) and created_at <= :as_of;

-- around
-- As in graph.sql, at a moment: what has changed since is read from its first version that ended later.
-- Audit node id
with reached as (
    select outgoing.id as edge, outgoing.target as id, outgoing.relation, outgoing.weight, outgoing.properties,
           true as outward
    from graph_edges outgoing
    where outgoing.namespace = :namespace
      and outgoing.source = any(:frontier::bigint[])
      and outgoing.created_at <= :as_of::timestamptz
      and (:relation::text is null or outgoing.relation = :relation)
    union all
    select incoming.id, incoming.source, incoming.relation, incoming.weight, incoming.properties, false
    from graph_edges incoming
    where incoming.namespace = :namespace
      and incoming.target = any(:frontier::bigint[])
      and incoming.created_at <= :as_of
      and (:relation::text is null or incoming.relation = :relation)
),
edges as (
    select reached.id, reached.relation, coalesce(past.weight, reached.weight) as weight,
           coalesce(past.properties, reached.properties) as properties, reached.outward
    from reached
    -- Imports may have edges that are older than their nodes.
    join graph_nodes ends on ends.namespace = :namespace and ends.id = reached.id and ends.created_at <= :as_of
    left join unnest(:seen::bigint[]) as seen (id) on seen.id = reached.id
    left join lateral (
        select versions.weight, versions.properties
        from graph_edge_versions versions
        where versions.namespace = :namespace and versions.edge_id = reached.edge and versions.until_at > :as_of
        order by versions.until_at
        limit 1
    ) as past on true
    where seen.id is null
      and reached.id not in (
          select held.item_id::bigint from held
          where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
      )
),
strongest as (
    select distinct on (edges.id) edges.id, edges.relation, edges.weight, edges.properties, edges.outward,
           count(*) over (partition by edges.id) as parallel
    from edges
    order by edges.id, edges.weight desc, edges.outward desc, edges.relation
),
foremost as (
    select id, relation, weight, properties, outward, parallel, count(*) over () as total
    from strongest
    order by weight desc, id
    limit :limit
)
select nodes.id, coalesce(past.label, nodes.label) as label, nodes.name,
       coalesce(past.properties, nodes.properties) as properties,
       case when past.label is null then nodes.vector_id else past.vector_id end as vector_id,
       foremost.relation, foremost.weight, foremost.properties as edge_properties, foremost.outward,
       foremost.parallel, foremost.total
from foremost
join graph_nodes nodes on nodes.namespace = :namespace and nodes.id = foremost.id
left join lateral (
    select versions.label, versions.properties, versions.vector_id
    from graph_node_versions versions
    where versions.namespace = :namespace and versions.node_id = nodes.id and versions.until_at > :as_of
    order by versions.until_at
    limit 1
) as past on true
order by foremost.weight desc, nodes.name collate "C";

-- parallel
-- The edges that there were between some nodes and others, so many of each of the others, the strongest first.
with reached as (
    select outgoing.id as edge, outgoing.target as id, outgoing.relation, outgoing.weight, outgoing.properties,
           true as outward
    from graph_edges outgoing
    where outgoing.namespace = :namespace
      and outgoing.source = any(:frontier::bigint[])
      and outgoing.target = any(:several::bigint[])
      and outgoing.created_at <= :as_of::timestamptz
      and (:relation::text is null or outgoing.relation = :relation)
    union all
    select incoming.id, incoming.source, incoming.relation, incoming.weight, incoming.properties, false
    from graph_edges incoming
    where incoming.namespace = :namespace
      and incoming.target = any(:frontier::bigint[])
      and incoming.source = any(:several::bigint[])
      and incoming.created_at <= :as_of
      and (:relation::text is null or incoming.relation = :relation)
),
edges as (
    select reached.id, reached.relation, coalesce(past.weight, reached.weight) as weight,
           coalesce(past.properties, reached.properties) as properties, reached.outward
    from reached
    left join lateral (
        select versions.weight, versions.properties
        from graph_edge_versions versions
        where versions.namespace = :namespace and versions.edge_id = reached.edge and versions.until_at > :as_of
        order by versions.until_at
        limit 1
    ) as past on true
),
ranked as (
    select id, relation, weight, properties, outward,
           row_number() over (partition by id order by weight desc, outward desc, relation) as place
    from edges
)
select id, relation, weight, properties, outward from ranked where place <= :max_relations order by id, place;

-- adjacent
-- The ids one step away from some nodes, in either direction: a single array, because there may be very many.
select array_agg(reached.id) as ids
from (
    select outgoing.target as id
    from graph_edges outgoing
    where outgoing.namespace = :namespace
      and outgoing.source = any(:ids::bigint[])
      and outgoing.created_at <= :as_of::timestamptz
    union
    select incoming.source
    from graph_edges incoming
    where incoming.namespace = :namespace and incoming.target = any(:ids) and incoming.created_at <= :as_of
) as reached
join graph_nodes ends on ends.namespace = :namespace and ends.id = reached.id and ends.created_at <= :as_of
where reached.id not in (
    select held.item_id::bigint from held
    where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
);

-- links
-- Some nodes, each with those one step away from it.
select reached.id, array_agg(reached.other) as others
from (
    select outgoing.source as id, outgoing.target as other
    from graph_edges outgoing
    where outgoing.namespace = :namespace
      and outgoing.source = any(:ids::bigint[])
      and outgoing.created_at <= :as_of::timestamptz
    union
    select incoming.target, incoming.source
    from graph_edges incoming
    where incoming.namespace = :namespace and incoming.target = any(:ids) and incoming.created_at <= :as_of
) as reached
group by reached.id;

-- hops
-- The strongest edge that there was between nodes that stand next to each other on a path.
with edges as (
    select hop.here, hop.there, outgoing.id, outgoing.relation, outgoing.weight, true as outward
    from unnest(:heres::bigint[], :theres::bigint[]) as hop (here, there)
    join graph_edges outgoing
        on outgoing.namespace = :namespace and outgoing.source = hop.here and outgoing.target = hop.there
        and outgoing.created_at <= :as_of::timestamptz
    union all
    select hop.here, hop.there, incoming.id, incoming.relation, incoming.weight, false
    from unnest(:heres::bigint[], :theres::bigint[]) as hop (here, there)
    join graph_edges incoming
        on incoming.namespace = :namespace and incoming.source = hop.there and incoming.target = hop.here
        and incoming.created_at <= :as_of
),
valued as (
    select edges.here, edges.there, edges.relation, coalesce(past.weight, edges.weight) as weight, edges.outward
    from edges
    left join lateral (
        select versions.weight
        from graph_edge_versions versions
        where versions.namespace = :namespace and versions.edge_id = edges.id and versions.until_at > :as_of
        order by versions.until_at
        limit 1
    ) as past on true
)
select distinct on (here, there) here, there, relation, weight, outward
from valued
order by here, there, weight desc, outward desc, relation;

-- described
-- Nodes by their ids, under the labels that they had.
-- Audit node id
select nodes.id, coalesce(past.label, nodes.label) as label, nodes.name
from graph_nodes nodes
left join lateral (
    select versions.label
    from graph_node_versions versions
    where versions.namespace = :namespace and versions.node_id = nodes.id and versions.until_at > :as_of::timestamptz
    order by versions.until_at
    limit 1
) as past on true
where nodes.namespace = :namespace and nodes.id = any(:ids::bigint[]);

-- insight
-- The insight that a node is to point to, if it exists.
select id from insights where namespace = $1 and id = $2;

-- amend_node
-- Merges what is new into a node; the first label that a caller chose stays.
update graph_nodes
set label = case when labelled then label else $3::text end,
    labelled = true,
    properties = properties || $4::text::jsonb,
    vector_id = coalesce($5::bigint, vector_id)
where namespace = $1 and name = $2
returning id, label, name, properties, vector_id, false as created;

-- create_node
-- A node that nobody has named yet; one that exists is left as it is.
insert into graph_nodes (namespace, name, label, labelled, properties, vector_id)
values ($1, $2, $3, true, $4::text::jsonb, $5)
on conflict (namespace, name) do nothing
returning id, label, name, properties, vector_id, true as created;

-- named
-- Nodes by their names.
select id, name, labelled from graph_nodes where namespace = $1 and name = any($2::text[]);

-- create_ends
-- The ends of an edge that do not exist yet, in name order so that two writers never wait for each other.
insert into graph_nodes (namespace, name, label, labelled)
select $1, ends.name, ends.label, ends.labelled
from unnest($2::text[], $3::text[], $4::boolean[]) as ends (name, label, labelled)
order by ends.name
on conflict (namespace, name) do nothing
returning name;

-- label_ends
-- Says what nodes are that have no label of their own, in name order. No key is changed, and to lock them as if one
-- were would make whoever adds an edge to them wait.
with held as (
    select id, name from graph_nodes where namespace = $1 and name = any($2::text[]) and not labelled
    order by name
    for no key update
)
update graph_nodes
set label = ends.label, labelled = true
from held
join unnest($2::text[], $3::text[]) as ends (name, label) on ends.name = held.name
where graph_nodes.namespace = $1 and graph_nodes.id = held.id;

-- put_edge
-- A new edge, or more properties for the one that is there, and a new weight if one is given.
insert into graph_edges (namespace, source, target, relation, weight, properties)
values ($1, $2, $3, $4, coalesce($5::float8, 1.0), $6::text::jsonb)
on conflict (namespace, source, target, relation)
do update set weight = case when $5::float8 is null then graph_edges.weight else excluded.weight end,
              properties = graph_edges.properties || excluded.properties
returning id, weight;

-- create_edge
-- A new edge; one that is there stays as it is.
insert into graph_edges (namespace, source, target, relation, weight)
values ($1, $2, $3, $4, $5)
on conflict (namespace, source, target, relation) do nothing
returning id;

-- around
-- The nodes one step further that were not seen before, each by its strongest edge, and how many there are. Where
-- there are too many of the same weight the oldest stay: to look up every name of a hub takes longer than all the rest.
with edges as (
    select target as id, relation, weight, properties, true as outward
    from graph_edges
    where namespace = $1 and source = any($2::bigint[]) and ($4::text is null or relation = $4)
    union all
    select source, relation, weight, properties, false
    from graph_edges
    where namespace = $1 and target = any($2::bigint[]) and ($4::text is null or relation = $4)
),
strongest as (
    select distinct on (edges.id) edges.id, edges.relation, edges.weight, edges.properties, edges.outward,
           count(*) over (partition by edges.id) as parallel
    from edges
    left join unnest($3::bigint[]) as seen (id) on seen.id = edges.id
    where seen.id is null
    order by edges.id, edges.weight desc, edges.outward desc, edges.relation
),
foremost as (
    select id, relation, weight, properties, outward, parallel, count(*) over () as total
    from strongest
    order by weight desc, id
    limit $5
)
select nodes.id, nodes.label, nodes.name, nodes.properties, nodes.vector_id, foremost.relation, foremost.weight,
       foremost.properties as edge_properties, foremost.outward, foremost.parallel, foremost.total
from foremost
join graph_nodes nodes on nodes.namespace = $1 and nodes.id = foremost.id
order by foremost.weight desc, nodes.name collate "C";

-- parallel
-- The edges between some nodes and others, so many of each of the others, the strongest first.
with edges as (
    select id as edge, target as id, relation, weight, true as outward
    from graph_edges
    where namespace = $1
      and source = any($2::bigint[])
      and target = any($3::bigint[])
      and ($4::text is null or relation = $4)
    union all
    select id, source, relation, weight, false
    from graph_edges
    where namespace = $1
      and target = any($2::bigint[])
      and source = any($3::bigint[])
      and ($4::text is null or relation = $4)
),
ranked as (
    select edge, id, outward, row_number() over (partition by id order by weight desc, outward desc, relation) as place
    from edges
)
select ranked.id, chosen.relation, chosen.weight, chosen.properties, ranked.outward
from ranked
join graph_edges chosen on chosen.namespace = $1 and chosen.id = ranked.edge
where ranked.place <= $5
order by ranked.id, ranked.place;

-- adjacent
-- The ids one step away from some nodes, in either direction: a single array, because there may be very many.
select array_agg(reached.id) as ids
from (
    select target as id from graph_edges where namespace = $1 and source = any($2::bigint[])
    union
    select source from graph_edges where namespace = $1 and target = any($2::bigint[])
) as reached;

-- links
-- Some nodes, each with those one step away from it.
select reached.id, array_agg(reached.other) as others
from (
    select source as id, target as other from graph_edges where namespace = $1 and source = any($2::bigint[])
    union
    select target, source from graph_edges where namespace = $1 and target = any($2::bigint[])
) as reached
group by reached.id;

-- hops
-- The strongest edge between nodes that stand next to each other on a path.
with edges as (
    select hop.here, hop.there, outgoing.relation, outgoing.weight, true as outward
    from unnest($2::bigint[], $3::bigint[]) as hop (here, there)
    join graph_edges outgoing
        on outgoing.namespace = $1 and outgoing.source = hop.here and outgoing.target = hop.there
    union all
    select hop.here, hop.there, incoming.relation, incoming.weight, false
    from unnest($2::bigint[], $3::bigint[]) as hop (here, there)
    join graph_edges incoming
        on incoming.namespace = $1 and incoming.source = hop.there and incoming.target = hop.here
)
select distinct on (here, there) here, there, relation, weight, outward
from edges
order by here, there, weight desc, outward desc, relation;

-- described
-- Nodes by their ids.
select id, label, name from graph_nodes where namespace = $1 and id = any($2::bigint[]);

-- remove_edges
-- What a node is related by.
delete from graph_edges where namespace = $1 and (source = $2 or target = $2) returning id;

-- remove
-- A node, which has no edges any more.
delete from graph_nodes where namespace = $1 and id = $2 returning id;

-- unlink
-- Nodes that point to insights which are going point nowhere, in id order so that two writers never wait for each other.
with held as (
    select id from graph_nodes where namespace = $1 and vector_id = any($2::bigint[]) order by id for no key update
)
update graph_nodes set vector_id = null
from held
where graph_nodes.namespace = $1 and graph_nodes.id = held.id;

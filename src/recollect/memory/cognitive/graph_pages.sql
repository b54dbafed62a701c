-- newest
-- Nodes that have a label and a text in their name and are not held, the newest first, among those that are looked at:
-- as of a time, some of these were not there yet.
-- Audit node id
select nodes.id, nodes.name, coalesce(past.label, nodes.label) as label, nodes.created_at
from (
    select n.id, n.name, n.label, n.created_at
    from graph_nodes n
    where n.namespace = :namespace
      and (:before::bigint is null or n.id < :before)
    order by n.id desc
    limit :looked_at
) as nodes
left join lateral (
    select versions.label
    from graph_node_versions versions
    where versions.namespace = :namespace and versions.node_id = nodes.id and versions.until_at > :as_of
    order by versions.until_at
    limit 1
) as past on :as_of is not null
where (:as_of::timestamptz is null or nodes.created_at <= :as_of)
  and (:label::text is null or coalesce(past.label, nodes.label) = :label)
  and (:text::text is null or strpos(lower(nodes.name), lower(:text)) > 0)
  and nodes.id not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
order by nodes.id desc
limit :limit;

-- reached
-- The last node that `newest` looks at, if there are so many.
select id
from graph_nodes
where namespace = :namespace
  and (:before::bigint is null or id < :before)
order by id desc
offset :looked_at - 1
limit 1;

-- busiest
-- Nodes at which most of the newest edges begin or end: to count all edges of a large graph would take too long.
-- Audit node id
with recent as (
    select source, target
    from graph_edges
    where namespace = :namespace and (:as_of::timestamptz is null or created_at <= :as_of)
    order by created_at desc, id desc
    limit :looked_at
),
counted as (
    select ends.id, count(*) as edges
    from (select source as id from recent union all select target from recent where target <> source) as ends
    group by ends.id
)
select n.id, n.name, coalesce(past.label, n.label) as label, n.created_at, counted.edges
from counted
join graph_nodes n on n.namespace = :namespace and n.id = counted.id
left join lateral (
    select versions.label
    from graph_node_versions versions
    where versions.namespace = :namespace and versions.node_id = n.id and versions.until_at > :as_of
    order by versions.until_at
    limit 1
) as past on :as_of is not null
where (:label::text is null or coalesce(past.label, n.label) = :label)
  and (:text::text is null or strpos(lower(n.name), lower(:text)) > 0)
  and n.id not in (
      select held.item_id::bigint from held
      where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
  )
  and (:as_of is null or n.created_at <= :as_of)
  and (:before_edges::bigint is null or (counted.edges, n.id) < (:before_edges, :before::bigint))
order by counted.edges desc, n.id desc
limit :limit;

-- labels
-- What the newest nodes are labelled, the most frequent first.
select recent.label
from (
    select label from graph_nodes
    where namespace = :namespace
      and id not in (
          select held.item_id::bigint from held
          where held.namespace = :namespace and held.kind = 'node' and held.state = 'held'
      )
    order by id desc
    limit :looked_at
) as recent
group by recent.label
order by count(*) desc, recent.label collate "C"
limit :limit;

-- node
-- A node, as it is or was.
-- Audit node id
select n.id, n.name, coalesce(past.label, n.label) as label, coalesce(past.properties, n.properties) as properties,
       case when past.label is null then n.vector_id else past.vector_id end as vector_id, n.created_at
from graph_nodes n
left join lateral (
    select versions.label, versions.properties, versions.vector_id
    from graph_node_versions versions
    where versions.namespace = :namespace and versions.node_id = n.id and versions.until_at > :as_of::timestamptz
    order by versions.until_at
    limit 1
) as past on :as_of is not null
where n.namespace = :namespace and n.id = :id and (:as_of is null or n.created_at <= :as_of);

-- edge_counts
-- How many edges begin or end at some nodes, each counted up to a bound, and whether there may be more. As of a time, some
-- of those that are looked at were not there yet.
select given.id, least(outgoing.number + incoming.number, :most::bigint) as edges,
       outgoing.number + incoming.number >= :most
           or (:as_of::timestamptz is not null and greatest(outgoing.seen, incoming.seen) >= :looked_at::bigint) as has_more
from unnest(:ids::bigint[]) as given (id)
cross join lateral (
    select count(*) as seen,
           count(*) filter (where :as_of::timestamptz is null or some_away.created_at <= :as_of::timestamptz) as number
    from (
        select away.created_at
        from graph_edges away
        where away.namespace = :namespace and away.source = given.id
        limit case when :as_of::timestamptz is null then :most::bigint else :looked_at::bigint end
    ) as some_away
) as outgoing
cross join lateral (
    select count(*) as seen,
           count(*) filter (where :as_of::timestamptz is null or some_back.created_at <= :as_of::timestamptz) as number
    from (
        select back.created_at
        from graph_edges back
        where back.namespace = :namespace and back.target = given.id and back.source <> given.id
        limit case when :as_of::timestamptz is null then :most::bigint else :looked_at::bigint end
    ) as some_back
) as incoming;

-- between
-- The edges between some nodes and others, in either direction, the strongest first.
select edges.source, edges.target, edges.relation, coalesce(past.weight, edges.weight) as weight
from (
    select away.id, away.source, away.target, away.relation, away.weight
    from unnest(:ids::bigint[]) as here (id)
    join graph_edges away on away.namespace = :namespace and away.source = here.id
    join unnest(:others::bigint[]) as there (id) on there.id = away.target
    where :as_of::timestamptz is null or away.created_at <= :as_of
    union
    select back.id, back.source, back.target, back.relation, back.weight
    from unnest(:others::bigint[]) as there (id)
    join graph_edges back on back.namespace = :namespace and back.source = there.id
    join unnest(:ids::bigint[]) as here (id) on here.id = back.target
    where :ids <> :others and (:as_of is null or back.created_at <= :as_of)
) as edges
left join lateral (
    select versions.weight
    from graph_edge_versions versions
    where versions.namespace = :namespace and versions.edge_id = edges.id and versions.until_at > :as_of
    order by versions.until_at
    limit 1
) as past on :as_of is not null
order by weight desc, edges.id
limit :limit;

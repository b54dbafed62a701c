-- The newest edges, or those that were the newest at some time, without a walk through all of them.
create index graph_edges_by_time on graph_edges (namespace, created_at, id);

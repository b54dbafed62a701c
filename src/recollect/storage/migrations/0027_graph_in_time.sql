-- What nodes and edges were before they changed, each version with the moment at which it ended. It began when the one
-- before it ended, or with its node or edge. Reads of the present never come here.
create table graph_node_versions (
    namespace text not null,
    node_id bigint not null,
    number bigint not null,
    label text not null,
    properties jsonb not null,
    vector_id bigint,
    until_at timestamptz not null,
    primary key (namespace, node_id, number),
    foreign key (namespace, node_id) references graph_nodes (namespace, id) on delete cascade
);
create index graph_node_versions_by_time on graph_node_versions (namespace, node_id, until_at);

create table graph_edge_versions (
    namespace text not null,
    edge_id bigint not null,
    number bigint not null,
    weight double precision not null,
    properties jsonb not null,
    until_at timestamptz not null,
    primary key (namespace, edge_id, number),
    foreign key (namespace, edge_id) references graph_edges (namespace, id) on delete cascade
);
create index graph_edge_versions_by_time on graph_edge_versions (namespace, edge_id, until_at);

alter table graph_node_versions enable row level security;
alter table graph_node_versions force row level security;
create policy own_namespace on graph_node_versions using (namespace = current_setting('recollect.namespace', true));

alter table graph_edge_versions enable row level security;
alter table graph_edge_versions force row level security;
create policy own_namespace on graph_edge_versions using (namespace = current_setting('recollect.namespace', true));

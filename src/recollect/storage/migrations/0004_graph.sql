-- Things, known by their names. A node that an edge brought along is not `labelled` until a caller says what it is.
-- `vector_id` is the insight that tells of it.
create table graph_nodes (
    namespace text not null,
    id bigint generated always as identity,
    name text not null,
    label text not null,
    labelled boolean not null,
    properties jsonb not null default '{}',
    vector_id bigint,
    created_at timestamptz not null default now(),
    primary key (namespace, id),
    unique (namespace, name)
);

-- How things relate, walked in both directions: both indexes hold all that a walk reads, so that it never goes to the
-- rows themselves. The unique one also finds by (namespace, source, target).
create table graph_edges (
    namespace text not null,
    id bigint generated always as identity,
    source bigint not null,
    target bigint not null,
    relation text not null,
    weight double precision not null,
    properties jsonb not null default '{}',
    created_at timestamptz not null default now(),
    primary key (namespace, id),
    unique (namespace, source, target, relation) include (weight),
    foreign key (namespace, source) references graph_nodes (namespace, id) on delete cascade,
    foreign key (namespace, target) references graph_nodes (namespace, id) on delete cascade
);
create index graph_edges_by_target on graph_edges (namespace, target, source) include (relation, weight);

alter table graph_nodes enable row level security;
alter table graph_nodes force row level security;
create policy own_namespace on graph_nodes using (namespace = current_setting('recollect.namespace', true));

alter table graph_edges enable row level security;
alter table graph_edges force row level security;
create policy own_namespace on graph_edges using (namespace = current_setting('recollect.namespace', true));

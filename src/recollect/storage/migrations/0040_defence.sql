-- Where a text comes from. Null where the kind of the item and, for messages, its role say it.
alter table passages add column trust text;
alter table memories add column trust text;
alter table insights add column trust text;

-- Items that somebody should look at: held ones have no passages until they are released, warned ones are recalled.
create table held (
    namespace text not null,
    kind text not null,
    item_id text not null,
    state text not null,
    reasons text[] not null,
    trust text not null,
    -- Of the text that was judged: what was released is not held again unless it changes.
    digest bytea not null,
    author text,
    door text not null,
    at timestamptz not null default now(),
    decided_by text,
    decided_at timestamptz,
    primary key (namespace, kind, item_id)
);

create index held_by_time on held (namespace, state, at desc, kind, item_id);
alter table held enable row level security;
alter table held force row level security;
create policy own_namespace on held using (namespace = current_setting('recollect.namespace', true));

-- How many secrets of each kind were written over before anything was stored.
create table masked (
    namespace text not null,
    kind text not null,
    count bigint not null,
    primary key (namespace, kind)
);

alter table masked enable row level security;
alter table masked force row level security;
create policy own_namespace on masked using (namespace = current_setting('recollect.namespace', true));

-- Who read and changed what, one line for each operation at a door, without content. Lines are numbered without gaps, and
-- each has the hash of the one before it and of itself: a line that is changed or missing breaks the chain.
create table audit_lines (
    namespace text not null,
    number bigint not null,
    at timestamptz not null,
    key_id text,
    -- The label of the key, or a user of the gateway.
    author text,
    door text not null,
    action text not null,
    outcome text not null,
    request_id text,
    touched jsonb not null,
    hash bytea not null,
    primary key (namespace, number)
);

-- Where the chain of a namespace ends, and behind which line it begins since older ones were pruned.
create table audit_heads (
    namespace text not null,
    number bigint not null,
    at timestamptz not null,
    hash bytea not null,
    anchor bigint not null default 0,
    anchor_hash bytea not null,
    primary key (namespace)
);

alter table audit_lines enable row level security;
alter table audit_lines force row level security;
create policy own_namespace on audit_lines using (namespace = current_setting('recollect.namespace', true));

alter table audit_heads enable row level security;
alter table audit_heads force row level security;
create policy own_namespace on audit_heads using (namespace = current_setting('recollect.namespace', true));

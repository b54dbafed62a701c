-- Long-term memories in two times: when each was in force here, and when it is true in the world.
alter table memories
    -- Since when it has been in force as it is now: stored, changed, or brought back.
    add column since timestamptz,
    add column valid_from timestamptz,
    add column valid_until timestamptz,
    add column key text,
    -- The key together with the scope: a digest, because any part of a scope may be null.
    add column slot bytea,
    add column expires_at timestamptz,
    add column pinned boolean not null default false,
    -- What it was made from: ids of messages, documents and the like, as `message:ID`.
    add column sources text[] not null default '{}';

alter table memories no force row level security;
update memories set since = coalesce(updated_at, created_at);
alter table memories force row level security;

alter table memories
    alter column since set not null,
    alter column since set default now();

create unique index memories_by_slot on memories (namespace, slot) where superseded_by is null and slot is not null;
create index memories_by_expiry on memories (namespace, expires_at) where expires_at is not null;
create index memories_pinned on memories (namespace, created_at desc, id desc) where pinned and superseded_by is null;

-- What a memory was before it changed or was superseded, and for how long. `superseded_by` is what took it out of force.
create table memory_versions (
    namespace text not null,
    memory_id uuid not null,
    number bigint not null,
    text text not null,
    category text not null,
    metadata json not null,
    valid_from timestamptz,
    valid_until timestamptz,
    key text,
    expires_at timestamptz,
    pinned boolean not null,
    updated_at timestamptz,
    superseded_by uuid,
    since timestamptz not null,
    until timestamptz not null,
    -- What never changes of a memory, so that a version can be found like one.
    user_id text,
    agent_id text,
    session_id text,
    position bigint,
    created_at timestamptz not null,
    primary key (namespace, memory_id, number),
    foreign key (namespace, memory_id) references memories (namespace, id) on delete cascade
);
create index memory_versions_by_user on memory_versions (namespace, user_id, memory_id, number)
where user_id is not null;

alter table memory_versions enable row level security;
alter table memory_versions force row level security;
create policy own_namespace on memory_versions using (namespace = current_setting('recollect.namespace', true));

-- Who or what replaced a memory: with a language model, its name and the texts that it saw.
alter table memory_history add column detail jsonb;

-- A passage of a past version is of the kind past_memory and stays where it was found, for questions about the past.
alter table passages
    add column since timestamptz,
    add column ended_at timestamptz,
    add column valid_from timestamptz,
    add column valid_until timestamptz,
    add column expires_at timestamptz;

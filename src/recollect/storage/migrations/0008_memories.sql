-- Long-term memories. The ids of their scope are plain names: nobody needs to have a session of that id. `identity` is a
-- digest of scope, category and what the text says, `origin` the same of what the caller gave, which differs where an
-- LLM condensed it: of memories that are in force, no two may share either. One that a newer memory replaced stays, with
-- `superseded_by`, but is neither listed nor found.
create table memories (
    namespace text not null,
    id uuid not null,
    text text not null,
    category text not null,
    user_id text,
    agent_id text,
    session_id text,
    metadata jsonb not null,
    identity bytea not null,
    origin bytea not null,
    superseded_by uuid,
    created_at timestamptz not null default now(),
    updated_at timestamptz,
    primary key (namespace, id)
);
create unique index memories_by_identity on memories (namespace, identity) where superseded_by is null;
create unique index memories_by_origin on memories (namespace, origin) where superseded_by is null;
create index memories_by_time on memories (namespace, created_at desc, id desc) where superseded_by is null;
create index memories_by_user on memories (namespace, user_id, created_at desc, id desc)
where superseded_by is null and user_id is not null;
create index memories_by_agent on memories (namespace, agent_id, created_at desc, id desc)
where superseded_by is null and agent_id is not null;
create index memories_by_session on memories (namespace, session_id, created_at desc, id desc)
where superseded_by is null and session_id is not null;

-- What happened to a memory, numbered from 1 while its row is locked; it outlives the memory.
create table memory_history (
    namespace text not null,
    memory_id uuid not null,
    number bigint not null,
    id uuid not null,
    event text not null,
    old_memory text,
    new_memory text,
    at timestamptz not null default clock_timestamp(),
    primary key (namespace, memory_id, number)
);

alter table memories enable row level security;
alter table memories force row level security;
create policy own_namespace on memories using (namespace = current_setting('recollect.namespace', true));

alter table memory_history enable row level security;
alter table memory_history force row level security;
create policy own_namespace on memory_history using (namespace = current_setting('recollect.namespace', true));

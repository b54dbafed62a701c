-- Sessions, conversations and gateway chats are the same thing. Positions are handed out from next_position while the
-- session's row is locked.
create table sessions (
    namespace text not null,
    id text not null,
    user_id text not null,
    agent_id text,
    title text,
    metadata jsonb,
    next_position bigint not null default 0,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (namespace, id)
);
create index sessions_by_user on sessions (namespace, user_id, updated_at desc, id);

-- The log (L0), append-only. `id` and `seq` are names, not orders: order inside a session is `position`.
create table messages (
    namespace text not null,
    id uuid not null,
    seq bigint generated always as identity,
    session_id text not null,
    position bigint not null,
    role text not null,
    speaker text,
    content text not null,
    metadata jsonb,
    created_at timestamptz not null,
    primary key (namespace, id),
    unique (namespace, session_id, position),
    unique (namespace, seq),
    foreign key (namespace, session_id) references sessions (namespace, id) on delete cascade
);
create index messages_by_time on messages (namespace, created_at);

-- Texts stored whole. `embedding` is in the caller's own space.
create table documents (
    namespace text not null,
    id uuid not null,
    content text not null,
    embedding vector(1536),
    metadata jsonb,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (namespace, id)
);
create index documents_by_time on documents (namespace, created_at desc, id);

alter table sessions enable row level security;
alter table sessions force row level security;
create policy own_namespace on sessions using (namespace = current_setting('recollect.namespace', true));

alter table messages enable row level security;
alter table messages force row level security;
create policy own_namespace on messages using (namespace = current_setting('recollect.namespace', true));

alter table documents enable row level security;
alter table documents force row level security;
create policy own_namespace on documents using (namespace = current_setting('recollect.namespace', true));

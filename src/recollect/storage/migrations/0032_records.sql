-- JSON values under a path of labels and a key, of a user or of nobody. The id follows from owner, path and key. `json`
-- keeps a value as it was sent, and null is a value; `texts` are what it is found by;
-- `vectors` are in the caller's own space. Labels compare byte by byte, so that everything under a path is one range of the index.
create table records (
    namespace text not null,
    id uuid not null,
    user_id text not null default '',
    path text[] collate "C" not null,
    key text collate "C" not null,
    value json,
    texts text[] not null,
    vectors vector[],
    ttl_minutes double precision,
    expires_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    primary key (namespace, id)
);
create index records_by_path on records (namespace, user_id, path, key);

alter table records enable row level security;
alter table records force row level security;
create policy own_namespace on records using (namespace = current_setting('recollect.namespace', true));

-- When records are over, where it can be asked of all namespaces at once: one without texts has no passage that says so.
create table record_expiries (
    namespace text not null,
    id uuid not null,
    expires_at timestamptz not null,
    primary key (namespace, id)
);
create index record_expiries_by_time on record_expiries (expires_at, namespace);

-- The state of an agent's threads as its framework wrote it: bytes that only the framework reads. A checkpoint names the
-- versions of its channels; the values are stored once each, however many checkpoints have them.
create table checkpoints (
    namespace text not null,
    thread_id text collate "C" not null,
    checkpoint_ns text collate "C" not null,
    checkpoint_id text collate "C" not null,
    parent_id text,
    user_id text not null default '',
    type text not null,
    body bytea not null,
    versions jsonb not null,
    metadata jsonb not null,
    created_at timestamptz not null default now(),
    primary key (namespace, thread_id, checkpoint_ns, checkpoint_id)
);
create index checkpoints_by_user on checkpoints (namespace, user_id, thread_id) where user_id <> '';
create index checkpoints_by_run on checkpoints (namespace, (metadata ->> 'run_id'));

create table checkpoint_values (
    namespace text not null,
    thread_id text collate "C" not null,
    checkpoint_ns text collate "C" not null,
    channel text collate "C" not null,
    version text collate "C" not null,
    type text not null,
    body bytea not null,
    primary key (namespace, thread_id, checkpoint_ns, channel, version)
);

create table checkpoint_writes (
    namespace text not null,
    thread_id text collate "C" not null,
    checkpoint_ns text collate "C" not null,
    checkpoint_id text collate "C" not null,
    task_id text collate "C" not null,
    idx integer not null,
    task_path text collate "C" not null,
    channel text collate "C" not null,
    type text not null,
    body bytea not null,
    primary key (namespace, thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

alter table checkpoints enable row level security;
alter table checkpoints force row level security;
create policy own_namespace on checkpoints using (namespace = current_setting('recollect.namespace', true));
alter table checkpoint_values enable row level security;
alter table checkpoint_values force row level security;
create policy own_namespace on checkpoint_values using (namespace = current_setting('recollect.namespace', true));
alter table checkpoint_writes enable row level security;
alter table checkpoint_writes force row level security;
create policy own_namespace on checkpoint_writes using (namespace = current_setting('recollect.namespace', true));

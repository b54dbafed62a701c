-- Memory stores: folders of small text files that agents keep, each change of a file kept as a version. A store may
-- belong to a user; its files and versions carry the user along, so that they are found, exported and forgotten.
-- No table refers to another: on a cluster new tables are distributed after their migration. Writers lock the store.
create table memory_stores (
    namespace text not null,
    id uuid not null,
    name text not null,
    description text not null,
    metadata jsonb not null,
    user_id text,
    -- A digest of name and user, of a store that was made unless there was one: two who do that at once make one.
    slot bytea,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    archived_at timestamptz,
    primary key (namespace, id)
);
create index memory_stores_by_time on memory_stores (namespace, created_at, id);
create unique index memory_stores_by_slot on memory_stores (namespace, slot)
where slot is not null and archived_at is null;
create index memory_stores_by_name on memory_stores (namespace, name, created_at, id);
create index memory_stores_by_user on memory_stores (namespace, user_id, id) where user_id is not null;

-- Paths are compared byte by byte, so that a folder is a range of the index.
create table store_files (
    namespace text not null,
    id uuid not null,
    store_id uuid not null,
    user_id text,
    path text collate "C" not null,
    content text not null,
    sha256 text not null,
    version_id uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    primary key (namespace, id)
);
create unique index store_files_by_path on store_files (namespace, store_id, path);
create index store_files_by_user on store_files (namespace, user_id, id) where user_id is not null;

-- Of a deleted file only its versions are left. A redacted version has neither path nor content.
create table store_versions (
    namespace text not null,
    id uuid not null,
    store_id uuid not null,
    file_id uuid not null,
    user_id text,
    operation text not null,
    path text,
    content text,
    sha256 text,
    author text,
    door text not null,
    -- When the store is locked, so that versions are in the order in which writers took turns.
    created_at timestamptz not null default clock_timestamp(),
    redacted_at timestamptz,
    redacted_by text,
    primary key (namespace, id)
);
create index store_versions_by_time on store_versions (namespace, store_id, created_at, id);
create index store_versions_by_file on store_versions (namespace, file_id, created_at, id);

alter table memory_stores enable row level security;
alter table memory_stores force row level security;
create policy own_namespace on memory_stores using (namespace = current_setting('recollect.namespace', true));

alter table store_files enable row level security;
alter table store_files force row level security;
create policy own_namespace on store_files using (namespace = current_setting('recollect.namespace', true));

alter table store_versions enable row level security;
alter table store_versions force row level security;
create policy own_namespace on store_versions using (namespace = current_setting('recollect.namespace', true));

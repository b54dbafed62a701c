-- Who did what to a memory, and through which door: a history outlives the database that its changes happened in.
alter table memory_history
    add column author text,
    add column door text;

-- What a memory superseded, also where that was undone later.
create index memory_versions_by_successor on memory_versions (namespace, superseded_by, until, memory_id)
where superseded_by is not null;

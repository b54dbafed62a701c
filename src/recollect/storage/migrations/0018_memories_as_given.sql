-- Metadata comes back as it was given: keys in their order, 1e23 no integer. `jsonb` keeps neither.
alter table memories alter column metadata type json using metadata::text::json;

-- What a memory replaced, for whoever deletes it.
create index memories_by_successor on memories (namespace, superseded_by) where superseded_by is not null;

-- A deleted memory leaves its history without its texts.
alter table memories no force row level security;
alter table memory_history no force row level security;
update memory_history set old_memory = null, new_memory = null
where not exists (
    select from memories where memories.namespace = memory_history.namespace and memories.id = memory_history.memory_id
);
alter table memories force row level security;
alter table memory_history force row level security;

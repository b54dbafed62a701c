-- Superseded memories are listed in the order of those in force.
create index memories_superseded_by_time on memories (namespace, created_at desc, id desc) where superseded_by is not null;

-- The place of a memory in its session, so that ranking sees what stands before and after it. Those that were stored
-- before have none.
alter table memories add column position bigint;
create index memories_by_position on memories (namespace, session_id, position) where position is not null;

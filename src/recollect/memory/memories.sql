-- add
-- One memory, unless one in force has the same identity or origin.
insert into memories (
    namespace, id, text, category, user_id, agent_id, session_id, metadata, identity, origin
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict do nothing
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at;

-- same
-- The memory in force that has one of two digests as its identity, or the other as its origin; the oldest of two.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at
from memories
where namespace = $1 and superseded_by is null and (identity = $2 or origin = $3)
order by created_at, id
limit 1;

-- find
-- Some memories by their ids, superseded ones included.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at
from memories
where namespace = $1 and id = any($2::uuid[]);

-- hold
-- The same, locked until the transaction ends; in id order, so that two writers never wait for each other.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at
from memories
where namespace = $1 and id = any($2::uuid[])
order by id
for update;

-- newest
-- Memories in force of a scope, newest first, from behind a place in that order.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at
from memories
where namespace = $1
  and superseded_by is null
  and ($2::text is null or user_id = $2)
  and ($3::text is null or agent_id = $3)
  and ($4::text is null or session_id = $4)
  and ($5::timestamptz is null or (created_at, id) < ($5, $6::uuid))
order by created_at desc, id desc
limit $7;

-- change
-- Another text, and with it another identity.
update memories set text = $3, identity = $4, origin = $4, updated_at = now()
where namespace = $1 and id = $2
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at;

-- supersede
-- Takes a memory out of force, or with null back into it.
update memories set superseded_by = $3
where namespace = $1 and id = $2
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at;

-- remove
-- One memory.
delete from memories where namespace = $1 and id = $2 returning text, user_id, agent_id, session_id;

-- record
-- What happened to a memory, as the next entry of its history.
insert into memory_history (namespace, memory_id, number, id, event, old_memory, new_memory, user_id, session_id)
select $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5, $6, $7, $8
from memory_history
where namespace = $1 and memory_id = $2;

-- history
-- What happened to a memory, in order.
select id, memory_id, event, old_memory, new_memory, at
from memory_history
where namespace = $1 and memory_id = $2
order by number;

-- of_user
-- The next memories of a user behind an id. Those that are deleted are found by their history.
(
    select id from memories where namespace = $1 and superseded_by is null and user_id = $2 and id > $3
    order by id
    limit $4
)
union
(
    select id from memories where namespace = $1 and superseded_by is not null and user_id = $2 and id > $3
    order by id
    limit $4
)
union
(
    select distinct memory_id from memory_history where namespace = $1 and user_id = $2 and memory_id > $3
    order by memory_id
    limit $4
)
order by id
limit $4;

-- in_sessions
-- The same for some sessions; where $5 is false, only memories that no user holds.
(
    select id from memories where namespace = $1 and superseded_by is null and session_id = any($2::text[])
      and ($5 or user_id is null) and id > $3
    order by id
    limit $4
)
union
(
    select id from memories where namespace = $1 and superseded_by is not null and session_id = any($2::text[])
      and ($5 or user_id is null) and id > $3
    order by id
    limit $4
)
union
(
    select distinct memory_id from memory_history where namespace = $1 and session_id = any($2::text[])
      and ($5 or user_id is null) and memory_id > $3
    order by memory_id
    limit $4
)
order by id
limit $4;

-- count
-- How many of some memories are there, and how long their histories are.
select (select count(*) from memories where namespace = $1 and id = any($2::uuid[])) as memories,
       (select count(*) from memory_history where namespace = $1 and memory_id = any($2::uuid[])) as history;

-- erase
-- Some memories, with no trace of it in their histories.
delete from memories where namespace = $1 and id = any($2::uuid[]) returning id;

-- erase_history
-- What happened to some memories.
delete from memory_history where namespace = $1 and memory_id = any($2::uuid[]) returning number;

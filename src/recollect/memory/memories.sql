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

-- replaced_by
-- What a memory took out of force.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at
from memories
where namespace = $1 and superseded_by = $2
order by id;

-- newest
-- Memories in force of a scope that pass some filters, newest first, from behind a place in that order.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at
from memories
where namespace = $1
  and superseded_by is null
  and ($2::text is null or user_id = $2)
  and ($3::text is null or agent_id = $3)
  and ($4::text is null or session_id = $4)
  and ($5::timestamptz is null or (created_at, id) < ($5, $6::uuid))
  and ($8::text[] is null or category = any($8))
  and ($9::text is null or metadata::jsonb @> $9::text::jsonb)
  and ($10::timestamptz is null or created_at >= $10)
  and ($11::timestamptz is null or created_at <= $11)
order by created_at desc, id desc
limit $7;

-- change
-- Another text, category or metadata; without another identity, both digests stay.
update memories
set text = $3, category = $4, metadata = $5, identity = coalesce($6::bytea, identity), origin = coalesce($6::bytea, origin),
    updated_at = now()
where namespace = $1 and id = $2
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at;

-- supersede
-- Takes a memory out of force, or with null back into it.
update memories set superseded_by = $3
where namespace = $1 and id = $2
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at;

-- remove
-- One memory.
delete from memories where namespace = $1 and id = $2 returning user_id, agent_id, session_id;

-- record
-- What happened to a memory, as the next entry of its history.
insert into memory_history (namespace, memory_id, number, id, event, old_memory, new_memory, user_id, session_id)
select $1, $2, coalesce(max(number), 0) + 1, $3, $4, $5, $6, $7, $8
from memory_history
where namespace = $1 and memory_id = $2;

-- blank_history
-- What happened to a memory, without what it said.
update memory_history set old_memory = null, new_memory = null where namespace = $1 and memory_id = $2;

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

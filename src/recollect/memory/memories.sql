-- moment
-- The time of what a transaction does to the memories that it has locked, never before what was done to them already.
-- Limit memory ids.
select greatest(clock_timestamp(), max(since)) as moment from memories
where namespace = :namespace and id = any(:ids::uuid[]);

-- add
-- One memory, unless one in force has the same identity or origin. In a session it stands behind the others; two
-- that are stored at the same moment may share a place.
-- Limit given user_id, agent_id.
-- Limit session session_id.
insert into memories (
    namespace, id, text, category, user_id, agent_id, session_id, metadata, identity, origin, position, created_at,
    since, valid_from, valid_until, key, expires_at, pinned, sources, trust
)
select :namespace, :id::uuid, :text::text, :category::text, :user_id::text, :agent_id::text, :session_id::text,
       :metadata::json, :identity::bytea, :origin::bytea,
       case when :session_id::text is not null then coalesce(max(position) + 1, 0) end,
       coalesce(:at::timestamptz, :moment::timestamptz), :moment::timestamptz, :valid_from::timestamptz,
       :valid_until::timestamptz, :key::text, :expires_at::timestamptz, :pinned::boolean, :sources::text[], :trust::text
from memories
where namespace = :namespace and session_id = :session_id and position is not null
on conflict do nothing
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
          since, valid_from, valid_until, key, expires_at, pinned, sources, trust;

-- same
-- The memory in force that has one of two digests as its identity, or the other as its origin; the oldest of two.
-- Limit found user_id, agent_id.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
from memories
where namespace = :namespace and superseded_by is null and (identity = :identity or origin = :origin)
  and (expires_at is null or expires_at > now())
order by created_at, id
limit 1;

-- take_slot
-- The place of its key in its scope, which no other memory in force has any more.
-- Limit memory id.
update memories set slot = :slot where namespace = :namespace and id = :id;

-- in_slot
-- The memory in force that has a key in a scope, locked until the transaction ends.
-- Limit found user_id, agent_id.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
from memories
where namespace = :namespace and superseded_by is null and slot = :slot and (expires_at is null or expires_at > now())
for update;

-- slot_taken
-- Whether a memory in force has a key in a scope by now.
-- Limit none: the slot is of a scope that the caller has named.
select 1 as taken from memories
where namespace = :namespace and superseded_by is null and slot = :slot and (expires_at is null or expires_at > now());

-- find
-- Some memories by their ids, superseded ones included.
-- Limit found user_id, agent_id.
-- Audit memory id
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
from memories
where namespace = :namespace and id = any(:ids::uuid[]) and (expires_at is null or expires_at > now());

-- pinned
-- Which of some memories are pinned.
-- Limit memory ids.
select id from memories where namespace = :namespace and id = any(:ids::uuid[]) and pinned;

-- lock
-- The same, locked until the transaction ends; in id order, so that two writers never wait for each other.
-- Limit found user_id, agent_id.
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
from memories
where namespace = :namespace and id = any(:ids::uuid[]) and (expires_at is null or expires_at > now())
order by id
for update;

-- replaced_by
-- What a memory took out of force.
-- Limit found user_id, agent_id.
-- Audit memory id
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
from memories
where namespace = :namespace and superseded_by = :memory_id and (expires_at is null or expires_at > now())
order by id;

-- newest
-- Memories in force of a scope that pass some filters, newest first, from behind a place in that order.
-- Limit given user_id, agent_id.
-- Audit memory id
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
from memories
where namespace = :namespace
  and superseded_by is null
  and (expires_at is null or expires_at > now())
  and (:user_id::text is null or user_id = :user_id)
  and (:agent_id::text is null or agent_id = :agent_id)
  and (:session_id::text is null or session_id = :session_id)
  and (:behind_time::timestamptz is null or (created_at, id) < (:behind_time, :behind_id::uuid))
  and (:categories::text[] is null or category = any(:categories))
  and (:metadata::text is null or metadata::jsonb @> :metadata::text::jsonb)
  and (:where::text is null or metadata::jsonb @@ :where::text::jsonpath)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and (:key::text is null or key = :key)
  and (:pinned::boolean is null or pinned = :pinned)
  and (:expires_before::timestamptz is null or expires_at <= :expires_before)
  and (:valid_at::timestamptz is null or coalesce(valid_from <= :valid_at, true))
  and (:valid_at::timestamptz is null or coalesce(valid_until > :valid_at, true))
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'memory' and held.item_id = memories.id::text and held.state = 'held'
  )
order by created_at desc, id desc
limit :limit;

-- newest_as_of
-- The same of a moment in the past: memories that have been in force since then, and past versions of all others.
-- Limit given user_id, agent_id.
-- Audit memory id
select * from (
    select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
    from memories
    where namespace = :namespace and superseded_by is null and since <= :as_of and (expires_at is null or expires_at > now())
      and not exists (
          select from held
          where held.namespace = :namespace and held.kind = 'memory' and held.item_id = memories.id::text
            and held.state = 'held'
      )
    union all
    select memories.id, versions.text, versions.category, memories.user_id, memories.agent_id, memories.session_id,
           versions.metadata, null, memories.created_at, versions.updated_at, memories.position, versions.since,
           versions.valid_from, versions.valid_until, versions.key, versions.expires_at, versions.pinned,
           memories.sources, memories.trust
    from memory_versions versions
    join memories on memories.namespace = :namespace and memories.id = versions.memory_id
        and (memories.expires_at is null or memories.expires_at > now())
    where versions.namespace = :namespace and versions.since <= :as_of and versions.until > :as_of
      and not exists (
          select from held
          where held.namespace = :namespace and held.kind = 'past_memory'
            and held.item_id = versions.memory_id || '/' || versions.number and held.state = 'held'
      )
) as known
where (:user_id::text is null or user_id = :user_id)
  and (:agent_id::text is null or agent_id = :agent_id)
  and (:session_id::text is null or session_id = :session_id)
  and (:behind_time::timestamptz is null or (created_at, id) < (:behind_time, :behind_id::uuid))
  and (:categories::text[] is null or category = any(:categories))
  and (:metadata::text is null or metadata::jsonb @> :metadata::text::jsonb)
  and (:where::text is null or metadata::jsonb @@ :where::text::jsonpath)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and (:key::text is null or key = :key)
  and (:pinned::boolean is null or pinned = :pinned)
  and (:expires_before::timestamptz is null or expires_at <= :expires_before)
  and (:valid_at::timestamptz is null or coalesce(valid_from <= :valid_at, true))
  and (:valid_at::timestamptz is null or coalesce(valid_until > :valid_at, true))
order by created_at desc, id desc
limit :limit;

-- newest_superseded
-- The same of memories that others superseded.
-- Limit given user_id, agent_id.
-- Audit memory id
select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust
from memories
where namespace = :namespace
  and superseded_by is not null
  and (expires_at is null or expires_at > now())
  and (:user_id::text is null or user_id = :user_id)
  and (:agent_id::text is null or agent_id = :agent_id)
  and (:session_id::text is null or session_id = :session_id)
  and (:behind_time::timestamptz is null or (created_at, id) < (:behind_time, :behind_id::uuid))
  and (:categories::text[] is null or category = any(:categories))
  and (:metadata::text is null or metadata::jsonb @> :metadata::text::jsonb)
  and (:where::text is null or metadata::jsonb @@ :where::text::jsonpath)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and (:key::text is null or key = :key)
  and (:pinned::boolean is null or pinned = :pinned)
  and (:expires_before::timestamptz is null or expires_at <= :expires_before)
  and (:valid_at::timestamptz is null or coalesce(valid_from <= :valid_at, true))
  and (:valid_at::timestamptz is null or coalesce(valid_until > :valid_at, true))
  and not exists (
      select from held
      where held.namespace = :namespace and held.kind = 'memory' and held.item_id = memories.id::text and held.state = 'held'
  )
order by created_at desc, id desc
limit :limit;

-- find_as_of
-- Some memories as they were at a moment: in force, or superseded by then, with what they said last.
-- Limit found user_id, agent_id.
-- Audit memory id
select distinct on (id) *
from (
    select id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
       since, valid_from, valid_until, key, expires_at, pinned, sources, trust, null::timestamptz as ended
    from memories
    where namespace = :namespace and id = any(:ids::uuid[]) and since <= :as_of and (expires_at is null or expires_at > now())
      and superseded_by is null
    union all
    select memories.id, versions.text, versions.category, memories.user_id, memories.agent_id, memories.session_id,
           versions.metadata, case when versions.until <= :as_of then versions.superseded_by end, memories.created_at,
           versions.updated_at, memories.position, versions.since, versions.valid_from, versions.valid_until,
           versions.key, versions.expires_at, versions.pinned, memories.sources, memories.trust, versions.until
    from memory_versions versions
    join memories on memories.namespace = :namespace and memories.id = versions.memory_id
        and (memories.expires_at is null or memories.expires_at > now())
    where versions.namespace = :namespace and versions.memory_id = any(:ids::uuid[]) and versions.since <= :as_of
      and (versions.until > :as_of or versions.superseded_by is not null)
) as known
order by id, since desc, ended desc nulls first;

-- keep_version
-- What a memory has been until now, as the next of its versions.
-- Limit memory memory_id.
insert into memory_versions (
    namespace, memory_id, number, text, category, metadata, valid_from, valid_until, key, expires_at, pinned,
    updated_at, superseded_by, since, until, user_id, agent_id, session_id, position, created_at
)
select :namespace, :memory_id::uuid, coalesce(max(number), 0) + 1, :text::text, :category::text, :metadata::json,
       :valid_from::timestamptz, :valid_until::timestamptz, :key::text, :expires_at::timestamptz, :pinned::boolean,
       :updated_at::timestamptz, :superseded_by::uuid, :since::timestamptz, :until::timestamptz, :user_id::text,
       :agent_id::text, :session_id::text, :position::bigint, :created_at::timestamptz
from memory_versions
where namespace = :namespace and memory_id = :memory_id
returning number;

-- expire_versions
-- Past versions expire with their memory.
-- Limit memory memory_id.
update memory_versions set expires_at = :expires_at::timestamptz
where namespace = :namespace and memory_id = :memory_id::uuid
returning number;

-- versions
-- The numbers of the past versions of some memories.
-- Limit memory ids.
select memory_id, number from memory_versions
where namespace = :namespace and memory_id = any(:ids::uuid[])
order by memory_id, number;

-- last_version
-- The number of the last past version of a memory.
-- Limit memory memory_id.
select max(number) as number from memory_versions where namespace = :namespace and memory_id = :memory_id;

-- hold
-- Locks memories, superseded and expired ones too: no version can be added to them until they are gone.
-- Limit memory ids.
select id from memories where namespace = :namespace and id = any(:ids::uuid[]) order by id for update;

-- expired
-- Expired memories, locked. One that is being changed is left for the next time: its expiry may have moved.
select id from memories
where namespace = :namespace and expires_at <= now()
order by id
limit :limit
for update skip locked;

-- hold_scope
-- Some memories of a scope, superseded and expired ones included, locked.
-- Limit given user_id, agent_id.
select id from memories
where namespace = :namespace
  and (:user_id::text is null or user_id = :user_id)
  and (:agent_id::text is null or agent_id = :agent_id)
  and (:session_id::text is null or session_id = :session_id)
order by id
limit :limit
for update;

-- change
-- A memory as it is to be from now on; without another identity, both digests stay.
-- Limit memory id.
update memories
set text = :text, category = :category, metadata = :metadata, identity = coalesce(:identity::bytea, identity),
    origin = coalesce(:identity::bytea, origin), valid_from = :valid_from, valid_until = :valid_until, key = :key,
    slot = :slot, expires_at = :expires_at, pinned = :pinned, sources = :sources, trust = :trust,
    updated_at = :moment, since = :moment
where namespace = :namespace and id = :id
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
          since, valid_from, valid_until, key, expires_at, pinned, sources, trust;

-- supersede
-- Takes a memory out of force, or with null back into it.
-- Limit memory id.
update memories set superseded_by = :successor, since = :moment
where namespace = :namespace and id = :id
returning id, text, category, user_id, agent_id, session_id, metadata, superseded_by, created_at, updated_at, position,
          since, valid_from, valid_until, key, expires_at, pinned, sources, trust;

-- remove
-- Some memories.
-- Limit memory ids.
delete from memories where namespace = :namespace and id = any(:ids::uuid[])
returning id, user_id, agent_id, session_id, greatest(expires_at, since) as ended;

-- record
-- What happened to a memory, as the next entry of its history.
-- Limit memory memory_id.
insert into memory_history (
    namespace, memory_id, number, id, event, old_memory, new_memory, user_id, session_id, detail, at, author, door
)
select :namespace, :memory_id, coalesce(max(number), 0) + 1, :event_id, :event, :old, :new, :user_id, :session_id,
       :detail::text::jsonb, coalesce(:moment::timestamptz, clock_timestamp()), :author::text, :door::text
from memory_history
where namespace = :namespace and memory_id = :memory_id
returning number;

-- blank_history
-- Removes the texts from the histories of some memories.
-- Limit memory ids.
update memory_history set old_memory = null, new_memory = null, detail = null
where namespace = :namespace and memory_id = any(:ids::uuid[]);

-- history
-- What happened to a memory, in order. As soon as it has expired, its history says so and has no texts, even if it is
-- still to be removed.
-- Limit memory memory_id.
-- Audit memory memory_id
select id, memory_id, event, old_memory, new_memory, at, detail, author, door
from (
    select history.number, history.id, history.memory_id, history.event,
           case when memories.id is not null then history.old_memory end as old_memory,
           case when memories.id is not null then history.new_memory end as new_memory, history.at,
           case when memories.id is not null then history.detail::text end as detail, history.author, history.door
    from memory_history history
    left join memories
        on memories.namespace = :namespace and memories.id = history.memory_id
        and (memories.expires_at is null or memories.expires_at > now())
    where history.namespace = :namespace and history.memory_id = :memory_id
    union all
    select null, :expiry_id::uuid, id, 'expire', null, null, greatest(expires_at, since), null, null, null
    from memories
    where namespace = :namespace and id = :memory_id and expires_at <= now()
) as told
order by number nulls last;

-- of_user
-- The next memories of a user behind an id. Those that are deleted are found by their history.
(
    select id from memories
    where namespace = :namespace and superseded_by is null and user_id = :user_id and id > :behind
    order by id
    limit :limit
)
union
(
    select id from memories
    where namespace = :namespace and superseded_by is not null and user_id = :user_id and id > :behind
    order by id
    limit :limit
)
union
(
    select distinct memory_id from memory_history
    where namespace = :namespace and user_id = :user_id and memory_id > :behind
    order by memory_id
    limit :limit
)
order by id
limit :limit;

-- in_sessions
-- The same for some sessions; where :of_users is false, only memories that no user holds.
(
    select id from memories
    where namespace = :namespace and superseded_by is null and session_id = any(:session_ids::text[])
      and (:of_users or user_id is null) and id > :behind
    order by id
    limit :limit
)
union
(
    select id from memories
    where namespace = :namespace and superseded_by is not null and session_id = any(:session_ids::text[])
      and (:of_users or user_id is null) and id > :behind
    order by id
    limit :limit
)
union
(
    select distinct memory_id from memory_history
    where namespace = :namespace and session_id = any(:session_ids::text[])
      and (:of_users or user_id is null) and memory_id > :behind
    order by memory_id
    limit :limit
)
order by id
limit :limit;

-- count
-- How many of some memories are there, and how long their histories are.
select (select count(*) from memories where namespace = :namespace and id = any(:ids::uuid[])) as memories,
       (select count(*) from memory_history where namespace = :namespace and memory_id = any(:ids::uuid[])) as history;

-- erase
-- Some memories, with no trace of it in their histories.
delete from memories where namespace = :namespace and id = any(:ids::uuid[]) returning id;

-- erase_history
-- What happened to some memories.
delete from memory_history where namespace = :namespace and memory_id = any(:ids::uuid[]) returning number;

-- page_memories
-- Long-term memories, superseded ones included.
-- Audit memory id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from memories r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (r.expires_at is null or r.expires_at > now())
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_memories
-- Adds memories that are not there. Exports of earlier versions do not say since when a memory has been as it is.
insert into memories overriding system value
select given.*
from jsonb_array_elements(:records::text::jsonb) as record
cross join lateral jsonb_populate_record(
    null::memories,
    jsonb_build_object('since', record -> 'created_at', 'pinned', false, 'sources', '[]'::jsonb) || record
) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_memories
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_array_elements(:records::text::jsonb) as record
cross join lateral jsonb_populate_record(
    null::memories,
    jsonb_build_object('since', record -> 'created_at', 'pinned', false, 'sources', '[]'::jsonb) || record
) as given
left join memories stored on stored.namespace = :namespace and stored.id = given.id;

-- size_memories
-- Rows up to a bound, along an index, to be counted.
select 1 as row from memories
where namespace = :namespace and superseded_by is null order by created_at desc limit :limit;

-- page_memory_history
-- What happened to memories, deleted ones included. Of those whose time is over, it does not tell what they said.
-- Audit memory memory_id
select (
           to_jsonb(r) - 'namespace'
           || case when m.id is null then '{}' else '{"old_memory": null, "new_memory": null, "detail": null}'::jsonb end
       )::text as record,
       r.memory_id, r.number
from memory_history r
left join memories m on m.namespace = :namespace and m.id = r.memory_id and m.expires_at <= now()
where r.namespace = :namespace
  and (:user_id::text is null or r.user_id = :user_id)
  and (:after_memory_id::uuid is null or (r.memory_id, r.number) > (:after_memory_id, :after_number::bigint))
order by r.memory_id, r.number
limit :limit;

-- restore_memory_history
-- Adds entries of the history of memories that are not there.
insert into memory_history overriding system value
select * from jsonb_populate_recordset(null::memory_history, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning memory_id, number;

-- compare_memory_history
-- Compares given records with the stored ones.
select given.memory_id, given.number, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::memory_history, :records::text::jsonb) as given
left join memory_history stored
    on stored.namespace = :namespace and stored.memory_id = given.memory_id and stored.number = given.number;

-- page_memory_versions
-- What memories were before.
-- Audit memory memory_id
select (to_jsonb(r) - 'namespace')::text as record, r.memory_id, r.number
from memory_versions r
where r.namespace = :namespace
  and (r.expires_at is null or r.expires_at > now())
  and (:user_id::text is null or r.user_id = :user_id)
  and (:after_memory_id::uuid is null or (r.memory_id, r.number) > (:after_memory_id, :after_number::bigint))
order by r.memory_id, r.number
limit :limit;

-- restore_memory_versions
-- Adds versions that are not there.
insert into memory_versions overriding system value
select * from jsonb_populate_recordset(null::memory_versions, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning memory_id, number;

-- compare_memory_versions
-- Compares given records with the stored ones.
select given.memory_id, given.number, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::memory_versions, :records::text::jsonb) as given
left join memory_versions stored
    on stored.namespace = :namespace and stored.memory_id = given.memory_id and stored.number = given.number;

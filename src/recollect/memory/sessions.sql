-- create
-- A new session with an owner; an existing one is left as it is.
-- Limit given user_id, agent_id.
-- Audit session id
insert into sessions (namespace, id, user_id, title, metadata, agent_id)
values (:namespace, :session_id, :user_id, :title, :metadata::text::jsonb, :agent_id)
on conflict (namespace, id) do nothing
returning id, user_id, title, metadata, created_at, updated_at, agent_id;

-- open
-- Sessions that a first message opens, in id order so that two writers never wait for each other.
-- Limit given owners.
insert into sessions (namespace, id, user_id, realm)
select :namespace, opened.id, opened.user_id, opened.realm
from unnest(:ids::text[], :owners::text[], :realms::text[]) as opened (id, user_id, realm)
order by opened.id
on conflict (namespace, id) do nothing;

-- begin
-- Sessions with owners that began at a time of their own, in id order; existing ones are left as they are.
insert into sessions (namespace, id, user_id, title, metadata, created_at, updated_at)
select :namespace, begun.id, begun.user_id, begun.title, begun.metadata::jsonb, coalesce(begun.at, now()),
       coalesce(begun.at, now())
from unnest(:ids::text[], :owners::text[], :titles::text[], :metadatas::text[], :times::timestamptz[])
    as begun (id, user_id, title, metadata, at)
order by begun.id
on conflict (namespace, id) do nothing;

-- last_active
-- When something last happened in some sessions.
select id, updated_at from sessions where namespace = :namespace and id = any(:session_ids::text[]);

-- set_last_active
-- Other times for sessions that are locked.
update sessions
set updated_at = active.at
from unnest(:session_ids::text[], :times::timestamptz[]) as active (id, at)
where sessions.namespace = :namespace and sessions.id = active.id;

-- owners_of
-- Whose some sessions are.
-- Limit session session_ids.
select id, user_id, realm from sessions where namespace = :namespace and id = any(:session_ids::text[]);

-- next_positions
-- Where the next messages of some sessions go.
select id, next_position from sessions where namespace = :namespace and id = any(:session_ids::text[]);

-- lock
-- Whose some sessions are, and locks them in id order.
-- Limit session session_ids.
select id, user_id, realm from sessions
where namespace = :namespace and id = any(:session_ids::text[]) order by id for update;

-- find
-- One session.
-- Limit found user_id, agent_id.
-- Audit session id
select id, user_id, title, metadata, created_at, updated_at, agent_id
from sessions
where namespace = :namespace and id = :session_id;

-- recent_of_user
-- A user's sessions, the last active first.
-- Limit given user_id.
-- Audit session id
select id, user_id, title, metadata, created_at, updated_at, agent_id
from sessions
where namespace = :namespace and user_id = :user_id
order by updated_at desc, id
limit :limit;

-- recent
-- The last active sessions whose ids are UUIDs, or those after one of them in that order.
-- Limit given user_id.
-- Audit session id
select id, user_id, title, metadata, created_at, updated_at, agent_id
from sessions
where namespace = :namespace
  and (:user_id::text is null or user_id = :user_id)
  and id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
  and (:after::text is null or (updated_at, id) < (
      select last.updated_at, last.id from sessions last where last.namespace = :namespace and last.id = :after
  ))
order by updated_at desc, id desc
limit :limit;

-- page
-- Sessions of a user, of an agent or of all, the last active first, behind a place in that order.
-- Limit given user_id, agent_id.
-- Audit session id
select id, user_id, title, metadata, created_at, updated_at, agent_id
from sessions
where namespace = :namespace
  and (:user_id::text is null or user_id = :user_id)
  and (:agent_id::text is null or agent_id = :agent_id)
  and (
      :behind_at::timestamptz is null
      or updated_at < :behind_at
      or (updated_at = :behind_at and id > :behind_id::text)
  )
order by updated_at desc, id
limit :limit;

-- listed
-- Sessions to choose from, the last active first, behind a place in that order: those of a user, of an agent, or with a
-- text in the title or the id; each with how much was said in it, and the beginning of what was said last, if it is not held back.
-- Limit given user_id, agent_id.
-- Audit session id
select chosen.id, chosen.user_id, chosen.agent_id, left(chosen.title, :characters::integer) as title,
       chosen.created_at, chosen.updated_at, chosen.next_position, last.role, last.beginning
from (
    select id, user_id, agent_id, title, created_at, updated_at, next_position
    from sessions
    where namespace = :namespace
      and (:user_id::text is null or user_id = :user_id)
      and (:agent_id::text is null or agent_id = :agent_id)
      and (:text::text is null or strpos(lower(title), lower(:text)) > 0 or strpos(lower(id), lower(:text)) > 0)
      and (
          :behind_at::timestamptz is null
          or updated_at < :behind_at
          or (updated_at = :behind_at and id > :behind_id::text)
      )
    order by updated_at desc, id
    limit :limit
) as chosen
left join lateral (
    select messages.role,
           case when not exists (
               select from held
               where held.namespace = :namespace and held.kind = 'message' and held.item_id = messages.id::text
                 and held.state = 'held'
           ) then left(messages.content, :characters) end as beginning
    from messages
    where messages.namespace = :namespace and messages.session_id = chosen.id
    order by messages.position desc
    limit 1
) as last on true
order by chosen.updated_at desc, chosen.id;

-- describe
-- A session's title and metadata anew. The time never goes backwards inside a session.
-- Limit session session_id.
-- Limit given -, agent_id.
-- Audit session id
update sessions
set title = :title, metadata = :metadata::text::jsonb, agent_id = :agent_id,
    updated_at = greatest(updated_at, now())
where namespace = :namespace and id = :session_id
returning id, user_id, title, metadata, created_at, updated_at, agent_id;

-- then
-- Sessions at a moment, the last active first, or those after one of them in that order: one of an id, those of a user,
-- or only those whose ids are UUIDs. A session was there if it had begun or something had been said in it.
-- Limit given user_id.
-- Audit session id
with known as (
    select sessions.id, sessions.user_id, sessions.title, sessions.metadata,
           case when sessions.created_at <= :as_of::timestamptz then sessions.created_at else said.first end
               as created_at,
           case when sessions.created_at <= :as_of then greatest(sessions.created_at, said.last) else said.last end
               as updated_at,
           sessions.agent_id
    from sessions
    left join lateral (
        select min(messages.created_at) as first, max(messages.created_at) as last
        from messages
        where messages.namespace = :namespace
          and messages.session_id = sessions.id
          and messages.created_at <= :as_of
    ) as said on true
    where sessions.namespace = :namespace
      and (:session_id::text is null or sessions.id = :session_id)
      and (:user_id::text is null or sessions.user_id = :user_id)
      and (not :uuids::boolean or sessions.id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')
      and (sessions.created_at <= :as_of or said.last is not null)
)
select id, user_id, title, metadata, created_at, updated_at, agent_id
from known
where :after::text is null
   or (updated_at, id) < (select last.updated_at, last.id from known last where last.id = :after)
order by updated_at desc, id desc
limit :limit;

-- some_of_user
-- Sessions of a user, in no order.
select id from sessions where namespace = :namespace and user_id = :user_id limit :limit::bigint;

-- remove
-- Some sessions, which have no messages any more.
delete from sessions where namespace = :namespace and id = any(:session_ids::text[]) returning id;

-- page_sessions
-- Sessions, with their windows.
-- Audit session id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from sessions r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_id::text is null or r.id collate "C" > :after_id)
order by r.id collate "C"
limit :limit;

-- restore_sessions
-- Adds sessions that are not there.
insert into sessions overriding system value
select * from jsonb_populate_recordset(null::sessions, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_sessions
-- Compares given records with the stored ones, which may be the same, or akin: the same conversation, which has gone on
-- since, so that the messages of the one have their places in the other.
select given.id, to_jsonb(stored) = to_jsonb(given) as same,
       (stored.user_id, stored.realm, stored.created_at) = (given.user_id, given.realm, given.created_at)
           and stored.next_position >= given.next_position as akin
from jsonb_populate_recordset(null::sessions, :records::text::jsonb) as given
left join sessions stored on stored.namespace = :namespace and stored.id = given.id;

-- size_sessions
-- Rows up to a bound, along an index, to be counted.
select 1 as row from sessions where namespace = :namespace order by id limit :limit;

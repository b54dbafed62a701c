-- configure
-- All of it anew; a session that does not exist, or is being deleted, begins with it.
-- Limit session session_id.
-- Limit given user_id.
-- Audit session session_id
insert into sessions (namespace, id, user_id, window_strategy, window_max_messages, window_max_tokens)
values (:namespace, :session_id, :user_id, :strategy, :max_messages, :max_tokens)
on conflict (namespace, id) do update
set window_strategy = excluded.window_strategy,
    window_max_messages = excluded.window_max_messages,
    window_max_tokens = excluded.window_max_tokens
returning user_id;

-- start
-- Where a window begins, and the summary of all before.
-- Limit session session_id.
select sessions.window_start, summaries.id, summaries.content, summaries.metadata, summaries.created_at
from sessions
left join summaries
    on summaries.namespace = :namespace and summaries.session_id = sessions.id
      and summaries.until = sessions.window_start
where sessions.namespace = :namespace and sessions.id = :session_id;

-- read
-- A window: its session, what is pinned, the summary of all before, and its last messages, oldest first. A message that
-- says nothing, such as a model's encrypted reasoning, is for the client that stored it alone.
-- Limit session session_id.
-- Audit message id
with session as (
    select window_start, window_strategy, window_max_messages, window_max_tokens,
           case
               when :strategy::text is null then :limit::bigint
               when coalesce(window_strategy, :strategy) = 'sliding_window' then coalesce(window_max_messages, :limit)
           end as most
    from sessions
    where namespace = :namespace and id = :session_id
),
summary as (
    select summaries.id, summaries.content, summaries.metadata, summaries.created_at
    from summaries
    join session on session.window_start = summaries.until
    where summaries.namespace = :namespace and summaries.session_id = :session_id
),
pinned as (
    select messages.id, messages.position, messages.role, messages.content, messages.metadata, messages.created_at
    from messages
    join session on messages.position < session.window_start
    where messages.namespace = :namespace
      and messages.session_id = :session_id
      and messages.role = 'system'
      and (messages.position = 0 or messages.metadata @> '{"pinned": true}')
      and exists (select 1 from summary)
),
last as (
    select id, position, role, content, metadata, created_at
    from messages
    where namespace = :namespace
      and session_id = :session_id
      and position >= (select window_start from session)
      and content <> ''
    order by position desc
    limit (select most from session)
)
select 0 as place, null::bigint as position, null::uuid as id, null as role, null as content, null::jsonb as metadata,
       null::timestamptz as created_at, window_strategy, window_max_messages, window_max_tokens, most
from session
union all
select 1, position, id, role, content, metadata, created_at, null, null, null, null from pinned
union all
select 2, null, id, 'summary', content, metadata, created_at, null, null, null, null from summary
union all
select 3, position, id, role, content, metadata, created_at, null, null, null, null from last
order by place, position;

-- read_then
-- The same at a moment: behind the last summary of what was said by then, the messages that were said by then. A summary
-- has the time of the last message it stands for, and was made when there was another behind that.
-- Limit session session_id.
-- Audit message id
with session as (
    select coalesce(last.until, 0) as window_start, sessions.window_strategy, sessions.window_max_messages,
           sessions.window_max_tokens,
           case
               when :strategy::text is null then :limit::bigint
               when coalesce(sessions.window_strategy, :strategy) = 'sliding_window'
                   then coalesce(sessions.window_max_messages, :limit)
           end as most
    from sessions
    left join lateral (
        select max(summaries.until) as until
        from summaries
        where summaries.namespace = :namespace
          and summaries.session_id = :session_id
          and summaries.created_at <= :as_of::timestamptz
          -- Messages that brought their own times need not be in their order.
          and not exists (
              select from messages
              where messages.namespace = :namespace
                and messages.session_id = :session_id
                and messages.position < summaries.until
                and messages.created_at > :as_of
          )
          and exists (
              select from messages
              where messages.namespace = :namespace
                and messages.session_id = :session_id
                and messages.position >= summaries.until
                and messages.created_at <= :as_of
          )
    ) as last on true
    where sessions.namespace = :namespace and sessions.id = :session_id
),
summary as (
    select summaries.id, summaries.content, summaries.metadata, summaries.created_at
    from summaries
    join session on session.window_start = summaries.until
    where summaries.namespace = :namespace and summaries.session_id = :session_id
),
pinned as (
    select messages.id, messages.position, messages.role, messages.content, messages.metadata, messages.created_at
    from messages
    join session on messages.position < session.window_start
    where messages.namespace = :namespace
      and messages.session_id = :session_id
      and messages.role = 'system'
      and (messages.position = 0 or messages.metadata @> '{"pinned": true}')
      and messages.created_at <= :as_of
      and exists (select 1 from summary)
),
last as (
    select id, position, role, content, metadata, created_at
    from messages
    where namespace = :namespace
      and session_id = :session_id
      and position >= (select window_start from session)
      and content <> ''
      and created_at <= :as_of
    order by position desc
    limit (select most from session)
)
select 0 as place, null::bigint as position, null::uuid as id, null as role, null as content, null::jsonb as metadata,
       null::timestamptz as created_at, window_strategy, window_max_messages, window_max_tokens, most
from session
union all
select 1, position, id, role, content, metadata, created_at, null, null, null, null from pinned
union all
select 2, null, id, 'summary', content, metadata, created_at, null, null, null, null from summary
union all
select 3, position, id, role, content, metadata, created_at, null, null, null, null from last
order by place, position;

-- outline
-- A window for people, as `read` has it but with the beginnings of texts and no more than so many of its last messages.
-- Limit session session_id.
-- Audit message id
with session as (
    select window_start, window_strategy, window_max_messages, window_max_tokens,
           case when coalesce(window_strategy, :strategy::text) = 'sliding_window'
               then coalesce(window_max_messages, :limit::bigint)
           end as most
    from sessions
    where namespace = :namespace and id = :session_id
),
summary as (
    select summaries.id, summaries.content, summaries.created_at
    from summaries
    join session on session.window_start = summaries.until
    where summaries.namespace = :namespace and summaries.session_id = :session_id
),
pinned as (
    select messages.id, messages.position, messages.role, messages.content, messages.created_at
    from messages
    join session on messages.position < session.window_start
    where messages.namespace = :namespace
      and messages.session_id = :session_id
      and messages.role = 'system'
      and (messages.position = 0 or messages.metadata @> '{"pinned": true}')
      and exists (select 1 from summary)
    order by messages.position
    limit :shown::bigint
),
last as (
    select id, position, role, content, created_at
    from messages
    where namespace = :namespace
      and session_id = :session_id
      and position >= (select window_start from session)
      and content <> ''
    order by position desc
    limit least((select most from session), :shown + 1)
)
select 0 as place, null::bigint as position, null::uuid as id, null as role, null as text, null::integer as bytes,
       null::timestamptz as created_at, window_strategy, window_max_messages, window_max_tokens, most
from session
union all
select 1, position, id, role, left(content, :characters::integer), octet_length(content), created_at, null, null, null,
       null
from pinned
union all
select 2, null, id, 'summary', left(content, :characters), octet_length(content), created_at, null, null, null, null
from summary
union all
select 3, position, id, role, left(content, :characters), octet_length(content), created_at, null, null, null, null
from last
order by place, position;

-- past_summaries
-- The summaries of a session, the last first, with the beginnings of their texts.
-- Limit session session_id.
-- Audit session session_id
select id, until, left(content, :characters::integer) as text, metadata, created_at
from summaries
where namespace = :namespace and session_id = :session_id
order by until desc
limit :limit;

-- lock
-- One change of a window at a time, and no new message while it lasts.
select id from sessions where namespace = :namespace and id = :session_id for update;

-- part
-- The first messages of a window that are not pinned, as they are now.
select id, position from messages
where namespace = :namespace
  and session_id = :session_id
  and position >= :start
  and content <> ''
  and not (role = 'system' and (position = 0 or coalesce(metadata @> '{"pinned": true}', false)))
order by position
limit :limit;

-- summarise
-- What stands for everything before a position.
insert into summaries (namespace, session_id, until, id, content, metadata, created_at)
values (:namespace, :session_id, :until, :id, :content, :metadata::text::jsonb, :at);

-- move
-- The window begins later.
update sessions set window_start = :until where namespace = :namespace and id = :session_id;

-- lock_of_message
-- The same for the session of a message.
select sessions.id
from sessions
join messages on messages.namespace = :namespace and messages.session_id = sessions.id
where sessions.namespace = :namespace and messages.id = :message_id
for update of sessions;

-- covering
-- The session whose summaries stand for a message, too.
select sessions.id
from messages
join sessions on sessions.namespace = :namespace and sessions.id = messages.session_id
where messages.namespace = :namespace and messages.id = :message_id and messages.position < sessions.window_start;

-- remove_summaries
-- All of some sessions: their windows are the whole log again.
delete from summaries where namespace = :namespace and session_id = any(:session_ids::text[]) returning until;

-- count_summaries
-- How many summaries some sessions have.
select count(*) as summaries from summaries where namespace = :namespace and session_id = any(:session_ids::text[]);

-- page_summaries
-- Summaries of what windows let go.
-- Audit session session_id
select (to_jsonb(r) - 'namespace')::text as record, r.session_id, r.until
from summaries r
where r.namespace = :namespace
  and (
      :user_id::text is null
      or exists (select from sessions s where s.namespace = :namespace and s.id = r.session_id and s.user_id = :user_id)
  )
  and (:after_session_id::text is null or (r.session_id collate "C", r.until) > (:after_session_id,
      :after_until::bigint))
order by r.session_id collate "C", r.until
limit :limit;

-- restore_summaries
-- Adds summaries that are not there.
insert into summaries overriding system value
select * from jsonb_populate_recordset(null::summaries, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning session_id, until;

-- compare_summaries
-- Compares given records with the stored ones.
select given.session_id, given.until, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::summaries, :records::text::jsonb) as given
left join summaries stored
    on stored.namespace = :namespace and stored.session_id = given.session_id and stored.until = given.until;

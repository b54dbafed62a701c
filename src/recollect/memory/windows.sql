-- config
-- What a session sets for its own window.
select window_strategy, window_max_messages, window_max_tokens from sessions where namespace = $1 and id = $2;

-- configure
-- All of it anew; a session that does not exist, or is being deleted, begins with it.
insert into sessions (namespace, id, user_id, window_strategy, window_max_messages, window_max_tokens)
values ($1, $2, $3, $4, $5, $6)
on conflict (namespace, id) do update
set window_strategy = excluded.window_strategy,
    window_max_messages = excluded.window_max_messages,
    window_max_tokens = excluded.window_max_tokens;

-- start
-- Where a window begins, and the summary of all before.
select sessions.window_start, summaries.id, summaries.content, summaries.metadata, summaries.created_at
from sessions
left join summaries
    on summaries.namespace = $1 and summaries.session_id = sessions.id and summaries.until = sessions.window_start
where sessions.namespace = $1 and sessions.id = $2;

-- messages
-- The last messages of a window, newest first.
select id, position, role, content, metadata, created_at
from messages
where namespace = $1 and session_id = $2 and position >= $3
order by position desc
limit $4::bigint;

-- pinned
-- What the system said first, or asked to keep, before the start of a window.
select id, position, role, content, metadata, created_at
from messages
where namespace = $1
  and session_id = $2
  and position < $3
  and role = 'system'
  and (position = 0 or metadata @> '{"pinned": true}')
order by position;

-- hold
-- One change of a window at a time, and no new message while it lasts.
select id from sessions where namespace = $1 and id = $2 for update;

-- part
-- The first messages of a window that are not pinned, as they are now.
select id, position from messages
where namespace = $1
  and session_id = $2
  and position >= $3
  and not (role = 'system' and (position = 0 or coalesce(metadata @> '{"pinned": true}', false)))
order by position
limit $4;

-- summarise
-- What stands for everything before a position.
insert into summaries (namespace, session_id, until, id, content, metadata, created_at)
values ($1, $2, $3, $4, $5, $6::text::jsonb, $7);

-- move
-- The window begins later.
update sessions set window_start = $3 where namespace = $1 and id = $2;

-- hold_of_message
-- The same for the session of a message.
select sessions.id
from sessions
join messages on messages.namespace = $1 and messages.session_id = sessions.id
where sessions.namespace = $1 and messages.id = $2
for update of sessions;

-- covering
-- The session whose summaries stand for a message, too.
select sessions.id
from messages
join sessions on sessions.namespace = $1 and sessions.id = messages.session_id
where messages.namespace = $1 and messages.id = $2 and messages.position < sessions.window_start;

-- remove_summaries
-- All of some sessions: their windows are the whole log again.
delete from summaries where namespace = $1 and session_id = any($2::text[]) returning until;

-- count_summaries
-- How many summaries some sessions have.
select count(*) as summaries from summaries where namespace = $1 and session_id = any($2::text[]);

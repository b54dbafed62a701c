-- append
-- Messages at positions that their sessions handed out.
insert into messages (namespace, id, session_id, position, role, speaker, content, metadata, created_at)
select $1, m.id, m.session_id, m.position, m.role, m.speaker, m.content, m.metadata::jsonb, m.created_at
from unnest($2::uuid[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[])
    as m (id, session_id, position, role, speaker, content, metadata, created_at)
returning id, seq;

-- recent
-- The last messages of a session, newest first.
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = $1 and session_id = $2
order by position desc
limit $3;

-- recent_before
-- The messages of a session before one of its messages, newest first.
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = $1
  and session_id = $2
  and position < (select position from messages where namespace = $1 and session_id = $2 and id = $4)
order by position desc
limit $3;

-- by_seq
-- Messages by the integers that name them.
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = $1 and seq = any($2::bigint[]);

-- keep
-- Those of some messages that are there; none of them goes until the transaction ends.
select seq from messages where namespace = $1 and seq = any($2::bigint[]) order by seq for key share;

-- known
-- Which of some ids are taken.
select id from messages where namespace = $1 and id = any($2::uuid[]);

-- in_session
-- A message, if it is one of a session's.
select id from messages where namespace = $1 and session_id = $2 and id = $3;

-- raw_newest
-- Messages of any session, newest first. A speaker without a name of their own is known by their role.
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = $1
  and ($3::text is null or session_id = $3)
  and ($4::timestamptz is null or created_at >= $4)
  and ($5::timestamptz is null or created_at <= $5)
  and ($6::text is null or coalesce(speaker, role) = $6)
order by created_at desc, session_id desc, position desc
limit $2;

-- raw_oldest
-- The same, oldest first.
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = $1
  and ($3::text is null or session_id = $3)
  and ($4::timestamptz is null or created_at >= $4)
  and ($5::timestamptz is null or created_at <= $5)
  and ($6::text is null or coalesce(speaker, role) = $6)
order by created_at, session_id, position
limit $2;

-- in_sessions
-- Some messages of some sessions.
select id from messages where namespace = $1 and session_id = any($2::text[]) order by session_id, position limit $3;

-- count_in_sessions
-- How many messages some sessions have.
select count(*) as messages from messages where namespace = $1 and session_id = any($2::text[]);

-- remove
-- Some messages; the others keep their positions.
delete from messages where namespace = $1 and id = any($2::uuid[]) returning seq;

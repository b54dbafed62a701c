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

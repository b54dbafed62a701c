-- append
-- Messages and their passages, behind those that their sessions have; the function is in migration 46.
-- Limit given session_owners.
select id, seq, position, created_at
from append_messages(
    :namespace,
    :session_ids::text[], :session_owners::text[], :session_realms::text[], :session_sizes::bigint[],
    :session_begins::boolean[],
    :ids::uuid[], :message_sessions::integer[], :message_places::bigint[], :roles::text[], :speakers::text[],
    :contents::text[], :metadatas::text[], :times::timestamptz[],
    :passage_messages::integer[], :passage_parts::integer[], :passage_texts::text[], :passage_keys::bigint[],
    :passage_key_ends::integer[], :passage_weights::text[],
    :turn_sessions::integer[], :turn_places::bigint[], :turn_sizes::bigint[], :turn_authors::text[], :turn_doors::text[]
);

-- append_on_worker
-- The same on a cluster; the function is in storage/append_on_worker.sql.
-- Limit given session_owners.
select id, seq, position, created_at
from append_messages_on_worker(
    :namespace,
    :session_ids::text[], :session_owners::text[], :session_realms::text[], :session_sizes::bigint[],
    :session_begins::boolean[],
    :ids::uuid[], :message_sessions::integer[], :message_places::bigint[], :roles::text[], :speakers::text[],
    :contents::text[], :metadatas::text[], :times::timestamptz[],
    :passage_messages::integer[], :passage_parts::integer[], :passage_texts::text[], :passage_keys::bigint[],
    :passage_key_ends::integer[], :passage_weights::text[],
    :turn_sessions::integer[], :turn_places::bigint[], :turn_sizes::bigint[], :turn_authors::text[], :turn_doors::text[]
);

-- recent
-- The last messages of a session, newest first.
-- Limit session session_id.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = :namespace and session_id = :session_id
order by position desc
limit :limit;

-- recent_before
-- The messages of a session before one of its messages, newest first.
-- Limit session session_id.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = :namespace
  and session_id = :session_id
  and position < (select position from messages where namespace = :namespace and session_id = :session_id and id =
      :before)
order by position desc
limit :limit;

-- recent_then
-- The last messages of a session that were said by a moment, or those before one of its messages, newest first.
-- Limit session session_id.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = :namespace
  and session_id = :session_id
  and created_at <= :as_of
  and (
      :before::uuid is null
      or position < (select position from messages where namespace = :namespace and session_id = :session_id and id =
          :before)
  )
order by position desc
limit :limit;

-- by_seq
-- Messages by the integers that name them.
-- Limit found_in session_id.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = :namespace and seq = any(:numbers::bigint[]);

-- keep
-- Those of some messages that are there; none of them goes until the transaction ends.
select seq from messages where namespace = :namespace and seq = any(:numbers::bigint[]) order by seq for key share;

-- by_ids
-- Messages by their ids, with their payloads.
-- Limit found_in session_id.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at, payload
from messages
where namespace = :namespace and id = any(:ids::uuid[]);

-- trusts
-- What tells the class of trust of some messages.
-- Limit seen ids.
select id, role, trust from messages where namespace = :namespace and id = any(:ids::uuid[]);

-- present
-- The ids of those of some messages that exist.
select id from messages where namespace = :namespace and id = any(:ids::uuid[]);

-- set_details
-- What clients have of messages that the same transaction has appended, and where these come from.
-- Limit seen ids.
update messages
set payload = given.payload, trust = given.trust
from unnest(:ids::uuid[], :payloads::text[], :trusts::text[]) as given (id, payload, trust)
where messages.namespace = :namespace and messages.id = given.id;

-- first_between
-- The first messages of a session, or of what is between two of them, with their payloads.
-- Limit session session_id.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at, payload
from messages
where namespace = :namespace
  and session_id = :session_id
  and (
      :after::uuid is null
      or position > (select position from messages where namespace = :namespace and session_id = :session_id and id =
          :after)
  )
  and (
      :before::uuid is null
      or position < (select position from messages where namespace = :namespace and session_id = :session_id and id =
          :before)
  )
order by position
limit :limit;

-- last_between
-- The same from the end.
-- Limit session session_id.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at, payload
from messages
where namespace = :namespace
  and session_id = :session_id
  and (
      :after::uuid is null
      or position > (select position from messages where namespace = :namespace and session_id = :session_id and id =
          :after)
  )
  and (
      :before::uuid is null
      or position < (select position from messages where namespace = :namespace and session_id = :session_id and id =
          :before)
  )
order by position desc
limit :limit;

-- in_session
-- A message, if it is one of a session's.
-- Limit session session_id.
select id from messages where namespace = :namespace and session_id = :session_id and id = :message_id;

-- place
-- The position of a message in a session.
-- Limit session session_id.
select position from messages where namespace = :namespace and session_id = :session_id and id = :message_id;

-- lines_before
-- Messages of a session before a position, the last first, with the beginnings of texts; those of a moment if one is
-- given.
-- Limit session session_id.
-- Audit message id
select id, position, role, speaker, left(content, :characters::integer) as text, octet_length(content) as bytes,
       left(metadata::text, :characters) as metadata, coalesce(octet_length(payload), 0) as payload_bytes, created_at
from messages
where namespace = :namespace
  and session_id = :session_id
  and position < :position
  and (:as_of::timestamptz is null or created_at <= :as_of)
order by position desc
limit :limit;

-- lines_from
-- The same from a position on, in order.
-- Limit session session_id.
-- Audit message id
select id, position, role, speaker, left(content, :characters::integer) as text, octet_length(content) as bytes,
       left(metadata::text, :characters) as metadata, coalesce(octet_length(payload), 0) as payload_bytes, created_at
from messages
where namespace = :namespace
  and session_id = :session_id
  and position >= :position
  and (:as_of::timestamptz is null or created_at <= :as_of)
order by position
limit :limit;

-- raw_newest
-- Messages of any session, newest first; of all sessions together, without what is held back. A speaker without a name
-- of their own is known by their role.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = :namespace
  and (:session_id::text is null or session_id = :session_id)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and (:speaker::text is null or coalesce(speaker, role) = :speaker)
  and (
      :session_id is not null
      or not exists (
          select from held
          where held.namespace = :namespace and held.kind = 'message' and held.item_id = messages.id::text
            and held.state = 'held'
      )
  )
order by created_at desc, session_id desc, position desc
limit :limit;

-- raw_oldest
-- The same, oldest first.
-- Audit message id
select id, seq, session_id, position, role, speaker, content, metadata, created_at
from messages
where namespace = :namespace
  and (:session_id::text is null or session_id = :session_id)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
  and (:speaker::text is null or coalesce(speaker, role) = :speaker)
  and (
      :session_id is not null
      or not exists (
          select from held
          where held.namespace = :namespace and held.kind = 'message' and held.item_id = messages.id::text
            and held.state = 'held'
      )
  )
order by created_at, session_id, position
limit :limit;

-- in_sessions
-- Some messages of some sessions.
select id from messages
where namespace = :namespace and session_id = any(:session_ids::text[]) order by session_id, position limit :limit;

-- count_in_sessions
-- How many messages some sessions have.
select count(*) as messages from messages where namespace = :namespace and session_id = any(:session_ids::text[]);

-- remove
-- Some messages; the others keep their positions.
delete from messages where namespace = :namespace and id = any(:message_ids::uuid[]) returning seq;

-- page_messages
-- Messages; a user's are those of the user's sessions.
-- Audit message id
select (to_jsonb(r) - 'namespace')::text as record, r.id
from messages r
where r.namespace = :namespace
  and (
      :user_id::text is null
      or exists (select from sessions s where s.namespace = :namespace and s.id = r.session_id and s.user_id = :user_id)
  )
  and (:after_id::uuid is null or r.id > :after_id)
order by r.id
limit :limit;

-- restore_messages
-- Adds messages that are not there.
insert into messages overriding system value
select * from jsonb_populate_recordset(null::messages, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning id;

-- compare_messages
-- Compares given records with the stored ones.
select given.id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::messages, :records::text::jsonb) as given
left join messages stored on stored.namespace = :namespace and stored.id = given.id;

-- size_messages
-- Rows up to a bound, along an index, to be counted.
select 1 as row from messages where namespace = :namespace order by created_at limit :limit;

-- of_turns
-- Messages of some turns, the first few of each, with their texts cut.
-- Audit message id
select t.number, m.id, m.position, m.role, m.speaker, left(m.content, :most_characters::integer) as text
from unnest(:session_ids::text[], :firsts::bigint[], :sizes::bigint[]) with ordinality
    as t (session_id, first, size, number)
join messages m on m.namespace = :namespace
    and m.session_id = t.session_id
    and m.position >= t.first
    and m.position < t.first + least(t.size, :most_messages::bigint)
order by t.number, m.position;

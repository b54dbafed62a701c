-- Chats of the gateway are stored under ids that no other door writes to: `chat:7f3a@` and 16 digits of user, app and
-- project. Before this, a chat had the id that its client sent, which an application could be using or come to use.
-- What came through the gateway (known by its ids: UUIDs of version 8) moves to a session of its own; what other doors
-- wrote stays where it is, and is no longer the gateway user's if that user only began the session.
alter table sessions no force row level security;
alter table messages no force row level security;
alter table summaries no force row level security;
alter table passages no force row level security;

alter table sessions
    add column moves_to text,
    add column begun_by_gateway boolean;

update sessions
set moves_to = regexp_replace(id, '@[0-9a-f]{16}$', '') || '@'
        || left(encode(sha256(convert_to(length(user_id) || ' ' || user_id || realm, 'UTF8')), 'hex'), 16),
    begun_by_gateway = (
        select substr(first.id::text, 15, 1) = '8'
        from messages first
        where first.namespace = sessions.namespace and first.session_id = sessions.id
        order by first.position
        limit 1
    )
where exists (
    select from messages said
    where said.namespace = sessions.namespace and said.session_id = sessions.id and substr(said.id::text, 15, 1) = '8'
);

-- Ids that the gateway does not take any more (they lack `chat:`), or that are taken, end in digits of their own.
update sessions
set moves_to = 'chat:' || regexp_replace(regexp_replace(id, '@[0-9a-f]{16}$', ''), '^chat:', '') || '@'
        || left(encode(sha256(convert_to(id || ' ' || user_id || ' ' || realm, 'UTF8')), 'hex'), 16)
where moves_to is not null
  and (
      moves_to not like 'chat:_%@%'
      or exists (
          select from sessions other
          where other.namespace = sessions.namespace and other.id <> sessions.id
            and (other.id = sessions.moves_to or (other.moves_to = sessions.moves_to and other.id < sessions.id))
      )
  );

insert into sessions (
    namespace, id, user_id, realm, next_position, created_at, updated_at,
    window_strategy, window_max_messages, window_max_tokens
)
select namespace, moves_to, user_id, realm, next_position, created_at, updated_at,
       window_strategy, window_max_messages, window_max_tokens
from sessions
where moves_to is not null;

update messages
set session_id = sessions.moves_to
from sessions
where sessions.namespace = messages.namespace and sessions.id = messages.session_id and sessions.moves_to is not null
  and substr(messages.id::text, 15, 1) = '8';

update passages
set session_id = sessions.moves_to
from sessions
where sessions.namespace = passages.namespace and sessions.id = passages.session_id and sessions.moves_to is not null
  and passages.kind = 'message' and substr(passages.item_id, 15, 1) = '8';

-- No app and project has this name, so no search of the gateway finds them; every other search does.
update passages
set realm = 'other doors'
from sessions
where sessions.namespace = passages.namespace and sessions.id = passages.session_id and sessions.begun_by_gateway
  and passages.kind = 'message';

-- Summaries may mix both sides. Windows are summarised again when they are next read.
delete from summaries
using sessions
where sessions.namespace = summaries.namespace and sessions.id = summaries.session_id and sessions.moves_to is not null;

update sessions set window_start = 0 where moves_to is not null;

delete from sessions
where begun_by_gateway
  and not exists (
      select from messages left_behind
      where left_behind.namespace = sessions.namespace and left_behind.session_id = sessions.id
  );

update sessions set user_id = 'anonymous', realm = '' where begun_by_gateway;

alter table sessions
    drop column moves_to,
    drop column begun_by_gateway;

alter table sessions force row level security;
alter table messages force row level security;
alter table summaries force row level security;
alter table passages force row level security;

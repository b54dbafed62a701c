-- What happened to the items of a namespace, one row each, numbered in the order of commits and without gaps: so a reader
-- that has seen number N asks for what is above, and misses nothing. Rows hold ids and no content, which is read from the
-- item itself and is gone when the item is.
create table changes (
    namespace text not null,
    number bigint not null,
    at timestamptz not null default clock_timestamp(),
    event text not null,
    kind text not null,
    item_id text not null,
    -- The label of a key, or a user of the gateway; null if the door does not know.
    author text,
    door text not null,
    detail jsonb,
    primary key (namespace, number)
);
create index changes_by_item on changes (namespace, kind, item_id, number);

-- The last number of each namespace.
create table change_counters (
    namespace text not null,
    last bigint not null,
    primary key (namespace)
);

alter table changes enable row level security;
alter table changes force row level security;
create policy own_namespace on changes using (namespace = current_setting('recollect.namespace', true));

alter table change_counters enable row level security;
alter table change_counters force row level security;
create policy own_namespace on change_counters using (namespace = current_setting('recollect.namespace', true));

-- Records changes; returns the number of the last. The counter stays locked until the transaction ends, so this must be
-- its last statement: then nobody who holds the counter waits for another lock, and nobody holds it for long.
create or replace function record_changes(
    in_namespace text,
    events text[],
    kinds text[],
    item_ids text[],
    details text[],
    authors text[],
    doors text[]
)
returns table (last bigint)
language plpgsql
as $$
#variable_conflict use_column
declare
    last_change bigint;
begin
    insert into change_counters (namespace, last)
    values (in_namespace, cardinality(events))
    on conflict (namespace) do update set last = change_counters.last + excluded.last
    returning change_counters.last into last_change;

    insert into changes (namespace, number, event, kind, item_id, author, door, detail)
    select in_namespace, last_change - cardinality(events) + c.number, c.event, c.kind, c.item_id, c.author, c.door,
           c.detail::jsonb
    from unnest(events, kinds, item_ids, details, authors, doors) with ordinality
        as c (event, kind, item_id, detail, author, door, number);
    return query select last_change;
end
$$;

-- A call of fewer values would still find the one that records nothing.
drop function append_messages(
    text, text[], text[], text[], bigint[], boolean[], uuid[], integer[], bigint[], text[], text[], text[], text[],
    timestamptz[], integer[], integer[], text[], bigint[], integer[], text[]
);

-- As in migration 23; besides, it records the turns that the messages came in.
--
-- Appends messages with their passages in one call, and so in one round trip. It sets the namespace for itself: where
-- connections are pooled by transaction, that would take two more.
create or replace function append_messages(
    in_namespace text,
    -- Sessions: whose each is believed to be, how many messages it gets, and whether it may begin with them.
    session_ids text[],
    session_owners text[],
    session_realms text[],
    session_sizes bigint[],
    session_begins boolean[],
    -- Messages: the number of the session, the place among its new messages from 0; without a time they take the call's.
    message_ids uuid[],
    message_sessions integer[],
    message_places bigint[],
    roles text[],
    speakers text[],
    contents text[],
    metadatas text[],
    times timestamptz[],
    -- Passages: the number of the message; without a text a passage is the whole message. Each has the keys up to its
    -- end in the list of all.
    passage_messages integer[],
    passage_parts integer[],
    passage_texts text[],
    passage_keys bigint[],
    passage_key_ends integer[],
    passage_weights text[],
    -- Turns: the number of the session, the place of its first message there, how many it has, and who brought it. None
    -- if the caller records them itself.
    turn_sessions integer[],
    turn_places bigint[],
    turn_sizes bigint[],
    turn_authors text[],
    turn_doors text[]
)
returns table (id uuid, seq bigint, "position" bigint, created_at timestamptz)
language plpgsql
as $$
#variable_conflict use_column
declare
    session record;
    firsts bigint[] := array_fill(null::bigint, array[cardinality(session_ids)]);
    moments timestamptz[] := array_fill(null::timestamptz, array[cardinality(session_ids)]);
    owner text;
    realm text;
    first_position bigint;
    moment timestamptz;
    counter regclass;
    passage_ids bigint[];
begin
    perform set_config('recollect.namespace', in_namespace, true);

    -- Before any session is locked, and both in the order of ids: so two calls never wait for each other.
    if true = any(session_begins) then
        insert into sessions (namespace, id, user_id, realm)
        select in_namespace, s.id, s.owner, s.realm
        from unnest(session_ids, session_owners, session_realms, session_begins) as s (id, owner, realm, begins)
        where s.begins
        order by s.id
        on conflict (namespace, id) do nothing;
    end if;

    for session in
        select s.*
        from unnest(session_ids, session_owners, session_realms, session_sizes) with ordinality
            as s (session_id, owner, realm, size, number)
        order by s.session_id
    loop
        -- The time never goes backwards inside a session.
        update sessions
        set next_position = sessions.next_position + session.size, updated_at = greatest(sessions.updated_at, now())
        where sessions.namespace = in_namespace and sessions.id = session.session_id
        returning sessions.user_id, sessions.realm, sessions.next_position - session.size, sessions.updated_at
        into owner, realm, first_position, moment;
        if not found or owner <> session.owner or realm <> session.realm then
            raise exception 'session % is gone or somebody else''s', session.session_id using errcode = 'RC001';
        end if;
        firsts[session.number] := first_position;
        moments[session.number] := moment;
    end loop;

    return query
    insert into messages (namespace, id, session_id, position, role, speaker, content, metadata, created_at)
    select in_namespace, m.id, session_ids[m.session], firsts[m.session] + m.place, m.role, m.speaker, m.content,
           m.metadata::jsonb, coalesce(m.at, moments[m.session])
    from unnest(message_ids, message_sessions, message_places, roles, speakers, contents, metadatas, times)
        as m (id, session, place, role, speaker, content, metadata, at)
    returning messages.id, messages.seq, messages.position, messages.created_at;

    if cardinality(passage_messages) > 0 then
        counter := pg_get_serial_sequence('passages', 'id');
        passage_ids := array(select nextval(counter) from unnest(passage_messages));
        insert into passages (
            namespace, id, kind, item_id, part, owner, session_id, position, role, speaker, metadata, at, text, realm
        )
        overriding system value
        select in_namespace, passage_ids[p.number], 'message', message_ids[p.message]::text, p.part,
               session_owners[m.session], session_ids[m.session], firsts[m.session] + message_places[p.message],
               roles[p.message], speakers[p.message], metadatas[p.message]::jsonb,
               coalesce(times[p.message], moments[m.session]), coalesce(p.text, contents[p.message]),
               session_realms[m.session]
        from unnest(passage_messages, passage_parts, passage_texts) with ordinality as p (message, part, text, number)
        cross join lateral (select message_sessions[p.message] as session) as m;

        insert into passage_words (namespace, id, kind, head, keys, weights)
        select in_namespace, passage_ids[p.number], 'message',
               case when p.part > 0 then passage_ids[p.number - p.part] end,
               passage_keys[coalesce(passage_key_ends[p.number - 1], 0) + 1 : p.key_end], p.weights::sparsevec
        from unnest(passage_parts, passage_key_ends, passage_weights) with ordinality as p (part, key_end, weights, number);

        insert into passage_queue (namespace, id, owner)
        select in_namespace, passage_ids[p.number], session_owners[message_sessions[p.message]]
        from unnest(passage_messages) with ordinality as p (message, number);
    end if;

    -- The last lock that is taken, see record_changes.
    if cardinality(turn_sessions) > 0 then
        with counter as (
            insert into change_counters (namespace, last)
            values (in_namespace, cardinality(turn_sessions))
            on conflict (namespace) do update set last = change_counters.last + excluded.last
            returning change_counters.last - cardinality(turn_sessions) as before
        )
        insert into changes (namespace, number, event, kind, item_id, author, door, detail)
        select in_namespace, counter.before + t.number, 'add', 'message', session_ids[t.session], t.author, t.door,
               jsonb_build_object('first', firsts[t.session] + t.place, 'count', t.size)
        from counter
        cross join unnest(turn_sessions, turn_places, turn_sizes, turn_authors, turn_doors) with ordinality
            as t (session, place, size, author, door, number);
    end if;
end
$$;

-- As in migration 26, but it returns the number of every change: rows that Citus is not asked for it copies to the shard,
-- and PostgreSQL does not copy into a table with a policy.
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

    return query
    insert into changes (namespace, number, event, kind, item_id, author, door, detail)
    select in_namespace, last_change - cardinality(events) + c.number, c.event, c.kind, c.item_id, c.author, c.door,
           c.detail::jsonb
    from unnest(events, kinds, item_ids, details, authors, doors) with ordinality
        as c (event, kind, item_id, detail, author, door, number)
    returning changes.number;
end
$$;

-- As in migration 26, with the same two changes: it has the function above record the turns, and returns passages.
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
    stored_id bigint;
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
        -- Their ids are known; Citus copies rows of which nothing is returned.
        for stored_id in
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
            cross join lateral (select message_sessions[p.message] as session) as m
            returning passages.id
        loop
        end loop;

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
        perform record_changes(
            in_namespace,
            array_fill('add'::text, array[cardinality(turn_sessions)]),
            array_fill('message'::text, array[cardinality(turn_sessions)]),
            array(
                select session_ids[t.session]
                from unnest(turn_sessions) with ordinality as t (session, number)
                order by t.number
            ),
            array(
                select jsonb_build_object('first', firsts[t.session] + t.place, 'count', t.size)::text
                from unnest(turn_sessions, turn_places, turn_sizes) with ordinality as t (session, place, size, number)
                order by t.number
            ),
            turn_authors,
            turn_doors
        );
    end if;
end
$$;

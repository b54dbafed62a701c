-- Takes a share lock, which a move of the shard and of those that are kept with it waits for, until the transaction ends.
-- It takes the owner of the tables to do that.
create or replace function keep_shard_in_place(shard bigint)
returns void
language sql
security definer
set search_path = pg_catalog
as $$ select lock_shard_metadata(5, array[shard]) $$;

-- The one that recorded no changes: a name may stand for one function only.
drop function if exists append_messages_on_worker(
    text, text[], text[], text[], bigint[], boolean[], uuid[], integer[], bigint[], text[], text[], text[], text[],
    timestamptz[], integer[], integer[], text[], bigint[], integer[], text[]
);

-- append_messages of migration 46 on a cluster, outside a transaction: it runs whole on the worker of its namespace and
-- writes to the shards there by their names. Through the distributed tables, Citus would plan each statement for the whole
-- cluster, and copy rows that come from arrays to a file first, which took twice as long. Everything after the sessions
-- is one statement, since one that names a shard is planned at each call.
create or replace function append_messages_on_worker(
    in_namespace text,
    session_ids text[],
    session_owners text[],
    session_realms text[],
    session_sizes bigint[],
    session_begins boolean[],
    message_ids uuid[],
    message_sessions integer[],
    message_places bigint[],
    roles text[],
    speakers text[],
    contents text[],
    metadatas text[],
    times timestamptz[],
    passage_messages integer[],
    passage_parts integer[],
    passage_texts text[],
    passage_keys bigint[],
    passage_key_ends integer[],
    passage_weights text[],
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
    found_session record;
    own_shard bigint := get_shard_id_for_distribution_column('messages', in_namespace);
    message_seqs bigint[];
    passage_ids bigint[];
    last_change bigint;
    shards text[] := array(
        select shard_name(t.name, get_shard_id_for_distribution_column(t.name, in_namespace))
        from unnest('{sessions, messages, passages, passage_words, passage_queue, change_counters, changes}'::regclass[])
            with ordinality as t (name, number)
        order by t.number
    );
begin
    perform set_config('recollect.namespace', in_namespace, true);

    -- From here on no shard of the namespace moves. One that has moved before is not to be written to here.
    perform keep_shard_in_place(own_shard);
    if not exists (
        select 1
        from pg_dist_placement
        join pg_dist_local_group on pg_dist_local_group.groupid = pg_dist_placement.groupid
        where shardid = own_shard
    ) then
        raise exception 'namespace % has moved to another worker', in_namespace using errcode = 'RC001';
    end if;

    -- In the order of ids, so that two calls never wait for each other.
    for session in
        select s.*
        from unnest(session_ids, session_owners, session_realms, session_sizes, session_begins) with ordinality
            as s (session_id, owner, realm, size, begins, number)
        order by s.session_id
    loop
        if session.begins then
            execute format(
                'insert into %s (namespace, id, user_id, realm) values ($1, $2, $3, $4) '
                || 'on conflict (namespace, id) do nothing',
                shards[1]
            )
            using in_namespace, session.session_id, session.owner, session.realm;
        end if;
        -- The time never goes backwards inside a session.
        execute format(
            'update %s set next_position = next_position + $3, updated_at = greatest(updated_at, now()) '
            || 'where namespace = $1 and id = $2 '
            || 'returning user_id as owner, realm, next_position - $3 as first, updated_at as moment',
            shards[1]
        )
        into found_session
        using in_namespace, session.session_id, session.size;
        if found_session.owner is distinct from session.owner or found_session.realm <> session.realm then
            raise exception 'session % is gone or somebody else''s', session.session_id using errcode = 'RC001';
        end if;
        firsts[session.number] := found_session.first;
        moments[session.number] := found_session.moment;
    end loop;

    message_seqs := array(select nextval(pg_get_serial_sequence('messages', 'seq')) from unnest(message_ids));
    passage_ids := array(select nextval(pg_get_serial_sequence('passages', 'id')) from unnest(passage_messages));
    return query execute format(
        $statement$
        with new_messages as (
            insert into %1$s (namespace, id, seq, session_id, position, role, speaker, content, metadata, created_at)
            overriding system value
            select $1, m.id, $13[m.number], $9[m.session], $10[m.session] + m.place, m.role, m.speaker, m.content,
                   m.metadata::jsonb, coalesce(m.at, $11[m.session])
            from unnest($2, $3, $4, $5, $6, $7, $8, $12) with ordinality
                as m (id, session, place, role, speaker, content, metadata, at, number)
            returning id, seq, position, created_at
        ),
        new_passages as (
            insert into %2$s (
                namespace, id, kind, item_id, part, owner, session_id, position, role, speaker, metadata, at, text, realm
            )
            overriding system value
            select $1, $14[p.number], 'message', $2[p.message]::text, p.part, $15[$3[p.message]], $9[$3[p.message]],
                   $10[$3[p.message]] + $4[p.message], $5[p.message], $6[p.message], $8[p.message]::jsonb,
                   coalesce($12[p.message], $11[$3[p.message]]), coalesce(p.text, $7[p.message]), $16[$3[p.message]]
            from unnest($17, $18, $19) with ordinality as p (message, part, text, number)
        ),
        new_words as (
            insert into %3$s (namespace, id, kind, head, keys, weights)
            select $1, $14[p.number], 'message', case when p.part > 0 then $14[p.number - p.part] end,
                   $20[coalesce($21[p.number - 1], 0) + 1 : p.key_end], p.weights::sparsevec
            from unnest($18, $21, $22) with ordinality as p (part, key_end, weights, number)
        ),
        new_work as (
            insert into %4$s (namespace, id, owner)
            select $1, $14[p.number], $15[$3[p.message]] from unnest($17) with ordinality as p (message, number)
        )
        select id, seq, position, created_at from new_messages
        $statement$,
        shards[2], shards[3], shards[4], shards[5]
    )
    using in_namespace, message_ids, message_sessions, message_places, roles, speakers, contents, metadatas,
        session_ids, firsts, moments, times, message_seqs, passage_ids, session_owners, session_realms,
        passage_messages, passage_parts, passage_texts, passage_keys, passage_key_ends, passage_weights;

    -- The last lock that is taken, see record_changes.
    if cardinality(turn_sessions) > 0 then
        execute format(
            'insert into %1$s as c (namespace, last) values ($1, $2) '
            || 'on conflict (namespace) do update set last = c.last + excluded.last returning last',
            shards[6]
        )
        into last_change
        using in_namespace, cardinality(turn_sessions);
        execute format(
            $statement$
            insert into %1$s (namespace, number, event, kind, item_id, author, door, detail)
            select $1, $2 - cardinality($3) + t.number, 'add', 'message', $4[t.session], t.author, t.door,
                   jsonb_build_object('first', $5[t.session] + t.place, 'count', t.size)
            from unnest($3, $6, $7, $8, $9) with ordinality as t (session, place, size, author, door, number)
            $statement$,
            shards[7]
        )
        using in_namespace, last_change, turn_sessions, session_ids, firsts, turn_places, turn_sizes, turn_authors,
            turn_doors;
    end if;
end
$$;

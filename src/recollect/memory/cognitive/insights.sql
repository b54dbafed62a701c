-- add
-- One insight, with the messages it was condensed from.
insert into insights (namespace, content, source_ids, fidelity, metadata)
values ($1, $2, $3::bigint[], $4, $5)
returning id, created_at;

-- find
-- Some insights by their ids, those above a fidelity.
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = $1 and id = any($2::bigint[]) and ($3::float8 is null or fidelity >= $3);

-- newest
-- Insights of a range of time and above a fidelity, newest first.
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = $1
  and ($3::float8 is null or fidelity >= $3)
  and ($4::timestamptz is null or created_at >= $4)
  and ($5::timestamptz is null or created_at <= $5)
order by created_at desc, id desc
limit $2;

-- made_from
-- Insights that some messages went into, and whether there are other messages that did.
select insights.id,
       exists (
           select from messages
           where messages.namespace = $1
             and messages.seq = any(insights.source_ids)
             and messages.seq <> all($2::bigint[])
       ) as from_others
from insights
where insights.namespace = $1
  -- Not &&, which compares every pair: the numbers given here are hashed.
  and exists (select from unnest(insights.source_ids) as source (seq) where source.seq = any($2::bigint[]));

-- made_from_sessions
-- The same for all the messages of some sessions.
select insights.id, bool_or(messages.session_id <> all($2::text[])) as from_others
from insights
cross join unnest(insights.source_ids) as source (seq)
join messages on messages.namespace = $1 and messages.seq = source.seq
where insights.namespace = $1
group by insights.id
having bool_or(messages.session_id = any($2::text[]));

-- remove
-- Some insights.
delete from insights where namespace = $1 and id = any($2::bigint[]) returning id;

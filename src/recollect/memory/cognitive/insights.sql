-- add
-- One insight, with the messages it was condensed from.
insert into insights (namespace, content, source_ids, fidelity, metadata)
values (:namespace, :content, :source_ids::bigint[], :fidelity, :metadata)
returning id, created_at;

-- find
-- Some insights by their ids, those above a fidelity.
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = :namespace and id = any(:ids::bigint[])
  and (:fidelity_min::float8 is null or fidelity >= :fidelity_min);

-- newest
-- Insights of a range of time and above a fidelity, newest first.
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = :namespace
  and (:fidelity_min::float8 is null or fidelity >= :fidelity_min)
  and (:since::timestamptz is null or created_at >= :since)
  and (:until::timestamptz is null or created_at <= :until)
order by created_at desc, id desc
limit :limit;

-- made_from
-- Insights that some messages went into, and whether there are other messages that did.
select insights.id,
       exists (
           select from messages
           where messages.namespace = :namespace
             and messages.seq = any(insights.source_ids)
             and messages.seq <> all(:numbers::bigint[])
       ) as from_others
from insights
where insights.namespace = :namespace
  -- Not &&, which compares every pair: the numbers given here are hashed.
  and exists (select from unnest(insights.source_ids) as source (seq) where source.seq = any(:numbers::bigint[]));

-- made_from_sessions
-- The same for all the messages of some sessions.
select insights.id, bool_or(messages.session_id <> all(:session_ids::text[])) as from_others
from insights
cross join unnest(insights.source_ids) as source (seq)
join messages on messages.namespace = :namespace and messages.seq = source.seq
where insights.namespace = :namespace
group by insights.id
having bool_or(messages.session_id = any(:session_ids::text[]));

-- remove
-- Some insights.
delete from insights where namespace = :namespace and id = any(:ids::bigint[]) returning id;
